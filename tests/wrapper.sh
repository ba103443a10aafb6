#!/bin/sh
# wrapper.sh COMMAND... - runs one test of `make check` in the environment that all rely on:
#   srcdir          the top of the sources, absolute
#   PATH            finds the rnn_dist of this build
#   CK_FORK=no      MPI and OpenMP do not survive a fork
# and ends it after RNND_TEST_TIMEOUT seconds (300; 1800 with LONG=1).
set -eu
srcdir=$(cd "${srcdir:-.}" && pwd)
PATH=$PWD/bin:$PATH
export srcdir PATH CK_FORK=no LC_ALL=C OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
. "$srcdir/tests/mpi_env.sh"

# A fault found by a sanitizer must not look like an exit status that a test expects.
export ASAN_OPTIONS="exitcode=99${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
export LSAN_OPTIONS="exitcode=99:print_suppressions=0:suppressions=$srcdir/tests/lsan.supp"

limit=300
[ -z "${LONG:-}" ] || limit=1800
exec timeout -k 10 "${RNND_TEST_TIMEOUT:-$limit}" "$@"
