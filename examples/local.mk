# examples/local.mk - the quick start, its data, and programs on the public header.
