#!/bin/sh
# ends.sh - what ends a run is what its message and status tell, whatever fails after it; and
# records that could not be written are there once the run has resumed.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"
command -v prlimit >/dev/null || {
    echo "no prlimit, which makes a disk full for a run that is under way"
    exit 77
}

data many task=classify outputs=3 lengths="$(lengths 60 20 60)"
data valid task=classify outputs=3 lengths="$(lengths 9 1 40)" seed=2
options="--data $work/many.h5 --valid $work/valid.h5 --batch 3 --hidden 16
    --epochs 100000000"

# size FILE
size() {
    wc -c <"$1"
}

# caught DIR BYTES [SIGNAL]: from its update 700 on, a run's files cannot grow beyond BYTES
# (metrics: what its records take by then); then it gets a signal. $got: its status.
caught() {
    # shellcheck disable=SC2086 # a list of options
    tried
    start "$1" 1 $options
    wait_for "$1" 700
    kill -STOP "$job"
    caught_bytes=$2
    [ "$2" != metrics ] || caught_bytes=$(size "$work/$1/metrics.jsonl")
    prlimit --pid "$job" --fsize="$caught_bytes:$caught_bytes"
    [ -z "${3:-}" ] || kill -"$3" "$job"
    kill -CONT "$job"
    got=0
    wait "$job" || got=$?
}

# last_message: the error that a run ended with; warnings come before it.
last_message() {
    grep -v "warning: " "$work/err" | tail -n 1
}

trying "disks that get full, resumed"
# A record is lost, and the model is saved.
caught part metrics
equal "status after a lost record" "$got" 4
equal "message" "$(last_message)" "rnn_dist: cannot write $work/part/metrics.jsonl: \
File too large; the model is saved"
tail -c 1 "$work/part/metrics.jsonl" | od -c | grep -q '\\n' || fault "half a record is left"
[ "$(size "$(last part)")" -lt "$(size "$work/part/metrics.jsonl")" ] ||
    die "the checkpoint is larger than the records"

# Nothing more can be written: the record came first, the checkpoint is the warning.
caught none 2000
equal "status with a full disk" "$got" 4
equal "message" "$(last_message)" "rnn_dist: cannot write $work/none/metrics.jsonl: \
File too large"
said "warning: $work/none/ckpt-"

# A signal, and then a record is lost: 75 is the status, and the record is a warning. (Where
# the record came first, the run is made again.)
for try in 1 2 3 4 5; do
    rm -rf "$work/stopped"
    caught stopped metrics TERM
    [ "$got" != 75 ] || break
    [ $try -lt 5 ] || die "exit $got after a signal"
done
case $(last_message) in
"rnn_dist: stopped by a signal after update "*) ;;
*) fault "the message is $(last_message)" ;;
esac
said "warning: cannot write $work/stopped/metrics.jsonl"

# Once it has resumed, each has all records.
updates=$(last part | sed 's/.*ckpt-0*\([0-9]*\)\.h5/\1/')
other=$(last stopped | sed 's/.*ckpt-0*\([0-9]*\)\.h5/\1/')
[ "$updates" -gt "$other" ] || updates=$other
updates=$((updates + 20))
# shellcheck disable=SC2086
train whole 1 $options --max-updates "$updates"
for run in part stopped; do
    expect 0 1 train --resume --run-dir "$work/$run" --max-updates "$updates"
    identical $run whole
    table $run train update >"$work/a"
    sort -n -u "$work/a" | cmp -s - "$work/a" || fault "records of $run are out of order or twice"
done
done_testing
