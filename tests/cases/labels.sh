#!/bin/sh
# labels.sh - labels that are ignored, and labels, tokens and files that are wrong
# (CASES 11, 40, 41).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# CASE 40: a batch where the labels of one rank's sequence are all ignored counts the others';
# one without any label has no loss, changes nothing and leaves a skip record.
data some task=tag outputs=2 lengths=3,3,2,2 targets=1,0,1,-1,-1,-1,-1,-1,-1,-1
for n in 1 2; do
    train "some$n" "$n" --data "$work/some.h5" --batch 2 --shuffle none --hidden 5 --epochs 2 \
        --optimizer adamw --weight-decay 0.1
    equal "targets" "$(table "some$n" train targets | grep -vx 0 | tr '\n' ' ')" "3 3 "
    equal "losses without targets" \
        "$(table "some$n" train targets loss | grep '^0 ' | tr '\n' ' ')" "0 null 0 null "
    equal "skipped" "$(table "some$n" skip update | tr '\n' ' ')" "2 4 "
    grep -qi nan "$work/some$n/metrics.jsonl" && fault "NaN in the metrics"
done
parameters some2 some1 2e-5
data first task=tag outputs=2 lengths=3,3 targets=1,0,1,-1,-1,-1
train first 1 --data "$work/first.h5" --batch 2 --shuffle none --hidden 5 --epochs 2 \
    --optimizer adamw --weight-decay 0.1
parameters some1 first 0
data all task=tag outputs=2 lengths=2,1 targets=-1,-1,-1
expect 3 2 train --data "$work/all.h5" --run-dir "$work/all"

# refused RANKS FILE WORD...: exit 3 within 5 seconds on all ranks, a message with each word,
# and nothing written.
refused() {
    n=$1 file=$2
    shift 2
    started=$(date +%s)
    expect 3 "$n" train --data "$work/$file.h5" --run-dir "$work/refused" --hidden 5
    [ $(($(date +%s) - started)) -le 5 ] || fault "$file took long to be refused"
    said "$file.h5" "$@"
    [ ! -e "$work/refused" ] || fault "$file: a run directory was made"
}

# CASE 41: labels 0..C-1 and -1 only; the last class is one.
data last_class task=tag outputs=4 lengths=3,2 targets=0,1,3,3,-1
train last_class 2 --data "$work/last_class.h5" --hidden 5 --max-updates 1
for label in 4 -2 2147483648 -9223372036854775808; do
    data label task=tag outputs=4 lengths=3,2 targets="0,1,2,$label,0"
    refused 1 label targets 3 "$label"
    data whole task=classify outputs=4 lengths=3,2 targets="0,$label"
    refused 1 whole targets 1 "$label"
done
refused 3 whole targets 1 "$label"
for token in 5 -5 2147483648; do
    data token task=lm vocab=5 lengths=3,2 inputs="0,1,2,4,$token"
    refused 1 token inputs 4 "$token"
done

# CASE 11: what is not a number in the features is refused with its place; padding is not
# needed, and an empty sequence is fine.
for value in nan inf -inf; do
    data feature task=tag features=2 lengths=2,0,1 inputs="1,2,3,4,5,$value"
    refused 1 feature inputs 2
done
done_testing
