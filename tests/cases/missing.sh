#!/bin/sh
# missing.sh - with pack --missing mean, features without a value count as the mean of the
# training data, wherever the model goes; a model without a mean refuses them.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work"

# series SEED: sequences of two features, of which every fifth value is missing, and a class.
series() {
    awk -v seed="$1" 'BEGIN {
        print "id,x,y,c"
        for (i = 0; i < 24; i++)
            for (t = 0; t < 2 + (i + seed) % 5; t++) {
                k++
                x = (k + seed) % 5 ? ((i * 7 + t * 5 + seed) % 19) / 4 + i % 2 * 3 : "NA"
                y = (k + seed) % 5 == 2 ? "" : 100 + (i * 3 + t * 11 + seed) % 13
                print "s" i "," x "," y "," (i % 2 ? "odd" : "even")
            }
    }'
}
# by_hand TRAIN FILE: the features of FILE as their distance from the mean of TRAIN in its
# standard deviations, 0 where they are missing.
by_hand() {
    awk -F, -v OFS=, '
        function has(v) { return v != "" && v != "NA" }
        FNR == 1 { if (NR != 1) print; next }
        pass != FILENAME { pass = FILENAME; turn++ }
        turn == 1 {
            for (f = 2; f <= 3; f++) if (has($f)) { n[f]++; sum[f] += $f; all[f, n[f]] = $f }
            next
        }
        !ready {
            for (f = 2; f <= 3; f++) {
                mean[f] = sum[f] / n[f]
                for (k = 1; k <= n[f]; k++) square[f] += (all[f, k] - mean[f]) ^ 2
                std[f] = sqrt(square[f] / n[f])
            }
            ready = 1
        }
        {
            for (f = 2; f <= 3; f++) $f = has($f) ? sprintf("%.9g", ($f - mean[f]) / std[f]) : 0
            print
        }' "$1" "$2"
}
series 1 >train.csv
series 2 >other.csv
cp train.csv again.csv
by_hand train.csv again.csv >train-hand.csv
by_hand train.csv other.csv >other-hand.csv
for f in train other; do
    expect 0 1 pack csv --sequence id --label c --missing mean $f.csv $f.h5
    said "feature values are missing (--missing mean)" "--normalize"
    expect 0 1 pack csv --sequence id --label c $f-hand.csv $f-hand.h5
done
expect 0 1 inspect train.h5
printed "missing"

# ---- the same losses, gradient norms and scores as by hand
options="--hidden 5 --batch 6 --epochs 3 --lr 0.02 --threads 1"
for n in 1 2; do
    # shellcheck disable=SC2086 # a list of options
    train "mean$n" $n --data train.h5 --valid other.h5 --normalize $options
done
# shellcheck disable=SC2086
train hand 1 --data train-hand.h5 --valid other-hand.h5 $options
same mean1 hand 1e-5
parameters mean2 mean1 2e-5
for event in train valid; do
    table mean1 "$event" loss >a
    table hand "$event" loss >b
    near 1e-5 a b || fault "$event records differ"
done
expect 0 1 predict mean1 --data other.h5 --csv a.csv --raw
expect 0 1 predict hand --data other-hand.h5 --csv b.csv --raw
cut -d, -f3- a.csv | sed 1d | tr , ' ' >a
cut -d, -f3- b.csv | sed 1d | tr , ' ' >b
near 1e-4 a b || fault "scores differ from those by hand"
! grep -qi nan a.csv || fault "scores are no numbers: $(cat a.csv)"
expect 0 2 eval mean1 --data other.h5

# ---- a run that is stopped and resumed, and one that starts from the parameters
# shellcheck disable=SC2086
train parts 1 --data train.h5 --valid other.h5 --normalize $options --max-updates 5
expect 0 1 train --resume --run-dir parts --max-updates 0
identical parts mean1
# shellcheck disable=SC2086
train from 1 --data train.h5 --normalize $options --init "$(last mean1)"

# ---- a model without a mean reads no missing values
count=$("$TOOL" show train.h5 /inputs | grep -c nan)
for n in 1 2; do
    # shellcheck disable=SC2086
    expect 3 $n train --data train.h5 --run-dir none $options
    said "train.h5: /inputs: $count values are missing" "--normalize"
done
[ ! -e none ] || fault "a run directory was made"
expect 3 1 eval hand --data other.h5
said "other.h5: /inputs: " "values are missing" "--normalize"
expect 3 1 predict hand --data other.h5 --csv none.csv
[ ! -e none.csv ] || fault "predictions were written"
expect 3 1 train --data train-hand.h5 --valid other.h5 --run-dir none --hidden 3
said "other.h5: /inputs: "
# nor does any model a file that does not say what its NaN are
expect 3 1 pack csv --sequence id --label c train.csv none.h5
said "train.csv:2: column y: a value is missing, the first of $count"
done_testing
