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
refuses 2 "rank 0: predict needs --out FILE or --csv FILE" predict none --data none.h5

# Rank 0 is heard even where it comes last.
cat >"$work/late" <<'EOF'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" != 0 ] || sleep 0.5
exec "$@"
EOF
chmod +x "$work/late"
got=0
mpirun -np 3 "$work/late" "$RNN_DIST" trian >"$work/out" 2>"$work/err" || got=$?
[ $got = 2 ] || fault "a late rank 0: exit $got"
[ "$(own)" = "rnn_dist: unknown command trian; did you mean train?" ] ||
    fault "a late rank 0: '$(own)'"

# One rank alone fails: it says why, the others nothing, and all leave with its status.
data good task=classify outputs=3 lengths=3,1,2
printf 'no data\n' >"$work/bad.h5"
got=0
mpirun -np 2 "$RNN_DIST" --data "$work/good.h5" --run-dir "$work/run" : \
    -np 1 "$RNN_DIST" --data "$work/bad.h5" --run-dir "$work/run" \
    >"$work/out" 2>"$work/err" || got=$?
[ $got = 3 ] || fault "a rank without its data: exit $got"
own >"$work/own"
[ "$(wc -l <"$work/own")" = 1 ] || fault "several ranks speak: $(cat "$work/own")"
grep -q "^rnn_dist: rank 2: $work/bad.h5: " "$work/own" || fault "it says $(cat "$work/own")"
[ ! -e "$work/run" ] || fault "a run directory was made"

# The same bits of a loss on any number of ranks, of sequences and of a stream.
data class task=classify outputs=3 lengths="$(lengths 90 1 15)"
data text task=lm vocab=9 lengths="$(lengths 40 0 20)"
train class 1 --data "$work/class.h5" --batch 7 --hidden 12 --epochs 1
train text 1 --data "$work/text.h5" --batch 20 --tbptt 4 --hidden 12 --embed 6 --epochs 1
for name in class text; do
    expect 0 1 eval "$work/$name" --data "$work/$name.h5" --threads 1 --json
    cp "$work/out" "$work/alone"
    for ranks in 2 3 5; do
        expect 0 $ranks eval "$work/$name" --data "$work/$name.h5" --threads 1 --json
        cmp -s "$work/out" "$work/alone" ||
            fault "$name on $ranks ranks: $(cat "$work/out"), alone: $(cat "$work/alone")"
    done
done

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
