dnl RNND_SANITIZE: --enable-sanitize builds everything with ASan and UBSan;
dnl --enable-sanitize=thread with TSan.
dnl Sets SANITIZE_FLAGS (for compiling and linking), RNND_DEFAULT_CFLAGS and the conditional
dnl SANITIZE (ASan and UBSan). Comes before AC_PROG_CC, which reads CFLAGS.
AC_DEFUN([RNND_SANITIZE], [
  AC_ARG_ENABLE([sanitize],
    [AS_HELP_STRING([--enable-sanitize@<:@=thread@:>@],
      [build with AddressSanitizer and UndefinedBehaviorSanitizer, or ThreadSanitizer])],
    [], [enable_sanitize=no])
  SANITIZE_FLAGS=
  RNND_DEFAULT_CFLAGS="-g -O1"
  AS_CASE([$enable_sanitize],
    [no], [
      RNND_DEFAULT_CFLAGS="-g -O3"
      rnnd_sanitize=no],
    [thread], [
      SANITIZE_FLAGS="-fsanitize=thread -fno-omit-frame-pointer"
      rnnd_sanitize=thread],
    [yes], [
      SANITIZE_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all"
      SANITIZE_FLAGS="$SANITIZE_FLAGS -fno-omit-frame-pointer"
      rnnd_sanitize="address, undefined"],
    [AC_MSG_ERROR([--enable-sanitize=$enable_sanitize: takes no value, or thread])])
  AC_SUBST([SANITIZE_FLAGS])
  AM_CONDITIONAL([SANITIZE], [test "x$enable_sanitize" = xyes])
])
