#!/bin/sh
# check_shakespeare.sh - a character model: validation loss at most 1.62 nats (PyTorch: 1.596).
# LONG=1 only; SHAKESPEARE is the path of a text of about a million characters.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"
if [ -z "${LONG:-}" ] || [ ! -f "${SHAKESPEARE:-}" ]; then
    echo "skipped: needs LONG=1 and SHAKESPEARE=.../input.txt"
    exit 77
fi
size=$(wc -c <"$SHAKESPEARE")
head -c $((size * 9 / 10)) "$SHAKESPEARE" >"$work/train.txt"
tail -c +$((size * 9 / 10 + 1)) "$SHAKESPEARE" >"$work/valid.txt"
expect 0 1 pack text-chars "$work/train.txt" "$work/train.h5"
expect 0 1 pack text-chars --vocab-from "$work/train.h5" "$work/valid.txt" "$work/valid.h5"
expect 0 2 train --data "$work/train.h5" --valid "$work/valid.h5" --run-dir "$work/run" \
    --cell gru --hidden 256 --embed 256 --tbptt 64 --batch 32 --lr 0.003 --clip-norm 1 \
    --epochs 4 --progress none
loss=$(table run valid loss | tail -n 1)
echo "validation loss: $loss"
awk -v x="$loss" 'BEGIN { exit !(x != "" && x <= 1.62) }' || fault "validation loss is $loss"
expect 0 1 sample "$work/run" --length 300 --prompt "ROMEO:" --temperature 0.8
head -c 6 "$work/out" | grep -qF "ROMEO:" || fault "the sample does not begin with the prompt"
words=$(tr -cs 'a-zA-Z' '\n' <"$work/out" | grep -c -i -w -E \
    'the|and|to|of|my|you|that|in|is|not|with|his|be|your|for|have|it|this|me|he|what|but' ||
    true)
[ "$words" -ge 8 ] || fault "only $words common words in: $(cat "$work/out")"
done_testing
