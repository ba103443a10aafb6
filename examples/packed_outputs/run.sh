#!/bin/sh
# run.sh - sequences of unequal length in, outputs of the same lengths out, on any number of
# ranks: every row is there once, in the order of the data, on any number of ranks; and,
# where a rectangular array is wanted, all ranks' parts have the same length.
#
# A tagger for the sign of a running sum is trained on a small made-up table.
#   RANKS=3 OUT=packed_outputs (a folder)
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/mpi_env.sh"
rnn_dist=${RNN_DIST:-$top/build/bin/rnn_dist}
ranks=${RANKS:-3}
out=${OUT:-packed_outputs}
mkdir -p "$out"

# 40 sequences of 1 to 23 steps: x is noise, y whether the sum of x so far is positive.
awk 'BEGIN {
    srand(1)
    print "name,x,y"
    for (i = 0; i < 40; i++) {
        sum = 0
        for (t = 0; t <= (7 * i) % 23; t++) {
            x = 2 * rand() - 1
            sum += x
            printf "s%02d,%.6f,%s\n", i, x, (sum > 0 ? "up" : "down")
        }
    }
}' >"$out/table.csv"

rm -rf "$out/run"
"$rnn_dist" pack csv --sequence name --step-label y "$out/table.csv" "$out/data.h5"
mpirun -np "$ranks" "$rnn_dist" train --data "$out/data.h5" --run-dir "$out/run" \
    --cell lstm --hidden 16 --bidirectional --epochs 20 --batch 7 --lr 0.01

# Ragged: one row a step, in the order of the data.
mpirun -np "$ranks" "$rnn_dist" predict "$out/run" --data "$out/data.h5" \
    --out "$out/ragged.h5" --csv "$out/ragged.csv" --states
# Rectangular: [40, 30, 2], zeros beyond each length.
mpirun -np "$ranks" "$rnn_dist" predict "$out/run" --data "$out/data.h5" \
    --out "$out/padded.h5" --pad 30

rows=$(($(wc -l <"$out/table.csv") - 1))
got=$(($(wc -l <"$out/ragged.csv") - 1))
echo "steps in: $rows, predictions out: $got"
[ "$rows" = "$got" ]
