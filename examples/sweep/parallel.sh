#!/bin/sh
# parallel.sh - a sweep on one machine with GNU parallel: one run for each combination of the
# values below, a few at a time, and a page that compares them, the best first.
#
#   OUT=sweep HIDDEN='64 128' LR='0.01 0.003' JOBS=2 \
#       sh parallel.sh --data train.h5 --valid valid.h5 --epochs 20
#
# Options of train are passed on. A sweep that was interrupted goes on when it is started
# again: runs that have ended are not repeated, and the others resume.
set -eu
rnn_dist=${RNN_DIST:-rnn_dist}
out=${OUT:-sweep}
mkdir -p "$out"

# --quote: a path with a space remains one word. One thread each, since many runs at a time
# use the cores better than many threads in one.
# shellcheck disable=SC2086 # lists of values
parallel --will-cite --quote --jobs "${JOBS:-2}" --joblog "$out/jobs" \
    "$rnn_dist" train --resume --progress none --threads 1 "$@" \
    --hidden '{1}' --lr '{2}' --run-dir "$out/hidden-{1}-lr-{2}" \
    ::: ${HIDDEN:-64 128} ::: ${LR:-0.01 0.003}
"$rnn_dist" report "$out"/hidden-* --out "$out/report.html"
