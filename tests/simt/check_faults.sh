#!/bin/sh
# check_faults.sh - faults.sh itself: it tells a fault that the suite does not find, one that
# does not compile, and a suite that does not run from one that is found.
set -eu
faults="${srcdir:?}/tests/simt/faults.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/a.cu" <<'END'
if (PLANTED(12, "another"))
if (PLANTED(1,
            "a barrier is missing"))
END
echo '#if RNND_FAULT != 2' >"$work/b.cu"
echo '#include "c.cuh"' >>"$work/b.cu"
echo 'if (!PLANTED(3, "in a header"))' >"$work/c.cuh"

cat >"$work/late" <<'END'
echo "== first"
echo "== second, one of two"
echo "not ok: $RNND_SIMT_SEED"
if [ $FAULT = 12 ]; then [ $RNND_SIMT_SEED != 4 ]; else false; fi
END
cat >"$work/only_12" <<'END'
[ $FAULT = 12 ]
END
cat >"$work/all_but_1" <<'END'
[ $FAULT != 1 ]
END
cat >"$work/right_files" <<'END'
case "$FAULT $FAULTY" in "3 b.cu " | "1 a.cu " | "12 a.cu ") ;; *) false ;; esac
END

# expect STATUS TEXT BUILD SUITE
expect() {
    status=0
    (cd "$work" && sh "$faults" "$3" "$4" a.cu b.cu c.cuh) >"$work/out" || status=$?
    if [ $status != "$1" ] || ! grep -qF -e "$2" "$work/out"; then
        echo "expected exit status $1 and: $2; there was $status and:"
        cat "$work/out"
        exit 1
    fi
}
expect 0 '3 faults, 0 not found' true false
expect 0 'fault 1 (a barrier is missing): found, seed 1' true false
expect 0 'fault 12 (another): found, seed 4: not ok' true 'sh late'
expect 0 'seed 4: second, one of two' true 'sh late'
expect 1 'fault 12 (another): NOT FOUND' true 'sh only_12'
expect 1 '1 not found' true 'sh only_12'
expect 1 'fault 1 (a barrier is missing): cannot be built' 'sh all_but_1' false
expect 1 '3 not found' true 'exit 77'
expect 0 '0 not found' 'sh right_files' false
echo 'if (PLANTED(12, "a third"))' >>"$work/c.cuh"
expect 1 'one number for two faults, of which one would hide the other: 12' true false
