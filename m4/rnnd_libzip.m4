dnl RNND_LIBZIP: libzip, for .npz files; optional. Sets LIBZIP_CFLAGS, LIBZIP_LIBS and
dnl HAVE_LIBZIP. --with-libzip fails where it is missing, --without-libzip does not look.
AC_DEFUN([RNND_LIBZIP], [
  AC_ARG_WITH([libzip],
    [AS_HELP_STRING([--with-libzip], [read and write .npz files (default: if libzip is found)])],
    [], [with_libzip=auto])
  rnnd_libzip=no
  AS_IF([test "x$with_libzip" != xno],
    [PKG_CHECK_MODULES([LIBZIP], [libzip],
      [rnnd_libzip=`$PKG_CONFIG --modversion libzip`
       AC_DEFINE([HAVE_LIBZIP], [1], [Whether .npz files can be read and written.])],
      [AS_IF([test "x$with_libzip" = xyes],
        [AC_MSG_ERROR([libzip was not found (Debian: libzip-dev).])])])])
])
