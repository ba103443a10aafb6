dnl RNND_JANSSON: jansson, which reads and writes JSON. Sets JANSSON_CFLAGS and JANSSON_LIBS.
AC_DEFUN([RNND_JANSSON], [
  PKG_CHECK_MODULES([JANSSON], [jansson], [],
    [AC_MSG_ERROR([jansson was not found (Debian: libjansson-dev).])])
  rnnd_jansson=`$PKG_CONFIG --modversion jansson`
])
