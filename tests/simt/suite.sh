#!/bin/sh
# suite.sh [plain|asan|tsan] - proves the kernels on the emulated GPU, under the schedule of
# RNND_SIMT_SEED: every operation against its reference, then the program on small data. Ends
# at the first failure, whose heading tells what found it.
set -eu
mode=${1:-plain}
export CK_FORK=no RNND_TEST_BRIEF=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

on() {
    sh "${srcdir:?}/tests/simt/with.sh" "$mode" "$@"
}

# kernels TARGET [SMS]: the tests of kernels, on so many multiprocessors.
kernels() {
    echo "== kernels, $1"
    (export RNND_TEST_TARGETS="cuda, $1" RNND_SIMT_SMS="${2:-}"; on tests/kernels/test_kernels)
}

# verify OPTIONS...: N ranks as one, this device as the CPU, packed as one by one.
verify() {
    echo "== verify $*"
    on bin/rnn_dist verify --device cuda --precision fp32 --data "$work/data.h5" \
        --batch 12 --progress none "$@"
}

# TSan's clocks grow with the threads of a launch that has all its blocks at once. Few
# multiprocessors also give a group of blocks several tiles of rows.
few=6
[ "$mode" != tsan ] || few=2
kernels "stepwise, fp32"
kernels small
kernels "persistent, bf16" $few
kernels "persistent, tf32" $few
kernels "stepwise, tf32"
kernels "stepwise, bf16"

bin/rnn_dist pack ts "$srcdir/examples/japanese_vowels/JapaneseVowels_TEST.ts" \
    "$work/data.h5" >"$work/pack"
verify --cell lstm --hidden 17 --bidirectional --pool mean
verify --cell gru --hidden 9 --layers 2 --dropout 0.2 --pool max
verify --cell lstm --hidden 9 --rnn-path stepwise
# Several ranks: NCCL. TSan does not go under mpirun.
if [ "$mode" = plain ]; then
    echo "== verify on 2 ranks"
    mpirun -np 2 sh "$srcdir/tests/simt/with.sh" plain bin/rnn_dist verify --device cuda \
        --precision fp32 --data "$work/data.h5" --batch 12 --progress none --hidden 9 \
        --layers 2 --bucket-mb 0.001
    echo "== sums beside persistent layers"
    RNND_SIMT_SMS=22 RNND_SIMT_ARCH=86 mpirun -np 2 sh "$srcdir/tests/simt/with.sh" plain \
        bin/rnn_dist train --device cuda --precision tf32 --rnn-path persistent \
        --data "$work/data.h5" --batch 20 --progress none --hidden 150 --layers 2 \
        --bucket-mb 0.001 --max-updates 1 --run-dir "$work/run"
fi
