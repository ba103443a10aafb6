#!/bin/sh
# same_bits.sh OLD NEW - do two builds of rnn_dist compute the same bits? OLD and NEW are build
# folders, of two commits, with bin/rnn_dist, tests/cases/tool and (for the emulated GPU)
# `make simt`.
#
# Twelve fixed runs cover the cells, the tasks, lanes, dropout, 1 and 2 ranks and the emulated
# GPU. What each leaves is compared byte for byte: every array of every checkpoint, metrics,
# config.ini, evaluation, predictions, exported parameters. Left out is what no two runs of
# one program share: the values of times, and the checksums over them (same_bits.py names these).
# For a change that must not change results; needs h5py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
old=$(cd "$1" && pwd) new=$(cd "$2" && pwd)
. "$here/../mpi_env.sh"
export LC_ALL=C OMP_NUM_THREADS=2
for PYTHON in "${PYTHON:-python3}" /usr/bin/python3; do
    "$PYTHON" -c 'import h5py' 2>/dev/null && break
done
work=$(mktemp -d "${TMPDIR:-/tmp}/rnn_dist-bits-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# Data sets are made once, by the old build.
data() {
    file=$1
    shift
    "$old/tests/cases/tool" data "$work/$file" "$@"
}
ragged=7,0,19,3,11,30,1,8,15,2,22,5,9,13,4,17
data classify.h5 task=classify lengths=$ragged,$ragged features=6 outputs=5 seed=1
data tag.h5 task=tag lengths=$ragged vocab=20 outputs=4 seed=2
data regress.h5 task=regress lengths=$ragged features=3 outputs=2 seed=3
data steps.h5 task=regress_steps lengths=$ragged features=3 outputs=2 seed=4
data multilabel.h5 task=multilabel lengths=$ragged features=5 outputs=7 seed=5
data lm.h5 task=lm lengths=$ragged,$ragged vocab=12 seed=6

# both NAME RANKS DATA OPTIONS...: trains, evaluates, predicts and exports with both builds.
both() {
    name=$1 ranks=$2 set=$3
    shift 3
    for build in "$old" "$new"; do
        folder=$work/$([ "$build" = "$old" ] && echo old || echo new)/$name
        mkdir -p "$folder"
        cp "$work/$set.h5" "$folder/data.h5"
        set +e # a subshell before `||` would not stop at its first failure
        (
            set -e
            cd "$folder"
            export RNND_CUDA_PLUGIN="$build/tests/simt/rnn_dist_cuda_simt.so"
            run="mpirun -np $ranks $build/bin/rnn_dist"
            [ "$ranks" != 1 ] || run=$build/bin/rnn_dist
            $run train --data data.h5 --run-dir run --log-every 1 --keep 0 --save-every 3 \
                --progress none "$@"
            $run train --data data.h5 --run-dir run --resume --epochs 4 --progress none
            $run eval run --data data.h5 --json >eval.json
            $run predict run --data data.h5 --csv predictions.csv --out predictions.h5
            "$build/bin/rnn_dist" export run model.safetensors
        ) >"$work/log" 2>&1
        status=$?
        set -e
        [ $status = 0 ] || { cat "$work/log"; echo "$name: failed with $build"; exit 1; }
    done
    "$PYTHON" "$here/same_bits.py" "$work/old/$name" "$work/new/$name" || faults=$((faults + 1))
    runs=$((runs + 1))
}

faults=0 runs=0
both lstm-classify 1 classify --hidden 20 --batch 8 --epochs 2 --normalize --valid data.h5
both lstm-classify-2 2 classify --hidden 20 --batch 8 --epochs 2 --normalize --clip-norm 1
both gru-tag-2 2 tag --cell gru --embed 5 --hidden 9 --layers 2 --bidirectional --dropout 0.2 \
    --dropout-head 0.1 --dropout-embed 0.1 --batch 5 --epochs 2
both rnn-regress 1 regress --cell rnn_tanh --hidden 7 --optimizer sgd --momentum 0.9 \
    --microbatch-tokens 20 --batch 6 --epochs 2 --pool mean
both gru-steps-2 2 steps --cell gru --hidden 6 --batch-tokens 60 --epochs 3 --valid data.h5 \
    --lr-schedule plateau --lr-patience 1 --optimizer adamw --weight-decay 0.1 --clip-norm 0.5
both rnn-multilabel-2 2 multilabel --cell rnn_relu --hidden 8 --batch 4 --bucket 2 --epochs 2
both lstm-lanes-2 2 lm --embed 6 --hidden 6 --tie-weights --tbptt 5 --batch 4 --epochs 2 \
    --dropout 0.3 --layers 2 --valid data.h5
both gru-windows 1 lm --cell gru --embed 4 --hidden 6 --tbptt 4 --windows 2 --stream no \
    --batch 6 --epochs 2 --dropout-kind sequence --dropout 0.2 --layers 2
both lstm-max-pool 1 classify --hidden 50 --pool max --batch 16 --epochs 2 --bidirectional
if [ -f "$old/tests/simt/rnn_dist_cuda_simt.so" ]; then
    both cuda-lstm 1 classify --device cuda --hidden 20 --batch 16 --epochs 2 \
        --precision fp32
    both cuda-gru-lanes-2 2 lm --device cuda --cell gru --embed 6 --hidden 16 --tbptt 5 \
        --batch 4 --epochs 2 --precision tf32
    both cuda-lstm-bf16-2 2 tag --device cuda --embed 6 --hidden 32 --bidirectional \
        --rnn-path persistent --batch 8 --epochs 2 --precision bf16
else
    echo "the emulated GPU: left out, since $old has no plug-in"
fi
echo "$runs runs, $faults differ"
[ $faults = 0 ]
