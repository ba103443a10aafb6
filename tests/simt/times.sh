#!/bin/sh
# times.sh - a trace and bench on the emulated GPU show when the device worked, not when the
# host handed the work over. The emulator runs work only once something waits for it.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

plugin=$PWD/tests/simt/rnn_dist_cuda_simt.so
RNND_CUDA_PLUGIN=${RNND_CUDA_PLUGIN:-$plugin}
[ -r "$RNND_CUDA_PLUGIN" ] || { echo "the emulated GPU is not built"; exit 77; }
export RNND_CUDA_PLUGIN RNND_SIMT_DEVICES=2

data many task=classify outputs=3 lengths="$(lengths 40 1 4)"
model="--data $work/many.h5 --batch 20 --hidden 40 --layers 2 --precision fp32"

# ---- train --trace: RANK LANE TS DUR NAME of every span, in the order of the file
# shellcheck disable=SC2086 # options
train traced 2 --device cuda $model --max-updates 3 --trace "$work/trace.json"
sed -n 's/{"name":"\(.*\)","ph":"X","pid":\(.*\),"tid":\(.*\),"ts":\(.*\),"dur":\(.*\)},/\2 \3 \4 \5 \1/p' \
    "$work/trace.json" >"$work/spans"

# Every span of the host is one of the device, which cannot begin before the host says so, nor
# before the one before it ends (in the file: microseconds with three digits). Each of three
# updates sums once: the buckets are larger than the model.
awk '
    function complain(text) { print "rank " $1 ": " text ": " $0; wrong = 1 }
    { name = $5; for (i = 6; i <= NF; i++) name = name " " $i }
    $2 < 3 {
        begin[$1, host[$1]] = $3; called[$1, host[$1]++] = name
        if (name ~ /^layer/) handed[$1] += $4
    }
    $2 == 3 {
        k = seen[$1]++
        if (called[$1, k] != name) complain("not " called[$1, k])
        if ($3 < begin[$1, k] - 100) complain("before it was handed over at " begin[$1, k])
        if ($3 < end[$1] - 1) complain("before the device is through at " end[$1])
        if (name ~ /^layer/) worked[$1] += $4
        end[$1] = $3 + $4
    }
    $2 == 4 { sums[$1]++; if (name != "reduce" || $4 <= 0) complain("a sum?") }
    END {
        for (r = 0; r < 2; r++)
            if (seen[r] != 3 * 8 || host[r] != seen[r] || sums[r] != 3 ||
                worked[r] < 10 * handed[r]) {
                print "rank " r ": " host[r] " spans, " seen[r] " of the device, " \
                    sums[r] " sums; layers: " handed[r] " and " worked[r] " us"
                wrong = 1
            }
        exit wrong
    }' "$work/spans" || fault "the trace: $(cat "$work/spans")"
[ "$(grep -c '"device' "$work/trace.json")" = 4 ] || fault "the lanes of two devices"

# ---- on a CPU there is no such lane
# shellcheck disable=SC2086 # options
train plain 1 --device cpu $model --max-updates 1 --trace "$work/plain.json"
! grep -q '"tid":[34]' "$work/plain.json" || fault "a CPU has a device's lane"

# ---- bench: times of the device, which add up. Handing over takes 1 % of them.
for ranks in 1 2; do
    # shellcheck disable=SC2086 # options
    expect 0 $ranks bench --device cuda $model --max-updates 3 --json
    share=$(sed 's/.*"recurrent_share": \([^,]*\).*/\1/' "$work/out")
    other=$(sed 's/.*"other_share": \([^,]*\).*/\1/' "$work/out")
    echo "$share $other" | awk '{ exit !($1 > 0.15 && $1 < 1 && $2 > -0.05) }' ||
        fault "shares on $ranks ranks: $(cat "$work/out")"
done
done_testing
