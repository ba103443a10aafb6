#!/bin/sh
# packing.sh - sequences of length 0, and predictions by sequence (CASES 1, 6).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

model="--hidden 6 --layers 2 --bidirectional --seed 3"

# CASE 1: lengths 3, 0, 2. All labels count, and the empty sequence's scores are the head's
# bias, on any number of ranks; four ranks leave one with nothing, three one with no step.
data empty task=classify lengths=3,0,2 targets=1,2,0 outputs=3
for n in 1 2 3 4; do
    # shellcheck disable=SC2086 # a list of options
    train "empty$n" "$n" --data "$work/empty.h5" --batch 3 --max-updates 3 $model
    equal "targets of an update on $n ranks" "$(table "empty$n" train targets | sort -u)" 3
    same "empty$n" empty1 1e-5
    parameters "empty$n" empty1 2e-5
done
expect 0 2 predict "$work/empty1" --data "$work/empty.h5" --out "$work/p.h5" --raw --states
"$TOOL" show "$work/p.h5" outputs | sed -n 4,6p >"$work/a"
"$TOOL" show "$(last empty1)" model/head.bias >"$work/b"
cmp -s "$work/a" "$work/b" || fault "scores of an empty sequence are not the bias"
equal "final state of an empty sequence" \
    "$("$TOOL" show "$work/p.h5" states/h | sed -n '25,48p' | sort -u)" 0

# The same in a step task: no step of it counts.
data empty_steps task=tag lengths=3,0,2 outputs=3
for n in 1 3; do
    # shellcheck disable=SC2086
    train "steps$n" "$n" --data "$work/empty_steps.h5" --batch 3 --max-updates 2 $model
    equal "steps that count on $n ranks" "$(table "steps$n" train targets | sort -u)" 5
done
same steps3 steps1 1e-5

# All sequences empty: classes are learnt from the bias alone; steps there are none (exit 3).
data nothing task=classify lengths=0,0,0,0,0 targets=1,1,1,0,1 outputs=2
for n in 1 3; do
    # shellcheck disable=SC2086
    train "nothing$n" "$n" --data "$work/nothing.h5" --batch 4 --max-updates 4 $model
done
same nothing3 nothing1 1e-5
data no_steps task=tag lengths=0,0,0
expect 3 2 train --data "$work/no_steps.h5" --run-dir "$work/no_steps"

# A rank gets all the steps there are, the others empty sequences only.
data one_long task=tag lengths=0,0,0,40,0
for n in 1 3; do
    # shellcheck disable=SC2086
    train "long$n" "$n" --data "$work/one_long.h5" --batch 5 --max-updates 3 $model
done
same long3 long1 1e-5

# CASE 6: predictions of ranks that got only short sequences, in order, each of its own length.
data mixed task=tag lengths=9,1,0,4,2,7,3 outputs=3 seed=5
for n in 1 2 3; do
    expect 0 "$n" predict "$work/steps1" --data "$work/mixed.h5" --out "$work/mixed$n.h5" \
        --threads 1
    "$TOOL" diff 0 "$work/mixed$n.h5" "$work/mixed1.h5" / >/dev/null ||
        fault "predictions of $n ranks are not those of one"
    equal "offsets" "$("$TOOL" show "$work/mixed$n.h5" offsets | tr '\n' ' ')" \
        "0 9 10 10 14 16 23 26 "
done
done_testing
