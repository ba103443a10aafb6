#!/bin/sh
# checkpoint.sh - checkpoints and other tools: h5py reads ours, we read what h5py writes, and
# parameters come from a PyTorch module as they are.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"
command -v "${PYTHON:-python3}" >/dev/null || { echo "SKIP: there is no Python here"; exit 77; }
python() {
    "${PYTHON:-python3}" "$srcdir/tests/cases/checkpoint.py" "$@"
}
status=0
python module "$work/module.safetensors" >"$work/why" 2>&1 || status=$?
[ $status != 77 ] || { cat "$work/why"; exit 77; }
[ $status = 0 ] || die "$(cat "$work/why")"

data some task=classify features=2 outputs=3 lengths="$(lengths 20 1 15)"
model="--hidden 5 --layers 2 --bidirectional"
# shellcheck disable=SC2086 # a list of options
train run 2 --data "$work/some.h5" --batch 4 $model --epochs 2
python check "$(last run)" || fault "h5py finds something else in $(last run)"

# The same model by another hand gives the same loss; that it is unchecked is said.
expect 0 1 eval "$(last run)" --data "$work/some.h5" --batch 4
cp "$work/out" "$work/ours"
for kind in bare config; do
    python $kind "$(last run)" "$work/$kind.h5" || fault "h5py cannot write $kind.h5"
    expect 0 1 eval "$work/$kind.h5" --data "$work/some.h5" --batch 4
    said "no checksum" "$kind.h5"
    cmp -s "$work/out" "$work/ours" || fault "$kind.h5 gives $(cat "$work/out")"
done
# It starts a run, as its state is missing it cannot continue one.
# shellcheck disable=SC2086
train again 1 --data "$work/some.h5" --batch 4 $model --epochs 1 --init "$work/bare.h5"
mkdir "$work/foreign"
cp "$work/config.h5" "$work/foreign/ckpt-0000000010.h5"
expect 4 1 train --resume --run-dir "$work/foreign" --data "$work/some.h5" --epochs 1
said "ckpt-0000000010.h5: has no checksum" "no checkpoint is intact"

# Parameters that were learnt on other numbers are used, but not without a word.
# shellcheck disable=SC2086
train scaled 1 --data "$work/some.h5" --batch 4 $model --epochs 1 --normalize
# shellcheck disable=SC2086
train unscaled 1 --data "$work/some.h5" --batch 4 $model --epochs 1 --init "$(last scaled)"
said "warning" "$(last scaled)" "trained with --normalize"

# A filter that only h5py has is named.
python filter "$work/filter.h5" || fault "h5py cannot write filter.h5"
expect 3 1 train --data "$work/filter.h5" --run-dir "$work/wrong"
said "filter.h5: /inputs: cannot be read: uses filter 32000"

# Parameters of a module arrive to the bit: a step of 1e-30 moves none of them.
# shellcheck disable=SC2086
train init 1 --data "$work/some.h5" --batch 4 $model --lr 1e-30 --max-updates 1 \
    --optimizer sgd --init "$work/module.safetensors"
python same "$(last init)" "$work/module.safetensors" || fault "not the module's parameters"
# shellcheck disable=SC2086
expect 2 1 train --run-dir "$work/wrong" --data "$work/some.h5" $model --hidden 6 \
    --init "$work/module.safetensors"
said "fc.weight" "[3, 10]" "[3, 12]"
done_testing
