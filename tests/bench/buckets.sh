#!/bin/sh
# buckets.sh [MB...] - what an update of two ranks waits for sums, by --bucket-mb, in turn: the
# best of several rounds in milliseconds. To be run in the build folder after
# `make tests/cases/tool`, on a machine that does nothing else.
#
# Environment: HIDDEN (512) units of an LSTM with 64 inputs, ROUNDS (5).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/mpi_env.sh
. "$here/../mpi_env.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/rnn_dist-buckets-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
tests/cases/tool data "$work/data.h5" task=classify outputs=10 features=64 \
    lengths=8,8,8,8,8,8,8,8
sizes=${*:-1 4 25 100}
round=0
while [ $round -lt "${ROUNDS:-5}" ]; do
    for mb in $sizes; do
        mpirun -np 2 bin/rnn_dist bench --data "$work/data.h5" --hidden "${HIDDEN:-512}" \
            --batch 2 --optimizer sgd --max-updates 30 --threads 1 --bucket-mb "$mb" \
            --json 2>/dev/null | tr ',{}' '\n\n\n' | awk -v mb="$mb" '
            $1 == "\"communication_exposed_s\":" { s = $2 }
            $1 == "\"updates\":" { u = $2 }
            END { print mb, 1000 * s / u }' >>"$work/times"
    done
    round=$((round + 1))
done
echo "| --bucket-mb | ms |"
echo "| --- | --- |"
sort -k1g -k2g "$work/times" | awk '$1 != last { printf "| %s | %.2f |\n", $1, $2; last = $1 }'
