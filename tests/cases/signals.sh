#!/bin/sh
# signals.sh - asked to stop, a run saves and leaves with 75; it goes on bit for bit (CASE 60).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# An update takes some 10 ms, so that a signal finds the run still going.
data many task=classify outputs=3 lengths="$(lengths 60 1 40)"
data other task=classify outputs=3 lengths="$(lengths 60 10 60)" seed=2
options="--data $work/many.h5 --valid $work/other.h5 --batch 3 --hidden 256 --layers 2
    --dropout 0.3 --epochs 2"
for n in 1 2; do
    # shellcheck disable=SC2086 # a list of options
    train "whole$n" "$n" $options
done

# stopped RANKS SIGNAL UPDATE WHICH: the signal goes to one rank, the first or the last, at this
# update. The rank is halted meanwhile, so the run cannot end before.
stopped() {
    n=$1 signal=$2 update=$3 which=$4
    name=$signal-$n-$update
    # shellcheck disable=SC2086
    start "$name" "$n" $options
    wait_for "$name" "$update"
    rank=$(ranks_of "$job" | "$which" -n 1)
    kill -STOP "$rank"
    kill "-$signal" "$rank"
    kill -CONT "$rank"
    ended 75
    equal "status of the end record" "$(table "$name" end status)" 75
    expect 0 "$n" train --resume --run-dir "$work/$name"
    identical "$name" "whole$n"
}

stopped 1 USR1 3 head
stopped 1 INT 19 head
stopped 1 TERM 25 head
stopped 2 USR2 4 tail
stopped 2 TERM 20 head
if [ -n "${LONG:-}" ]; then
    for update in 1 2 10 19 20 21 30 37 38; do
        stopped 2 TERM "$update" tail
        stopped 3 USR1 "$update" head
    done
fi

# Through the launcher, which passes USR1 on to all ranks.
# shellcheck disable=SC2086
start launcher 2 $options
wait_for launcher 5
for rank in $(ranks_of "$job"); do kill -STOP "$rank"; done
kill -USR1 "$job"
for rank in $(ranks_of "$job"); do kill -CONT "$rank"; done
ended 75
expect 0 2 train --resume --run-dir "$work/launcher"
identical launcher whole2

# While a rank waits for another to start.
options="train --run-dir $work/late --progress none --log-every 1 --threads 1 $options"
# shellcheck disable=SC2086,SC2016
mpirun -np 1 "$RNN_DIST" $options : \
    -np 1 sh -c 'sleep 2; exec "$@"' sh "$RNN_DIST" $options >"$work/out" 2>"$work/err" &
job=$!
sleep 1
for rank in $(ranks_of "$job"); do
    case $(cat "/proc/$rank/comm") in
    *rnn_dist) kill -USR1 "$rank" ;;
    esac
done
ended 75
expect 0 2 train --resume --run-dir "$work/late"
identical late whole2

# While data are read and checked, before the first update: also 75, and it can start again.
data large task=tag features=40 outputs=3 lengths="$(lengths 3000 60 120)"
"$RNN_DIST" train --data "$work/large.h5" --run-dir "$work/early" --hidden 4 --progress none \
    >"$work/out" 2>"$work/err" &
job=$!
sleep 0.15
kill -TERM "$job"
got=0
wait "$job" || got=$?
case $got in
75 | 143) ;; # 143: it had not come to install its handler
*) fault "exit $got after TERM during reading" ;;
esac
done_testing
