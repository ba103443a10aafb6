dnl RNND_MANDOC: mandoc, for checking the manual pages only. Sets MANDOC, empty without it.
AC_DEFUN([RNND_MANDOC], [
  AC_CHECK_PROGS([MANDOC], [mandoc])
  rnnd_mandoc="${MANDOC:-none: mandoc was not found}"
])
