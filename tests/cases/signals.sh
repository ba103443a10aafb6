#!/bin/sh
# signals.sh - on a signal a run saves and exits with 75; it resumes bit for bit (CASE 60).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# An update takes some 10 ms, so that most signals find the run still going.
data many task=classify outputs=3 lengths="$(lengths 60 1 40)"
data other task=classify outputs=3 lengths="$(lengths 60 10 60)" seed=2
options="--data $work/many.h5 --valid $work/other.h5 --batch 3 --hidden 256 --layers 2
    --dropout 0.3 --epochs 2"
for n in 1 2 ${LONG:+3}; do
    # shellcheck disable=SC2086 # a list of options
    train "whole$n" "$n" $options
done

# halt WHICH: halts the first or the last rank of the job, $rank; fails if it has ended.
# The launcher, which passes USR1 on to all, is not halted.
halt() {
    rank=$job
    [ "$1" != launcher ] || return 0
    rank=$(ranks_of "$job" "$n" | "$1" -n 1)
    [ -n "$rank" ] && kill -STOP "$rank" 2>/dev/null
}

# stopped RANKS SIGNAL UPDATE WHICH: the signal goes to one rank, the first or the last, at this
# update; the rank is halted meanwhile. WHICH may be the launcher. A run that ended before it
# was halted is made again.
stopped() {
    n=$1 signal=$2 update=$3 which=$4
    name=$signal-$n-$update
    for try in 1 2 3 4 5; do
        [ $try -lt 5 ] || die "$name: never stopped"
        rm -rf "${work:?}/$name"
        # shellcheck disable=SC2086
        start "$name" "$n" $options
        wait_for "$name" "$update"
        if halt "$which"; then
            kill "-$signal" "$rank" 2>/dev/null || true
            kill -CONT "$rank" 2>/dev/null || true
        fi
        got=0
        wait "$job" || got=$?
        [ "$got" = 0 ] || break
    done
    [ "$got" = 75 ] || die "$name: exit $got"
    equal "status of the end record" "$(table "$name" end status)" 75
    tried
    expect 0 "$n" train --resume --run-dir "$work/$name"
    identical "$name" "whole$n"
}

trying "stops by a signal, resumed"
stopped 1 USR1 3 head
stopped 1 INT 19 head
stopped 1 TERM 25 head
stopped 1 HUP 7 head
stopped 2 USR2 4 tail
stopped 2 TERM 20 head
stopped 2 USR1 5 launcher
if [ -n "${LONG:-}" ]; then
    for update in 1 2 10 19 20 21 30 37 38; do
        stopped 2 TERM "$update" tail
        stopped 3 USR1 "$update" head
    done
fi
tally_end

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
