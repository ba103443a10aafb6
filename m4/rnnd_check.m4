dnl RNND_CHECK: Check, for the unit tests only. Sets CHECK_CFLAGS, CHECK_LIBS and the
dnl conditional HAVE_CHECK.
AC_DEFUN([RNND_CHECK], [
  PKG_CHECK_MODULES([CHECK], [check >= 0.10],
    [rnnd_check="Check `$PKG_CONFIG --modversion check`"],
    [rnnd_check="none: Check was not found (Debian: check)"])
  AM_CONDITIONAL([HAVE_CHECK], [test -n "$CHECK_LIBS"])
])
