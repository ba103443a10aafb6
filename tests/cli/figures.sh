#!/bin/sh
# figures.sh - figures of every task: the same bits on any number of ranks, and those that
# follow from the predictions of the same model.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

# figures NAME "FIGURES..." OPTIONS...: eval prints these figures, on all ranks alike.
figures() {
    name=$1 names=$2
    shift 2
    train "$name" 1 --data "$work/$name.h5" --valid "$work/$name.h5" --hidden 6 --epochs 2 \
        --batch 5 --threads 1 --lr 0.03 --tensorboard "$@"
    for n in 1 2 3; do
        expect 0 "$n" eval "$work/$name" --data "$work/$name.h5" --threads 1 --json
        cp "$work/out" "$work/$name.$n"
        cmp -s "$work/$name.$n" "$work/$name.1" || fault "$name: other figures on $n ranks"
    done
    expect 0 1 eval "$work/$name" --data "$work/$name.h5" --threads 1
    [ "$(sed '/^$/,$d; s/ .*//' "$work/out" | tr '\n' ' ')" = "loss targets $names " ] ||
        fault "$name: eval prints $(cat "$work/out")"
    for figure in $names; do
        grep '"event": "valid"' "$work/$name/metrics.jsonl" | grep -q "\"$figure\": [0-9n-]" ||
            fault "$name: no $figure in metrics.jsonl"
        grep -q "valid/$figure" "$work/$name/tensorboard/"* ||
            fault "$name: no curve of $figure"
    done
    cp "$work/out" "$work/$name.txt"
}

# The figure of a task as eval prints it.
figure() {
    sed -n "s/^$2 //p" "$work/$1.txt"
}

data two task=classify outputs=2 lengths="$(lengths 40 0 9)"
data tags task=tag outputs=4 lengths="$(lengths 20 0 9)"
data answers task=multilabel outputs=3 lengths="$(lengths 20 0 9)"
data values task=regress outputs=2 lengths="$(lengths 30 1 9)"
data steps task=regress_steps outputs=2 lengths="$(lengths 20 0 9)"
data text task=lm vocab=9 lengths="$(lengths 20 0 9)"

figures two "accuracy balanced_accuracy macro_f1 auroc average_precision"
figures tags "accuracy balanced_accuracy macro_f1"
figures answers "nll macro_f1 auroc average_precision"
figures values "rmse mae r2"
figures steps "rmse mae r2"
figures text "perplexity nats bits" --embed 4

# column NAME FILE: a column of a table, without its name.
column() {
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        { print "[" $at "]" }' "$2" | tr '\n' ' '
}

# Targets of the table: none where there is none, and for lm the next token.
data holes task=tag outputs=4 lengths=3,0,2 targets=-1,1,3,0,-1
expect 0 1 predict "$work/tags" --data "$work/holes.h5" --csv "$work/holes.csv"
[ "$(column target "$work/holes.csv")" = "[] [1] [3] [0] [] " ] ||
    fault "targets with holes: $(column target "$work/holes.csv")"
data three task=lm vocab=9 lengths=3,0,1,2
expect 0 1 predict "$work/text" --data "$work/three.h5" --csv "$work/three.csv"
"$TOOL" show "$work/three.h5" inputs | paste -s -d ' ' - >"$work/inputs"
read -r _ b c _ _ e _ <"$work/inputs"
[ "$(column target "$work/three.csv")" = "[$b] [$c] [] [] [$e] [] " ] ||
    fault "next tokens of $(cat "$work/inputs"): $(column target "$work/three.csv")"
data bare task=none lengths=2,1
expect 0 1 predict "$work/tags" --data "$work/bare.h5" --csv "$work/bare.csv"
head -n 1 "$work/bare.csv" | grep -q "prediction,0,1,2,3" ||
    fault "a table without targets: $(head -n 1 "$work/bare.csv")"

# The counts of the confusion matrix are those of the rows of predict.
expect 0 1 predict "$work/tags" --data "$work/tags.h5" --threads 1 --csv "$work/tags.csv"
awk -F, 'NR > 1 { n[$3]++ } END { for (k = 0; k < 4; k++) printf "%d ", n[k] }' \
    "$work/tags.csv" >"$work/said"
sed -n '/^confusion/,$p' "$work/tags.txt" | awk 'NR > 1 {
        for (k = 0; k < 4; k++) n[k] += $(k + 2)
    }
    END { for (k = 0; k < 4; k++) printf "%d ", n[k] }' >"$work/counted"
cmp -s "$work/said" "$work/counted" ||
    fault "predicted $(cat "$work/said"), counted $(cat "$work/counted")"

# bits are nats in another unit
awk -v n="$(figure text nats)" -v b="$(figure text bits)" -v l="$(figure text loss)" \
    'BEGIN { exit !(n == l && (b - n / log(2)) ^ 2 < 1e-20) }' || fault "nats and bits"
done_testing
