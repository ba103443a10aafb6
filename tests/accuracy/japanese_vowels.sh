#!/bin/sh
# check_japanese_vowels.sh - who is speaking: the median test accuracy of seeds 1, 2, 3 is at
# least 0.96. GRU and LSTM on two ranks; LONG=1 adds one rank. (PyTorch: 0.973 and 0.978.)
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

vowels=$srcdir/examples/japanese_vowels
expect 0 1 pack ts "$vowels/JapaneseVowels_TRAIN.ts" "$work/train.h5"
expect 0 1 pack ts "$vowels/JapaneseVowels_TEST.ts" "$work/test.h5"
ranks=2
[ -z "${LONG:-}" ] || ranks="1 2"
for n in $ranks; do
    for cell in lstm gru; do
        for seed in 1 2 3; do
            expect 0 "$n" train --data "$work/train.h5" --run-dir "$work/$cell-$n-$seed" \
                --normalize --cell $cell --hidden 100 --epochs 30 --batch 27 --lr 0.005 \
                --optimizer adam --clip-norm 1 --seed $seed --progress none
            expect 0 "$n" eval "$work/$cell-$n-$seed" --data "$work/test.h5" --json
            sed -n 's/.*"accuracy": *\([^,}]*\).*/\1/p' "$work/out"
        done | sort -g >"$work/accuracies"
        median=$(sed -n 2p "$work/accuracies")
        echo "$cell on $n ranks: $(tr '\n' ' ' <"$work/accuracies")"
        awk -v x="$median" 'BEGIN { exit !(x >= 0.96) }' ||
            fault "median accuracy of $cell on $n ranks is $median"
    done
done
done_testing
