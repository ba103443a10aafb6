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
refuse 'table.csv:62: sequence "u33" has a row on line 35 already'
sed -i '1s/labels/words/' "$work/table.csv"
refuse 'no column is named labels'
echo "u99,u v" >>"$work/table.csv"
expect 0 1 pack csv "$work/steps.csv" "$work/all.h5" --sequence utt \
    --labels-from "$work/table.csv" --split 0.3
said "1 of 61 rows are of sequences that are not among the inputs"
cp "$work/good.csv" "$work/table.csv"
echo "u01,u q" >"$work/other.csv"
sed '/^u01/d' "$work/good.csv" >>"$work/other.csv"
sed -i '1{h;d};2{G}' "$work/other.csv"
expect 3 1 pack csv "$work/steps.csv" "$work/bad.h5" --sequence utt \
    --labels-from "$work/other.csv" --classes-from "$work/all.h5"
said '"q" is not a class'
expect 2 1 pack csv "$work/steps.csv" "$work/bad.h5" --sequence utt --label a \
    --labels-from "$work/table.csv"
expect 2 1 pack csv "$work/steps.csv" "$work/bad.h5" --sequence utt \
    --labels "$work/table.csv" --labels-from "$work/table.csv"
said '--labels cannot be used with --labels-from'
expect 2 1 pack csv "$work/steps.csv" "$work/table.csv" "$work/bad.h5" --sequence utt \
    --labels-from "$work/table.csv"
said 'table.csv: is the table of --labels-from, and also an input'

# Where each file is a sequence, the table names it as that of --labels does. A column of the
# inputs that has the name of the table's is no feature. The name may be in another column.
(
    cd "$work"
    mkdir files
    printf '%s\n' x,labels 1,0 2,1 3,1 >files/a.csv
    printf '%s\n' x,labels 4,0 >files/b.csv
    printf '%s\n' x,labels 5,0 >files/c.csv
    printf '%s\n' labels,file ,files/c.csv 'v u v',a u,b.csv >files.txt
    printf '%s\n' file,labels files/c.csv, 'a,v u v' b.csv,u >turned.txt
    printf '%s\n' utt,x,labels a,1,0 b,4,0 a,2,1 a,3,1 c,5,0 >one.csv
    printf '%s\n' labels,utt ,c 'v u v',a u,b >one.txt
    expect 0 1 pack csv --sequence-per-file --labels-from turned.txt files/a.csv files/b.csv \
        files/c.csv files.h5
    printed "3 sequences, 5 steps of 1 features, task ctc"
    said "column labels is left out: it is read in turned.txt"
    [ "$("$TOOL" show files.h5 targets | tr '\n' ' ')" = "1 0 1 0 " ] || fault "labels of files"
    [ "$("$TOOL" show files.h5 target_offsets | tr '\n' ' ')" = "0 3 4 4 " ] ||
        fault "strings of files"
    expect 0 1 pack csv --sequence utt --labels-from one.txt one.csv one.h5
    for what in targets target_offsets inputs; do
        [ "$("$TOOL" show one.h5 $what)" = "$("$TOOL" show files.h5 $what)" ] ||
            fault "$what of one file are not those of three"
    done
    expect 3 1 pack csv --sequence-per-file --labels-from files.txt files/a.csv bad.h5
    said 'files.txt: has no row for sequence "a"'
    [ "$faults" = 0 ] || exit 1
) || fault "files as sequences"

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
for option in "class-weight 1,2,1,1" "class-weight balanced" "class-weight 1,1,2,1,1" \
    "label-smoothing 0.1"; do
    # shellcheck disable=SC2086
    expect 2 1 train $run --run-dir "$work/weighted" --epochs 1 --$option
    said "--${option%% *} is for tasks classify, tag and" 'not ctc'
    [ ! -e "$work/weighted" ] || fault "a run directory was made: --$option"
done
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

# Tables of predictions are replaced, with targets and without; other files are not.
expect 0 1 pack csv "$work/steps.csv" "$work/bare.h5" --sequence utt
for data in all bare bare all; do
    expect 0 1 predict "$work/run1" --data "$work/$data.h5" --threads 1 --csv "$work/again.csv"
done
cmp -s "$work/again.csv" "$work/p1.csv" || fault "predictions again differ"
echo "sequence,predictions" >"$work/mine.csv"
expect 2 1 predict "$work/run1" --data "$work/all.h5" --threads 1 --csv "$work/mine.csv"

# A field is quoted where need be, and no formula.
printf '%s\n' id,x a,1 a,2 a,3 a,4 b,5 >"$work/few.csv"
printf '%s\n' id,labels 'a,"=1 v,x ""q"""' b,-1 >"$work/odd.csv"
expect 0 1 pack csv "$work/few.csv" "$work/odd.h5" --sequence id --labels-from "$work/odd.csv"
expect 0 1 train --data "$work/odd.h5" --run-dir "$work/odd" --epochs 1 --progress none
expect 0 1 predict "$work/odd" --data "$work/odd.h5" --csv "$work/oddly.csv"
grep -q "^a,.*,\"'=1 v,x \"\"q\"\"\"\$" "$work/oddly.csv" ||
    fault "fields: $(cat "$work/oddly.csv")"
grep -q '^b,.*,-1$' "$work/oddly.csv" || fault "a number: $(cat "$work/oddly.csv")"

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

# The best strings of a beam: each once, by falling probability, the best as without --top;
# probabilities add up to 1 at most.
for n in 1 3; do
    expect 0 "$n" predict "$work/run1" --data "$work/all.h5" --threads 1 --beam 8 --top 3 \
        --align --csv "$work/t$n.csv" --out "$work/t$n.h5"
    said '1 of 60 label strings do not fit' '"u07"'
done
cmp -s "$work/t3.csv" "$work/t1.csv" || fault "other best strings on 3 ranks"
cmp -s "$work/t3.h5" "$work/t1.h5" || fault "another file of best strings on 3 ranks"
[ "$(head -n 1 "$work/t1.csv")" = \
    sequence,rank,prediction,log_probability,target,alignment,first,last ] ||
    fault "header: $(head -n 1 "$work/t1.csv")"
awk -F, 'NR == FNR { if (FNR > 1) best[$1] = $2; next }
    FNR == 1 { next }
    $1 != name { if ($2 != 1 || $3 != best[$1]) exit 1; sum = 0; delete seen }
    $1 == name && ($2 != rank + 1 || $4 > log_p) { exit 1 }
    ($3 in seen) || (sum += exp($4)) > 1 + 1e-9 { exit 1 }
    { seen[$3]; name = $1; rank = $2; log_p = $4; lines++ }
    END { exit lines <= 120 }' "$work/b1.csv" "$work/t1.csv" ||
    fault "strings: $(head -n 5 "$work/t1.csv")"

# The alignment reads as the target; first and last are the ends of each label in it.
awk -F, 'NR == 1 { next }
    $1 == "u07" { if ($6 $7 $8 != "") exit 1; next }
    {
        steps = split($6, step, " ")
        count = split($7, first, " ")
        if (split($8, last, " ") != count || split($5, label, " ") != count) exit 1
        at = 0
        for (i = 1; i <= count; i++) {
            if (first[i] < at || last[i] < first[i]) exit 1
            for (; at < first[i]; at++) if (step[at + 1] != "<blank>") exit 1
            for (; at <= last[i]; at++) if (step[at + 1] != label[i]) exit 1
            if (i < count && label[i] == label[i + 1] && first[i + 1] == at) exit 1
        }
        for (; at < steps; at++) if (step[at + 1] != "<blank>") exit 1
        total += steps
    }
    END { exit total < 300 }' "$work/t1.csv" || fault "alignments: $(head -n 3 "$work/t1.csv")"
"$TOOL" show "$work/t1.h5" alignment/first | sort -n | head -n 5 | tr '\n' ' ' >"$work/minus"
[ "$(cat "$work/minus")" = "-1 -1 -1 -1 -1 " ] || fault "of u07: $(cat "$work/minus")"
[ "$("$TOOL" show "$work/t1.h5" alignment/steps | grep -c '^-2$')" = 2 ] ||
    fault "steps that are not aligned"
[ "$("$TOOL" show "$work/t1.h5" top/log_probability | wc -l)" = \
    "$(($(wc -l <"$work/t1.csv") - 1))" ] || fault "strings in the file and in the table"
expect 2 1 predict "$work/run1" --data "$work/all.h5" --top 2 --csv "$work/x.csv"
said '--top 2 needs --beam'
expect 2 1 predict "$work/run1" --data "$work/all.h5" --beam 2 --top 3 --csv "$work/x.csv"
said '--top 3: --beam 2 finds no more than 2 strings'
expect 2 1 predict "$work/run1" --data "$work/bare.h5" --align --csv "$work/x.csv"
said '--align needs label strings in the data set' 'task none'
data two task=classify outputs=2 lengths=3,4
expect 0 1 train --data "$work/two.h5" --run-dir "$work/two" --epochs 1 --progress none
expect 2 1 eval "$work/two" --data "$work/two.h5" --beam 4
said '--beam is for task ctc, not classify'
expect 2 1 predict "$work/two" --data "$work/two.h5" --beam 4 --csv "$work/x.csv"
expect 2 1 predict "$work/two" --data "$work/two.h5" --align --csv "$work/x.csv"
said '--align is for task ctc, not classify'
done_testing
