#!/bin/sh
# memory.sh [SHAPE...] - the most memory that rnn_dist and PyTorch, with padded batches, use for
# the same updates, as a Markdown table: of the process, and beyond what it takes to start.
# To be run in the build folder after `make tests/cases/tool`.
#
# Environment: PYTHON one that has torch, h5py and safetensors, UPDATES (12).
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

# peak COMMAND...: kB
peak() {
    tests/cases/tool peak "$work/peak" "$@" >/dev/null 2>&1
    cat "$work/peak"
}

echo "| shape | rnn_dist, MB | to start | PyTorch, MB | to start | ratio | beyond the start |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
idle=$(peak "$python" -c 'import h5py, numpy, safetensors.torch, torch; torch.ones(1) + 1')
wanted=${*:-lstm-64-256x2}
for shape in $wanted; do
    # shellcheck disable=SC2046 # words of the line
    set -- $(words_of "$shape")
    "$python" "$here/peers.py" make "$shape" "$work"
    options="$(options_of "$@") --clip-norm 1"
    # shellcheck disable=SC2086 # a list of options
    set -- bin/rnn_dist train --data "$work/data.h5" $options --threads 1 --progress none \
        --max-updates "${UPDATES:-12}" --run-dir "$work/run"
    rm -rf "$work/run"
    start=$(peak bin/rnn_dist info)
    ours=$(peak "$@")
    theirs=$(peak "$python" "$here/peers.py" padded "$shape" "$work" "${UPDATES:-12}")
    awk -v name="$shape" -v o="$ours" -v s="$start" -v t="$theirs" -v i="$idle" 'BEGIN {
        printf "| %s | %.0f | %.0f | %.0f | %.0f | %.2f | %.2f |\n", name, o / 1024, s / 1024,
            t / 1024, i / 1024, o / t, (o - s) / (t - i)
    }'
done
