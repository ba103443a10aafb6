#!/bin/sh
# ranks.sh - on several ranks one of them speaks, and all leave with the same status.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

# Own messages; mpirun adds a banner of its own after a failure.
own() {
    grep '^rnn_dist: ' "$work/err" || true
}

# refuses STATUS MESSAGE ARGUMENT...: said once over three ranks.
refuses() {
    status=$1 message=$2
    shift 2
    expect "$status" 3 "$@"
    [ "$(own)" = "rnn_dist: $message" ] || fault "$*: not '$message' but '$(own)'"
    [ ! -s "$work/out" ] || fault "$*: standard output has $(cat "$work/out")"
}

refuses 2 "unknown option --hiden; did you mean --hidden?" --hiden 5
refuses 2 "unknown command trian; did you mean train?" trian
refuses 2 "eval needs MODEL; see rnn_dist help eval" eval
refuses 4 "rank 0: none.h5: No such file or directory" --data none.h5 --progress none
refuses 4 "rank 0: none: No such file or directory" eval none --data none.h5
refuses 2 "rank 0: predict needs --out FILE or --csv FILE" predict none --data none.h5

expect 0 3 --version
[ "$(grep -c '^rnn_dist ' "$work/out")" = 1 ] || fault "the version: $(cat "$work/out")"
expect 0 3 help
[ "$(grep -c '^Commands' "$work/out")" = 1 ] || fault "help: $(cat "$work/out")"
expect 0 3 info
[ "$(grep -c '^rnn_dist ' "$work/out")" = 1 ] || fault "info: $(cat "$work/out")"
for rank in 0 1 2; do
    grep -q "^  rank $rank  $(hostname)  cpu" "$work/out" || fault "info has no rank $rank"
done

# Tasks of a Slurm step that do not know of each other: all stop, the first one says why.
for rank in 0 1; do
    got=0
    env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 \
        "$RNN_DIST" info >"$work/out" 2>"$work/err" || got=$?
    [ $got = 6 ] || fault "task $rank without PMIx: exit $got"
    [ ! -s "$work/out" ] || fault "task $rank without PMIx: $(cat "$work/out")"
    if [ $rank = 0 ]; then
        said "srun --mpi=pmix"
    elif [ -s "$work/err" ]; then
        fault "task $rank says: $(cat "$work/err")"
    fi
done

done_testing
