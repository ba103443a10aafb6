#!/bin/sh
# language.sh - a small language model from text to text: pack, train on a stream, verify,
# evaluate, sample; and what bench prints.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

i=0
while [ $i -lt 60 ]; do
    echo "the cat sat on the mat"
    echo "the dog ran"
    i=$((i + 1))
done >"$work/text.txt"
expect 0 1 pack text-words "$work/text.txt" "$work/words.h5"
expect 0 1 pack text-chars --split 0.2 "$work/text.txt" "$work/chars.h5"

# The text says itself again: what was learnt by heart comes back.
train words 2 --tensorboard --data "$work/words.h5" --cell gru --embed 16 --hidden 24 --tbptt 8 --batch 4 \
    --epochs 40 --lr 0.02 --clip-norm 5
set -- "$work/words/tensorboard"/events.out.tfevents.*
[ $# = 1 ] && grep -q train/grad_norm "$1" || fault "event files: $*"
expect 0 1 sample "$work/words" --length 12 --temperature 0 --prompt "the cat"
printed "the cat sat on the mat" "the dog ran"
expect 0 2 sample "$work/words" --length 12 --temperature 0
printed "the dog ran"
expect 0 1 sample "$work/words" --length 3 --prompt "the zebra"
said "1 tokens of the prompt are not in the vocabulary"

# Same seed, same text; another seed, another.
for seed in 1 1 2; do
    expect 0 1 sample "$work/words" --length 40 --temperature 3 --seed $seed
    cat "$work/out" >>"$work/drawn$seed"
done
half=$(($(wc -c <"$work/drawn1") / 2))
head -c $half "$work/drawn1" >"$work/first"
tail -c $half "$work/drawn1" >"$work/second"
cmp -s "$work/first" "$work/second" || fault "the same seed draws two texts"
cmp -s "$work/first" "$work/drawn2" && fault "two seeds draw one text"

# Characters: a model without words writes no blanks of its own, and ends with a newline.
train chars 1 --data "$work/chars.h5" --valid "$work/chars-valid.h5" --embed 8 --hidden 16 \
    --tbptt 8 --batch 4 --max-updates 5
expect 0 1 sample "$work/chars" --length 30
[ "$(tail -c 1 "$work/out" | od -An -c | tr -d ' ')" = '\n' ] || fault "no newline at the end"

# Only language models write text.
data tags task=tag lengths=3,4
train tags 1 --data "$work/tags.h5" --hidden 3 --max-updates 1
expect 2 1 sample "$work/tags"
said "made for tag" "language models"

for n in 1 2; do
    expect 0 "$n" verify --data "$work/chars.h5" --embed 8 --hidden 16 --layers 2 --tbptt 8 \
        --batch 5 --dropout 0.3 --cell gru
    equal "comparisons that are ok" "$(grep -c ': ok$' "$work/out")" 4
    expect 0 "$n" bench --data "$work/tags.h5" --hidden 8 --max-updates 4 --json
    printed '"updates": 4' '"roofline_share"' '"straggler_predicted": 1' \
        '"communication_hidden_s": 0'
    # The shares are all of the time, and its two parts all of the recurrent one.
    tr ',{}' '\n' <"$work/out" | awk -F '[": ]+' '
        $2 ~ /_share$/ { v[$2] = $3 }
        END {
            parts = v["gemm_share"] + v["cell_share"] - v["recurrent_share"]
            all = -parts - v["roofline_share"]
            for (name in v) { all += v[name]; if (v[name] < 0) bad = 1 }
            all -= v["recurrent_share"]
            print parts, all - 1
            exit bad || parts > 1e-4 || parts < -1e-4 || all > 1.0001 || all < 0.9999
        }' >"$work/parts" || fault "shares do not add up: $(cat "$work/parts" "$work/out")"
done
done_testing
