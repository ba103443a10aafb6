#!/bin/sh
# compare.sh [SHAPE...] - rnn_dist and PyTorch on the same updates, in turn, on one thread:
# medians of real time steps a second, and ratios, as a Markdown table. The shapes are in the
# file `shapes`. Both must come to the same loss, else they did not do the same work.
#
# Environment: RNN_DIST the program, PYTHON one that has torch, h5py and safetensors,
# ROUNDS (5), SECONDS_EACH (4) how long a measurement lasts at least, about.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
rnn_dist=${RNN_DIST:-rnn_dist}
rounds=${ROUNDS:-5}
each=${SECONDS_EACH:-4}
"$python" -c 'import torch, h5py, safetensors' 2>/dev/null || {
    echo "compare.sh: PYTHON has no torch, h5py and safetensors: skipped" >&2
    exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/rnn_dist-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# value NAME FILE: of a JSON object.
value() {
    sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2"
}

# ours UPDATES: one measurement of rnn_dist.
ours() {
    # shellcheck disable=SC2086 # a list of options
    "$rnn_dist" bench --data "$work/data.h5" --init "$work/init.safetensors" $options \
        --max-updates "$1" --json --threads 1 2>/dev/null >"$work/ours.json"
}

theirs() {
    "$python" "$here/peers.py" "$1" "$shape" "$work" "$2" >"$work/$1.json"
}

# updates_for STEPS_PER_S: how many make about $each seconds.
updates_for() {
    awk -v s="$1" -v t="$each" -v b="$batch" -v l="$mean" \
        'BEGIN { n = int(s * t / (b * l)); print (n < 3 ? 3 : n > 2000 ? 2000 : n) }'
}

median() {
    sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

echo "| shape | rnn_dist, steps/s | padded | packed | × padded | × packed | roofline |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
wanted=${*:-$(grep -v '^#' "$here/shapes" | awk '{ print $1 }')}
for shape in $wanted; do
    # shellcheck disable=SC2046 # words of the line
    set -- $(grep "^$shape " "$here/shapes")
    cell=$2 hidden=$4 layers=$5 directions=$6 batch=$7 vocab=${10}
    mean=$((($8 + $9) / 2))
    options="--cell $cell --hidden $hidden --layers $layers --batch $batch --shuffle none
        --optimizer sgd --lr 0.01 --clip-norm 1"
    [ "$directions" = 1 ] || options="$options --bidirectional"
    modes="padded packed"
    if [ "$vocab" != 0 ]; then
        options="$options --embed $3 --tbptt $9"
        modes=padded
    fi
    "$python" "$here/peers.py" make "$shape" "$work"
    rm -f "$work"/*.rate
    ours 3
    updates=$(updates_for "$(value steps_per_s "$work/ours.json")")
    theirs padded 3
    few=$(updates_for "$(value steps_per_s "$work/padded.json")")
    round=0
    while [ $round -lt "$rounds" ]; do
        ours "$updates"
        value steps_per_s "$work/ours.json" >>"$work/ours.rate"
        value roofline_share "$work/ours.json" >>"$work/roofline.rate"
        for mode in $modes; do
            n=$few
            [ "$mode" = padded ] || n=$(((few + 4) / 5))
            theirs "$mode" "$n"
            value steps_per_s "$work/$mode.json" >>"$work/$mode.rate"
        done
        round=$((round + 1))
    done
    # The same work: the same loss over the same three updates. (Padded, the reverse direction
    # of PyTorch runs through the padding, so its loss is another.)
    ours 3
    for mode in $modes; do
        [ "$directions" = 1 ] || [ "$mode" = packed ] || continue
        theirs "$mode" 3
        awk -v a="$(value loss "$work/ours.json")" -v b="$(value loss "$work/$mode.json")" \
            'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && d <= 1e-4 * b) }' || {
            echo "compare.sh: $shape: the losses differ:" \
                "$(value loss "$work/ours.json") and $(value loss "$work/$mode.json")" >&2
            exit 1
        }
    done
    o=$(median "$work/ours.rate") d=$(median "$work/padded.rate") p=-
    [ "$modes" = padded ] || p=$(median "$work/packed.rate")
    awk -v name="$shape" -v o="$o" -v d="$d" -v p="$p" -v r="$(median "$work/roofline.rate")" \
        'BEGIN {
            printf "| %s | %.0f | %.0f | %s | %.2f | %s | %.2f |\n", name, o, d,
                p == "-" ? p : sprintf("%.0f", p), o / d,
                p == "-" ? p : sprintf("%.2f", o / p), r
        }'
done
