#!/bin/sh
# order.sh - random numbers, order, schedules and decisions (CASES 45 to 47, 49, 50).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data many task=classify outputs=3 lengths="$(lengths 40 1 15)"
data other task=classify outputs=3 lengths="$(lengths 12 1 15)" seed=2

# CASE 45: three epochs of other batches, each with every sequence, the same when run again.
# Nothing is learnt, so the losses of an epoch identify its batches, in any order.
for run in order again; do
    train "$run" 2 --data "$work/many.h5" --batch 3 --hidden 6 --epochs 3 --lr 1e-30
done
identical order again
for epoch in 1 2 3; do
    table order train epoch loss targets | awk -v e=$epoch '$1 == e { print $2 }' |
        sort >"$work/epoch$epoch"
    table order train epoch loss targets | awk -v e=$epoch '
        $1 == e { sum += $2 * $3; n += $3 } END { printf "%.5f %d\n", sum / n, n }'
done | sort -u >"$work/sums"
equal "different sums of epochs" "$(wc -l <"$work/sums")" 1
for pair in "1 2" "2 3" "1 3"; do
    cmp -s "$work/epoch${pair% *}" "$work/epoch${pair#* }" && fault "epochs $pair are the same"
done

# CASE 47: the same bits three times over, with dropout, ranks and threads.
for run in 1 2 3; do
    expect 0 2 train --data "$work/many.h5" --run-dir "$work/repeat$run" --batch 6 --hidden 24 \
        --layers 2 --dropout 0.3 --dropout-head 0.2 --max-updates 100 --threads 2 \
        --log-every 10 --progress none --epochs 100
    identical "repeat$run" repeat1
done
# CASE 46: and the same masks on one rank.
train masks1 1 --data "$work/many.h5" --batch 6 --hidden 24 --layers 2 --dropout 0.5 \
    --max-updates 15
train masks2 2 --data "$work/many.h5" --batch 6 --hidden 24 --layers 2 --dropout 0.5 \
    --max-updates 15
same masks2 masks1 1e-5

# CASE 49: schedules do not know the ranks. The plateau rule, by hand from the validation
# losses: a cut after 2 epochs without a relative gain of 1e-4, the count starting anew.
for schedule in cosine plateau; do
    for n in 1 4; do
        train "$schedule$n" "$n" --data "$work/many.h5" --valid "$work/other.h5" --batch 8 \
            --hidden 6 --epochs 14 --lr 0.02 --lr-schedule $schedule --lr-patience 2 \
            --lr-decay 0.5 --warmup 4
        table "$schedule$n" train update lr >"$work/lr$n"
    done
    near 1e-9 "$work/lr4" "$work/lr1" || fault "rates of $schedule on 4 ranks"
done
{
    table plateau1 valid epoch loss | sed 's/^/valid /'
    table plateau1 train epoch update lr | sed 's/^/train /'
} | awk '
    $1 == "valid" {
        if (NR == 1 || $3 < best * (1 - 1e-4)) { best = $3; count = 0 }
        else if (++count == 2) { factor[$2] = 0.5; count = 0; cuts++ }
    }
    $1 == "train" {
        if (NR > 1 && $2 != epoch) { cut = cut ? cut : 1; if (epoch in factor) cut *= 0.5 }
        if (!cut) cut = 1
        epoch = $2
        warm = $3 < 4 ? $3 / 4 : 1
        want = 0.02 * cut * warm
        if ($4 - want > 1e-12 || want - $4 > 1e-12) { print "update " $3 ": lr " $4; exit 1 }
    }
    END { if (!cuts) { print "no cut happened"; exit 1 } }' || fault "plateau"

# CASE 50: early stopping goes by the loss of all ranks together, and all stop at once.
for n in 1 3; do
    train "early$n" "$n" --data "$work/many.h5" --valid "$work/other.h5" --batch 8 \
        --hidden 12 --epochs 200 --lr 0.05 --patience 3
    table "early$n" valid epoch loss | awk '
        NR == 1 || $2 < best { best = $2; at = $1 }
        { last = $1 }
        END { exit last != at + 3 || last > 199 }' || fault "patience on $n ranks"
    equal "epochs of training and validation" "$(table "early$n" valid epoch | tail -n 1)" \
        "$(table "early$n" train epoch | tail -n 1)"
done
done_testing
