dnl RNND_GEMM: --with-gemm=onednn|cblas, the matrix product of the CPU back end.
dnl Defines RNND_GEMM_ONEDNN or RNND_GEMM_CBLAS. Sets GEMM_CFLAGS and GEMM_LIBS.
AC_DEFUN([RNND_GEMM], [
  AC_ARG_WITH([gemm],
    [AS_HELP_STRING([--with-gemm=onednn|cblas],
      [library for matrix products on the CPU: oneDNN (default) or a CBLAS])],
    [], [with_gemm=onednn])
  AS_CASE([$with_gemm],
    [onednn|yes], [_RNND_GEMM_ONEDNN],
    [cblas], [_RNND_GEMM_CBLAS],
    [AC_MSG_ERROR([--with-gemm=$with_gemm: expected onednn or cblas])])
  AC_SUBST([GEMM_CFLAGS])
  AC_SUBST([GEMM_LIBS])
])

AC_DEFUN([_RNND_GEMM_ONEDNN], [
  AC_CHECK_HEADER([dnnl.h], [rnnd_have_dnnl=yes], [rnnd_have_dnnl=no])
  AS_IF([test $rnnd_have_dnnl = yes],
    [AC_CHECK_LIB([dnnl], [dnnl_sgemm], [GEMM_LIBS=-ldnnl], [rnnd_have_dnnl=no])])
  AS_IF([test $rnnd_have_dnnl = no], [AC_MSG_ERROR([oneDNN was not found
(dnnl.h and libdnnl; Debian: libdnnl-dev). Use --with-gemm=cblas for a CBLAS instead.])])
  AC_DEFINE([RNND_GEMM_ONEDNN], [1], [Matrix products by oneDNN])
  rnnd_gemm=oneDNN
])

AC_DEFUN([_RNND_GEMM_CBLAS], [
  rnnd_pc=openblas
  PKG_CHECK_MODULES([GEMM], [openblas], [], [
    rnnd_pc=cblas
    PKG_CHECK_MODULES([GEMM], [cblas], [], [
      rnnd_pc=blas
      PKG_CHECK_MODULES([GEMM], [blas], [], [AC_MSG_ERROR([no CBLAS was found:
pkg-config knows neither openblas, cblas nor blas (Debian: libopenblas-dev).])])])])
  rnnd_save_CPPFLAGS=$CPPFLAGS rnnd_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $GEMM_CFLAGS" LIBS="$GEMM_LIBS $LIBS"
  AC_CHECK_HEADER([cblas.h], [], [AC_MSG_ERROR([$rnnd_pc has no cblas.h])])
  AC_CHECK_FUNC([cblas_sgemm], [], [AC_MSG_ERROR([$rnnd_pc has no cblas_sgemm])])
  CPPFLAGS=$rnnd_save_CPPFLAGS LIBS=$rnnd_save_LIBS
  AC_DEFINE([RNND_GEMM_CBLAS], [1], [Matrix products by a CBLAS])
  rnnd_gemm="CBLAS by $rnnd_pc `$PKG_CONFIG --modversion $rnnd_pc`"
])
