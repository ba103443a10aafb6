#!/bin/sh
# options.sh - what is wrong with a command line: the status, one message that names it, and
# nothing on standard output.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

# refuses STATUS MESSAGE ARGUMENT...: exactly this message.
refuses() {
    status=$1 message=$2
    shift 2
    expect "$status" 1 "$@"
    [ ! -s "$work/out" ] || fault "$*: standard output has $(cat "$work/out")"
    [ "$(cat "$work/err")" = "rnn_dist: $message" ] ||
        fault "$*: not '$message' but '$(cat "$work/err")'"
}

# ---- commands
refuses 2 "no command and no options; see rnn_dist help"
refuses 2 "unknown command trian; did you mean train?" trian
refuses 2 "unknown command x.h5; see rnn_dist help" x.h5
data file task=classify outputs=2 lengths=2,3
refuses 2 "$work/file.h5 is a file, not a command; to train on it: --data $work/file.h5" \
    "$work/file.h5" --hidden 5
refuses 2 "train needs --data FILE; see rnn_dist help train" train
refuses 2 "train needs --data FILE; see rnn_dist help train" --hidden 5
refuses 2 "train: unexpected operand x; see rnn_dist help train" train --data d x
refuses 2 "eval needs MODEL; see rnn_dist help eval" eval --data d
refuses 2 "eval needs --data FILE; see rnn_dist help eval" eval m
refuses 2 "eval: unexpected operand n; see rnn_dist help eval" eval m --data d n
refuses 2 "predict needs --out FILE or --csv FILE" predict m --data d

# ---- options
refuses 2 "unknown option --hiden; did you mean --hidden?" --hiden 5
refuses 2 "unknown option --hiden; did you mean --hidden?" train --hiden=5 --data d
refuses 2 "unknown option --hid; did you mean --hidden?" --hid 5
refuses 2 "unknown option --colour" --colour red
refuses 2 "unknown option -x; options begin with --" -x
refuses 2 "unknown option --batch-size; did you mean --batch?" --data d --batch-size 4
refuses 2 "unknown option --learning_rate; did you mean --lr?" --data d --learning_rate=4
refuses 2 "unknown option --num-layers; did you mean --layers?" --data d --num-layers 2
refuses 2 "unknown option --output; did you mean --out?" predict m --data d --output p
refuses 2 "unknown option -n; a number of ranks is for mpirun: mpirun -np N rnn_dist ..." -n 4
refuses 2 "unknown option -qq; options begin with --" --data d -qq
refuses 2 "unknown option -q; options begin with --" pack -q csv a b
refuses 2 "--out needs a value: FILE" predict m --data d -o
refuses 2 "--batch is an option of train, eval, predict, verify, bench and info, not of sample" \
    sample m --batch 4
refuses 2 '--log-every must be auto or an integer (N >= 1), not "often"' --data d --log-every often
refuses 2 "--lr needs a value: X" --data d --lr
refuses 2 "--data needs a value: FILE" --data ""
refuses 2 "--data needs a value: FILE" --data --normalize
refuses 2 "--normalize takes no value; use --normalize or --no-normalize" --normalize=yes
refuses 2 "--no-lr: --lr is not a switch; it takes a value: X" --no-lr
refuses 2 "--csv is an option of predict, not of train" --csv x
refuses 2 "--hidden is an option of train, verify, bench and info, not of eval" \
    eval m --data d --hidden 5

# ---- values
refuses 2 "--lr 0 is out of range: X > 0" --data d --lr 0
refuses 2 "--lr -1 is out of range: X > 0" --data d --lr -1
refuses 2 "--lr inf is out of range: X > 0" --data d --lr=inf
refuses 2 "--dropout 1 is out of range: 0 <= P < 1" --data d --dropout 1
refuses 2 "--batch 0 is out of range: 1 <= N <= 2147483647" --data d --batch 0
refuses 2 '--epochs must be an integer (N >= 1), not "3x"' --data d --epochs 3x
refuses 2 '--cell must be rnn_tanh, rnn_relu, lstm or gru, not "elman"' --data d --cell elman
refuses 2 "--seed 9223372036854775808 is out of range: N >= 0" --data d \
    --seed 9223372036854775808

# ---- combinations, found before any file is opened
refuses 2 "--batch cannot be used with --batch-tokens: a batch is a number of sequences or of \
steps" --data none --batch 4 --batch-tokens 100
refuses 2 "--patience needs --valid: it counts validations" --data none --patience 2
refuses 2 "--precision tf32 is for GPUs: a CPU computes in fp32 or bf16" --data none \
    --precision tf32
refuses 2 "--comm nccl is for GPUs: ranks on CPUs use mpi" --data none --device cpu --comm nccl
export RNND_CUDA_PLUGIN="$work/none.so"
no_plugin="--device cuda: there is no CUDA plug-in $RNND_CUDA_PLUGIN (it is built where configure \
finds CUDA; RNND_CUDA_PLUGIN names another); use --device cpu"
refuses 5 "$no_plugin" --data none --device cuda
refuses 5 "$no_plugin" eval none --data none --device cuda
unset RNND_CUDA_PLUGIN
refuses 4 "none: No such file or directory" --data none
refuses 4 "a?b?[31m: No such file or directory" --data "$(printf 'a\nb\033[31m')"

# ---- combinations with what the data are
data tokens task=classify outputs=2 vocab=5 lengths=2,3
refuses 2 "--normalize is for features, but the data are tokens" --data "$work/tokens.h5" --normalize \
    --run-dir "$work/none"
expect 0 1 --data "$work/tokens.h5" --dropout -0 --hidden 3 --epochs 1 --progress none \
    --run-dir "$work/zero"
[ ! -s "$work/err" ] || fault "--dropout -0: $(cat "$work/err")"

# ---- configuration files
printf 'lr = 0.5\n\nhiden = 3\n' >"$work/a.ini"
refuses 2 "$work/a.ini:3: unknown option hiden; did you mean hidden?" --config "$work/a.ini"
printf 'lr = 0.5\nhidden = 3\nlr = 1\n' >"$work/a.ini"
refuses 2 "$work/a.ini:3: lr is already set on line 1" --config "$work/a.ini"
printf 'config = b.ini\n' >"$work/a.ini"
refuses 2 "$work/a.ini:1: config cannot be set in a configuration file" \
    --config="$work/a.ini"
mkfifo "$work/pipe.ini"
refuses 4 "$work/pipe.ini: not a regular file" --config "$work/pipe.ini"
refuses 4 "$work/none.ini: No such file or directory" --config "$work/none.ini"
printf '# batch comes from here\npatience = 2\ndata = none\n' >"$work/a.ini"
refuses 2 "--patience needs --valid: it counts validations" --config "$work/a.ini"
refuses 4 "none: No such file or directory" --config "$work/a.ini" --patience 0

done_testing
