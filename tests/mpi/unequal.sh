#!/bin/sh
# unequal.sh - ranks that were started differently never work on: one rank says what differs,
# and where, before anything is written, and all leave with one status.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

host=$(hostname)
lengths=$(lengths 24 1 9)
data a task=classify outputs=3 lengths="$lengths"
# the same shape with other contents, and the same contents elsewhere
"$TOOL" data "$work/labels.h5" task=classify outputs=3 lengths="$lengths" seed=2
mkdir "$work/stale" "$work/copy"
data stale/a task=classify outputs=3 lengths="$lengths" seed=3
data copy/a task=classify outputs=3 lengths="$lengths"
data text task=lm vocab=9 lengths="$lengths"

trying "ranks that are started differently"
# pair STATUS "COMMAND OF RANKS 0 AND 1" "COMMAND OF RANK 2"
pair() {
    wanted=$1 got=0
    # shellcheck disable=SC2086 # options, word by word
    mpirun -np 2 "$RNN_DIST" $2 : -np 1 "$RNN_DIST" $3 >"$work/out" 2>"$work/err" || got=$?
    tried
    case $got in
    "$wanted") ;;
    0) wrong "trained all the same: $3" ;;
    *) fault "exit $got, not $wanted: $3: $(cat "$work/err")" ;;
    esac
}

# differs STATUS FIRST LAST MINE THEIRS: the last rank has MINE, rank 0 THEIRS; said once.
differs() {
    pair "$1" "$2" "$3"
    said "rnn_dist: rank 2: rank 2 on $host has $4" ", but rank 0 on $host has $5"
    [ "$(grep -c '^rnn_dist: ' "$work/err")" = 1 ] || fault "$3: $(cat "$work/err")"
}

model="--hidden 6 --batch 8 --threads 1 --epochs 1 --progress none"
train="train $model --run-dir $work/run --data $work/a.h5"
for change in "seed 2/seed 1 by default" "bucket 2/bucket 8 by default" \
    "pool mean/pool last by default" "dropout-head 0.5/dropout-head 0 by default" \
    "shuffle none/shuffle epoch by default" "layers 2/layers 1 by default" \
    "cell gru/cell lstm by default" "lr 0.002/lr 0.001 by default" \
    "save-every 3/save-every 0 by default" \
    "microbatch-tokens 9/microbatch-tokens 0 by default" "valid $work/a.h5/valid unset"; do
    option=${change%/*} first=${change##*/}
    mine=--$option
    case $option in valid*) mine="--valid ($work/a.h5)" ;; esac
    differs 2 "$train" "$train --$option" "$mine" "--$first"
done
differs 2 "$train --bidirectional" "$train" "--bidirectional no by default" "--bidirectional yes"
# a value that equals the default is not the default: a stored value would replace that
differs 2 "$train" "$train --cell lstm" "--cell lstm" "--cell lstm by default"

print='with fingerprint [0-9a-f]*'
for other in labels stale/a; do
    pair 3 "$train" "train $model --run-dir $work/run --data $work/$other.h5"
    grep -q "rank 2 on $host has --data $print ($work/$other.h5), but rank 0 on $host has --data \
$print ($work/a.h5)" "$work/err" || fault "other data: $(cat "$work/err")"
    pair 3 "$train --valid $work/a.h5" "$train --valid $work/$other.h5"
    grep -q "rank 2 on $host has --valid $print ($work/$other.h5)" "$work/err" ||
        fault "other validation data: $(cat "$work/err")"
done
# data of another shape: no rank waits for another, whatever comes first
pair 3 "$train" "train $model --run-dir $work/run --data $work/text.h5"
[ ! -e "$work/run" ] || fault "a run directory was made"

# What may differ: threads, and paths of equal contents.
pair 0 "$train" "train $model --run-dir $work/run --data $work/copy/a.h5 --threads 2"

# Commands, operands, options without effect on training.
score="--data $work/a.h5 --threads 1"
differs 2 "$train" "eval $work/run $score" "command eval" "command train"
differs 2 "eval $work/run $score" "eval $work/none $score" "operand $work/none" \
    "operand $work/run"
differs 2 "eval $work/run $score" "eval $work/run $score --batch 4" "--batch 4" \
    "--batch 32 by default"
out="--csv $work/p.csv"
pair 3 "predict $work/run $score $out" "predict $work/run --data $work/stale/a.h5 $out"
said "rank 2 on $host has --data with" "($work/stale/a.h5)"
[ ! -e "$work/p.csv" ] || fault "predictions were written"
for command in verify bench; do
    pair 3 "$command $model --data $work/a.h5 --max-updates 2" \
        "$command $model --data $work/labels.h5 --max-updates 2"
    said "rank 2 on $host has --data with"
    differs 2 "$command $model --data $work/a.h5 --max-updates 2" \
        "$command $model --data $work/a.h5 --max-updates 2 --seed 3" "--seed 3" \
        "--seed 1 by default"
done
differs 2 "info" "info --plan" "--plan yes" "--plan no by default"
differs 2 "pack ts x y.h5" "pack ts z y.h5" "operand z" "operand x"

# An error in the command line of one rank alone is said by that rank.
pair 2 "$train" "$train --hiden 7"
said "rnn_dist: rank 2 on $host: unknown option --hiden; did you mean --hidden?"

# Resumed, the same: what is given counts, and stored options are rank 0's.
resume="train --resume --run-dir $work/run --progress none --epochs 2 --threads 1"
differs 2 "$resume" "$resume --lr 0.001" "--lr 0.001" "--lr 0.001 by default"
pair 3 "$resume --data $work/a.h5" "$resume --data $work/labels.h5"
pair 0 "$resume --data $work/a.h5" "$resume --data $work/copy/a.h5"
done_testing
