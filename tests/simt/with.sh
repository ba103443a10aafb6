#!/bin/sh
# with.sh plain|asan|tsan PROGRAM... - runs a program, itself built without sanitizers, on the
# emulated GPU built so: from the build folder, after make simt, simt-asan or simt-tsan. In
# front of a program, not of a shell script or mpirun: TSan's library breaks some shells.
set -eu
mode=$1
shift
case $mode in
plain) plugin=${RNND_CUDA_PLUGIN:-$PWD/tests/simt/rnn_dist_cuda_simt.so} ;;
asan | tsan) plugin=$PWD/tests/simt/rnn_dist_cuda_simt_$mode.so ;;
*) echo "with.sh: plain, asan or tsan was expected" >&2; exit 2 ;;
esac
[ -f "$plugin" ] || { echo "with.sh: $plugin was not built" >&2; exit 77; }
export RNND_CUDA_PLUGIN="$plugin"
[ "$mode" != plain ] || exec "$@"

# The sanitizer's library must come before all others. What is not instrumented (OpenMP, MPI)
# is not judged; its leaks neither.
library=$(ldd "$plugin" | sed -n "s/.*lib$mode\\.so[^ ]* => \\([^ ]*\\).*/\\1/p")
export ASAN_OPTIONS="detect_leaks=0:exitcode=99${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export TSAN_OPTIONS="ignore_noninstrumented_modules=1:atexit_sleep_ms=0:exitcode=66"
exec env LD_PRELOAD="$library" "$@"
