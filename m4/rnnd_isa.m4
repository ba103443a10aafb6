dnl RNND_ISA: the instruction sets, besides the compiler's default, that kernels are compiled
dnl for (one is chosen at run time), and the flags that all kernels share.
dnl Sets KERNEL_CFLAGS and the conditional HAVE_X86.
AC_DEFUN([RNND_ISA], [
  AS_CASE([$host_cpu], [x86_64], [rnnd_x86=yes], [rnnd_x86=no])
  AM_CONDITIONAL([HAVE_X86], [test $rnnd_x86 = yes])
  AS_IF([test $rnnd_x86 = yes],
    [rnnd_isa="$host_cpu, AVX2, AVX-512"], [rnnd_isa="$host_cpu"])
  KERNEL_CFLAGS=
  dnl Named one by one, they hold even if the user's -O2 follows them.
  for rnnd_flag in -O3 -ftree-vectorize -fvect-cost-model=dynamic -fno-math-errno \
    -fno-trapping-math; do
    _RNND_TRY_CFLAG([$rnnd_flag])
  done
  AC_SUBST([KERNEL_CFLAGS])
])

dnl Adds a flag to KERNEL_CFLAGS if the compiler accepts it without a warning.
AC_DEFUN([_RNND_TRY_CFLAG], [
  AC_MSG_CHECKING([whether $CC takes $1])
  rnnd_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $1 -Werror"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
    [AC_MSG_RESULT([yes])
     AS_VAR_APPEND([KERNEL_CFLAGS], [" $1"])],
    [AC_MSG_RESULT([no])])
  CFLAGS=$rnnd_save_CFLAGS
])
