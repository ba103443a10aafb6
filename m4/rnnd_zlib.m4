dnl RNND_ZLIB: zlib, which reads text compressed by gzip. Sets ZLIB_CFLAGS and ZLIB_LIBS.
AC_DEFUN([RNND_ZLIB], [
  PKG_CHECK_MODULES([ZLIB], [zlib], [],
    [AC_MSG_ERROR([zlib was not found (Debian: zlib1g-dev).])])
  rnnd_zlib=`$PKG_CONFIG --modversion zlib`
])
