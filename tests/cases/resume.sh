#!/bin/sh
# resume.sh - a run that is stopped and resumed equals one that never stopped (CASES 51, 52).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data many task=classify outputs=3 lengths="$(lengths 40 1 15)"
data other task=classify outputs=3 lengths="$(lengths 12 1 15)" seed=2
data tags task=tag outputs=3 lengths="$(lengths 11 1 40)"
data text task=lm vocab=9 lengths="$(lengths 12 0 20)"

# interrupted NAME RANKS UPDATES OPTIONS...: the whole run, and the same stopped after each of
# UPDATES; records of 4 updates, so that one is always cut in two. Stored options suffice.
interrupted() {
    name=$1 n=$2 stops=$3
    shift 3
    train "$name" "$n" --log-every 4 "$@"
    for stop in $stops; do
        train "$name-$stop" "$n" --log-every 4 "$@" --max-updates "$stop"
        equal "where $name stopped" "$(basename "$(last "$name-$stop")")" \
            "$(printf 'ckpt-%010d.h5' "$stop")"
        expect 0 "$n" train --resume --run-dir "$work/$name-$stop" --max-updates 0
        identical "$name-$stop" "$name"
    done
}

# CASE 52: after the first update, inside an epoch, at its last, and inside the last one.
interrupted classes 2 "1 5 14 37" --data "$work/many.h5" --valid "$work/other.h5" --batch 3 \
    --hidden 12 --layers 2 --dropout 0.3 --dropout-head 0.2 --epochs 3 --lr 0.01 \
    --lr-schedule step --lr-decay 0.5 --warmup 20 --clip-norm 0.5
interrupted windows 1 "3 7" --data "$work/tags.h5" --batch 4 --hidden 8 --tbptt 6 --windows 2 \
    --dropout-head 0.2 --epochs 2 --optimizer sgd --momentum 0.9 --lr 0.1
interrupted lanes 2 "2 11" --data "$work/text.h5" --batch 5 --tbptt 3 --hidden 8 --embed 6 \
    --layers 2 --dropout 0.2 --epochs 2 --optimizer adamw --weight-decay 0.01
interrupted sparse 3 "3 8" --data "$work/text.h5" --batch 2 --microbatch-tokens 5 --hidden 8 \
    --embed 6 --epochs 2 --sparse-embedding --clip-norm 0.3 --lr 0.01
[ -z "${LONG:-}" ] || interrupted plateau 1 "9 10 11 23" --data "$work/many.h5" \
    --valid "$work/other.h5" --batch 8 --hidden 8 --epochs 12 --lr 0.05 --lr-schedule plateau \
    --lr-patience 1 --patience 6 --normalize

# On other ranks the order and the masks are the same, and the values agree to rounding.
train moved 2 --data "$work/many.h5" --batch 3 --hidden 12 --layers 2 --dropout 0.3 \
    --epochs 1 --max-updates 6
expect 0 3 train --resume --run-dir "$work/moved" --max-updates 0
said warning
train unmoved 1 --data "$work/many.h5" --batch 3 --hidden 12 --layers 2 --dropout 0.3 --epochs 1
same moved unmoved 1e-5
parameters moved unmoved 2e-5

# Another model or plan is refused with both values; a run directory in use without --resume too.
expect 2 1 train --resume --run-dir "$work/moved" --hidden 13
said hidden 12 13
expect 2 1 train --run-dir "$work/moved" --data "$work/many.h5"
expect 2 1 train --resume --run-dir "$work/moved" --data "$work/other.h5"

# A run that is still going on is left alone: nothing is read, cut or said of it.
start alone 1 --data "$work/many.h5" --batch 3 --hidden 12 --epochs 100000
wait_for alone 3
expect 4 1 train --resume --run-dir "$work/alone"
said "another run is using this folder"
! grep -q "starting from the beginning" "$work/err" || fault "a running run is looked into: $(cat "$work/err")"
kill -KILL "$job"
wait "$job" 2>/dev/null || true

# A record that cannot be written ends the run, but only once its model is saved. (Files of
# more than 100 or 200 kB cannot be written here.)
got=0
(
    ulimit -f 200
    exec "$RNN_DIST" train --run-dir "$work/full" --progress none --log-every 1 --threads 1 \
        --data "$work/many.h5" --batch 3 --hidden 4 --epochs 1000
) >"$work/out" 2>"$work/err" || got=$?
equal "a record that cannot be written" "$got" 4
said metrics.jsonl ": File too large; the model is saved"
updates=$(last full | sed 's/.*ckpt-0*\([0-9]*\)\.h5/\1/')
[ "${updates:-0}" -gt 200 ] || fault "not saved but at update $updates"
expect 0 1 train --resume --run-dir "$work/full" --max-updates $((updates + 3))

# CASE 51: killed at any moment while it saves after every update, a run always has a
# checkpoint that is intact, the last that it announced among them, resumes from the newest,
# and leaves no temporary files.
options="--data $work/many.h5 --batch 3 --hidden 12 --layers 2 --dropout 0.3 --epochs 12"
# shellcheck disable=SC2086 # a list of options
train unbroken 1 $options
trying "kills while it saves"
kills=5
[ -z "${LONG:-}" ] || kills=50
kill_at=0
while [ $kill_at -lt $kills ]; do
    kill_at=$((kill_at + 1))
    # shellcheck disable=SC2086
    start broken 1 $options --save-every 1 --keep 2 --resume
    wait_for broken $((kill_at * 160 / kills))
    sleep 0.00$((kill_at * 7 % 10))
    kill -KILL "$job" 2>/dev/null || true # a quick one may have reached its end
    tried
    wait "$job" 2>/dev/null || true
    expect 0 1 inspect "$work/broken" --json
    grep -q '"intact": *true' "$work/out" || lost "not intact after kill $kill_at"
    announced=$(table broken save file | tail -n 1 | tr -d '"')
    "$RNN_DIST" inspect "$work/broken/$announced" >"$work/out" 2>"$work/err" ||
        lost "$announced was announced: $(cat "$work/err")"
done
expect 0 1 train --resume --run-dir "$work/broken"
identical broken unbroken
left=$(find "$work/broken" -name '*.h5*' ! -name 'ckpt-??????????.h5' ! -name best.h5)
[ -z "$left" ] || fault "temporary files are left: $left"

tally_end

# A damaged checkpoint is named, and the one before it is used.
newest=$(last broken)
truncate -s -1 "$newest"
expect 4 1 inspect "$newest"
said "$newest"
expect 0 1 train --resume --run-dir "$work/broken"
said "$(basename "$newest")"
identical broken unbroken

# Where the best is all that is intact, it is that; where nothing is, the run does not start
# from the beginning by itself, unless it had not saved yet.
train judged 1 --data "$work/many.h5" --valid "$work/other.h5" --batch 3 --hidden 12 --epochs 3 \
    --dropout-head 0.2 --lr 0.05 --valid-every 5
cp -r "$work/judged" "$work/best"
for file in "$work/best"/ckpt-*.h5; do
    truncate -s -1 "$file"
done
expect 0 1 train --resume --run-dir "$work/best"
said "resuming at update" "best.h5"
identical best judged
# Where the best is lost, that is said, and the next validation is the best.
cp -r "$work/judged" "$work/lost"
rm "$work/lost/best.h5"
expect 0 1 train --resume --run-dir "$work/lost" --epochs 4
said "warning" "lost/best.h5 is lost"
[ -e "$work/lost/best.h5" ] || fault "no best.h5 after the next validation"
# What cannot be opened may be intact: the run neither resumes without it nor starts again.
mv "$work/best/best.h5" "$work/kept.h5"
ln -s best.h5 "$work/best/best.h5"
for file in "$work/best"/ckpt-*.h5; do
    truncate -s -1 "$file"
done
cp "$work/best/metrics.jsonl" "$work/before"
expect 4 1 train --resume --run-dir "$work/best"
said "$work/best/best.h5: "
cmp "$work/best/metrics.jsonl" "$work/before" || fault "a refused run changes its metrics"
mv "$work/kept.h5" "$work/best/best.h5"
for file in "$work/best"/*.h5; do
    truncate -s -1 "$file"
done
expect 4 1 train --resume --run-dir "$work/best"
said "$work/best: no checkpoint is intact; to start from the beginning, move it away"
cmp "$work/best/metrics.jsonl" "$work/before" || fault "a refused run changes its metrics"
rm "$work/best"/*.h5
expect 0 1 train --resume --run-dir "$work/best"
said "$work/best: has no checkpoint yet; starting from the beginning"
identical best judged
# Data are found from another folder, after they were moved together with the run, and after
# only the run was; another file of that name in the working directory is not taken for them.
mkdir "$work/away" "$work/from"
"$TOOL" data "$work/from/set.h5" task=classify outputs=3 lengths="$(lengths 40 1 15)"
"$TOOL" data "$work/from/valid.h5" task=classify outputs=3 lengths="$(lengths 12 1 15)" seed=2
"$TOOL" data "$work/away/valid.h5" task=classify outputs=3 lengths="$(lengths 12 1 15)" seed=3
# from FOLDER STATUS RANKS RUN-DIR OPTIONS...: resumes there.
from() {
    from_folder=$1 wanted=$2 from_ranks=$3 from_run=$4
    shift 4
    got=0
    (cd "$work/$from_folder" && on "$from_ranks" train --resume --run-dir "$from_run" \
        --progress none --threads 1 "$@") >"$work/out" || got=$?
    equal "resuming in $from_folder" "$got" "$wanted"
}
(cd "$work/from" && on 1 train --data set.h5 --valid valid.h5 --batch 8 --hidden 5 \
    --threads 1 --progress none --epochs 1 --run-dir runs/r) || die "a run in a folder"
from from 0 1 runs/r --epochs 2
! grep -q "is now" "$work/err" || fault "nothing was moved: $(cat "$work/err")"
from away 0 2 ../from/runs/r --epochs 3
said "--data set.h5 is now $work/from/set.h5" "--valid valid.h5 is now $work/from/valid.h5"
from away 0 1 "$work/from/runs/r" --epochs 4
! grep -q "have changed" "$work/err" || fault "another file is read: $(cat "$work/err")"
mv "$work/from" "$work/moved-together"
from away 0 1 ../moved-together/runs/r --epochs 5
said "is now $work/moved-together/set.h5"
mv "$work/moved-together/runs/r" "$work/alone-r"
from away 0 1 ../alone-r --epochs 6
rm "$work/moved-together/set.h5"
cp "$work/alone-r/metrics.jsonl" "$work/before"
from away 4 2 ../alone-r --epochs 7
said "moved-together/set.h5: No such file" "--data FILE"
cmp "$work/alone-r/metrics.jsonl" "$work/before" || fault "a refused run changes its metrics"
# a run that was not saved yet, too
start early 1 --data "$work/many.h5" --batch 3 --hidden 12 --epochs 100000
wait_for early 1
kill -KILL "$job"
wait "$job" 2>/dev/null || true
[ -z "$(last early)" ] || fault "it was saved: $(last early)"
mkdir "$work/old" && mv "$work/many.h5" "$work/early" "$work/old"
from away 0 1 ../old/early --epochs 1
said "is now $work/old/many.h5"
done_testing
