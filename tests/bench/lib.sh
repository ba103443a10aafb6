# shellcheck shell=sh
# lib.sh - sourced by the comparisons with PyTorch of this folder: a Python that has it, a
# scratch folder, shapes as options of rnn_dist, numbers of results.
#
# Environment: PYTHON one that has torch, h5py and safetensors.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
"$python" -c 'import torch, h5py, safetensors' 2>/dev/null || {
    echo "${0##*/}: PYTHON has no torch, h5py and safetensors: skipped" >&2
    exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/rnn_dist-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# words_of SHAPE: of its line of `shapes`.
words_of() {
    grep "^$1 " "$here/shapes"
}

# options_of WORDS: as options of rnn_dist.
options_of() {
    printf '%s' "--cell $2 --hidden $4 --layers $5 --batch $7 --shuffle none --optimizer sgd"
    [ "$6" = 1 ] || printf ' --bidirectional'
    [ "${10}" = 0 ] || printf '%s' " --embed $3 --tbptt $9"
}

# value NAME FILE: of a JSON object.
value() {
    sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2"
}

# updates_for STEPS_PER_S SECONDS STEPS: of so many steps, how many make about so many seconds.
updates_for() {
    awk -v s="$1" -v t="$2" -v n="$3" 'BEGIN { u = int(s * t / n); print (u < 3 ? 3 : u) }'
}

# same_loss SHAPE FILE FILE: else they did not do the same work.
same_loss() {
    awk -v a="$(value loss "$2")" -v b="$(value loss "$3")" \
        'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b != "" && d <= 1e-4 * b) }' || {
        echo "${0##*/}: $1: the losses differ: $(value loss "$2") and $(value loss "$3")" >&2
        exit 1
    }
}

median() {
    sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
