#!/bin/sh
# gradient.sh - the value of one gradient: means, clipping, and numbers that are not finite
# (CASES 26, 30, 33, 34).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# CASE 26: one sequence of 5 steps with loss 1, one of 1 step with loss 4. The mean over steps
# is 9/6; the mean of two ranks' means would be 2.5. All parameters 0: the score is 0.
"$TOOL" params "$work/zero.h5" rnn.weight_ih_l0=2x1:0 rnn.weight_hh_l0=2x2:0 \
    rnn.bias_ih_l0=2:0 rnn.bias_hh_l0=2:0 head.weight=1x2:0 head.bias=1:0
data means task=regress_steps features=1 outputs=1 lengths=5,1 targets=1,1,1,1,1,2
for n in 1 2; do
    train "means$n" "$n" --data "$work/means.h5" --cell rnn_tanh --hidden 2 --batch 2 \
        --init "$work/zero.h5" --max-updates 1
    equal "loss" "$(table "means$n" train loss targets)" "1.5 6"
done
parameters means2 means1 2e-5

# CASE 30: two empty sequences, so scores are the bias. Gradients (3,0) and (0,4) of the bias
# have the mean (1.5,2) of norm 2.5; clipped to 1 it is (0.6,0.8). Clipping before the sum
# would give (0.5,0.5).
"$TOOL" params "$work/clip_init.h5" rnn.weight_ih_l0=2x1:0 rnn.weight_hh_l0=2x2:0 \
    rnn.bias_ih_l0=2:0 rnn.bias_hh_l0=2:0 head.weight=2x2:0 head.bias=2:0
data clip task=regress features=1 outputs=2 lengths=0,0 targets=-3,0,0,-4
for n in 1 2; do
    train "clip$n" "$n" --data "$work/clip.h5" --cell rnn_tanh --hidden 2 --batch 2 \
        --init "$work/clip_init.h5" --max-updates 1 --optimizer sgd --lr 1 --clip-norm 1
    close_to "norm" "$(table "clip$n" train grad_norm)" 2.5 1e-6
    "$TOOL" show "$(last "clip$n")" model/head.bias | tr '\n' ' ' >"$work/bias"
    echo "-0.6 -0.8" >"$work/wanted"
    near 1e-5 "$work/bias" "$work/wanted" || fault "clipped step is $(cat "$work/bias")"
done

# CASES 33, 34: one step of one sequence, the last and shortest, on any rank, makes the
# gradient infinite. `skip` leaves that update out on all ranks, `stop` ends with 7.
data bad task=regress_steps outputs=1 lengths=9,8,7,6,5,1 \
    targets="$(awk 'BEGIN { for (i = 0; i < 35; i++) printf "%g,", i % 3; print "3e38" }')"
for n in 1 3; do
    train "skip$n" "$n" --data "$work/bad.h5" --batch 3 --hidden 5 --epochs 2 --shuffle none \
        --on-nonfinite skip
    equal "skipped updates on $n ranks" "$(table "skip$n" skip update | tr '\n' ' ')" "2 4 "
    equal "what records count" "$(table "skip$n" train targets | tr '\n' ' ')" "24 0 24 0 "
    equal "loss of a skipped one" "$(table "skip$n" train update loss | sed -n 's/^2 //p')" null
    same "skip$n" skip1 1e-5
    parameters "skip$n" skip1 2e-5
    grep -qi nan "$work/skip$n/metrics.jsonl" && fault "NaN in the metrics"
    expect 7 "$n" train --data "$work/bad.h5" --batch 3 --hidden 5 --epochs 2 --shuffle none \
        --run-dir "$work/stop$n" --progress none
    equal "the state before is saved" "$(basename "$(last "stop$n")")" ckpt-0000000001.h5
done
expect 0 1 inspect "$(last stop3)"
# Features large enough to overflow the products inside the network.
data huge task=tag outputs=3 lengths=3 features=2 targets=0,1,2 inputs=1,1,3e38,3e38,1,1
"$TOOL" params "$work/twos.h5" rnn.weight_ih_l0=2x2:2 rnn.weight_hh_l0=2x2:2 \
    rnn.bias_ih_l0=2:0 rnn.bias_hh_l0=2:0 head.weight=3x2:1 head.bias=3:0
model="--cell rnn_relu --hidden 2 --init $work/twos.h5"
# shellcheck disable=SC2086 # a list of options
expect 7 2 train --data "$work/huge.h5" $model --run-dir "$work/huge" --progress none
# shellcheck disable=SC2086
train huge_skip 2 --data "$work/huge.h5" $model --epochs 2 --on-nonfinite skip
equal "skipped" "$(table huge_skip skip update | tr '\n' ' ')" "1 2 "
# Nothing has changed: these are still the initial parameters.
# shellcheck disable=SC2086
train initial 1 --data "$work/huge.h5" $model --max-updates 1 --lr 1e-30 --on-nonfinite skip
parameters huge_skip initial 0
done_testing
