#!/bin/sh
# each.sh SUFFIX - runs every test program of the emulator that was built so.
set -u
failed=0
for program in tests/simt/*."$1"; do
    echo "== $program"
    "$program" || failed=1
done
exit $failed
