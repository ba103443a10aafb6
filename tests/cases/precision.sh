#!/bin/sh
# precision.sh - training with factors in bf16 on the CPU: the processor's instruction and what
# emulates it give the same bits, ranks and threads change nothing but the order of sums, and
# the loss stays near that of fp32.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data tags task=tag lengths=9,1,5,0,7,3,8,2,6,4 features=3 outputs=4
data classes task=classify lengths=9,1,5,0,7,3,8,2,6,4 features=19 outputs=3
data text task=lm lengths=14,3,9,1,12,6 vocab=301

# options_of NAME. Together, everything that multiplies: layers, directions, inputs of several
# widths, the head.
options_of() {
    case $1 in
    tags) more="--hidden 37 --layers 2 --bidirectional --batch 5 --cell gru" ;;
    classes) more="--hidden 18 --batch 5 --cell rnn_tanh --pool mean" ;;
    text) more="--hidden 70 --embed 33 --tbptt 5 --batch 3 --cell lstm --dropout 0.2" ;;
    esac
    echo "--data $work/$1.h5 $more"
}

# ---- who computes it. Vectors of another width add up norms and biases in another order.
for name in tags classes text; do
    options=$(options_of $name)
    for isa in avx512 avx512bf16 avx2; do
        RNND_CPU_ISA=$isa
        export RNND_CPU_ISA
        # shellcheck disable=SC2086 # a list of options
        on 1 train --run-dir "$work/$name.$isa" --progress none --log-every 1 --threads 1 \
            --precision bf16 --optimizer sgd --lr 0.1 --epochs 2 $options >"$work/out" || {
            grep -q "cannot run" "$work/err" || die "$name by $isa: $(cat "$work/err")"
            echo "this processor cannot run $isa"
        }
    done
    [ -d "$work/$name.avx2" ] || {
        echo "this processor has no AVX2, by which bf16 is emulated"
        exit 77
    }
    [ ! -d "$work/$name.avx512bf16" ] || identical "$name.avx512bf16" "$name.avx512"
    [ ! -d "$work/$name.avx512" ] || parameters "$name.avx512" "$name.avx2" 1e-4
done

# ---- the same on two ranks and on two threads: sums differ in order only
RNND_CPU_ISA=avx2
for name in tags classes text; do
    options=$(options_of $name)
    # shellcheck disable=SC2086
    {
        train "$name.one" 1 --precision bf16 --optimizer sgd --lr 0.1 --max-updates 4 $options
        train "$name.two" 2 --precision bf16 --optimizer sgd --lr 0.1 --max-updates 4 $options
        train "$name.threads" 1 --precision bf16 --optimizer sgd --lr 0.1 --max-updates 4 \
            --threads 2 $options
        train "$name.fp32" 1 --precision fp32 --optimizer sgd --lr 0.1 --max-updates 4 $options
    }
    same "$name.two" "$name.one" 1e-4
    parameters "$name.two" "$name.one" 1e-4
    parameters "$name.threads" "$name.one" 1e-4
    # Rounded factors: near fp32, but not the same.
    table "$name.one" train loss >"$work/a"
    table "$name.fp32" train loss >"$work/b"
    near 1e-2 "$work/a" "$work/b" || fault "$name: bf16 is far from fp32"
    ! near 1e-7 "$work/a" "$work/b" >/dev/null || fault "$name: bf16 is fp32"
done

# ---- the precision stays with a run, and evaluation takes it too
options=$(options_of tags)
# shellcheck disable=SC2086
train stopped 1 --precision bf16 --max-updates 3 $options
# shellcheck disable=SC2086
train whole 1 --precision bf16 --max-updates 6 $options
expect 0 1 train --run-dir "$work/stopped" --resume --max-updates 6 --progress none
parameters stopped whole 0
for precision in bf16 fp32; do
    expect 0 1 eval "$work/whole" --data "$work/tags.h5" --precision $precision --json
    mv "$work/out" "$work/eval.$precision"
done
! cmp -s "$work/eval.bf16" "$work/eval.fp32" || fault "eval ignores --precision"
! grep -q 'trained with' "$work/err" || fault "a precision that was given is noted"
expect 0 1 eval "$work/whole" --data "$work/tags.h5" --device cpu --json
said 'trained with --precision bf16, computed here with auto'
cmp "$work/out" "$work/eval.fp32" || fault "auto is not fp32 on a CPU"

# ---- what is missing
RNND_CPU_ISA=baseline
expect 2 1 eval "$work/whole" --data "$work/tags.h5" --precision bf16
said "RNND_CPU_ISA must be avx512bf16"
unset RNND_CPU_ISA
on 1 eval "$work/whole" --data "$work/tags.h5" --precision bf16 >"$work/out" ||
    said "--precision bf16 needs a CPU with AVX512_BF16"
expect 2 1 eval "$work/whole" --data "$work/tags.h5" --precision tf32
said "--precision tf32 is for GPUs"
done_testing
