# shellcheck shell=sh
# lib.sh - sourced by the shell tests of this folder and of tests/mpi: a scratch folder, the
# program on some ranks, and comparisons of what it wrote.
#
# Environment: RNN_DIST the program, TOOL tests/cases/tool of this build, LONG=1 the long form.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/mpi_env.sh" ] || here=${here%/*}
srcdir=${srcdir:-${here%/*}}
# shellcheck source=tests/mpi_env.sh
. "$srcdir/tests/mpi_env.sh"
# shellcheck source=tests/tally.sh
. "$srcdir/tests/tally.sh"
RNN_DIST=${RNN_DIST:-rnn_dist}
TOOL=${TOOL:-$PWD/tests/cases/tool}
work=$(mktemp -d "${TMPDIR:-/tmp}/rnn_dist-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
faults=0

# Counts a fault; the test continues, and done_testing reports it.
fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
    tally_fault
}

# What went wrong beyond repair.
die() {
    echo "FAULT: $*"
    sed 's/^/    /' "$work/err" 2>/dev/null || true
    tally_fault
    tally_end
    exit 1
}

done_testing() {
    tally_end
    [ "$faults" = 0 ] || exit 1
    echo "all as it should be"
}

# on RANKS COMMAND...: the program on so many ranks, without a launcher on one.
on() {
    on_ranks=$1
    shift
    if [ "$on_ranks" = 1 ]; then
        "$RNN_DIST" "$@" 2>"$work/err"
    else
        mpirun -np "$on_ranks" "$RNN_DIST" "$@" 2>"$work/err"
    fi
}

# expect STATUS RANKS COMMAND...: the same, which must leave with STATUS.
expect() {
    wanted=$1
    shift
    got=0
    on "$@" >"$work/out" || got=$?
    [ "$got" = "$wanted" ] || die "exit $got, not $wanted: on $*"
}

# said WORDS...: the last messages hold each of them.
said() {
    for word in "$@"; do
        grep -qF -- "$word" "$work/err" || fault "no '$word' in: $(cat "$work/err")"
    done
}

# printed WORDS...: the last results hold each of them.
printed() {
    for word in "$@"; do
        grep -qF -- "$word" "$work/out" || fault "no '$word' in: $(cat "$work/out")"
    done
}

# train DIR RANKS OPTIONS...: into $work/DIR, with a record for every update.
train() {
    run=$work/$1 ranks=$2
    shift 2
    expect 0 "$ranks" train --run-dir "$run" --progress none --log-every 1 --threads 1 "$@"
}

# data NAME KEY=VALUE...: $work/NAME.h5
data() {
    name=$1
    shift
    "$TOOL" data "$work/$name.h5" "$@"
}

# table DIR EVENT KEY...: these values of each such record of a run, one line a record.
table() {
    metrics=$work/$1/metrics.jsonl event=$2
    shift 2
    awk -v keys="$*" -v event="$event" '
        index($0, "\"event\"") && match($0, "\"event\": *\"" event "\"") {
            n = split(keys, key, " ")
            line = ""
            for (i = 1; i <= n; i++) {
                value = "-"
                if (match($0, "\"" key[i] "\": *[^,}]*")) {
                    value = substr($0, RSTART, RLENGTH)
                    sub(/^[^:]*: */, "", value)
                }
                line = line (i > 1 ? " " : "") value
            }
            print line
        }' "$metrics"
}

# near BOUND FILE FILE: the numbers of two tables agree to BOUND of their size, the rest
# exactly.
near() {
    [ -s "$2" ] || die "nothing in $2"
    paste -d ' ' "$2" "$3" | awk -v bound="$1" '
        function size(x) { return x < 0 ? -x : x }
        {
            if (NF % 2) { print "line " NR ": one has more"; exit 1 }
            for (i = 1; i <= NF / 2; i++) {
                a = $i
                b = $(i + NF / 2)
                if (a == b) continue
                if (a !~ /^[-+.0-9]/ || b !~ /^[-+.0-9]/ || size(a - b) > bound * size(b)) {
                    print "line " NR ": " a " and " b
                    exit 1
                }
            }
        }'
}

# same DIR DIR BOUND: train records of two runs agree.
same() {
    table "$1" train update epoch loss targets lr grad_norm >"$work/a"
    table "$2" train update epoch loss targets lr grad_norm >"$work/b"
    near "$3" "$work/a" "$work/b" || wrong "train records of $1 and $2 differ"
}

# identical DIR DIR: records of two runs and their last parameters, bit for bit.
identical() {
    for identical_event in train valid skip; do
        set -- "$1" "$2" "$identical_event"
        table "$1" "$3" update epoch loss targets lr grad_norm accuracy perplexity reason \
            >"$work/a"
        table "$2" "$3" update epoch loss targets lr grad_norm accuracy perplexity reason \
            >"$work/b"
        cmp -s "$work/a" "$work/b" || {
            wrong "$3 records of $1 and $2 differ"
            diff "$work/a" "$work/b" | head -n 4
        }
    done
    parameters "$1" "$2" 0
    "$TOOL" diff 0 "$(last "$1")" "$(last "$2")" /optimizer >"$work/diff" ||
        wrong "moments of $1 and $2 differ: $(cat "$work/diff")"
}

# last DIR: the newest checkpoint of a run.
last() {
    find "$work/$1" -name 'ckpt-*.h5' | sort | tail -n 1
}

# parameters DIR DIR BOUND: the last parameters of two runs agree.
parameters() {
    "$TOOL" diff "$3" "$(last "$1")" "$(last "$2")" >"$work/diff" ||
        wrong "parameters of $1 and $2: $(cat "$work/diff")"
}

# equal WHAT GOT WANTED
equal() {
    [ "$2" = "$3" ] || fault "$1: $2, not $3"
}

# close_to WHAT GOT WANTED BOUND (relative)
close_to() {
    awk -v a="$2" -v b="$3" -v bound="$4" 'BEGIN {
        d = a - b; if (d < 0) d = -d
        if (b < 0) b = -b
        exit !(a != "" && d <= bound * b)
    }' || fault "$1: $2, not $3"
}

# lengths COUNT FROM TO: that many lengths, spread over the range, with commas.
lengths() {
    awk -v n="$1" -v a="$2" -v b="$3" 'BEGIN {
        for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", a + (i * 7919 + 13) % (b - a + 1)
    }'
}

# ---- runs in the background

# start DIR RANKS OPTIONS...: as train, in the background; $job is the launcher, or the program
# on one rank.
start() {
    run=$work/$1 ranks=$2
    shift 2
    if [ "$ranks" = 1 ]; then
        "$RNN_DIST" train --run-dir "$run" --progress none --log-every 1 --threads 1 "$@" \
            >"$work/out" 2>"$work/err" &
    else
        mpirun -np "$ranks" "$RNN_DIST" train --run-dir "$run" --progress none --log-every 1 \
            --threads 1 "$@" >"$work/out" 2>"$work/err" &
    fi
    job=$!
}

# ranks_of JOB RANKS: process ids of its ranks; none where they have ended.
ranks_of() {
    [ "$2" != 1 ] || { echo "$1"; return; }
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v job="$1" '
        { pid = $1; sub(/.*[)] /, ""); if ($2 == job) print pid }' | sort -n
}

# update_of DIR: the last one that the metrics tell of; nothing where there is none.
update_of() {
    tail -n 50 "$work/$1/metrics.jsonl" 2>/dev/null |
        sed -n 's/.*"event": *"train".*"update": *\([0-9]*\).*/\1/p' | tail -n 1
}

# reached DIR UPDATE: they tell of this update.
reached() {
    [ "$(update_of "$1")" -ge "$2" ] 2>/dev/null
}

# wait_for DIR UPDATE: until they do.
wait_for() {
    wait_left=1000
    until reached "$1" "$2"; do
        wait_left=$((wait_left - 1))
        [ $wait_left -gt 0 ] || die "update $2 of $1 did not come"
        kill -0 "$job" 2>/dev/null || reached "$1" "$2" || die "$1 ended before update $2"
        sleep 0.02
    done
}

# ended STATUS: the job has ended with it.
ended() {
    got=0
    wait "$job" || got=$?
    [ "$got" = "$1" ] || die "exit $got, not $1"
}
