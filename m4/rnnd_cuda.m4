dnl RNND_CUDA: --with-cuda=yes|no|auto, the toolkit for the CUDA plug-in and for the emulated
dnl GPU. Sets NVCC, NVCC_ARCH, CUDA_CFLAGS, CUDA_LIBS and the conditionals HAVE_NVCC (the
dnl plug-in can be built), CUDA_IN_ALL (`make` builds it) and HAVE_SIMT (CUDA's headers and a
dnl C++17 compiler: the emulated GPU can be built).
AC_DEFUN([RNND_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=yes|no|auto],
      [build the CUDA plug-in: with make (yes), never (no), or with make if this machine
       has a GPU and with make cuda otherwise (auto, the default)])],
    [], [with_cuda=auto])
  AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST],
      [compute capabilities to build for, such as "80 90" (default: that of this machine's
       GPU, or all from 75 to 120)])],
    [], [with_cuda_arch=])
  AS_CASE([$with_cuda], [yes|no|auto], [],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: expected yes, no or auto])])
  AC_ARG_VAR([NVCC], [NVIDIA's compiler])
  AC_ARG_VAR([NVCCFLAGS], [flags for NVIDIA's compiler])
  rnnd_cuda=no rnnd_have_nvcc=no rnnd_have_simt=no rnnd_cuda_in_all=no
  AS_IF([test $with_cuda != no], [_RNND_CUDA_HEADERS])
  AS_IF([test $rnnd_have_simt = yes && test -n "$NVCC"], [_RNND_CUDA_LIBRARIES])
  AS_IF([test $rnnd_have_nvcc = yes], [_RNND_CUDA_ARCH])
  AS_IF([test $with_cuda = yes && test $rnnd_have_nvcc = no],
    [AC_MSG_ERROR([--with-cuda=yes: nvcc, CUDA's and NCCL's headers, and the libraries
cudart and cublas are needed; set PATH or CUDA_HOME, and see config.log.])])
  AC_SUBST([CUDA_CFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([NVCC_ARCH])
  AM_CONDITIONAL([HAVE_SIMT], [test $rnnd_have_simt = yes])
  AM_CONDITIONAL([HAVE_NVCC], [test $rnnd_have_nvcc = yes])
  AM_CONDITIONAL([CUDA_IN_ALL], [test $rnnd_cuda_in_all = yes])
])

dnl The rest of the toolkit is expected beside nvcc.
AC_DEFUN([_RNND_CUDA_HEADERS], [
  rnnd_home=${CUDA_HOME-${CUDA_PATH-/usr/local/cuda}}
  AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR$rnnd_home/bin])
  AS_IF([test -n "$NVCC"], [rnnd_home=`dirname "$NVCC"`/..; rnnd_home=`cd "$rnnd_home" && pwd`])
  CUDA_CFLAGS="-isystem $rnnd_home/include"
  AC_LANG_PUSH([C++])
  rnnd_save_CXXFLAGS=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS -std=c++17 $CUDA_CFLAGS"
  AC_MSG_CHECKING([for C++17 and the headers of CUDA and NCCL])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <tuple>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cublas_v2.h>
#include <nccl.h>]], [[auto [a, b] = std::tuple<int, int>(1, 2); return a + b - 3;]])],
    [rnnd_have_simt=yes], [CUDA_CFLAGS=])
  AC_MSG_RESULT([$rnnd_have_simt])
  CXXFLAGS=$rnnd_save_CXXFLAGS
  AC_LANG_POP([C++])
])

dnl Never -lcuda: it would need a driver to start. NCCL is loaded by programs of several ranks,
dnl by the name libnccl.so.2, also from the folder of the toolkit.
AC_DEFUN([_RNND_CUDA_LIBRARIES], [
  rnnd_save_LIBS=$LIBS rnnd_lib=$rnnd_home/lib64
  AS_IF([test -d "$rnnd_lib"], [], [rnnd_lib=$rnnd_home/lib])
  CUDA_LIBS="-L$rnnd_lib -Wl,-rpath,$rnnd_lib -lcublas -lcudart -ldl"
  AC_MSG_CHECKING([for cudart and cublas])
  LIBS="$CUDA_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM(
    [[char cudaGetDeviceCount(), cublasCreate_v2();]],
    [[return cudaGetDeviceCount() + cublasCreate_v2();]])],
    [rnnd_have_nvcc=yes], [CUDA_LIBS=])
  AC_MSG_RESULT([$rnnd_have_nvcc])
  LIBS=$rnnd_save_LIBS
])

dnl Machine code for each architecture that nvcc knows, and PTX of the last for later ones.
AC_DEFUN([_RNND_CUDA_ARCH], [
  rnnd_native=`"$rnnd_home/bin/__nvcc_device_query" 2>/dev/null | tr ',' ' '`
  AS_IF([test $with_cuda = yes || test -n "$rnnd_native"], [rnnd_cuda_in_all=yes])
  rnnd_archs=${with_cuda_arch:-${rnnd_native:-75 80 86 89 90 100 120}}
  rnnd_known=`"$NVCC" --list-gpu-code 2>/dev/null`
  NVCC_ARCH= rnnd_taken=
  for a in $rnnd_archs; do
    AS_CASE([" "`echo $rnnd_known`" "], [*" sm_$a "*], [
      NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$a,code=sm_$a"
      rnnd_taken="$rnnd_taken $a"])
  done
  AS_IF([test -z "$rnnd_taken"], [AC_MSG_ERROR([nvcc supports none of sm_ $rnnd_archs])])
  NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_${rnnd_taken##* },code=compute_${rnnd_taken##* }"
  AS_IF([test $rnnd_cuda_in_all = yes], [rnnd_cuda="by make, for sm_"],
    [rnnd_cuda="by make cuda (no GPU here), for sm_"])
  rnnd_cuda="$rnnd_cuda`echo $rnnd_taken | tr ' ' ,`"
])
