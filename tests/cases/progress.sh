#!/bin/sh
# progress.sh - one bar on a terminal, lines elsewhere, on any number of ranks (CASE 64).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data many task=classify outputs=3 lengths="$(lengths 40 1 15)"
for n in 1 4; do
    # A line and a record for each epoch, however seldom others are asked for.
    expect 0 "$n" train --data "$work/many.h5" --valid "$work/many.h5" --run-dir "$work/lines$n" \
        --batch 4 --hidden 6 --epochs 3 --log-every 1000
    [ ! -s "$work/out" ] || fault "results on standard output: $(cat "$work/out")"
    if grep -q "$(printf '\r')" "$work/err"; then fault "a bar without a terminal"; fi
    said "finished: 3 of 3 epochs; best validation loss" "30 updates"
    [ "$(table "lines$n" train update epoch | tr '\n' ,)" = "10 1,20 2,30 3," ] ||
        fault "records: $(table "lines$n" train update epoch)"
    # The lines say what the records do, in four digits.
    table "lines$n" train loss | while read -r loss; do printf '%.4g\n' "$loss"; done >"$work/a"
    table "lines$n" valid loss accuracy | while read -r loss value; do
        printf '%.4g %.4g\n' "$loss" "$value"
    done | paste -d ' ' "$work/a" - >"$work/recorded"
    sed -n 's|^epoch ./3  train \([^ ]*\)  valid \([^ ]*\)  accuracy \([^ ]*\)  .* steps/s.*|\1 \2 \3|p' \
        "$work/err" >"$work/said$n"
    cmp "$work/recorded" "$work/said$n" || fault "$n ranks: lines: $(cat "$work/err")"
done
equal "progress of 4 ranks" "$(cat "$work/said4")" "$(cat "$work/said1")"

# Every update has a record in a short run; a resumed epoch has the line of a whole one.
one="--data $work/many.h5 --batch 4 --hidden 6 --threads 1"
# shellcheck disable=SC2086 # a list
{
    expect 0 1 train $one --run-dir "$work/whole" --epochs 2
    [ "$(table whole train update | wc -l)" = 20 ] || fault "$(table whole train update)"
    said "finished: 2 of 2 epochs; training loss"
    grep '^epoch 2/2' "$work/err" | sed 's/  [^ ]* steps.*//' >"$work/line"
    expect 0 1 train $one --run-dir "$work/half" --epochs 2 --max-updates 15
    said "finished: 15 of 15 updates; training loss"
    expect 0 1 train --run-dir "$work/half" --resume --max-updates 0
    grep '^epoch 2/2' "$work/err" | sed 's/  [^ ]* steps.*//' >"$work/resumed"
    cmp "$work/line" "$work/resumed" || fault "$(cat "$work/line") $(cat "$work/resumed")"
    expect 0 1 train --run-dir "$work/half" --resume
    said "nothing left: 2 of 2 epochs; training loss"
    expect 0 1 train $one --run-dir "$work/patience" --valid "$work/many.h5" --patience 2 \
        --optimizer sgd --lr 1e-30
    said "stopped early: no gain in 2 epochs; best validation loss" "at epoch 1"
    expect 0 1 train --run-dir "$work/patience" --resume
    said "nothing left: no gain in 2 epochs"
}
# About 200 records a run, and each epoch ends with one: every third of 600 updates here.
# shellcheck disable=SC2086 # a list
expect 0 1 train $one --run-dir "$work/many" --epochs 60 --progress none
[ "$(table many train update | head -n 4 | tr '\n' ' ')" = "3 6 9 10 " ] ||
    fault "records: $(table many train update | head -n 5)"

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
