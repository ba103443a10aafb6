#!/bin/sh
# threads.sh - a training on two threads that saves after every update, goes on and predicts:
# the thread that writes and those that compute get the same bits twice. Under ThreadSanitizer
# (sh tests/run.sh threads) no two of them meet at one place unordered.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# Wide enough that most operations are shared among threads.
data many task=tag outputs=4 lengths="$(lengths 48 1 60)"
options="--data $work/many.h5 --valid $work/many.h5 --batch 12 --hidden 96 --layers 2
    --dropout 0.2 --threads 2 --save-every 1 --epochs 3"
# shellcheck disable=SC2086 # a list of options
train whole 1 $options
# shellcheck disable=SC2086
train parts 1 $options --max-updates 5
expect 0 1 train --resume --run-dir "$work/parts" --max-updates 0 --threads 2
identical parts whole
for run in whole parts; do
    expect 0 1 predict "$work/$run" --data "$work/many.h5" --out "$work/$run.h5" --threads 2
done
cmp "$work/whole.h5" "$work/parts.h5" || wrong "predictions differ"
done_testing
