#!/bin/sh
# kernels.sh - every operation on the emulated GPU, by every path and precision, against its
# reference; and the same bits under every schedule. LONG=1 takes all of it under five
# schedules and in order, and all cases; else a few.
set -u
plugin=$PWD/tests/simt/rnn_dist_cuda_simt.so
export RNND_CUDA_PLUGIN="${RNND_CUDA_PLUGIN:-$plugin}" CK_FORK=no RNND_TEST_TARGETS=cuda
[ -r "$RNND_CUDA_PLUGIN" ] || { echo "the emulated GPU is not built"; exit 77; }
[ -x tests/kernels/test_kernels ] || { echo "Check is not here"; exit 77; }
faults=0 log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run NAME=VALUE...: the tests in that environment. $digest is of all that came to the host.
run() {
    echo "== $*"
    env RNND_SIMT_DIGEST=1 "$@" tests/kernels/test_kernels >"$log" 2>&1 || faults=$((faults + 1))
    cat "$log"
    digest=$(sed -n 's/^simt: digest //p' "$log")
}

# same SEEDS NAME=VALUE...: under several schedules.
same() {
    seeds=$1 first=
    shift
    for seed in $seeds; do
        run "$@" RNND_SIMT_SEED="$seed"
        if [ -z "$digest" ] || [ "$digest" != "${first:=$digest}" ]; then
            echo "the schedule changes bits"
            faults=$((faults + 1))
        fi
    done
}

if [ "${LONG:-}" ]; then
    same "1 2 3 4 5 inorder" RNND_TEST_BRIEF=1
    run RNND_SIMT_SEED=$$
    run RNND_SIMT_SEED=inorder RNND_SIMT_SMS=6 RNND_TEST_TARGETS="cuda, persistent"
    run RNND_SIMT_SEED=$$ RNND_SIMT_ARCH=75 RNND_TEST_TARGETS="cuda, small"
    run RNND_SIMT_SEED=$$ RNND_CUDA_GRAPHS=no RNND_TEST_TARGETS="cuda, stepwise"
    run RNND_SIMT_SEED=inorder RNND_SIMT_CAPTURES=0 RNND_TEST_TARGETS="cuda, stepwise"
else
    export RNND_TEST_BRIEF=1
    same "$$ inorder" RNND_TEST_TARGETS="cuda, stepwise, fp32"
    run RNND_TEST_TARGETS="cuda, stepwise, fp32" RNND_SIMT_CAPTURES=0 CK_RUN_CASE=rnn
    same "$$ inorder" RNND_TEST_TARGETS="cuda, small" RNND_SIMT_ARCH=75
    # Few multiprocessors: a group of blocks has several tiles of rows.
    same "$$ inorder" RNND_TEST_TARGETS="cuda, persistent, bf16" RNND_SIMT_SMS=6
fi

# Where a persistent launch is refused, the layer is computed step by step: forward, backward.
for launch in 1 2; do
    run RNND_SIMT_REFUSES=$launch RNND_SIMT_SMS=16 RNND_TEST_TARGETS="cuda, persistent" \
        CK_RUN_CASE=tiles RNND_TEST_BRIEF=1
done

# Layers of usual sizes, where a group of blocks has several tiles of rows.
for sms in 16 132; do
    run RNND_SIMT_SEED=inorder RNND_SIMT_SMS=$sms RNND_TEST_TARGETS="cuda, persistent" \
        CK_RUN_CASE=tiles
    grep -q "several tiles: [1-9]" "$log" || {
        echo "no layer on $sms multiprocessors"
        faults=$((faults + 1))
    }
done

# plan UNITS TEXT: what the planner says of two directions on six multiprocessors.
plan() {
    text=$(RNND_SIMT_SMS=6 bin/rnn_dist info --plan --device cuda --precision bf16 --batch 19 \
        --rnn-path persistent --hidden "$1" 2>&1)
    echo "$text" | grep -q "$2" && return
    printf 'the plan of %s units does not say: %s\n%s\n' "$1" "$2" "$text"
    faults=$((faults + 1))
}
plan 20 "2 blocks hold the weights of 20 units, 3 groups.*; of two directions at once 1 group"
plan 50 "4 blocks hold the weights of 50 units, 1 group.*; of two directions one after the"
plan 100 "stepwise: 100 units need 7 blocks at once, there are 6"
[ $faults = 0 ]
