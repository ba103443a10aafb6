#!/bin/sh
# program.sh - the whole program on the emulated GPU: training, evaluation and prediction on 1,
# 2 and 3 ranks say what they say on the CPU. LONG=1 takes every cell by every path.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

plugin=$PWD/tests/simt/rnn_dist_cuda_simt.so
RNND_CUDA_PLUGIN=${RNND_CUDA_PLUGIN:-$plugin}
[ -r "$RNND_CUDA_PLUGIN" ] || { echo "the emulated GPU is not built"; exit 77; }
export RNND_CUDA_PLUGIN RNND_SIMT_DEVICES=3
LONG=${LONG:-}

# compare NAME RANKS OPTIONS...: a run on the CPU by one rank, and on the GPU by some. Plain
# descent, so that parameters differ as little as gradients do. In fp32 to 1e-5, a tensor's
# difference by its norm.
precision=fp32 bound=1e-5 on_cpu=fp32
compare() {
    name=$1 ranks_wanted="$2"
    shift 2
    train "$name.cpu" 1 --device cpu --precision $on_cpu --optimizer sgd --lr 0.1 \
        --max-updates 3 "$@"
    for n in $ranks_wanted; do
        train "$name.$n" "$n" --device cuda --precision $precision --optimizer sgd \
            --lr 0.1 --max-updates 3 "$@"
        same "$name.$n" "$name.cpu" $bound
        parameters "$name.$n" "$name.cpu" $bound
    done
}

data classes task=classify lengths=9,1,5,0,7,3,8,2,6,4 features=4 outputs=3
data tags task=tag lengths=9,1,5,0,7,3,8,2,6,4 features=3 outputs=4
data values task=regress lengths=6,2,7,3,1,5 features=2 outputs=2
data notes task=multilabel lengths=6,2,7,3,1,5 features=3 outputs=5
data many task=classify outputs=3 lengths="$(lengths 40 1 4)"
data text task=lm lengths=14,3,9,1,12,6 vocab=11
# Strings, one of which is empty, repeats labels, or does not fit (the last).
awk 'BEGIN {
    print "s,x,y,z"
    for (s = 0; s < 6; s++)
        for (t = 0; t < 9 - s; t++)
            printf "%d,%.2f,%.2f,%.2f\n", s, sin(s + t), cos(2 * t), sin(3 * t - s)
}' >"$work/steps.csv"
printf '%s\n' s,labels '0,a b b c' 1,c '2,a a' '3,' '4,b c a' '5,a a a' >"$work/table.csv"
expect 0 1 pack csv "$work/steps.csv" "$work/strings.h5" --sequence s --features x,y,z \
    --labels-from "$work/table.csv"

# ---- training: cells, directions, layers, tasks, paths
compare lstm "1 2 3" --data "$work/classes.h5" --batch 5 --hidden 7 --rnn-path stepwise
compare small "1 3" --data "$work/classes.h5" --batch 5 --hidden 7 --pool mean
compare gru "1 2" --data "$work/tags.h5" --batch 4 --hidden 6 --cell gru --layers 2 \
    --bidirectional --dropout 0.3 --rnn-path stepwise
compare rnn 2 --data "$work/values.h5" --batch 4 --hidden 5 --cell rnn_tanh --pool max
compare lm "1 2" --data "$work/text.h5" --batch 2 --embed 6 --hidden 6 --tbptt 4 \
    --cell gru --tie-weights --stream yes
compare again "1 2" --data "$work/text.h5" --batch 2 --embed 6 --hidden 6 --layers 2 \
    --tbptt 4 --cell lstm --stream yes --rnn-path stepwise
compare notes 2 --data "$work/notes.h5" --batch 3 --hidden 5 --cell rnn_relu --layers 2 \
    --dropout-kind sequence --dropout 0.2
compare strings "1 2 3" --data "$work/strings.h5" --batch 4 --hidden 6 --cell gru
compare weights "1 2" --data "$work/tags.h5" --batch 4 --hidden 5 --class-weight 0.5,2,0,1 \
    --label-smoothing 0.1
compare yes 2 --data "$work/notes.h5" --batch 3 --hidden 5 --class-weight 0.5,2,1,3,0
compare unbiased.lstm 2 --data "$work/tags.h5" --batch 4 --hidden 6 --layers 2 \
    --bidirectional --no-bias --rnn-path stepwise
compare unbiased.gru "1 2" --data "$work/classes.h5" --batch 5 --hidden 7 --cell gru \
    --no-bias --rnn-path small
precision=tf32 bound=1e-3
compare unbiased.held 1 --data "$work/tags.h5" --batch 4 --hidden 17 --layers 2 --no-bias \
    --bidirectional --rnn-path persistent
said "recurrent layers: persistent"
precision=fp32 bound=1e-5

# ---- factors rounded to bf16 at the same places on both: nearer than bf16 is to fp32 (1e-4)
precision=bf16 bound=5e-5 on_cpu=bf16 RNND_CPU_ISA=avx2
export RNND_CPU_ISA
if on 1 info --device cpu --precision bf16 --plan >"$work/out"; then
    compare rounded.lstm 1 --data "$work/classes.h5" --batch 5 --hidden 20 --rnn-path stepwise
    compare rounded.gru "1 2" --data "$work/tags.h5" --batch 4 --hidden 17 --cell gru \
        --layers 2 --bidirectional --dropout 0.3 --rnn-path stepwise
    compare rounded.lm 1 --data "$work/text.h5" --batch 2 --embed 6 --hidden 19 --tbptt 4 \
        --cell rnn_tanh --rnn-path stepwise
else
    echo "bf16 on both is not compared: $(cat "$work/err")"
fi
precision=fp32 bound=1e-5 on_cpu=fp32
unset RNND_CPU_ISA

if [ -n "$LONG" ]; then
    for cell in lstm gru rnn_tanh rnn_relu; do
        for path in stepwise small; do
            for more in "" --bidirectional; do
                for set in classes tags values notes; do
                    # shellcheck disable=SC2086 # none or one option
                    compare "$cell.$path.$set.${more:+bi}" "1 2 3" --data "$work/$set.h5" \
                        --batch 4 --hidden 17 --layers 2 --cell $cell --rnn-path $path $more
                done
            done
            compare "$cell.$path.lm" "1 2 3" --data "$work/text.h5" --batch 3 --embed 5 --hidden 3 \
                --cell $cell --rnn-path $path --stream no --tbptt 5 --windows 2
        done
    done
    for cell in lstm gru; do
        for precision in tf32 bf16; do
            bound=1e-3
            [ $precision = tf32 ] || bound=1e-2
            for set in classes tags; do
                compare "$cell.$precision.$set" "1 2 3" --data "$work/$set.h5" --batch 4 \
                    --hidden 17 --layers 2 --cell $cell --rnn-path persistent --bidirectional
                said "recurrent layers: persistent"
            done
        done
    done
    precision=fp32 bound=1e-5
fi

# ---- the same seed gives the same bits under every schedule
seeds="1 2 inorder"
[ -z "$LONG" ] || seeds="1 2 3 4 5 inorder"
for seed in $seeds; do
    RNND_SIMT_SEED=$seed
    export RNND_SIMT_SEED
    train "seed.$seed" 2 --device cuda --data "$work/tags.h5" --batch 4 --hidden 6 \
        --cell gru --layers 2 --dropout 0.3 --epochs 2
    identical "seed.$seed" seed.1
    train "held.$seed" 2 --device cuda --precision bf16 --rnn-path persistent \
        --data "$work/tags.h5" --batch 9 --hidden 20 --bidirectional --epochs 2
    identical "held.$seed" held.1
done
unset RNND_SIMT_SEED

# ---- gradients through the host
train staged 3 --device cuda --comm mpi --precision fp32 --optimizer sgd --lr 0.1 \
    --max-updates 3 --data "$work/classes.h5" --batch 5 --hidden 7
parameters staged lstm.cpu 1e-5

# ---- eval and predict
for n in 1 2 3; do
    for device in cpu cuda; do
        expect 0 "$n" eval "$work/gru.cpu" --data "$work/tags.h5" --device $device \
            --precision fp32 --json
        mv "$work/out" "$work/eval.$device"
        expect 0 "$n" predict "$work/gru.cpu" --data "$work/tags.h5" --device $device \
            --precision fp32 --states --out "$work/predicted.$device.h5"
    done
    sed 's/[{},:]/ /g' "$work/eval.cpu" >"$work/a"
    sed 's/[{},:]/ /g' "$work/eval.cuda" >"$work/b"
    near 1e-5 "$work/b" "$work/a" || fault "eval differs on $n ranks"
    for group in / /states; do
        "$TOOL" diff 1e-5 "$work/predicted.cuda.h5" "$work/predicted.cpu.h5" $group \
            >"$work/diff" || fault "predictions differ on $n ranks: $(cat "$work/diff")"
    done
done

# ---- blocks: of 132 multiprocessors, sums over ranks have four of the backward pass
RNND_SIMT_DEVICES=2
plan() {
    expect 0 "$1" info --plan --device cuda --precision bf16 --batch 256 --hidden "$2"
    shift 2
    printed "$@"
}
# A sum that is under way and blocks that wait for each other must fit, or the emulator ends it.
RNND_SIMT_SMS=22 RNND_SIMT_ARCH=86
export RNND_SIMT_SMS RNND_SIMT_ARCH
train beside 2 --device cuda --precision tf32 --rnn-path persistent --bucket-mb 0.001 \
    --data "$work/many.h5" --batch 20 --hidden 150 --layers 2 --max-updates 1
said "10 blocks hold the weights of 150 units, 1 group of rows (2 forward)"
unset RNND_SIMT_SMS RNND_SIMT_ARCH
# Where such a launch is refused, the layer goes on step by step.
bound=1e-2 precision=bf16 RNND_SIMT_REFUSES=4
export RNND_SIMT_REFUSES
compare refused 2 --data "$work/tags.h5" --batch 4 --hidden 17 --layers 2 --bidirectional \
    --rnn-path persistent
said "cannot be launched (too many blocks in cooperative launch)" "step by step from now on"
unset RNND_SIMT_REFUSES
# The weights of an LSTM fit the registers of one multiprocessor up to 96 units.
plan 1 96 "small: one multiprocessor holds the weights of 96 units (of up to 96)"
plan 1 97 "persistent: 7 blocks hold the weights of 97 units"
plan 1 1024 "1024 units, 2 groups of rows, gates apart; of two directions at once 1 group each"
plan 2 1024 "1024 units, 2 groups of rows, gates apart; of two directions at once 1 group each"
plan 1 704 "704 units, 3 groups of rows,"
plan 2 704 "704 units, 2 groups of rows (3 forward),"

# ---- devices
expect 5 3 train --data "$work/tags.h5" --device cuda --run-dir "$work/none" --hidden 5
said "ranks 0 and 2 of the 3" "--comm mpi"
expect 0 3 eval "$work/gru.cpu" --data "$work/tags.h5" --device cuda --comm mpi
said "share a GPU"
RNND_SIMT_DEVICES=0
expect 5 1 eval "$work/gru.cpu" --data "$work/tags.h5" --device cuda
said "no CUDA device" "use --device cpu"
expect 0 1 eval "$work/gru.cpu" --data "$work/tags.h5"
said "using the CPU: no CUDA device"
RNND_SIMT_DEVICES=1 RNND_SIMT_ARCH=75
export RNND_SIMT_ARCH
expect 0 1 info --plan --hidden 1000
printed "sm_75, fp32" "plan       stepwise"
expect 2 1 eval "$work/gru.cpu" --data "$work/tags.h5" --device cuda --precision bf16
said "--precision bf16 needs a GPU of sm_80"
done_testing
