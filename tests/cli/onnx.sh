#!/bin/sh
# onnx.sh - `export MODEL OUT.onnx` and `.npz`: what is refused, what does not depend on other
# programs, and that onnxruntime, where there is one, computes what predict does, for every
# cell, direction, number of layers, task and pool, on lengths that differ, also 1 and 0.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

fixed="--threads 1 --batch 4 --max-updates 3 --log-every 1 --progress none --hidden 5 --lr 0.1"
lengths=3,1,7,0,5,2,4,9,6
data classify task=classify features=3 outputs=4 lengths=$lengths seed=1
data regress task=regress features=3 outputs=2 lengths=$lengths seed=2
data tag task=tag vocab=9 outputs=4 lengths=$lengths seed=3
data regress_steps task=regress_steps features=3 outputs=2 lengths=$lengths seed=4
data multilabel task=multilabel features=3 outputs=5 lengths=$lengths seed=5
i=0
while [ $i -lt 20 ]; do echo "the cat sat on the mat"; i=$((i + 1)); done >"$work/text.txt"
expect 0 1 pack text-words "$work/text.txt" "$work/lm.h5"

# make NAME DATA OPTIONS...: a model, trained a little, its export and its predictions.
made=
make() {
    name=$1 set=$work/$2.h5
    shift 2
    # shellcheck disable=SC2086 # a list
    expect 0 1 train --run-dir "$work/$name" --data "$set" $fixed "$@"
    expect 0 1 export "$work/$name" "$work/$name.onnx"
    [ ! -s "$work/out" ] || fault "export prints $(cat "$work/out")"
    expect 0 1 predict "$work/$name" --data "$set" --out "$work/$name.p.h5" --raw --threads 1
    made="$made $work/$name.onnx $set $work/$name.p.h5"
}

expect 0 1 pack ts "$srcdir/examples/japanese_vowels/JapaneseVowels_TEST.ts" "$work/named.h5"
make named named --normalize
for cell in rnn_tanh rnn_relu lstm gru; do
    for pool in last mean max; do
        make "$cell-$pool" classify --cell $cell --pool $pool --normalize
        make "$cell-$pool-both" regress --cell $cell --pool $pool --bidirectional --layers 3
    done
    make "$cell-tag" tag --cell $cell --embed 7 --layers 2
    make "$cell-steps" regress_steps --cell $cell --normalize --bidirectional
    make "$cell-answers" multilabel --cell $cell --layers 2
    make "$cell-lm" lm --cell $cell --embed 6
done
for cell in rnn_relu lstm gru; do
    make "$cell-plain" classify --cell $cell --no-bias --bidirectional --layers 2 --normalize
done
make tied lm --tie-weights --embed 5 --tbptt 5

expect 0 1 export "$work/named" "$work/again.onnx"
cmp "$work/named.onnx" "$work/again.onnx" || fault "a second export is another"
expect 0 1 export "$work/named" "$work/again.ONNX"
cmp "$work/named.onnx" "$work/again.ONNX" || fault "a suffix in capitals is another"
for word in "scores" "lengths" "rnn_dist.classes"; do
    grep -q "$word" "$work/named.onnx" || fault "no $word in the file"
done

status=0
# shellcheck disable=SC2086 # a list
"${PYTHON:-python3}" "$srcdir/tests/cli/run_onnx.py" $made >"$work/why" 2>&1 || status=$?
if [ $status = 77 ] || [ $status = 127 ]; then # not all modules, or no Python
    echo "without onnxruntime: $(cat "$work/why")"
elif [ $status != 0 ]; then
    die "onnxruntime computes something else: $(cat "$work/why")"
else
    cat "$work/why"
fi
done_testing
