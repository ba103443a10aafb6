#!/bin/sh
# uneven.sh - work that does not divide by ranks (CASES 16 to 18, 20 to 23, 27, 28).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# CASES 16, 22, 28: 7 sequences, batches of 2, on more ranks than the last batch has. With a
# learning rate too small to change anything, the one record of an epoch is the mean over the
# whole data set exactly if every sequence was used once, neither dropped nor repeated.
data seven task=classify lengths=5,1,3,2,8,0,4 outputs=3
for n in 1 2 3; do
    train "seven$n" "$n" --data "$work/seven.h5" --batch 2 --hidden 6 --epochs 2
    same "seven$n" seven1 1e-5
    parameters "seven$n" seven1 2e-5
    train "once$n" "$n" --data "$work/seven.h5" --batch 2 --hidden 6 --epochs 1 --lr 1e-30 \
        --log-every 1000
    expect 0 "$n" eval "$work/once$n" --data "$work/seven.h5" --json
    eval_loss=$(sed -n 's/.*"loss": *\([^,}]*\).*/\1/p' "$work/out")
    close_to "loss of an epoch on $n ranks" "$(table "once$n" train loss)" "$eval_loss" 1e-6
    equal "targets of an epoch" "$(table "once$n" train targets)" 7
done

# CASE 17: fewer sequences than ranks, down to none.
data three task=tag lengths=6,2,4
data one task=tag lengths=6
data none task=tag lengths=
train three1 1 --data "$work/three.h5" --hidden 5 --epochs 3
train three7 7 --data "$work/three.h5" --hidden 5 --epochs 3
same three7 three1 1e-5
train one1 1 --data "$work/one.h5" --hidden 5 --epochs 3
train one2 2 --data "$work/one.h5" --hidden 5 --epochs 3
same one2 one1 1e-5
expect 3 2 train --data "$work/none.h5" --run-dir "$work/none"
said none.h5

# CASE 20: windows of 100; one rank has a sequence of 100 steps, the other one of 1000.
data unequal task=tag lengths=100,1000 features=2
for n in 1 2; do
    train "windows$n" "$n" --data "$work/unequal.h5" --tbptt 100 --hidden 5 --epochs 3
done
equal "updates of 3 epochs of 10 windows" "$(table windows2 train update | tail -n 1)" 30
same windows2 windows1 1e-5

# CASE 21: a budget of 10 steps for 9, 9, 1, 1, 25: never more, but for the 25, which is used.
data budget task=tag lengths=9,9,1,1,25
for n in 1 2; do
    train "budget$n" "$n" --data "$work/budget.h5" --batch-tokens 10 --shuffle none --hidden 5 \
        --epochs 1
    equal "steps of each update" "$(table "budget$n" train targets | tr '\n' ' ')" "9 10 1 25 "
done
same budget2 budget1 1e-5

# CASE 23: 21 sequences on 1, 2 and 4 ranks are 21.
data twentyone task=classify lengths="$(lengths 21 0 12)" outputs=3
for n in 1 2 4; do
    expect 0 "$n" eval "$work/seven1" --data "$work/twentyone.h5" --json --threads 1
    for key in loss targets accuracy; do
        sed -n 's/.*"'$key'": *\([^,}]*\).*/\1/p' "$work/out"
    done >"$work/eval$n"
    near 1e-12 "$work/eval$n" "$work/eval1" || fault "evaluation on $n ranks"
done
equal "targets" "$(sed -n 2p "$work/eval4")" 21

# CASE 27: the update is the same for all micro-batches, uneven and empty ones included;
# the last windows of a batch make a shorter update: 10 windows by 4 are 3 updates.
data eight task=tag lengths=3,11,7,0,5,2,9,4
train whole 1 --data "$work/eight.h5" --batch 8 --hidden 6 --layers 2 --max-updates 5
for bound in 1 7 20; do
    for n in 1 2; do
        train "micro$bound-$n" "$n" --data "$work/eight.h5" --batch 8 --hidden 6 --layers 2 \
            --max-updates 5 --microbatch-tokens "$bound"
        same "micro$bound-$n" whole 1e-5
        parameters "micro$bound-$n" whole 2e-5
    done
done
data forty task=tag lengths=40,13
train groups 2 --data "$work/forty.h5" --tbptt 4 --windows 4 --hidden 5 --epochs 1
equal "targets of the updates" "$(table groups train targets | tr '\n' ' ')" "29 16 8 "
done_testing
