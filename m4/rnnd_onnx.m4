dnl RNND_ONNX: what `export MODEL OUT.onnx' needs; optional: protobuf-c, its compiler, and the
dnl published schema onnx.proto, which the build translates. Sets PROTOBUF_C_CFLAGS,
dnl PROTOBUF_C_LIBS, PROTOC_C, ONNX_PROTO, HAVE_ONNX and the conditional of that name.
dnl --with-onnx fails where one is missing, --with-onnx=FILE names the schema.
AC_DEFUN([RNND_ONNX], [
  AC_ARG_WITH([onnx],
    [AS_HELP_STRING([--with-onnx@<:@=FILE@:>@],
      [write ONNX files, by the schema onnx.proto (default: if found)])],
    [], [with_onnx=auto])
  rnnd_onnx=no ONNX_PROTO= PROTOC_C=
  AS_IF([test "x$with_onnx" != xno], [_RNND_ONNX_FIND
    AS_IF([test -n "$rnnd_lacks" && test "x$with_onnx" != xauto],
      [AC_MSG_ERROR([ONNX: $rnnd_lacks])])])
  AS_IF([test "x$with_onnx" != xno && test -z "$rnnd_lacks"],
    [rnnd_onnx=$ONNX_PROTO
     AC_DEFINE([HAVE_ONNX], [1], [Whether ONNX files can be written.])],
    [test "x$with_onnx" != xno], [rnnd_onnx="no: $rnnd_lacks"])
  AM_CONDITIONAL([HAVE_ONNX], [test "x$with_onnx" != xno && test -z "$rnnd_lacks"])
  AC_SUBST([ONNX_PROTO])
])

dnl Sets rnnd_lacks to what is missing, empty where all is there.
AC_DEFUN([_RNND_ONNX_FIND], [
  rnnd_lacks=
  PKG_CHECK_MODULES([PROTOBUF_C], [libprotobuf-c], [],
    [rnnd_lacks="protobuf-c was not found (Debian: libprotobuf-c-dev)"])
  AC_PATH_PROG([PROTOC_C], [protoc-c])
  AS_IF([test -z "$PROTOC_C"],
    [rnnd_lacks="protoc-c was not found (Debian: protobuf-c-compiler)"])
  AS_CASE([$with_onnx],
    [yes|auto], [
      for rnnd_dir in /usr/include /usr/local/include; do
        AS_IF([test -z "$ONNX_PROTO" && test -f $rnnd_dir/onnx/onnx.proto],
          [ONNX_PROTO=$rnnd_dir/onnx/onnx.proto])
      done],
    [AS_CASE([$with_onnx], [/*], [ONNX_PROTO=$with_onnx], [ONNX_PROTO=`pwd`/$with_onnx])
     AS_IF([test -f "$ONNX_PROTO"], [], [ONNX_PROTO=])])
  AC_MSG_CHECKING([for onnx.proto])
  AC_MSG_RESULT([${ONNX_PROTO:-no}])
  AS_IF([test -z "$ONNX_PROTO"],
    [rnnd_lacks="the schema onnx.proto was not found (Debian: libonnx-dev)"])
])
