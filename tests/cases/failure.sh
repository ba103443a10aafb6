#!/bin/sh
# failure.sh - a rank that dies or hangs ends the job, in time and by name (CASE 57).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data many task=classify outputs=3 lengths="$(lengths 60 1 30)"
options="--data $work/many.h5 --batch 3 --hidden 24 --layers 2 --epochs 1000"

# in_time SECONDS: the job ends by itself, with a status that is not 0.
in_time() {
    left=$(($1 * 10))
    while kill -0 "$job" 2>/dev/null; do
        left=$((left - 1))
        if [ $left -le 0 ]; then
            kill "$job"
            tally_kind=hung
            die "still there after $1 s"
        fi
        sleep 0.1
    done
    got=0
    wait "$job" || got=$?
    [ "$got" != 0 ] || wrong "exit 0"
}

trying "ranks that are killed or halted"
tried
# shellcheck disable=SC2086 # a list of options
start killed 3 $options
wait_for killed 5
kill -KILL "$(ranks_of "$job" 3 | tail -n 1)"
in_time 10

# A rank that is halted: the others give up after --comm-timeout, and say where they were.
tried
# shellcheck disable=SC2086
start halted 3 $options --comm-timeout 5
wait_for halted 5
rank=$(ranks_of "$job" 3 | tail -n 1)
kill -STOP "$rank"
in_time 20
kill -CONT "$rank" 2>/dev/null || true
said "rank " "$(hostname)" update
equal "status" "$got" 6

# What was saved before is still good.
expect 0 2 train --resume --run-dir "$work/halted" --max-updates 12
done_testing
