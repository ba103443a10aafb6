dnl RNND_OPENMP: the compiler's OpenMP, for the threads of the CPU kernels.
dnl Sets OPENMP_CFLAGS (for compiling and linking).
AC_DEFUN([RNND_OPENMP], [
  AC_OPENMP
  AS_CASE([${ac_cv_prog_c_openmp-unsupported}],
    [unsupported|"not found"], [AC_MSG_ERROR([OpenMP does not work with $CC.
Install its run-time library (Debian: libomp-dev for clang; gcc includes it), and do not
pass --disable-openmp.])])
  rnnd_openmp=$ac_cv_prog_c_openmp
])
