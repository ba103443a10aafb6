#!/bin/sh
# soak.sh - long runs that are killed and stopped at random, and resumed each time: on the same
# 8 ranks they end with the bits and records of a run that met nothing; on changing ranks every
# update takes the sequences of the plan, none twice or missing. SOAK_SEED (the time) makes
# other runs. LONG=1: 20000 updates. After a failure its files stay in soak-SEED.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

seed=${SOAK_SEED:-$(date +%s)}
# Updates between two interruptions, on average; between two checkpoints.
updates=1000 leg=50 save_every=10
[ -z "${LONG:-}" ] || updates=20000 leg=500 save_every=50
# What a busy machine may need for the next update, or for the end of a job, in seconds.
patience=120

keep_after_failure() {
    if [ $? != 0 ]; then
        rm -rf "soak-$seed"
        cp -r "$work" "soak-$seed"
        echo "what it wrote is in soak-$seed"
    fi
    rm -rf "$work"
}
trap keep_after_failure EXIT
echo "seed $seed"

# random N: $drawn is one of 0 .. N-1.
state=$seed
random() {
    state=$(((state * 1103515245 + 12345) & 0x7fffffff))
    drawn=$(((state >> 8) % $1))
}

# any WORD...: $drawn is one of them.
any() {
    random $#
    shift "$drawn"
    drawn=$1
}

# ---- one leg of a run

# go_on_to UPDATE: until the job has come there, or ended. It fails if it gets no further.
go_on_to() {
    seen='' until=$(($(date +%s) + patience))
    while kill -0 "$job" 2>/dev/null && ! reached "$dir" "$1"; do
        now=$(update_of "$dir")
        if [ "$now" != "$seen" ]; then
            seen=$now until=$(($(date +%s) + patience))
        fi
        [ "$(date +%s)" -lt "$until" ] || return 1
        sleep 0.02
    done
}

# alive PROCESS...: whether any of them runs; one that nobody has waited for does not.
alive() {
    for process in "$@"; do
        ! grep -q '^State:[^Z]*$' "/proc/$process/status" 2>/dev/null || return 0
    done
    return 1
}

# leave PROCESS...: the job and its ranks end; $got is its status.
leave() {
    until=$(($(date +%s) + patience))
    while alive "$@"; do
        if [ "$(date +%s)" -ge "$until" ]; then
            hung "$dir: $how at update $target: still there after $patience s"
            kill -KILL "$@" 2>/dev/null || true
            until=$((until + patience))
        fi
        sleep 0.1
    done
    got=0
    wait "$job" || got=$?
}

# interrupt: does $how to the job, and waits for its end.
interrupt() {
    # shellcheck disable=SC2046 # a list of processes
    set -- "$job" $(ranks_of "$job" "$ranks")
    random "$ranks"
    one=$(echo "$*" | cut -d ' ' -f $((drawn + 2)))
    case $how in
    nothing) ;;
    kill-rank) kill -KILL "${one:-$job}" ;;
    kill-launcher) kill -KILL "$job" ;;
    kill-all) kill -KILL "$@" ;;
    stop-launcher) kill -USR1 "$job" ;;
    end-launcher) kill -TERM "$job" ;;
    stop-*) kill "-${how#stop-}" "${one:-$job}" ;;
    esac 2>/dev/null || true # what has reached its end is not there
    leave "$@"
}

# The last announced checkpoint is there, and intact.
keeps_what_it_announced() {
    announced=$(table "$dir" save file | tail -n 1 | tr -d '"')
    [ -n "$announced" ] || return 0
    "$RNN_DIST" inspect "$work/$dir/$announced" >"$work/out" 2>"$work/err" || case $? in
    4) lost "$dir: $how at update $target: $announced was announced: $(cat "$work/err")" ;;
    *) die "inspect $announced: exit $?" ;;
    esac
}

# The status tells what happened; 0, that nothing is left to do.
check_status() {
    case $how-$got in
    *-0) [ "$(table "$dir" end status updates | tail -n 1)" = "0 $updates" ] ||
        wrong "$dir: $how at update $target: status 0" ;;
    stop-*-75 | kill-* | end-*) ;;
    *) die "$dir: $how at update $target: status $got" ;;
    esac
}

# ---- a whole run

# worn DIR "RANKS..." OPTIONS...: a run that is interrupted until it has made all updates, each
# time on one of RANKS.
worn() {
    dir=$1 choices=$2 got=1
    shift 2
    while [ $got != 0 ]; do
        # shellcheck disable=SC2086 # a list
        any $choices
        start "$dir" "$drawn" --resume --comm-timeout $patience "$@"
        random $((2 * leg))
        target=$(update_of "$dir")
        target=$((${target:-0} + 1 + drawn))
        any kill-rank kill-launcher kill-all stop-TERM stop-HUP stop-launcher end-launcher
        how=$drawn
        [ $target -le $updates ] || how=nothing
        go_on_to $target || hung "$dir on $ranks ranks: no update after $seen in $patience s"
        sleep 0.0$((state % 100))
        interrupt
        [ "$how" = nothing ] || tried
        echo "$dir on $ranks ranks: $how at update $target: status $got"
        check_status
        keeps_what_it_announced
    done
}

lengths=$(
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        for _ in 1 2 3 4 5 6; do
            random 20
            printf '%d,' $((drawn + 1))
        done
    done
    echo 3
)
data many task=tag outputs=4 lengths="$lengths"
options="--data $work/many.h5 --batch 8 --hidden 6 --seed $seed --save-every $save_every
    --epochs 1000000 --max-updates $updates"

trying "kills and stops of a run of $updates updates on 8 ranks"
learning="$options --layers 2 --dropout 0.2 --lr 0.01"
# shellcheck disable=SC2086 # a list of options
train calm 8 $learning
# shellcheck disable=SC2086
worn same 8 $learning
identical same calm

# ---- on changing ranks

# Nothing is learnt, so that a sequence has one loss, and those of an update tell its
# sequences: loss and targets of each update are what the plan and the sequences' own say.
trying "the same, resumed on 1 to 8 ranks"
still="$options --optimizer sgd --lr 1e-30"
# shellcheck disable=SC2086
worn moved "1 2 3 4 5 6 7 8" $still
# shellcheck disable=SC2086
train alone 1 $still --batch 1 --shuffle none --bucket 1 --save-every 0 --max-updates 61
"$TOOL" plan "$work/many.h5" 61 batch=1 shuffle=none bucket=1 >"$work/alone-plan"
"$TOOL" plan "$work/many.h5" "$updates" batch=8 seed="$seed" >"$work/plan"
table alone train update loss targets >"$work/alone-losses"

# Each epoch of the plan has each sequence once.
awk '{ for (i = 3; i <= NF; i++) n[$2, $i]++; last = $2 }
    END {
        for (e = 1; e < last; e++) for (s = 0; s < 61; s++)
            if (n[e, s] != 1) { print "epoch " e ", sequence " s ": " n[e, s] + 0; exit 1 }
        for (k in n) if (n[k] != 1) { print "twice in the last epoch"; exit 1 }
    }' "$work/plan" || wrong "the plan of seed $seed"
awk '
    FILENAME ~ /alone-losses$/ { loss[$1] = $2; targets[$1] = $3; next }
    FILENAME ~ /alone-plan$/ {
        sum_of[$3] = loss[$1] * targets[$1]
        count_of[$3] = targets[$1]
        next
    }
    {
        sum = count = 0
        for (i = 3; i <= NF; i++) { sum += sum_of[$i]; count += count_of[$i] }
        printf "%d %d %.9g %d\n", $1, $2, sum / count, count
    }' "$work/alone-losses" "$work/alone-plan" "$work/plan" >"$work/a"
table moved train update epoch loss targets >"$work/b"
near 1e-5 "$work/a" "$work/b" || wrong "moved: an update took other sequences"
done_testing
