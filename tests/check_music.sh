#!/bin/sh
# check_music.sh - JSB Chorales, the notes of the next step: test NLL at most 8.6 (PyTorch: 8.47).
# LONG=1 only; JSB_CHORALES is the path of jsb_chorales.json.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/cases/lib.sh"
if [ -z "${LONG:-}" ] || [ ! -f "${JSB_CHORALES:-}" ]; then
    echo "skipped: needs LONG=1 and JSB_CHORALES=.../jsb_chorales.json"
    exit 77
fi
for part in train valid test; do
    expect 0 1 pack music-json --part $part "$JSB_CHORALES" "$work/$part.h5"
done
expect 0 2 train --data "$work/train.h5" --valid "$work/valid.h5" --run-dir "$work/run" \
    --hidden 100 --lr 0.01 --batch 8 --clip-norm 1 --epochs 30 --progress none
expect 0 2 eval "$work/run" --data "$work/test.h5" --json
nll=$(sed -n 's/.*"nll": *\([^,}]*\).*/\1/p' "$work/out")
echo "NLL of a step: $nll"
awk -v x="$nll" 'BEGIN { exit !(x != "" && x <= 8.6) }' || fault "NLL is $nll"
done_testing
