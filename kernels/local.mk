# kernels/local.mk - the back ends.
