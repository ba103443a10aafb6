#!/bin/sh
# run.sh - transcription: who speaks, in order, in utterances of Japanese Vowels that were
# joined at random into strings of 1 to 6. Connectionist temporal classification learns it
# without being told where one utterance ends. Training and test strings are made of the
# training and the test part.
#
#   RANKS=2 SEED=1 OUT=joined_vowels (a folder)
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/mpi_env.sh
. "$top/tests/mpi_env.sh"
rnn_dist=${RNN_DIST:-$top/build/bin/rnn_dist}
out=${OUT:-joined_vowels}
mkdir -p "$out"

# join_part NAME SEED COUNT PART
join_part() {
    awk -v seed="$2" -v count="$3" -v steps="$out/$1.csv" -v table="$out/$1-labels.csv" \
        -f "$top/examples/joined_vowels/join.awk" \
        "$top/examples/japanese_vowels/JapaneseVowels_$4.ts"
}

join_part train 1 400 TRAIN
join_part test 2 300 TEST
"$rnn_dist" pack csv "$out/train.csv" "$out/train.h5" --sequence string \
    --labels-from "$out/train-labels.csv"
"$rnn_dist" pack csv "$out/test.csv" "$out/test.h5" --sequence string \
    --labels-from "$out/test-labels.csv" --classes-from "$out/train.h5"
rm -rf "$out/run"
mpirun -np "${RANKS:-2}" "$rnn_dist" train --data "$out/train.h5" --run-dir "$out/run" \
    --normalize --cell lstm --bidirectional --hidden 64 --epochs 30 --batch 16 \
    --optimizer adam --lr 0.005 --clip-norm 1 --seed "${SEED:-1}" --progress none
"$rnn_dist" eval "$out/run" --data "$out/test.h5"
"$rnn_dist" predict "$out/run" --data "$out/test.h5" --csv "$out/predicted.csv"
head -n 5 "$out/predicted.csv"
