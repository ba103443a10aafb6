#!/bin/sh
# results.sh - what train and eval print, and that the options in force can be given again.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

data good task=classify outputs=3 lengths=3,1,2,5,0,4,4 seed=1
data more task=classify outputs=3 lengths=2,2,6 seed=2
data bare task=classify outputs=3 lengths=2,2 targets=-1,-1
data steps task=tag outputs=3 lengths=2,2,6

fixed="--threads 1 --hidden 5 --epochs 2 --batch 3 --lr 0.05"
# shellcheck disable=SC2086 # a list
run_train() {
    expect 0 1 train --data "$work/good.h5" --valid "$work/more.h5" $fixed "$@"
}

# ---- train
run_train --run-dir "$work/run"
[ ! -s "$work/out" ] || fault "train prints $(cat "$work/out")"
said "finished: 2 of 2 epochs; best validation loss" "(accuracy" "6 updates" "see $work/run"
run_train --run-dir "$work/quiet" --progress none
[ ! -s "$work/err" ] || fault "--progress none says $(cat "$work/err")"
run_train --run-dir "$work/q" -q
[ ! -s "$work/err" ] || fault "-q says $(cat "$work/err")"

run_train --run-dir "$work/json" --json --progress none
[ "$(wc -l <"$work/out")" = 1 ] || fault "--json prints $(cat "$work/out")"
valid=$(grep '"event": "valid"' "$work/json/metrics.jsonl" | tail -n 1)
end=$(grep '"event": "end"' "$work/json/metrics.jsonl" | tail -n 1)
[ "$(cat "$work/out")" = "${end%\}}, \"valid\": $valid}" ] ||
    fault "--json prints $(cat "$work/out"), not $end with $valid"

expect 2 1 train --data "$work/good.h5" --run-dir "$work/run" --json
[ ! -s "$work/out" ] || fault "a refused run prints $(cat "$work/out")"

# ---- the options in force: not those without effect on these data
holds() { # FILE NAME...: these of the names that depend on the data, and no others
    holds_file=$1
    shift
    got=$(sed -n 's/^\(task\|embed\|pool\|shuffle\|bucket\|dropout.*\) = .*/\1/p' "$holds_file" |
        tr '\n' ' ')
    [ "$got" = "$* " ] || fault "$holds_file holds $got, not $*"
}
data letters task=tag vocab=7 outputs=3 lengths=2,2,6
data stream task=lm vocab=7 lengths=20,20
holds "$work/run/config.ini" shuffle bucket task pool dropout-head
expect 0 1 train --data "$work/steps.h5" --run-dir "$work/idle" --max-updates 1 --embed 9 \
    --dropout-embed 0.5 --pool max
said "--embed 9 has no effect on features" "--dropout-embed 0.5 has no effect on features" \
    "--pool max has no effect with one target per step"
holds "$work/idle/config.ini" shuffle bucket task dropout-head
if grep -q '"\(embed\|pool\|dropout-kind\)"' "$work/idle/metrics.jsonl"; then
    fault "the start record holds options without effect"
fi
# The same command again, also before there was a checkpoint, and with other idle values.
expect 0 1 train --data "$work/steps.h5" --run-dir "$work/idle" --max-updates 2 --embed 9 \
    --dropout-embed 0.5 --pool max --resume
rm "$work/idle"/*.h5
expect 0 1 train --data "$work/steps.h5" --run-dir "$work/idle" --max-updates 2 --embed 8 \
    --pool mean --resume
expect 0 1 train --data "$work/letters.h5" --run-dir "$work/letters" --max-updates 1
holds "$work/letters/config.ini" shuffle bucket task embed dropout-embed dropout-head
expect 2 1 train --resume --run-dir "$work/letters" --embed 9
said "started with --embed 256, not 9"
expect 0 1 train --data "$work/stream.h5" --run-dir "$work/stream" --max-updates 1 --tbptt 3 \
    --batch 2
holds "$work/stream/config.ini" task embed dropout-embed dropout-head

# ---- the options in force, given again
expect 0 1 --config "$work/run/config.ini" --run-dir "$work/again"
cmp "$work/run/config.ini" "$work/again/config.ini" || fault "config.ini is not kept"
for run in run again quiet; do
    sed 's/"\(steps_per_s\|idle\|seconds\)": [^,}]*//g' "$work/$run/metrics.jsonl" \
        >"$work/$run.metrics"
    cmp "$work/run.metrics" "$work/$run.metrics" || fault "$run: other metrics"
done

# ---- eval: what the last validation said, from the checkpoint of that time
model=$work/run/ckpt-0000000006.h5
expect 0 1 eval "$model" --data "$work/more.h5"
[ "$(sed '/^$/,$d; s/ .*//' "$work/out" | tr '\n' ' ')" = \
    "loss targets accuracy balanced_accuracy macro_f1 " ] || fault "eval prints $(cat "$work/out")"
loss=$(sed -n 's/^loss //p' "$work/out")
last=$(grep '"event": "valid"' "$work/run/metrics.jsonl" | tail -n 1)
awk -v a="$loss" -v b="$(echo "$last" | sed 's/.*"loss": \([^,]*\).*/\1/')" \
    'BEGIN { exit !(a == b) }' || fault "eval says $loss, the training said $last"
expect 0 1 eval "$model" --data "$work/more.h5" --json
figures='"accuracy": [0-9.]*, "balanced_accuracy": [0-9.]*, "macro_f1": [0-9.]*'
matrix='\[\(\[[0-9], [0-9], [0-9]\]\(, \)*\)\{3\}\]'
grep -q "^{\"loss\": [0-9.e-]*, \"targets\": 3, $figures, \"classes\": .*, \
\"confusion\": $matrix}\$" "$work/out" || fault "eval --json prints $(cat "$work/out")"
# The record of the training has the same figures and classes.
rest() {
    sed 's/.*\(, "targets": \)/\1/; s/}$//'
}
[ "$(rest <"$work/out")" = "$(echo "$last" | rest)" ] || fault "eval says $(cat "$work/out")"
expect 0 1 eval "$work/run" --data "$work/more.h5" --batch 1 --microbatch-tokens 2

expect 3 1 eval "$model" --data "$work/steps.h5"
expect 3 1 eval "$model" --data "$work/bare.h5"
said "$work/bare.h5"
expect 4 1 eval "$work/none" --data "$work/more.h5"
said "$work/none"
expect 4 1 eval "$model" --data "$work/none.h5"
expect 2 1 predict "$model" --data "$work/more.h5" --out "$work/p.h5" --pad 6
[ ! -e "$work/p.h5" ] || fault "a refused prediction left a file"

# ---- outputs: what is read stays as it is, and so does what is no regular file
predicts() {
    status=$1
    shift
    cp "$model" "$work/m.h5"
    expect "$status" 1 predict "$work/m.h5" --data "$work/more.h5" "$@"
    cmp "$work/m.h5" "$model" || fault "predict $* changes its model"
}
cp "$work/more.h5" "$work/copy.h5"
for output in out csv; do
    for input in more m; do
        predicts 2 "--$output" "$work/$input.h5"
        said "$work/$input.h5 is an input and would be overwritten"
    done
done
cmp "$work/more.h5" "$work/copy.h5" || fault "predict changes its data"
predicts 2 --out "$work/p" --csv "$work/p"
said "$work/p would be written twice"
[ ! -e "$work/p" ] || fault "a refused prediction left a file"
expect 2 1 train --data "$work/good.h5" --run-dir "$work/none" --trace "$work/good.h5"
said "$work/good.h5 is an input and would be overwritten"

predicts 0 --csv "$work/plain.csv"
mkfifo "$work/pipe"
cat "$work/pipe" >"$work/piped.csv" &
predicts 0 --csv "$work/pipe"
wait $!
cmp "$work/plain.csv" "$work/piped.csv" || fault "a table through a pipe is another"
predicts 4 --out "$work/pipe"
said "$work/pipe" "not a regular file"
[ -p "$work/pipe" ] || fault "a file has taken the place of a pipe"
expect 4 1 eval "$work/pipe" --data "$work/more.h5"
: >"$work/real.csv"
ln -s real.csv "$work/link.csv"
predicts 0 --csv "$work/link.csv"
[ -h "$work/link.csv" ] || fault "a file has taken the place of a link"
cmp "$work/plain.csv" "$work/real.csv" || fault "a table through a link is another"
# A link that leads nowhere yet is no other, however many there are on the way.
mkdir "$work/folder"
ln -s folder/far "$work/far"
ln -s ../new.csv "$work/folder/far"
predicts 0 --csv "$work/far"
[ -h "$work/far" ] && [ -h "$work/folder/far" ] || fault "a file has taken a link's place"
cmp "$work/plain.csv" "$work/new.csv" || fault "a link to nowhere was not followed"
ln -s "$work/new.h5" "$work/far.h5"
predicts 0 --out "$work/far.h5"
[ -h "$work/far.h5" ] && [ -s "$work/new.h5" ] || fault "a link to no HDF5 was not followed"
ln -s round.csv "$work/round.csv"
predicts 4 --csv "$work/round.csv"
said "$work/round.csv: cannot be written: Too many levels of symbolic links"

# Nor over what the run keeps itself.
for name in metrics.jsonl config.ini best.h5 .lock; do
    expect 2 1 train --data "$work/good.h5" --run-dir "$work/kept" --trace "$work/kept/$name"
    said "the run uses that file itself"
done
expect 4 1 train --data "$work/good.h5" --run-dir "$work/kept" --trace "$work/kept"
expect 0 1 bench --data "$work/good.h5" --hidden 3 --max-updates 1 --trace "$work/bench.json"
grep -q '"ph"' "$work/bench.json" || fault "bench wrote no trace"
expect 4 1 bench --data "$work/good.h5" --hidden 3 --max-updates 1 --trace "$work/no/file"

# A trace that cannot be written is found out before the run, not after it.
expect 4 1 train --data "$work/good.h5" --run-dir "$work/none" --trace "$work/no/such/file"
said "$work/no/such/file: cannot be written: No such file or directory"
[ ! -e "$work/none" ] || fault "a run directory was made"
expect 0 1 train --data "$work/good.h5" --run-dir "$work/traced" --max-updates 1 --hidden 3 \
    --trace "$work/traced/trace.json" --progress none
[ -s "$work/traced/trace.json" ] || fault "no trace in the run's own folder"

# ---- results that cannot be written are a failure of all ranks
if [ -c /dev/full ]; then
    got=0
    "$RNN_DIST" eval "$model" --data "$work/more.h5" >/dev/full 2>"$work/err" || got=$?
    [ $got = 4 ] || fault "eval to a full disk: exit $got"
    said "cannot write to standard output"
fi

# ---- resume: what may change, and what not
expect 2 1 --resume --run-dir "$work/run" --hidden 6
said "--hidden" "5" "6"
expect 0 1 --resume --run-dir "$work/run" --epochs 3 --lr 0.01
said "--epochs changed from 2 to 3" "--lr changed from 0.05 to 0.01"
grep -q '^lr = 0.01$' "$work/run/config.ini" || fault "the new rate is not in config.ini"

done_testing
