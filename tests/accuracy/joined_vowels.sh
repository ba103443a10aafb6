#!/bin/sh
# joined_vowels.sh - the example of transcription: the median label error rate of seeds 1, 2,
# 3 is at most 0.04 (tests/oracle/joined_vowels.py prints that of PyTorch). On two ranks; LONG=1
# adds one rank.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

ranks=2
[ -z "${LONG:-}" ] || ranks="1 2"
for n in $ranks; do
    for seed in 1 2 3; do
        RANKS=$n SEED=$seed OUT="$work/$n" RNN_DIST=$RNN_DIST \
            sh "$srcdir/examples/joined_vowels/run.sh" >"$work/said" 2>"$work/err" ||
            die "run.sh on $n ranks: $(tail -n 3 "$work/err")"
        sed -n 's/^label_error_rate //p' "$work/said"
    done | sort -g >"$work/rates"
    median=$(sed -n 2p "$work/rates")
    echo "$n ranks: $(tr '\n' ' ' <"$work/rates")"
    awk -v x="$median" 'BEGIN { exit !(x != "" && x <= 0.04) }' ||
        fault "the median label error rate on $n ranks is $median"
done
done_testing
