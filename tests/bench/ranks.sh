#!/bin/sh
# ranks.sh [SHAPE...] - rnn_dist on one rank and on two, and PyTorch's DistributedDataParallel
# (gloo, padded batches) in two processes, in turn, one thread each: medians of real time steps
# a second, and ratios, as a Markdown table. The shapes are in the file `shapes`; all split the
# same batches, and must come to the same loss.
#
# Environment: as for compare.sh; PORT (29533) is that of DDP.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mpi_env.sh
. "$here/../mpi_env.sh"
rnn_dist=${RNN_DIST:-rnn_dist}
rounds=${ROUNDS:-5}
each=${SECONDS_EACH:-4}

# ours RANKS UPDATES: one measurement of rnn_dist.
ours() {
    # shellcheck disable=SC2086 # a list of options
    set -- "$1" "$rnn_dist" bench --data "$work/data.h5" --init "$work/init.safetensors" \
        $options --max-updates "$2" --json --threads 1
    if [ "$1" = 1 ]; then
        shift
        "$@" 2>/dev/null >"$work/1.json"
    else
        mpirun -np "$@" 2>/dev/null >"$work/2.json"
    fi
}

# ddp UPDATES: of PyTorch in two processes.
ddp() {
    for rank in 1 0; do
        MASTER_ADDR=127.0.0.1 MASTER_PORT=${PORT:-29533} WORLD_SIZE=2 RANK=$rank \
            "$python" "$here/peers.py" ddp "$shape" "$work" "$1" >"$work/ddp$rank.json" &
    done
    wait $!
    wait
}

echo "| shape | 1 rank, steps/s | 2 ranks | DDP, 2 processes | 2 ranks / 1 | 2 ranks / DDP |"
echo "| --- | --- | --- | --- | --- | --- |"
wanted=${*:-lstm-36-50 lstm-64-256x2}
for shape in $wanted; do
    # shellcheck disable=SC2046 # words of the line
    set -- $(words_of "$shape")
    options="$(options_of "$@") --lr 0.01 --clip-norm 1"
    steps=$(($7 * ($8 + $9) / 2))
    "$python" "$here/peers.py" make "$shape" "$work"
    rm -f "$work"/*.rate

    # Updates that take about $each seconds; the same work to the same loss.
    ours 1 3
    ours 2 3
    ddp 3
    for other in 2 ddp0; do
        same_loss "$shape" "$work/1.json" "$work/$other.json"
    done
    many=$(updates_for "$(value steps_per_s "$work/1.json")" "$each" "$steps")
    few=$(updates_for "$(value steps_per_s "$work/ddp0.json")" "$each" "$steps")
    round=0
    while [ $round -lt "$rounds" ]; do
        ours 1 "$many"
        ours 2 "$many"
        ddp "$few"
        for one in 1 2 ddp0; do
            value steps_per_s "$work/$one.json" >>"$work/$one.rate"
        done
        round=$((round + 1))
    done
    awk -v name="$shape" -v a="$(median "$work/1.rate")" -v b="$(median "$work/2.rate")" \
        -v d="$(median "$work/ddp0.rate")" 'BEGIN {
            printf "| %s | %.0f | %.0f | %.0f | %.2f | %.2f |\n", name, a, b, d, b / a, b / d
        }'
done
