#!/bin/sh
# weights.sh - weights of classes: by name in a file, as a list, balanced; stored with a run;
# the same result on any number of ranks; and what is refused.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# series A|B|C: 12 sequences, 6 of class A, 4 of B, 2 of C.
series() {
    printf 'id,x,class\n'
    awk -v names="$1" 'BEGIN {
        split(names, class, "|")
        for (i = 0; i < 12; i++)
            for (t = 0; t < 2 + i % 4; t++)
                printf "%d,%g,%s\n", i, sin(i * 7 + t), class[1 + (i > 5) + (i > 9)]
    }'
}
pack() {
    "$RNN_DIST" pack csv --sequence id --label class "$@" >"$work/out" 2>"$work/err" ||
        die "pack $*"
}
series 'low|mid|top' >"$work/data.csv"
pack "$work/data.csv" "$work/data.h5"
# the same sequences, with the classes numbered the other way round
printf '@classLabel true top mid low\n@data\n1:top\n2:mid\n3:low\n' >"$work/turned.ts"
"$RNN_DIST" pack ts "$work/turned.ts" "$work/turned.h5" >"$work/out" 2>"$work/err" ||
    die "pack turned.ts"
pack --classes-from "$work/turned.h5" "$work/data.csv" "$work/other.h5"
series 'low|mid|very high' >"$work/blank.csv"
pack "$work/blank.csv" "$work/blank.h5"

learn() {
    dir=$1 on_so_many=$2
    shift 2
    train "$dir" "$on_so_many" --hidden 4 --batch 5 --shuffle none --epochs 2 "$@"
}
# stored DIR: the weights in the run's config.ini.
stored() {
    sed -n 's/^class-weight = //p' "$work/$1/config.ini"
}
# close_to A B: every number of two lists.
close_to() {
    echo "$1|$2" | awk -F'|' '{
        n = split($1, a, " "); m = split($2, b, " ")
        if (n != m || n == 0) exit 1
        for (i = 1; i <= n; i++) {
            d = a[i] - b[i]
            if (d > 2e-6 || d < -2e-6) exit 1
        }
    }'
}

# ---- three ways to say the same
printf '\357\273\277mid 1\r\n\ntop  2\nlow 0.666666667\n' >"$work/w.txt"
learn file 1 --data "$work/data.h5" --class-weight "$work/w.txt"
said 'class weights: low 0.666667, mid 1, top 2'
learn list 1 --data "$work/data.h5" --class-weight 0.666666667,1,2
learn balanced 1 --data "$work/data.h5" --class-weight balanced
equal "a file is stored as numbers" "$(stored file)" "0.6666667,1,2"
equal "balanced is stored as such" "$(stored balanced)" "balanced"
losses=$(table file train loss)
equal "a list" "$(table list train loss)" "$losses"
equal "balanced" "$(table balanced train loss)" "$losses"
learn plain 1 --data "$work/data.h5"
[ "$(table plain train loss)" != "$losses" ] || fault "weights change nothing"
# the first five targets are low, the next are one low and four mid
equal "the divisor" "$(table file train weight | sed -n 1p | cut -c1-6)" "3.3333"
equal "no weights, no divisor" "$(grep -c '"weight"' "$work/plain/metrics.jsonl" || true)" 0

# ---- a permuted class list: the weights follow the names
learn other 1 --data "$work/other.h5" --class-weight "$work/w.txt"
said 'class weights: top 2, mid 1, low 0.666667'
equal "the same weights by target" "$(table other train weight)" "$(table file train weight)"
printf 'very high\t3\nlow 1\nmid 2' >"$work/blank.txt"
learn blank 1 --data "$work/blank.h5" --class-weight "$work/blank.txt"
said 'class weights: low 1, mid 2, very high 3'
data ends task=classify outputs=3 lengths=1,2,3 'classes= low|end|end '
printf 'end \t3\n low 1\nend\t \t2\n' >"$work/ends.txt"
learn ends 1 --data "$work/ends.h5" --class-weight "$work/ends.txt"
equal "blanks at the ends of names" "$(stored ends)" "1,2,3"
printf 'end 3\n low 1\nend 2\n' >"$work/ends.txt"
expect 2 1 train --data "$work/ends.h5" --run-dir "$work/twice" \
    --class-weight "$work/ends.txt"
said 'ends.txt:3: class "end" already has a weight'

# ---- ranks, and smoothing with them
learn one 1 --data "$work/data.h5" --class-weight "$work/w.txt" --label-smoothing 0.1
for ranks in 2 3; do
    learn "np$ranks" $ranks --data "$work/data.h5" --class-weight "$work/w.txt" \
        --label-smoothing 0.1
    close_to "$(table one train loss grad_norm weight | tr '\n' ' ')" \
        "$(table "np$ranks" train loss grad_norm weight | tr '\n' ' ')" ||
        fault "$ranks ranks differ: $(table "np$ranks" train loss grad_norm weight)"
done

# ---- resuming: without the file, from the middle of an epoch
learn half 1 --data "$work/data.h5" --class-weight "$work/w.txt" --max-updates 4
mv "$work/w.txt" "$work/gone.txt"
train half 1 --resume --max-updates 0
equal "a resumed run" "$(table half train loss | sort | uniq)" "$(echo "$losses" | sort | uniq)"
mv "$work/gone.txt" "$work/w.txt"
train half 1 --resume --class-weight "$work/w.txt" --epochs 3
! grep -q 'class-weight changed' "$work/err" || fault "the same weights count as a change"
train half 1 --resume --class-weight 1,2,3 --epochs 4
said '--class-weight changed from 0.6666667,1,2 to 1,2,3'

# ---- balanced: classes that do not occur, labels of no target, answers, all the same
data absent task=classify features=1 outputs=3 lengths=2,1,2,3 targets=0,1,-1,0
learn absent 1 --data "$work/absent.h5" --class-weight balanced
said 'class weights: 0 0.75, 1 1.5, 2 1'
data answers task=multilabel features=1 outputs=3 lengths=3,1 \
    targets=1,0,1,0,0,1,0,0,1,1,1,1
learn answers 1 --data "$work/answers.h5" --class-weight balanced
said 'class weights: 0 1, 1 3, 2 1'

# ---- an update whose targets all weigh nothing
learn nothing 1 --data "$work/data.h5" --class-weight 0,1,1
grep -q '"skip".*no weights but 0' "$work/nothing/metrics.jsonl" ||
    fault "an update of weight 0 is not skipped: $(cat "$work/nothing/metrics.jsonl")"

# ---- what is refused, before a run directory is made
refuse() {
    status=$1 given=$2
    shift 2
    expect "$status" 1 train --data "$work/data.h5" --run-dir "$work/refused" --class-weight \
        "$given"
    said "$@"
    [ ! -e "$work/refused" ] || fault "a run directory was made"
}
refuse 2 1,2 '1,2' '2 weights' '3 classes'
refuse 2 1,-2,3 '"-2"' 'at least 0'
refuse 2 1,inf,3 '"inf"'
refuse 2 0,0,0 'all weights are 0'
refuse 4 1,x,3 '1,x,3' 'balanced'
printf 'low 1\nmid 1\n' >"$work/bad.txt"
refuse 2 "$work/bad.txt" 'bad.txt' '"top"'
printf 'low 1\nmid 1\ntop 1\nhigh 2\n' >"$work/bad.txt"
refuse 2 "$work/bad.txt" 'bad.txt:4' '"high"' '"low", "mid", "top"'
printf 'low 1\nmid 1\nlow 1\n' >"$work/bad.txt"
refuse 2 "$work/bad.txt" 'bad.txt:3' 'already'
printf 'low 1\nmid one\n' >"$work/bad.txt"
refuse 2 "$work/bad.txt" 'bad.txt:2' '"mid one"'
# A list has the order of the data; the model of --init may have another.
init=$(last file)
init_from() {
    expect "$1" 1 train --data "$work/$2.h5" --hidden 4 --init "$init" --class-weight 1,2,3 \
        --epochs 1 --threads 1 --run-dir "$work/init-$2"
}
init_from 2 other
init_from 0 data
said 'class weights: low 1, mid 2, top 3'
[ ! -e "$work/init-other" ] || fault "a run with weights in which order?"
train byname 1 --data "$work/other.h5" --hidden 4 --init "$init" --epochs 1 \
    --class-weight "$work/w.txt"
said 'class weights: low 0.666667, mid 1, top 2'
data lm task=lm vocab=5 lengths=6,5,4
expect 2 1 train --data "$work/lm.h5" --run-dir "$work/refused" --class-weight balanced
said 'classify, tag and multilabel' 'not lm'
data values task=regress features=2 outputs=2 lengths=6,5,4
expect 2 1 train --data "$work/values.h5" --run-dir "$work/refused" --label-smoothing 0.1
said '--label-smoothing' 'not regress'
done_testing
