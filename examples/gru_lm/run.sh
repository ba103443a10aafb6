#!/bin/sh
# run.sh [TEXT] - a word-level language model: 3-layer GRU, embedding 256, hidden 512, the
# 10 000 commonest words, 256 lanes, windows of 35 words with the state carried from window to
# window, gradients summed over several windows, clipped to norm 5. Works on any number of
# ranks; 256 need not be divisible by it.
#
# TEXT is any text, a sentence or verse a line; without it the King James Bible is taken from
# the program `bible` (Debian's package bible-kjv). What is computed can be made small:
#   RANKS=2 EPOCHS=10 HIDDEN=512 EMBED=256 LAYERS=3 BATCH=256 WINDOW=35 WINDOWS=4
#   OUT=gru_lm (a folder)
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/mpi_env.sh"
rnn_dist=${RNN_DIST:-$top/build/bin/rnn_dist}
out=${OUT:-gru_lm}
mkdir -p "$out"

text=${1:-$out/bible.txt}
if [ $# = 0 ] && [ ! -s "$text" ]; then
    command -v bible >/dev/null || {
        echo "run.sh: name a text, or install the package bible-kjv" >&2
        exit 2
    }
    bible -f Gen1:1-Rev22:21 | sed 's/^[^ ]* //' >"$text"
fi

rm -rf "$out/run"
"$rnn_dist" pack text-words --vocab-size 10000 --split 0.05 --seed 1 "$text" "$out/text.h5"
mpirun -np "${RANKS:-2}" "$rnn_dist" train \
    --data "$out/text.h5" --valid "$out/text-valid.h5" --run-dir "$out/run" \
    --cell gru --layers "${LAYERS:-3}" --hidden "${HIDDEN:-512}" --embed "${EMBED:-256}" \
    --batch "${BATCH:-256}" --tbptt "${WINDOW:-35}" --windows "${WINDOWS:-4}" \
    --dropout 0.2 --lr 0.002 --clip-norm 5 --epochs "${EPOCHS:-10}" --log-every 10
"$rnn_dist" eval "$out/run" --data "$out/text-valid.h5"
"$rnn_dist" sample "$out/run" --length 60 --seed 7
