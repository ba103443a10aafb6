dnl RNND_SANITIZE: --enable-sanitize builds everything with ASan and UBSan.
dnl Sets SANITIZE_FLAGS (for compiling and linking), RNND_DEFAULT_CFLAGS and the conditional
dnl SANITIZE. Comes before AC_PROG_CC, which reads CFLAGS.
AC_DEFUN([RNND_SANITIZE], [
  AC_ARG_ENABLE([sanitize],
    [AS_HELP_STRING([--enable-sanitize],
      [build with AddressSanitizer and UndefinedBehaviorSanitizer])],
    [], [enable_sanitize=no])
  SANITIZE_FLAGS=
  RNND_DEFAULT_CFLAGS="-g -O3"
  rnnd_sanitize=no
  AS_IF([test "x$enable_sanitize" != xno], [
    SANITIZE_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all"
    SANITIZE_FLAGS="$SANITIZE_FLAGS -fno-omit-frame-pointer"
    RNND_DEFAULT_CFLAGS="-g -O1"
    rnnd_sanitize="address, undefined"])
  AC_SUBST([SANITIZE_FLAGS])
  AM_CONDITIONAL([SANITIZE], [test "x$enable_sanitize" != xno])
])
