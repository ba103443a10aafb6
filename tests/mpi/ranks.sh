#!/bin/sh
# ranks.sh - N ranks are one rank: the same losses for every split, on real recordings with
# dropout, and on what divides badly; and the same predictions to the bit.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

vowels=$srcdir/examples/japanese_vowels
expect 0 1 pack ts "$vowels/JapaneseVowels_TRAIN.ts" "$work/vowels.h5"
expect 0 1 pack ts "$vowels/JapaneseVowels_TEST.ts" "$work/test.h5"

# agree NAME "RANKS..." OPTIONS...: 20 updates give the same losses on each number of ranks.
agree() {
    name=$1 counts=$2
    shift 2
    train "$name-1" 1 --max-updates 20 --epochs 100 "$@"
    for n in $counts; do
        train "$name-$n" "$n" --max-updates 20 --epochs 100 "$@"
        same "$name-$n" "$name-1" 1e-5
    done
}

agree lstm "2 3" --data "$work/vowels.h5" --normalize --hidden 100 --batch 27 --lr 0.005 \
    --clip-norm 1
agree gru "2 3" --data "$work/vowels.h5" --normalize --cell gru --hidden 50 --layers 2 \
    --bidirectional --dropout 0.3 --dropout-head 0.3 --batch 27 --lr 0.005 --clip-norm 1
agree seven "2 5" --data "$work/vowels.h5" --normalize --hidden 20 --layers 2 --dropout 0.3 \
    --dropout-kind sequence --batch 7 --lr 0.005
"$TOOL" data "$work/three.h5" task=tag lengths=9,2,5
agree three "5" --data "$work/three.h5" --hidden 20 --layers 2 --dropout 0.3
"$TOOL" data "$work/text.h5" task=lm vocab=12 lengths="$(lengths 30 0 25)"
agree lanes "3" --data "$work/text.h5" --hidden 20 --embed 10 --layers 2 --dropout 0.3 \
    --dropout-embed 0.3 --batch 7 --tbptt 6
agree windows "5" --data "$work/text.h5" --hidden 20 --embed 10 --dropout-head 0.3 --batch 7 \
    --tbptt 6 --windows 2 --stream no
agree tokens "3" --data "$work/text.h5" --hidden 20 --embed 10 --batch-tokens 40 \
    --microbatch-tokens 15 --dropout-head 0.3

# --threads 1: the same bytes, sequence by sequence in the order of the data.
for n in 1 2 3; do
    expect 0 "$n" predict "$work/lstm-1" --data "$work/test.h5" --threads 1 \
        --out "$work/p$n.h5" --csv "$work/p$n.csv" --states
    cmp -s "$work/p$n.csv" "$work/p1.csv" || fault "table of predictions on $n ranks"
    cmp -s "$work/p$n.h5" "$work/p1.h5" || fault "file of predictions on $n ranks"
done
"$TOOL" diff 0 "$work/p1.h5" "$work/p3.h5" / >/dev/null || fault "predicted values"
"$TOOL" show "$work/p1.h5" offsets >"$work/a"
"$TOOL" show "$work/test.h5" offsets >"$work/b"
cmp -s "$work/a" "$work/b" || fault "offsets of predictions are not those of the data"
done_testing
