#!/bin/sh
# ctc.sh - strings of labels from end to end: packed from tables, trained, evaluated and
# predicted on 1, 2 and 3 ranks with one result; strings that do not fit; what is refused.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

# Utterances of 0 to 5 words of 4, each for 2 to 4 steps, with noise, and a step of silence
# between two that are equal; sequence 7 is too short for its string. The first sequences and
# words are printed to the table, all steps to the data.
awk -v steps="$work/steps.csv" -v table="$work/table.csv" '
    function random(n) { seed = (seed * 16807) % 2147483647; return seed % n }
    function step(word,    k) {
        printf "u%02d", s >steps
        for (k = 0; k < 4; k++)
            printf ",%.3f", (k == word) * 2 + random(1000) / 1000 - 0.5 >steps
        print "" >steps
    }
    BEGIN {
        seed = 7
        print "utt,a,b,c,d" >steps
        print "utt,labels" >table
        for (s = 0; s < 60; s++) {
            count = s == 7 ? 5 : 1 + random(5)
            text = ""
            before = -1
            for (i = 0; i < count; i++) {
                word = random(4)
                text = text (i ? " " : "") substr("uvwx", word + 1, 1)
                if (s == 7) {
                    if (i < 2) step(word)
                    continue
                }
                if (word == before) step(-1)
                for (n = 2 + random(3); n > 0; n--) step(word)
                before = word
            }
            if (s == 9) { text = ""; }
            printf "u%02d,%s\n", s, text >table
        }
    }'
cp "$work/table.csv" "$work/good.csv"
expect 0 1 pack csv "$work/steps.csv" "$work/all.h5" --sequence utt \
    --labels-from "$work/table.csv"
grep -q "task ctc" "$work/out" || fault "pack says $(cat "$work/out")"
grep -q "^4 classes" "$work/out" || fault "pack says $(cat "$work/out")"

# refuse MESSAGE: pack refuses the table as it is now.
refuse() {
    expect 3 1 pack csv "$work/steps.csv" "$work/bad.h5" --sequence utt \
        --labels-from "$work/table.csv"
    said "$@"
    cp "$work/good.csv" "$work/table.csv"
}
sed -i '/^u33/d' "$work/table.csv"
refuse 'has no row for sequence "u33"'
echo "u33,u v" >>"$work/table.csv"
refuse 'table.csv:62:' 'a second row for sequence "u33"'
sed -i '1s/labels/words/' "$work/table.csv"
refuse 'no column is named labels'
echo "u99,u v" >>"$work/table.csv"
expect 0 1 pack csv "$work/steps.csv" "$work/all.h5" --sequence utt \
    --labels-from "$work/table.csv" --split 0.3
said "1 rows are left out" "line 62"
cp "$work/good.csv" "$work/table.csv"
echo "u01,u q" >"$work/other.csv"
sed '/^u01/d' "$work/good.csv" >>"$work/other.csv"
sed -i '1{h;d};2{G}' "$work/other.csv"
expect 3 1 pack csv "$work/steps.csv" "$work/bad.h5" --sequence utt \
    --labels-from "$work/other.csv" --classes-from "$work/all.h5"
said '"q" is not a class'
expect 2 1 pack csv "$work/steps.csv" "$work/bad.h5" --sequence utt --label a \
    --labels-from "$work/table.csv"

# One string does not fit: a warning, or the end.
expect 0 1 pack csv "$work/steps.csv" "$work/all.h5" --sequence utt \
    --labels-from "$work/table.csv"
run="--data $work/all.h5 --valid $work/all.h5 --normalize --hidden 12 --bidirectional
    --batch 12 --lr 0.03 --clip-norm 5 --threads 1 --progress none"
# shellcheck disable=SC2086
for n in 1 2 3; do
    expect 0 "$n" train $run --run-dir "$work/run$n" --epochs 12 --best-by label_error_rate
    said '1 of 60 label strings do not fit' '"u07"' '5 labels' 'there are 2'
done
# shellcheck disable=SC2086
expect 3 2 train $run --run-dir "$work/stopped" --epochs 1 --on-unreachable stop
said 'label strings do not fit' '--on-unreachable stop'
expect 3 1 eval "$work/run1" --data "$work/all.h5" --on-unreachable stop
# shellcheck disable=SC2086
expect 2 1 train $run --no-bidirectional --run-dir "$work/windows" --epochs 1 --tbptt 5
said '--tbptt cannot be used with task ctc'
# shellcheck disable=SC2086
expect 2 1 train $run --run-dir "$work/judged" --epochs 1 --best-by accuracy
said 'label_error_rate'

# value FILE KEY: of a JSON object.
value() {
    sed -n "s/.*\"$2\": *\([^,}]*\).*/\1/p" "$1"
}

# The same model on any ranks, to the bit; runs of several ranks, to rounding.
for n in 1 2 3; do
    expect 0 "$n" eval "$work/run1" --data "$work/all.h5" --threads 1 --json
    cp "$work/out" "$work/eval$n"
    cmp -s "$work/eval$n" "$work/eval1" || fault "another evaluation on $n ranks"
    expect 0 "$n" predict "$work/run1" --data "$work/all.h5" --threads 1 \
        --csv "$work/p$n.csv" --out "$work/p$n.h5"
    cmp -s "$work/p$n.csv" "$work/p1.csv" || fault "other strings on $n ranks"
    cmp -s "$work/p$n.h5" "$work/p1.h5" || fault "another file on $n ranks"
    expect 0 1 eval "$work/run$n" --data "$work/all.h5" --threads 1 --json
    awk -v a="$(value "$work/out" loss)" -v b="$(value "$work/eval1" loss)" \
        'BEGIN { d = (a - b) / b; exit !(d < 1e-3 && d > -1e-3) }' ||
        fault "$n ranks end at $(cat "$work/out"), one at $(cat "$work/eval1")"
done
[ "$(value "$work/eval1" targets)" = 59 ] || fault "targets: $(cat "$work/eval1")"
awk -v x="$(value "$work/eval1" label_error_rate)" 'BEGIN { exit !(x < 0.2) }' ||
    fault "little was learned: $(cat "$work/eval1")"
grep '"event": "valid"' "$work/run1/metrics.jsonl" | grep -q '"label_error_rate": [0-9]' ||
    fault "no label_error_rate in metrics.jsonl"

# Whole updates, before rounding can grow: losses of the first epoch to 1e-6.
for n in 1 2 3; do
    grep '"event": "train"' "$work/run$n/metrics.jsonl" | head -n 1 |
        sed 's/.*"loss": *\([^,}]*\).*/\1/'
done >"$work/first"
awk '{ x[NR] = $1 } END { for (n = 2; n <= NR; n++) { d = x[n] / x[1] - 1
    if (d > 1e-5 || d < -1e-5) exit 1 } exit NR != 3 }' "$work/first" ||
    fault "losses of the first epoch: $(tr '\n' ' ' <"$work/first")"

# The label error rate follows from the table of predictions; sequence 7 does not count.
awk -F, '
    function distance(m, n,    i, j, d) {
        for (i = 0; i <= m; i++) d[i, 0] = i
        for (j = 0; j <= n; j++) d[0, j] = j
        for (i = 1; i <= m; i++)
            for (j = 1; j <= n; j++) {
                d[i, j] = d[i - 1, j - 1] + (a[i] != b[j])
                if (d[i - 1, j] + 1 < d[i, j]) d[i, j] = d[i - 1, j] + 1
                if (d[i, j - 1] + 1 < d[i, j]) d[i, j] = d[i, j - 1] + 1
            }
        return d[m, n]
    }
    NR == 1 { if ($0 != "sequence,prediction,target") exit 1; next }
    $1 != "u07" {
        n = split($3, b, " ")
        edits += distance(split($2, a, " "), n)
        labels += n
    }
    END { printf "%.12f\n", edits / labels }' "$work/p1.csv" >"$work/rate"
awk -v a="$(cat "$work/rate")" -v b="$(value "$work/eval1" label_error_rate)" \
    'BEGIN { d = a - b; exit !(d < 1e-9 && d > -1e-9) }' ||
    fault "of the table $(cat "$work/rate"), of eval $(cat "$work/eval1")"
sed -i 1d "$work/good.csv"
cut -d, -f1,3 "$work/p1.csv" | sed 1d | cmp -s - "$work/good.csv" ||
    fault "targets of the table differ from those that were packed"
"$TOOL" show "$work/p1.h5" label_offsets >"$work/offsets"
[ "$(wc -l <"$work/offsets")" = 61 ] || fault "label_offsets: $(wc -l <"$work/offsets")"
[ "$(tail -n 1 "$work/offsets")" = "$("$TOOL" show "$work/p1.h5" labels | wc -l)" ] ||
    fault "labels and label_offsets do not fit"

# A beam: the same strings on any ranks; only for this task.
for n in 1 3; do
    expect 0 "$n" predict "$work/run1" --data "$work/all.h5" --threads 1 --beam 8 \
        --csv "$work/b$n.csv"
    expect 0 "$n" eval "$work/run1" --data "$work/all.h5" --threads 1 --beam 8 --json
    cp "$work/out" "$work/beam$n"
done
cmp -s "$work/b3.csv" "$work/b1.csv" || fault "other strings of a beam on 3 ranks"
cmp -s "$work/beam3" "$work/beam1" || fault "another evaluation of a beam on 3 ranks"
awk -v a="$(value "$work/beam1" label_error_rate)" 'BEGIN { exit !(a < 0.2) }' ||
    fault "of a beam: $(cat "$work/beam1")"
[ "$(value "$work/beam1" loss)" = "$(value "$work/eval1" loss)" ] ||
    fault "a beam changes the loss"
data two task=classify outputs=2 lengths=3,4
expect 0 1 train --data "$work/two.h5" --run-dir "$work/two" --epochs 1 --progress none
expect 2 1 eval "$work/two" --data "$work/two.h5" --beam 4
said '--beam is for task ctc, not classify'
expect 2 1 predict "$work/two" --data "$work/two.h5" --beam 4 --csv "$work/x.csv"
done_testing
