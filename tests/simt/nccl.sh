#!/bin/sh
# nccl.sh [PROGRAM] - test_nccl's scenarios on one, two and three ranks: exit status and text.
set -u
program=${1:-tests/simt/test_nccl.plain}
[ -x "$program" ] || { echo "the emulated GPU was not built: no CUDA headers"; exit 77; }
export RNND_SIMT_DEVICES=3
failed=0 output=$(mktemp) list=$(mktemp)
trap 'rm -f "$output" "$list"' EXIT
"$program" >"$list"

# start RANKS SEED NAME STATUS TEXT
start() {
    RNND_SIMT_SEED=$2 mpirun -np "$1" "$program" "$3" >"$output" 2>&1 </dev/null
    status=$?
    if [ $status = "$4" ] && { [ -z "$5" ] || grep -qF -e "$5" "$output"; }; then
        return
    fi
    echo "not ok $3 on $1 ranks, seed $2: exit status $status, expected $4, and: $5"
    cat "$output"
    failed=1
}

# What must go well goes well on any number of ranks, in order too.
while read -r name status text; do
    start 2 2 "$name" "$status" "$text"
    if [ "$status" = 0 ]; then
        start 3 3 "$name" "$status" "$text"
        start 2 inorder "$name" "$status" "$text"
    fi
    echo "$name: $status $text"
done <"$list"
for name in all_reduce overlapped; do
    start 1 1 $name 0 ""
done
exit $failed
