#!/bin/sh
# kernels.sh - every operation on the emulated GPU, by every path and precision, against its
# reference. LONG=1 takes all cases under five schedules and in order; else a few under one.
set -u
plugin=$PWD/tests/simt/rnn_dist_cuda_simt.so
export RNND_CUDA_PLUGIN="${RNND_CUDA_PLUGIN:-$plugin}" CK_FORK=no RNND_TEST_TARGETS=cuda
[ -r "$RNND_CUDA_PLUGIN" ] || { echo "the emulated GPU is not built"; exit 77; }
[ -x tests/test_kernels ] || { echo "Check is not here"; exit 77; }
faults=0

# run NAME=VALUE...: the tests in that environment.
run() {
    echo "== $*"
    env "$@" tests/test_kernels || faults=$((faults + 1))
}

if [ "${LONG:-}" ]; then
    for seed in 1 2 3 4 5 inorder; do
        run RNND_SIMT_SEED=$seed
    done
    run RNND_SIMT_SMS=6 RNND_TEST_TARGETS="cuda, persistent"
    run RNND_SIMT_ARCH=75 RNND_TEST_TARGETS="cuda, small"
else
    export RNND_TEST_BRIEF=1 RNND_SIMT_SEED=$$
    run RNND_TEST_TARGETS="cuda, stepwise, fp32"
    run RNND_TEST_TARGETS="cuda, small" RNND_SIMT_ARCH=75
    # Few multiprocessors: a group of blocks has several tiles of rows.
    run RNND_TEST_TARGETS="cuda, persistent, bf16" RNND_SIMT_SMS=6
fi
[ $faults = 0 ]
