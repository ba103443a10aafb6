#!/bin/sh
# peers.sh - one of three emulated ranks is killed as it starts, in the middle of a backward
# pass, or at the end: the others say who is missing, and leave with 6 within the time limit.
# NCCL is needed by two or more ranks only, and where one has none, none waits for it.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

RNND_CUDA_PLUGIN=${RNND_CUDA_PLUGIN:-$PWD/tests/simt/rnn_dist_cuda_simt.so}
[ -r "$RNND_CUDA_PLUGIN" ] || { echo "the emulated GPU is not built"; exit 77; }
export RNND_CUDA_PLUGIN RNND_SIMT_DEVICES=3
# The launcher does not end the others by itself.
mpirun --enable-recovery -np 1 true 2>/dev/null ||
    { echo "mpirun has no --enable-recovery"; exit 77; }

limit=4
data many task=classify outputs=3 lengths="$(lengths 30 1 9)"

# dies CALL NUMBER WORDS [RANKS LIVE...]: rank 2 dies as it enters the call for the so-manieth
# time; the first survivor to leave says the words, with status 6.
dies() {
    what="$1 $2" words=$3
    RNND_SIMT_DIES=2:$1:$2
    export RNND_SIMT_DIES
    begun=$(date +%s) status=0
    # The launcher's own status says nothing here; each rank leaves its own.
    # shellcheck disable=SC2016 # for the inner shell
    timeout -k 2 $((limit * 3 + 15)) mpirun --enable-recovery -np 3 sh -c '
        "$@"; echo $? >"$0.$OMPI_COMM_WORLD_RANK"' "$work/status" \
        "$RNN_DIST" train --run-dir "$work/$1.$2" --progress none --threads 1 --device cuda \
        --data "$work/many.h5" --batch 12 --hidden 8 --layers 2 --bucket-mb 0.001 \
        --max-updates 8 --comm-timeout $limit >"$work/out" 2>"$work/err" || status=$?
    took=$(($(date +%s) - begun))
    echo "killed in $what: $took s, status $(cat "$work"/status.* 2>/dev/null | tr '\n' ' ')"
    [ $status -lt 124 ] || fault "$what: the survivors hang"
    [ $took -le $((limit * 2 + 10)) ] || fault "$what: $took s"
    said "timed out after $limit s (--comm-timeout) waiting for the $words" \
        "no answer from rank 2 on $(hostname): dead"
    grep -q '^6$' "$work"/status.[01] || fault "$what: no rank left with 6"
    rm -f "$work"/status.*
}

dies ncclCommInitRankConfig 1 "start of NCCL before the first update"
dies ncclAllReduce 1 "gradient sum in update 0"
dies ncclAllReduce 9 "gradient sum in update 1"
dies cudaLaunchKernel 150 ""
dies ncclCommFinalize 1 "end of NCCL"
unset RNND_SIMT_DIES

# ---- no NCCL
options="--progress none --threads 1 --device cuda --data $work/many.h5 --batch 12 --hidden 8"
options="$options --max-updates 2"
RNND_SIMT_NCCL=0
export RNND_SIMT_NCCL
# shellcheck disable=SC2086 # a list of options
{
    expect 0 1 train --run-dir "$work/alone" $options
    expect 0 2 train --run-dir "$work/mpi" --comm mpi $options
    expect 5 2 train --run-dir "$work/none" $options
}
said "libnccl.so.2: cannot open" "install it, or use --comm mpi"
unset RNND_SIMT_NCCL
RNND_REAL=$RNN_DIST RNN_DIST=$work/some
export RNND_REAL
cat >"$RNN_DIST" <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && export RNND_SIMT_NCCL=0
exec "$RNND_REAL" "$@"
END
chmod +x "$RNN_DIST"
# shellcheck disable=SC2086
expect 5 3 train --run-dir "$work/some.run" $options
said "rank 1: NCCL, which sums over GPUs, cannot be loaded"
done_testing
