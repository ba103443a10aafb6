#!/bin/sh
# progress.sh - one bar on a terminal, lines elsewhere, on any number of ranks (CASE 64).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data many task=classify outputs=3 lengths="$(lengths 40 1 15)"
for n in 1 4; do
    expect 0 "$n" train --data "$work/many.h5" --run-dir "$work/lines$n" --batch 4 --hidden 6 \
        --epochs 2 --log-every 5
    [ ! -s "$work/out" ] || fault "results on standard output: $(cat "$work/out")"
    if grep -q "$(printf '\r')" "$work/err"; then fault "a bar without a terminal"; fi
    cp "$work/err" "$work/err$n"
    awk '/[Ee]poch/' "$work/err" | wc -l >"$work/count$n"
done
equal "progress lines of 4 ranks" "$(cat "$work/count4")" "$(cat "$work/count1")"
[ "$(cat "$work/count1")" -gt 0 ] || fault "no progress: $(cat "$work/err1")"

# Speed counts the real steps of all ranks: no more of them on more ranks.
for n in 1 4; do
    table "lines$n" train update steps_per_s | awk '$2 <= 0 { exit 1 }' ||
        fault "steps_per_s on $n ranks"
done

# On a terminal: one bar for four ranks.
terminal=no
if script -qec true /dev/null >/dev/null 2>&1; then
    terminal=yes
    script -qec "mpirun -np 4 '$RNN_DIST' train --data '$work/many.h5' \
        --run-dir '$work/tty' --batch 4 --hidden 6 --epochs 2 --progress bar" /dev/null \
        >"$work/tty.out" </dev/null
    bars=$(tr '\r' '\n' <"$work/tty.out" | grep -c '%' || true)
    [ "$bars" -gt 0 ] || fault "no bar on a terminal"
    if grep -q 'rank [1-9]' "$work/tty.out"; then fault "ranks speak over each other"; fi
fi
done_testing
[ $terminal = yes ] || {
    echo "SKIP: the bar: script(1) finds no pseudo-terminal here; the rest holds"
    exit 77
}
