# shellcheck shell=sh
# lib.sh - sourced by the tests of this folder: a private Slurm in $dir, which ends with the
# test; skips where there is none.
for need in srun sbatch slurmctld slurmd munged unshare pgrep; do
    command -v $need >/dev/null || { echo "no $need here"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
unshare -m -u true 2>/dev/null || { echo "may not unshare"; exit 77; }

here=${srcdir:?}/tests/slurm
dir=$(mktemp -d /tmp/sl.XXXXXX) faults=0
trap 'sh "$here/down.sh" "$dir"; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
up=$(sh "$here/up.sh" "$dir") || { cat "$dir"/log/*; exit 1; }
eval "$up"

# shellcheck source=tests/tally.sh
. "${srcdir:?}/tests/tally.sh"

# Counts a fault and shows what was said last.
fault() {
    echo "FAULT: $*"
    sed 's/^/    /' "$dir/out" "$dir/err"
    faults=$((faults + 1))
    tally_fault
}

# wait_until SECONDS COMMAND...: until it succeeds; fails after so long.
wait_until() {
    late=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt $late ] || return 1
        sleep 0.2
    done
}

done_testing() {
    tally_end
    echo "$faults faults"
    [ $faults = 0 ]
}
