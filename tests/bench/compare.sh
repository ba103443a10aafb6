#!/bin/sh
# compare.sh [SHAPE...] - rnn_dist and PyTorch on the same updates, in turn, on one thread:
# medians of real time steps a second, and ratios, as a Markdown table. The shapes are in the
# file `shapes`. Both must come to the same loss, else they did not do the same work.
#
# Environment: RNN_DIST the program, PYTHON one that has torch, h5py and safetensors,
# ROUNDS (5), SECONDS_EACH (4) how long a measurement lasts at least, about.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
rnn_dist=${RNN_DIST:-rnn_dist}
rounds=${ROUNDS:-5}
each=${SECONDS_EACH:-4}

# ours UPDATES: one measurement of rnn_dist.
ours() {
    # shellcheck disable=SC2086 # a list of options
    "$rnn_dist" bench --data "$work/data.h5" --init "$work/init.safetensors" $options \
        --max-updates "$1" --json --threads 1 2>/dev/null >"$work/ours.json"
}

theirs() {
    "$python" "$here/peers.py" "$1" "$shape" "$work" "$2" >"$work/$1.json"
}

# some STEPS_PER_S: updates that take about $each seconds, at most 2000.
some() {
    updates_for "$1" "$each" $((batch * mean)) | awk '{ print ($1 > 2000 ? 2000 : $1) }'
}

echo "| shape | rnn_dist, steps/s | padded | packed | × padded | × packed | roofline |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
wanted=${*:-$(grep -v '^#' "$here/shapes" | awk '{ print $1 }')}
for shape in $wanted; do
    # shellcheck disable=SC2046 # words of the line
    set -- $(words_of "$shape")
    directions=$6 batch=$7 mean=$((($8 + $9) / 2)) modes="padded packed"
    [ "${10}" = 0 ] || modes=padded
    options="$(options_of "$@") --lr 0.01 --clip-norm 1"
    "$python" "$here/peers.py" make "$shape" "$work"
    rm -f "$work"/*.rate
    ours 3
    updates=$(some "$(value steps_per_s "$work/ours.json")")
    theirs padded 3
    few=$(some "$(value steps_per_s "$work/padded.json")")
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
        same_loss "$shape" "$work/ours.json" "$work/$mode.json"
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
