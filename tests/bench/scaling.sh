#!/bin/sh
# scaling.sh [OPTION...] - how a model's training would scale, as a Markdown table: costs
# measured here on one thread (costs.c), the rest simulated (scaling.c). The options are
# those of bench: --cell, --hidden, --layers and the like. To be run in the build folder
# after `make tests/cases/tool tests/bench/costs tests/bench/scaling`.
#
# Environment: FEATURES (64) of the input, RANKS (1,2,8,64,512), LATENCY (20e-6 s) and
# BANDWIDTH (3e9 bytes/s) of the network.
set -eu
work=$(mktemp -d "${TMPDIR:-/tmp}/rnn_dist-scaling-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
lengths=$(awk 'BEGIN { for (i = 0; i < 128; i++) printf "%s64", i ? "," : "" }')
tests/cases/tool data "$work/data.h5" task=classify outputs=10 "features=${FEATURES:-64}" \
    "lengths=$lengths"
costs=$(tests/bench/costs --data "$work/data.h5" --threads 1 "$@")
echo "costs: $costs" >&2
# shellcheck disable=SC2086 # words
tests/bench/scaling $costs "latency=${LATENCY:-20e-6}" "bandwidth=${BANDWIDTH:-3e9}" \
    "ranks=${RANKS:-1,2,8,64,512}"
