#!/bin/sh
# convert.sh - export and import: what comes back is the model, to the bit; what cannot be is
# refused; and PyTorch, where there is one, makes the same outputs of either side's files.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

fixed="--threads 1 --batch 4 --max-updates 3 --log-every 1 --progress none"
data series task=classify features=3 outputs=4 lengths=3,1,7,5,2,4,9,6 seed=1
data steps task=tag vocab=9 outputs=4 lengths=3,1,7,5,2,4,9,6 seed=2
data values task=regress_steps features=3 outputs=2 lengths=3,1,7,5,2,4,9,6 seed=3
i=0
while [ $i -lt 20 ]; do echo "the cat sat on the mat"; i=$((i + 1)); done >"$work/text.txt"
expect 0 1 pack text-words "$work/text.txt" "$work/words.h5"

# make NAME DATA OPTIONS...: a model of that name, trained a little.
make() {
    make_name=$1 make_data=$2
    shift 2
    # shellcheck disable=SC2086 # a list
    expect 0 1 train --run-dir "$work/$make_name" --data "$work/$make_data.h5" $fixed "$@"
}
make normal series --normalize --bidirectional --layers 2 --hidden 5 --pool max
make relu values --cell rnn_relu --hidden 6
make tags steps --cell gru --embed 7 --hidden 5 --layers 2
make tied words --tie-weights --embed 6 --hidden 6 --tbptt 5
make open words --embed 5 --hidden 6 --tbptt 5
make plain series --hidden 5 --layers 2 --no-bias --bidirectional --normalize

# ---- there and back, as either kind of file, also by several ranks
# round NAME DATA WORDS: what eval and predict say of a model and of its copies is the same,
# and import describes it.
round() {
    expect 0 1 eval "$work/$1" --data "$work/$2.h5" --threads 1
    cp "$work/out" "$work/loss"
    expect 0 1 predict "$work/$1" --data "$work/$2.h5" --threads 1 --csv "$work/want.csv"
    ranks=1
    for suffix in safetensors h5; do
        file=$work/$1-export.$suffix back=$work/$1-$suffix-back.h5
        expect 0 $ranks export --no-fold "$work/$1" "$file"
        [ ! -s "$work/out" ] || fault "export prints $(cat "$work/out")"
        expect 0 1 export "$work/$1" "$work/again.$suffix" --no-fold
        cmp "$file" "$work/again.$suffix" || fault "$1: a second export is another"
        expect 0 $ranks import "$file" "$back"
        printed "$back: $3"
        expect 0 1 inspect "$back"
        expect 0 1 export "$back" "$work/again.$suffix" --no-fold
        cmp "$file" "$work/again.$suffix" || fault "$1: an import is another model"
        expect 0 1 eval "$back" --data "$work/$2.h5" --threads 1
        cmp "$work/out" "$work/loss" || fault "$1: $suffix has another loss"
        expect 0 1 predict "$back" --data "$work/$2.h5" --threads 1 --csv "$work/got.csv"
        cmp "$work/got.csv" "$work/want.csv" || fault "$1: $suffix predicts otherwise"
        ranks=2
    done
}
round normal series "task classify, lstm, 3 features (normalised), 2 layers of 5 in both \
directions, pool max, 4 outputs"
round relu values "task regress_steps, rnn_relu, 3 features, 1 layer of 6, 2 outputs"
round tags steps "task tag, gru, vocabulary 9, embedding 7, 2 layers of 5, 4 outputs"
round tied words "task lm, lstm, vocabulary 7, embedding 6, 1 layer of 6, 7 outputs (tied)"
round plain series "task classify, lstm, 3 features (normalised), 2 layers of 5 in both \
directions, no biases, pool last, 4 outputs"
round open words "task lm, lstm, vocabulary 7, embedding 5, 1 layer of 6, 7 outputs, "

# Normalization as part of the first layer: the same scores without it.
expect 0 1 export "$work/normal" "$work/folded.safetensors"
[ ! -s "$work/err" ] || fault "folding says $(cat "$work/err")"
expect 0 1 export "$work/normal" "$work/folded.h5" --fold
for suffix in safetensors h5; do
    expect 0 1 import "$work/folded.$suffix" "$work/m.h5"
    printed "lstm, 3 features, 2 layers"
    expect 0 1 predict "$work/m.h5" --data "$work/series.h5" --threads 1 --out "$work/a.h5"
    expect 0 1 predict "$work/normal" --data "$work/series.h5" --threads 1 --out "$work/b.h5"
    "$TOOL" diff 1e-6 "$work/a.h5" "$work/b.h5" / >"$work/diff" ||
        fault "folded into $suffix: $(cat "$work/diff")"
done

# The mean of the last three checkpoints, as Python works it out below.
make many series --cell gru --hidden 4 --lr 0.1 --save-every 1 --keep 0
expect 0 1 export "$work/many" "$work/mean3.h5" --average 3
expect 0 1 export "$work/many" "$work/mean1.h5" --average 1
expect 0 1 export "$(last many)" "$work/last.h5"
"$TOOL" diff 0 "$work/mean1.h5" "$work/last.h5" / || fault "an average of one is another"
expect 0 1 import "$work/mean3.h5" "$work/m.h5"
expect 0 1 eval "$work/m.h5" --data "$work/series.h5"

# A mean that float32 cannot take apart from the features.
"$TOOL" params "$work/far.h5" rnn.weight_ih_l0=15x3:0.1 rnn.weight_hh_l0=15x5:0.2 \
    rnn.bias_ih_l0=15:0 rnn.bias_hh_l0=15:0 head.bias=4:0.5 head.weight=4x5:1 \
    input.mean=3:123456 input.std=3:1
expect 0 1 import "$work/far.h5" "$work/m.h5" --task classify
expect 0 1 export "$work/m.h5" "$work/far.safetensors"
said "float32 loses about 5 digits of it; --no-fold keeps them"
expect 0 1 export "$work/m.h5" "$work/far.safetensors" --no-fold
[ ! -s "$work/err" ] || fault "--no-fold says $(cat "$work/err")"

# Words travel too, and a run starts from an import.
expect 0 1 sample "$work/tied-safetensors-back.h5" --length 4 --temperature 0
cp "$work/out" "$work/said"
expect 0 1 sample "$work/tied" --length 4 --temperature 0
cmp "$work/out" "$work/said" || fault "the words are lost: $(cat "$work/said")"
for start in relu-export.safetensors relu-export.h5 relu-h5-back.h5; do
    make "from-$start" values --cell rnn_relu --hidden 6 --lr 1e-30 --optimizer sgd \
        --init "$work/$start"
    "$TOOL" diff 0 "$(last "from-$start")" "$(last relu)" ||
        fault "--init $start is another model"
done

# Through a pipe, where the kind of file allows it.
mkfifo "$work/pipe"
cat "$work/pipe" >"$work/piped" &
expect 0 1 export "$work/relu" "$work/pipe"
wait $!
cmp "$work/piped" "$work/relu-export.safetensors" || fault "a pipe gets another file"

# ---- what is printed
expect 0 1 import "$work/relu-export.h5" "$work/tanh.h5" --cell rnn_tanh
printed "rnn_tanh"
printf '%s\n' name,x,class a,1,red b,2,green c,3,blue d,4,grey >"$work/named.csv"
expect 0 1 pack csv --sequence name --label class "$work/named.csv" "$work/named.h5"
expect 0 1 import "$work/normal-export.h5" "$work/mean.h5" --pool mean \
    --classes-from "$work/named.h5"
printed "pool mean"
expect 0 1 predict "$work/mean.h5" --data "$work/series.h5" --csv "$work/with-names.csv"
grep -q grey "$work/with-names.csv" || fault "no class names: $(head -n 2 "$work/with-names.csv")"
bare="rnn.weight_ih_l0=15x3:0.1 rnn.weight_hh_l0=15x5:0.2 rnn.bias_ih_l0=15:0
      rnn.bias_hh_l0=15:0 head.bias=4:0.5"
# shellcheck disable=SC2086 # a list
"$TOOL" params "$work/bare.h5" $bare head.weight=4x5:1
expect 0 1 import "$work/bare.h5" "$work/m.h5" --task classify
printed "$work/m.h5: task classify, gru, 3 features, 1 layer of 5, pool last, 4 outputs"
expect 0 1 eval "$work/m.h5" --data "$work/series.h5"
# shellcheck disable=SC2086
"$TOOL" params "$work/plain.h5" rnn.weight_ih_l0=5x3:1 rnn.weight_hh_l0=5x5:1 \
    rnn.bias_ih_l0=5:0 rnn.bias_hh_l0=5:0 head.bias=4:0 head.weight=4x5:1
expect 0 1 import "$work/plain.h5" "$work/m.h5" --task tag
said "assuming cell rnn_tanh, the default of nn.RNN; use --cell rnn_relu"
expect 0 1 import "$work/plain.h5" "$work/m.h5" --task tag --cell rnn_relu
printed "rnn_relu"
[ ! -s "$work/err" ] || fault "import says $(cat "$work/err")"

# Of a tied matrix only the head's name is kept.
"$TOOL" params "$work/head.h5" rnn.weight_ih_l0=12x3:0.1 rnn.weight_hh_l0=12x3:0.2 \
    rnn.bias_ih_l0=12:0 rnn.bias_hh_l0=12:0 decoder.bias=7:0.5 decoder.weight=7x3:1
expect 0 1 import "$work/head.h5" "$work/m.h5" --tie-weights
printed "vocabulary 7, embedding 3, 1 layer of 3, 7 outputs (tied)"
expect 0 1 eval "$work/m.h5" --data "$work/words.h5"

# ---- what is refused leaves no file
# refuse STATUS WORDS COMMAND...
refuse() {
    refuse_status=$1 refuse_words=$2
    shift 2
    expect "$refuse_status" 1 "$@"
    said "$refuse_words"
    [ ! -s "$work/out" ] || fault "$*: prints $(cat "$work/out")"
    [ ! -e "$work/none.h5" ] || fault "$*: leaves a file"
}
refuse 2 "a first layer without biases (--no-bias) cannot take the normalization" \
    export "$work/plain" "$work/none.safetensors"
refuse 2 "export needs MODEL and OUTPUT" export "$work/relu"
refuse 2 "unexpected operand x" import a b x
for name in model.pt model.onx a.tar.gz .x.; do
    refuse 2 "use a name ending in .safetensors or .h5" export "$work/relu" "$work/$name"
    [ ! -e "$work/$name" ] || fault "$name is written all the same"
done
refuse 2 "is an input and would be overwritten" export "$(last relu)" "$(last relu)"
refuse 4 "$work/nothing: No such file" export "$work/nothing" "$work/none.h5"
refuse 4 "has 3 intact checkpoints, not 4; train --keep" \
    export "$work/many" "$work/none.h5" --average 4
refuse 2 "not of one file" export "$(last many)" "$work/none.h5" --average 2
refuse 2 "--average" export "$work/many" "$work/none.h5" --average 0
make other series --cell gru --hidden 5 --save-every 1 --keep 0
cp "$(last many)" "$work/other/ckpt-0000000001.h5"
refuse 3 "is another model than the newest" \
    export "$work/other" "$work/none.h5" --average 3
refuse 4 "none/x" export "$work/relu" "$work/none/x"
refuse 2 "a checkpoint is an HDF5 file" import "$work/relu-export.h5" "$work/none.safetensors"
refuse 2 "is an input and would be overwritten" import "$work/bare.h5" "$work/bare.h5" --task tag
refuse 4 "No such file" import "$work/nothing" "$work/none.h5"
refuse 2 "does not name the task of its model" import "$work/bare.h5" "$work/none.h5"
refuse 2 "its arrays have 3 gates, --cell has 4" import "$work/bare.h5" "$work/none.h5" --task tag --cell lstm
refuse 2 "task lm needs an embedding" import "$work/bare.h5" "$work/none.h5" --task lm
refuse 2 "--tie-weights is for task lm" \
    import "$work/bare.h5" "$work/none.h5" --task tag --tie-weights
refuse 2 "--vocab-from: task classify" \
    import "$work/bare.h5" "$work/none.h5" --task classify --vocab-from "$work/words.h5"
refuse 3 "the model has 4 outputs" \
    import "$work/bare.h5" "$work/none.h5" --task tag --classes-from "$work/values.h5"
refuse 3 "latin.h5: the name of class 2 is not UTF-8" import "$work/bare.h5" \
    "$work/none.h5" --task classify --classes-from "$srcdir/tests/golden/h5py/latin.h5"
refuse 2 "wide as the hidden state; the widths are 5 and 6" \
    import "$work/open-export.h5" "$work/none.h5" --tie-weights
refuse 4 "not a regular file" import "$work/pipe" "$work/none.h5"
lm="rnn.weight_ih_l0=16x3:0.1 rnn.weight_hh_l0=16x4:0.2 rnn.bias_ih_l0=16:0
    rnn.bias_hh_l0=16:0 head.bias=7:0.5"
# shellcheck disable=SC2086
"$TOOL" params "$work/narrow.h5" $lm embed.weight=7x3:1
refuse 3 "as wide as the hidden state; the widths are 3 and 4" \
    import "$work/narrow.h5" "$work/none.h5"
# shellcheck disable=SC2086
"$TOOL" params "$work/narrow.h5" $lm embed.weight=7x3:1 head.weight=7x4:1
refuse 2 "as wide as the hidden state" \
    import "$work/narrow.h5" "$work/none.h5" --tie-weights
# shellcheck disable=SC2086
"$TOOL" params "$work/half.h5" $bare head.weight=4x5:1 input.mean=3:0
refuse 3 "has input.mean, but no input.std" \
    import "$work/half.h5" "$work/none.h5" --task classify
# shellcheck disable=SC2086
"$TOOL" params "$work/half.h5" $bare head.weight=4x5:1 input.mean=3:0 input.std=3:0
refuse 3 "input.std: element 0 is 0" \
    import "$work/half.h5" "$work/none.h5" --task classify
"$TOOL" params "$work/two.h5" rnn.weight_ih_l0=10x3:1 rnn.weight_hh_l0=10x5:1 \
    rnn.bias_ih_l0=10:0 rnn.bias_hh_l0=10:0 head.bias=4:0 head.weight=4x5:1
refuse 3 "no cell has 2 gates" import "$work/two.h5" "$work/none.h5" --task classify
# shellcheck disable=SC2086
"$TOOL" params "$work/wrong.h5" $bare head.weight=4x6:1
refuse 3 "head.weight is [4, 6], the model's head.weight is [4, 5]" \
    import "$work/wrong.h5" "$work/none.h5" --task classify
# shellcheck disable=SC2086
"$TOOL" params "$work/more.h5" $bare head.weight=4x5:1 rnn.weight_hr_l0=4x5:0
refuse 3 "has no parameter rnn.weight_hr_l0" \
    import "$work/more.h5" "$work/none.h5" --task classify
"$TOOL" params "$work/few.h5" rnn.weight_ih_l0=15x3:1 rnn.weight_hh_l0=15x5:1
refuse 3 "a model needs at least" import "$work/few.h5" "$work/none.h5" --task classify
refuse 3 "not a checkpoint" import "$work/series.h5" "$work/none.h5"
printf 'PK\003\004 and so on' >"$work/model.pt"
refuse 3 "as torch.save writes" import "$work/model.pt" "$work/none.h5"
refuse 4 "convert it with rnn_dist import" eval "$work/relu-export.h5" --data "$work/values.h5"

# ---- PyTorch: few calls, since it takes long to start
python() {
    "${PYTHON:-python3}" "$srcdir/tests/cli/convert.py" "$@"
}
status=0
python modules "$work" >"$work/why" 2>&1 || status=$?
if [ $status = 77 ] || [ $status = 127 ]; then # not all modules, or no Python
    echo "without PyTorch: $(cat "$work/why")"
    done_testing
    exit 0
fi
[ $status = 0 ] || die "$(cat "$work/why")"

# predicts MODEL DATA NAME: $work/NAME.p.h5
predicts() {
    expect 0 1 predict "$1" --data "$2" --out "$work/$3.p.h5" --raw --threads 1
}
set --
for of in normal:series relu:values tags:steps tied:words open:words; do
    model=${of%:*} set=$work/${of#*:}.h5
    predicts "$work/$model" "$set" "$model"
    for suffix in safetensors h5; do
        set -- "$@" "$work/$model-export.$suffix" "$set" "$work/$model.p.h5"
    done
done
expect 0 1 export "$work/normal" "$work/folded.npz"
expect 0 1 export "$work/normal" "$work/again.npz"
cmp "$work/folded.npz" "$work/again.npz" || fault "a second export as npz is another"
for suffix in safetensors h5 npz; do
    set -- "$@" "$work/folded.$suffix" "$work/series.h5" "$work/normal.p.h5"
done
expect 0 1 export "$work/open" "$work/open.npz"
set -- "$@" "$work/open.npz" "$work/words.h5" "$work/open.p.h5"
python mean "$work/mean3.h5" "$work"/many/ckpt-*.h5 || fault "another mean"
python outputs "$@" || fault "PyTorch computes something else from exports"

# theirs KIND DATA OPTIONS...: files of such a module, with what the arrays cannot tell.
theirs() {
    kind=$1 set=$work/$2.h5
    shift 2
    for file in "$work/$kind".*.safetensors "$work/$kind".*.h5; do
        expect 0 1 import "$file" "$work/m.h5" "$@"
        predicts "$work/m.h5" "$set" "${file##*/}"
    done
}
theirs bilstm series --task classify --pool last
theirs gru values --task regress_steps
theirs elman values --task regress_steps --cell rnn_relu
theirs normed values --task regress_steps
theirs older values --task regress_steps
theirs cell values --task regress_steps
theirs inside values --task regress_steps --prefix encoder
theirs wrapped steps --task tag
theirs shared words --tie-weights --vocab-from "$work/words.h5"
python expected "$work"/*.npy || fault "imports predict something else"
done_testing
