#!/bin/sh
# fuzz.sh [TARGET...] - gives every reader its corpus, and then what random changes make of
# it, for FUZZ_SECONDS (5) a target; FUZZ_SEED (the time) makes other changes. A crash, a hang
# or too much memory is a failure; the input is kept in found-TARGET. Run in the build folder,
# by make check-fuzz; its corpus is tests/fuzz/corpus/TARGET of the sources.
set -u
corpus=${srcdir:-.}/tests/fuzz/corpus
seed=${FUZZ_SEED:-$(date +%s)}
failed=0
# shellcheck source=tests/tally.sh
. "${srcdir:-.}/tests/tally.sh"
trying "changed inputs of readers"
fault() {
    failed=$((failed + 1))
    tally_fault
}

# give TARGET SECONDS: tells what came of it, and counts it.
give() {
    tests/fuzz/fuzz "$1" "$2" "$seed" "$corpus/$1"/* >fuzz.out
    status=$?
    tried "$(awk '{ print $2 }' fuzz.out)"
    case $status$(cat fuzz.out) in
    0*) ;;
    *"(hang)") hung ;;
    *) fault ;;
    esac
}

targets=${*:-$(ls "$corpus")}
for target in $targets; do
    [ -d "$corpus/$target" ] || { echo "no corpus for $target" >&2; exit 2; }
    give "$target" 0
    give "$target" "${FUZZ_SECONDS:-5}"
    cat fuzz.out
done
rm -f fuzz.out
tally_end
echo "seed $seed: $failed of the readers failed"
[ $failed = 0 ]
