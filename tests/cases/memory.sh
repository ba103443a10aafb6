#!/bin/sh
# memory.sh - 5000 updates of random lengths use no more memory than 500; with LONG=1 also
# on two ranks, and for ten minutes, with validation and checkpoints.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"
if grep -q __asan_init "$(command -v "$RNN_DIST")"; then
    echo "skipped: the address sanitizer keeps what was freed"
    exit 77
fi

# kB by which two starts of the same run may differ (some 250 were seen); 4500 updates that
# kept 100 bytes each would pass it.
bound=450

lengths=$(awk 'BEGIN {
    x = 1
    for (i = 0; i < 4000; i++) {
        x = x * 16807 % 2147483647
        printf "%s%d", i ? "," : "", 1 + x % 60
    }
}')
data random task=tag features=3 outputs=4 "lengths=$lengths"

# peak RANKS UPDATES: kB of rank 0, of a run that has epochs of 500 updates.
peak() {
    rm -rf "$work/run"
    set -- "$1" "$RNN_DIST" train --data "$work/random.h5" --run-dir "$work/run" --hidden 8 \
        --layers 2 --batch 8 --shuffle none --epochs 100 --max-updates "$2" --threads 1 \
        --progress none --log-every 10 --save-every 100 --dropout 0.1
    if [ "$1" = 1 ]; then
        shift
        "$TOOL" peak "$work/peak.0" "$@" 2>"$work/err" || die "exit $?: $*"
    else
        ranks=$1
        shift
        # shellcheck disable=SC2016 # for the inner shell
        mpirun -np "$ranks" sh -c 'exec "$TOOL" peak "$0.$OMPI_COMM_WORLD_RANK" "$@"' \
            "$work/peak" "$@" 2>"$work/err" || die "exit $?: $*"
    fi
    cat "$work/peak.0"
}

# flat RANKS
flat() {
    few=$(peak "$1" 500)
    many=$(peak "$1" 5000)
    echo "$1 rank(s): $few kB after 500 updates, $many kB after 5000"
    [ $((many - few)) -le $bound ] || fault "memory grows: from $few to $many kB"
}

flat 1
if [ -z "${LONG:-}" ]; then
    done_testing
    exit 0
fi
export TOOL
flat 2

# resident PID: kB now.
resident() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"
}

minutes=${MINUTES:-10}
"$RNN_DIST" train --data "$work/random.h5" --valid "$work/random.h5" --run-dir "$work/long" \
    --hidden 24 --layers 2 --batch 8 --epochs 1000000 --threads 1 --progress none \
    --valid-every 150 --save-every 200 --log-every 10 --dropout 0.1 2>"$work/err" &
run=$!
sleep $((minutes * 20)) # a third is for warming up
early=$(resident $run)
sleep $((minutes * 40))
late=$(resident $run)
kill -USR1 $run
status=0
wait $run || status=$?
equal "status of a run that was stopped" "$status" 75
echo "$minutes minutes, $(table long train update | tail -n 1) updates: $early kB, then $late kB"
[ $((late - early)) -le $bound ] || fault "memory grows: from $early to $late kB"
done_testing
