#!/bin/sh
# lanes.sh - carried state of a streaming language model (CASES 8, 15).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data text task=lm vocab=9 lengths="$(lengths 12 0 20)"
data other task=lm vocab=9 lengths="$(lengths 5 1 20)" seed=2
model="--hidden 8 --embed 6 --layers 2 --tbptt 4 --batch 7 --epochs 2 --dropout 0.2"

# CASE 8: 7 lanes on 1, 2, 3 and 8 ranks, some without a lane; lanes end at different steps.
for n in 1 2 3 8; do
    # shellcheck disable=SC2086 # a list of options
    train "lanes$n" "$n" --data "$work/text.h5" $model
    same "lanes$n" lanes1 1e-5
    parameters "lanes$n" lanes1 2e-5
done
# Every pair of neighbours is a target once an epoch.
pairs=$(($("$TOOL" show "$work/text.h5" offsets | tail -n 1) - 1))
equal "targets of an epoch" \
    "$(table lanes3 train epoch targets | awk '$1 == 1 { n += $2 } END { print n }')" "$pairs"

# A validation between updates leaves the lanes' state alone.
for n in 1 3; do
    # shellcheck disable=SC2086
    train "validated$n" "$n" --data "$work/text.h5" --valid "$work/other.h5" --valid-every 1 \
        $model
    table "validated$n" train update epoch loss targets >"$work/a"
    table "lanes$n" train update epoch loss targets >"$work/b"
    near 0 "$work/a" "$work/b" || fault "validation changed the training on $n ranks"
    parameters "validated$n" "lanes$n" 0
done

# Fewer pairs than lanes: exit 3, for training and for validation.
data short task=lm vocab=9 lengths=3,0,4
# shellcheck disable=SC2086
expect 3 2 train --data "$work/short.h5" --run-dir "$work/short" $model
# shellcheck disable=SC2086
expect 3 2 train --data "$work/text.h5" --valid "$work/short.h5" --run-dir "$work/short" $model
done_testing
