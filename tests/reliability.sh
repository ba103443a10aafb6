#!/bin/sh
# reliability.sh [TEST...] - runs the tests in which something is killed, stopped, damaged,
# cut, full or missing, and prints one table: what was tried, how often, and how often
# something that was announced was lost, a job hung, or a result was silently wrong. `other`:
# any other fault, such as a message that does not name the file. All figures are counted by
# the tests, which print them in the form of tests/tally.sh; a test that was skipped is listed
# with its reason. Run in the build folder, by make check-reliability; LONG=1 takes the full
# counts. Logs are in ./reliability; exit status 1 where anything but `tried` is not 0.
set -u
srcdir=$(cd "${srcdir:-.}" && pwd)
export srcdir
[ $# -gt 0 ] || set -- \
    tests/cases/resume.sh tests/cases/signals.sh tests/mpi/soak.sh \
    tests/cases/failure.sh tests/mpi/faults.sh tests/mpi/unequal.sh tests/mpi/hosts.sh \
    tests/slurm/requeue.sh \
    tests/cases/damage.sh tests/cases/ends.sh tests/cli/baddata.sh \
    tests/unit/test_checkpoint tests/unit/test_hdf tests/unit/test_dataset tests/fuzz/fuzz.sh
: "${FUZZ_SECONDS=5}"
limit=300
if [ -n "${LONG:-}" ]; then
    FUZZ_SECONDS=60 limit=7200
fi
export FUZZ_SECONDS
limit=${RNND_TEST_TIMEOUT:-$limit}

logs=$PWD/reliability rows=$PWD/reliability/rows skipped=$PWD/reliability/skipped
rm -rf "$logs"
mkdir -p "$logs"
: >"$rows"
: >"$skipped"

# row HUNG OTHER WHAT: of a test that does not tell.
row() {
    echo "# tried 1, lost 0, hung $1, wrong 0, other $2: $3" >>"$rows"
}

# try TEST: runs it; its lines become rows.
try() {
    log=$logs/$(echo "$1" | tr / -).log status=0
    case $1 in
    *.sh) set -- "$1" sh "$srcdir/$1" ;;
    *) set -- "$1" "$1" ;;
    esac
    test=$1
    shift
    RNND_TEST_TIMEOUT=$limit sh "$srcdir/tests/wrapper.sh" "$@" >"$log" 2>&1 </dev/null ||
        status=$?
    grep '^# tried ' "$log" >"$logs/lines" || true
    cat "$logs/lines" >>"$rows"
    told=$(awk '{ n += $5 + $7 + $9 + $11 } END { print n + 0 }' "$logs/lines")
    case $status in
    0) [ -s "$logs/lines" ] || row 0 1 "$test: does not tell what it tried" ;;
    77) echo "$test: $(tail -n 1 "$log")" >>"$skipped" ;;
    124 | 137) row 1 0 "$test: not done in $limit s" ;;
    *) [ "$told" -gt 0 ] || row 0 1 "$test: failed, exit status $status" ;;
    esac
}

begun=$(date +%s)
for name in "$@"; do
    since=$(date +%s)
    try "$name"
    echo "$name: exit status $status after $(($(date +%s) - since)) s"
    [ $status = 0 ] || [ $status = 77 ] || tail -n 20 "$log" | sed 's/^/    /'
done

echo
awk -v took=$(($(date +%s) - begun)) '
    function line(what, tried, lost, hung, wrong, other) {
        printf "%-64s %9s %5s %5s %6s %6s\n", what, tried, lost, hung, wrong, other
    }
    BEGIN {
        line("what was tried", "tried", "lost", "hung", "wrong", "other")
        split("0 0 0 0 0", sum, " ")
    }
    {
        what = $0
        sub(/^[^:]*: /, "", what)
        for (i = 1; i <= 5; i++) sum[i] += n[i] = $(2 * i + 1) + 0
        line(what, n[1], n[2], n[3], n[4], n[5])
    }
    END {
        line("in all, in " took " s", sum[1], sum[2], sum[3], sum[4], sum[5])
        exit sum[2] + sum[3] + sum[4] + sum[5] > 0
    }' "$rows"
status=$?
sed 's/^/not run: /' "$skipped"
exit $status
