dnl RNND_INIH: inih, which reads configuration files. Sets INIH_CFLAGS and INIH_LIBS.
AC_DEFUN([RNND_INIH], [
  PKG_CHECK_MODULES([INIH], [inih], [],
    [AC_MSG_ERROR([inih was not found (Debian: libinih-dev).])])
  rnnd_inih=`$PKG_CONFIG --modversion inih`
])
