#!/bin/sh
# suite.sh [plain|asan|tsan] - proves the kernels on the emulated GPU, under the schedule of
# RNND_SIMT_SEED: every operation against its reference, then the program on small data.
set -eu
mode=${1:-plain}
export CK_FORK=no
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

on() {
    sh "${srcdir:?}/tests/simt/with.sh" "$mode" "$@"
}

# verify OPTIONS...: N ranks as one, this device as the CPU, packed as one by one.
verify() {
    on bin/rnn_dist verify --device cuda --precision fp32 --data "$work/data.h5" \
        --batch 12 --progress none "$@"
}

RNND_TEST_TARGETS=cuda RNND_TEST_BRIEF=1 on tests/test_kernels
bin/rnn_dist pack ts "$srcdir/examples/japanese_vowels/JapaneseVowels_TEST.ts" \
    "$work/data.h5" >"$work/pack"
verify --cell lstm --hidden 17 --bidirectional --pool mean
verify --cell gru --hidden 9 --layers 2 --dropout 0.2 --pool max
# Several ranks: NCCL. TSan does not go under mpirun.
if [ "$mode" = plain ]; then
    mpirun -np 2 sh "$srcdir/tests/simt/with.sh" plain bin/rnn_dist verify --device cuda \
        --precision fp32 --data "$work/data.h5" --batch 12 --progress none --hidden 9 \
        --layers 2 --bucket-mb 0.001
fi
