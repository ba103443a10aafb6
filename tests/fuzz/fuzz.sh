#!/bin/sh
# fuzz.sh [TARGET...] - gives every reader its corpus, and then what random changes make of
# it, for FUZZ_SECONDS (5) a target; FUZZ_SEED (the time) makes other changes. A crash, a hang
# or too much memory is a failure; the input is kept in found-TARGET. Run in the build folder,
# by make check-fuzz; its corpus is tests/fuzz/corpus/TARGET of the sources.
set -u
corpus=${srcdir:-.}/tests/fuzz/corpus
seed=${FUZZ_SEED:-$(date +%s)}
failed=0
targets=${*:-$(ls "$corpus")}
for target in $targets; do
    [ -d "$corpus/$target" ] || { echo "no corpus for $target" >&2; exit 2; }
    tests/fuzz/fuzz "$target" 0 0 "$corpus/$target"/* >fuzz.out || failed=$((failed + 1))
    tests/fuzz/fuzz "$target" "${FUZZ_SECONDS:-5}" "$seed" "$corpus/$target"/* ||
        failed=$((failed + 1))
done
rm -f fuzz.out
echo "seed $seed: $failed of the readers failed"
[ $failed = 0 ]
