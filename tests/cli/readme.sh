#!/bin/sh
# readme.sh - the lines of Python in README, on the run that README makes: they work, and the
# module computes what predict does. Exit 77 without PyTorch and safetensors.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

python=${PYTHON:-python3}
if ! "$python" -c 'import torch, safetensors.torch, h5py, numpy' 2>"$work/why"; then
    tail -n 1 "$work/why"
    exit 77
fi

# The block of README's code that begins with this line, without the fences.
block() {
    awk -v first="$1" '$0 == "```" { inside = 0 }
        $0 == first { inside = 1 }
        inside' "$srcdir/README.md"
}

vowels=$srcdir/examples/japanese_vowels
expect 0 1 pack ts --split 0.2 "$vowels/JapaneseVowels_TRAIN.ts" "$work/train.h5"
expect 0 1 pack ts "$vowels/JapaneseVowels_TEST.ts" "$work/test.h5"
# shellcheck disable=SC2016 # the line as it stands
options=$(block 'export PATH="$PWD/build/bin:$PATH"' | tr -d '\\\n' |
    sed 's/.*--valid train-valid.h5 *\(.*--clip-norm 1\).*/\1/')
case $options in --normalize*) ;; *) die "README trains with: $options" ;; esac
# shellcheck disable=SC2086 # a list
expect 0 1 train --data "$work/train.h5" --valid "$work/train-valid.h5" \
    --run-dir "$work/run" --threads 1 --progress none $options --epochs 3
cd "$work"
block "rnn_dist export run model.safetensors" >export.sh
sed -n 1p export.sh | grep -q '^rnn_dist export run model.safetensors$' || die "no export"
sh export.sh
block "import torch" >lines.py
{
    cat lines.py
    cat <<'END'
import h5py
with h5py.File("test.h5") as file:
    inputs, offsets = file["inputs"][...], file["offsets"][...]
with h5py.File("want.h5") as file:
    want = torch.tensor(file["outputs"][...])
for k in range(len(want)):
    x = torch.tensor(inputs[offsets[k]:offsets[k + 1]])[None]
    _, (last, _) = model["rnn"](x)
    error = (model["head"](last[-1])[0] - want[k]).abs().max() / want.abs().max()
    assert error < 1e-5, (k, error)
END
} >all.py
expect 0 1 predict run --data test.h5 --out want.h5 --raw --threads 1
"$python" all.py >said 2>why || die "README's lines of Python: $(cat said why)"
grep -q tensor said || fault "they print $(cat said)"
block "rnn_dist import tuned.safetensors tuned.h5 --task classify" >import.sh
[ "$(wc -l <import.sh)" = 2 ] || fault "README imports by $(cat import.sh)"
sh import.sh >said 2>why || die "README's import: $(cat said why)"
grep -q '^accuracy' said || fault "eval says $(cat said)"
done_testing
