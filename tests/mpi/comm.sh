#!/bin/sh
# comm.sh - test_comm on several ranks, more of them than most machines have cores.
set -eu
for n in 1 2 3 4 5; do
    echo "== $n ranks"
    mpirun -np $n tests/unit/test_comm $n
done
