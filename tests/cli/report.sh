#!/bin/sh
# report.sh - a page about runs says what their records say.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

data class task=classify outputs=3 lengths="$(lengths 40 1 15)"
data text task=lm vocab=9 lengths="$(lengths 40 0 20)"
train "a&b<c" 1 --data "$work/class.h5" --valid "$work/class.h5" --hidden 5 --epochs 3 \
    --lr-schedule cosine
train two 1 --data "$work/class.h5" --valid "$work/class.h5" --hidden 6 --epochs 2
train text 1 --data "$work/text.h5" --hidden 6 --embed 6 --epochs 1
page=$work/page.html

# holds WORDS...: the page has each of them; lacks WORDS...: none of them.
holds() {
    for word in "$@"; do
        grep -qF -- "$word" "$page" || fault "the page has no '$word'"
    done
}
lacks() {
    for word in "$@"; do
        ! grep -qF -- "$word" "$page" || fault "the page has '$word'"
    done
}

# One run: its numbers, its options, a chart for what it has, its name as text.
expect 0 1 report "$work/a&b<c" --out "$page"
[ ! -s "$work/out" ] || fault "report says $(cat "$work/out")"
loss=$(table "a&b<c" train loss | tail -n 1)
best=$(table "a&b<c" valid loss accuracy | sort -g | head -n 1)
holds "a&amp;b&lt;c" "<td>done</td>" "Validation: accuracy" "Learning rate" "Gradient norm" \
    "$(printf '<td class=n>%.6g</td>' "$loss")" \
    "$(printf '<td class=n>%.6g</td>' "${best% *}")" \
    "$(printf 'accuracy %.6g' "${best#* }")" "<td>hidden</td><td class=n>5</td>"
lacks "a&b<c" "perplexity" "class=differs" "auroc"
# The classes of its best validation, and which of them were taken for which.
holds "<h2>Classes: $work/a&amp;b&lt;c, update " "<th>precision</th><th>recall</th><th>f1</th></tr>" \
    "class \\ predicted"
awk '/rgba/ && sub(/<tr><td>[0-9]*<\/td>/, "") {
        gsub(/<[^>]*>/, " ")
        for (i = 1; i <= NF; i++) sum += $i
        rows++
    }
    END { exit !(rows == 3 && sum == 40) }' "$page" || fault "the confusion matrix"
# Every curve that is opened is drawn: a path for each run and quantity, but none for the load
# of one rank, which never changes.
lacks "Load imbalance" "class=legend"
[ "$(grep -c '^<path class="curve' "$page")" = 9 ] || fault "curves: $(grep -c curve "$page")"

# Several runs, also under mpirun: what differs stands out.
expect 0 2 report "$work/a&b<c" "$work/two" "$work/text" --out "$page"
holds "<tr class=differs><td>hidden</td><td class=n>5</td><td class=n>6</td>" \
    "<tr class=differs><td>epochs</td>" "<tr><td>seed</td>" "Validation: accuracy" \
    "&#9632;</span> $(echo "$work/two")</span>"
# The best first, whatever the order on the command line; one without validation last.
expect 0 1 report "$work/text" "$work/two" "$work/a&b<c" --out "$page"
sed '/<.table>/q' "$page" | grep -o "<td>$work/[^<]*" | sed 's|.*/||' >"$work/order"
{
    for run in "a&b<c" two; do
        echo "$(table "$run" valid loss | sort -g | head -n 1) $run"
    done | sort -g | sed 's/^[^ ]* //; s/&/\&amp;/; s/</\&lt;/'
    echo text
} >"$work/expected"
cmp -s "$work/order" "$work/expected" || fault "order: $(cat "$work/order")"

# By --best-by, where more is better, if it is that of all.
for lr in 0.0001 0.1; do
    train "by$lr" 1 --data "$work/class.h5" --valid "$work/class.h5" --hidden 5 --epochs 3 \
        --lr $lr --best-by accuracy
done
expect 0 1 report "$work/by0.0001" "$work/by0.1" --out "$page"
sed '/<.table>/q' "$page" | grep -o "<td>$work/[^<]*" | sed 's|.*/||' >"$work/order"
for run in by0.0001 by0.1; do
    echo "$(table "$run" valid accuracy | sort -g | tail -n 1) $run"
done | sort -s -k 1,1gr | sed 's/.* //' >"$work/expected"
cmp -s "$work/order" "$work/expected" || fault "order by accuracy: $(cat "$work/order")"
equal "the most accurate" "$(head -n 1 "$work/order")" by0.1
expect 0 2 report "$work/a&b<c" "$work/two" "$work/text" --out "$page"

# What is not as by default comes first; the rest is folded.
sed '/<details>/,$d' "$page" >"$work/first"
for name in hidden epochs data; do
    grep -q "<td>$name</td>" "$work/first" || fault "$name is not among the first"
done
if grep -q "<td>seed</td>" "$work/first"; then fault "the default of seed is not folded"; fi

# A run in two parts took the seconds of both; a single record is a dot.
train parts 1 --data "$work/class.h5" --hidden 5 --epochs 1
expect 0 1 train --run-dir "$work/parts" --resume --epochs 2
[ "$(table parts end seconds | wc -l)" = 2 ] || fault "no two ends"
seconds=$(table parts end seconds | awk '{ n += $1 } END { printf "%.6g", n }')
expect 0 1 report "$work/parts" -o "$page"
holds "<td class=n>$seconds</td>"
train single 1 --data "$work/class.h5" --hidden 5 --max-updates 1
expect 0 1 report "$work/single" -o "$page"
[ "$(grep -c '^<circle' "$page")" = 1 ] || fault "dots: $(grep -c '<circle' "$page")"
expect 0 2 report "$work/a&b<c" "$work/two" "$work/text" --out "$page"

# What is open or broken: no end record, half a line, a value that is no number.
mkdir "$work/open"
head -n 3 "$work/two/metrics.jsonl" >"$work/open/metrics.jsonl"
printf '%s\n%s' '{"event": "train", "update": 9, "epoch": 1, "loss": null, "lr": 1}' \
    '{"event": "train", "upd' >>"$work/open/metrics.jsonl"
expect 0 1 report "$work/open/" --out "$page"
holds "<td>not finished</td>" "<td class=n>–</td>"
lacks nan inf
{
    head -n 1 "$work/text/metrics.jsonl"
    echo '{"event": "valid", "update": 1, "loss": 800.5, "targets": 3, "perplexity": null}'
} >"$work/open/metrics.jsonl"
expect 0 1 report "$work/open" --out "$page"
holds "<td class=n>800.5</td><td class=n>–</td>"

# Refused: nothing to write to, no run, no record of one, itself.
cp "$page" "$work/before"
expect 2 1 report "$work/two"
said "report needs --out FILE"
expect 2 1 report --out "$page"
expect 4 1 report "$work/two" "$work" --out "$page"
said "$work/metrics.jsonl"
mkdir -p "$work/dir/metrics.jsonl" "$work/pipe"
mkfifo "$work/pipe/metrics.jsonl"
expect 4 1 report "$work/dir" --out "$page"
expect 4 1 report "$work/pipe" --out "$page"
said "not a regular file"
expect 4 1 train --resume --run-dir "$work/pipe" --data "$work/class.h5"
mkdir "$work/odd"
echo '{"event": "train"}' >"$work/odd/metrics.jsonl"
expect 3 1 report "$work/odd" --out "$page"
said "$work/odd/metrics.jsonl" "no start record"
expect 2 1 report "$work/two" --out "$work/two/metrics.jsonl"
expect 4 1 report "$work/two" --out "$work/none/page.html"
cmp -s "$page" "$work/before" || fault "a refused report changed the page"
done_testing
