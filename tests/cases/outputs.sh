#!/bin/sh
# outputs.sh - what a command writes replaces no file of another kind, and leaves nothing
# behind where it is stopped.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data many task=classify outputs=3 lengths="$(lengths 40 1 15)"
train run 1 --data "$work/many.h5" --batch 4 --hidden 4 --epochs 1
cp "$work/many.h5" "$work/copy.h5"
mkdir "$work/kept"
cat >"$work/a.ts" <<'END'
@problemName a
@univariate true
@classLabel true x y
@data
1,2,3:x
4,5,6:y
END
cp "$work/a.ts" "$work/b.ts"
printf 'sequence,step,x\n1,1,2\n' >"$work/table.csv"
printf '[1, 2]\n' >"$work/list.json"

# spares FILE COMMAND...: it is refused with a sentence, and the file is as it was.
spares() {
    file=$work/$1
    shift
    cp "$file" "$work/kept/file"
    expect 2 1 "$@"
    said "${file##*/}: exists and is not a" "choose another output, or remove it first"
    cmp "$file" "$work/kept/file" || fault "$file has changed: $*"
}
run=$work/run d=$work/many.h5
spares b.ts pack ts "$work/a.ts" "$work/b.ts"
spares run/config.ini pack ts "$work/a.ts" "$run/config.ini"
spares run/ckpt-0000000010.h5 pack ts "$work/a.ts" "$run/ckpt-0000000010.h5"
spares table.csv predict "$run" --data "$d" --csv "$work/table.csv"
spares copy.h5 predict "$run" --data "$d" --out "$work/copy.h5"
spares copy.h5 import "$run/ckpt-0000000010.h5" "$work/copy.h5"
spares copy.h5 export "$run" "$work/copy.h5"
cp -r "$run" "$work/other"
spares run/ckpt-0000000010.h5 predict "$work/other" --data "$d" --out "$run/ckpt-0000000010.h5"
spares list.json train --data "$d" --run-dir "$work/none" --trace "$work/list.json"
spares copy.h5 bench --data "$d" --trace "$work/copy.h5"
spares run/config.ini report "$run" --out "$run/config.ini"
spares copy.h5 report "$run" --out "$work/copy.h5"
for suffix in safetensors npz onnx; do
    cp "$work/list.json" "$work/a.$suffix"
    if "$RNN_DIST" export "$run" "$work/b.$suffix" 2>"$work/err"; then
        spares "a.$suffix" export "$run" "$work/a.$suffix"
    else # this build cannot write it
        said "this build cannot"
    fi
done
# An input is refused even where its kind is that of the output.
for file in many copy; do
    cp "$d" "$work/kept/file"
    expect 2 1 pack ts "$work/a.ts" --classes-from "$work/$file.h5" "$work/$file.h5"
    said "$file.h5 is an input and would be overwritten"
done
expect 2 1 import "$run/ckpt-0000000010.h5" "$run/ckpt-0000000010.h5"
said "is an input and would be overwritten"
[ ! -e "$work/none" ] || fault "a refused trace leaves a run directory"

# verify writes no file of the user's.
expect 0 1 verify --data "$d" --hidden 4 --trace "$work/copy.h5"
cmp "$d" "$work/copy.h5" || fault "verify has written its trace to a data file"
expect 0 1 verify --data "$d" --hidden 4 --trace "$work/trace.json"
[ ! -e "$work/trace.json" ] || fault "verify has written a trace"

# What a command itself wrote, it replaces; an empty file, too.
: >"$work/p.h5"
: >"$work/p.csv"
for _ in 1 2; do
    expect 0 1 predict "$run" --data "$d" --out "$work/p.h5" --csv "$work/p.csv"
    expect 0 1 pack ts "$work/a.ts" "$work/a.h5"
    expect 0 1 report "$run" --out "$work/page.html"
    expect 0 1 bench --data "$d" --hidden 4 --trace "$work/t.json"
    expect 0 1 export "$run" "$work/e.h5"
    expect 0 1 import "$work/e.h5" "$work/i.h5" --task classify
done

# A name of 250 bytes, the limit is 255.
long=$(printf '%0247d' 0).h5
expect 0 1 pack ts "$work/a.ts" "$work/$long"
expect 0 1 inspect "$work/$long"

# ---- what is stopped

left() {
    find "$work" -name '*.tmp-*' >"$work/left"
    [ ! -s "$work/left" ] || fault "$1 leaves $(cat "$work/left")"
}
data large task=tag features=8 outputs=40 lengths="$(lengths 4000 60 120)"
train big 1 --data "$work/large.h5" --hidden 64 --layers 2 --max-updates 1

# begin: predict in the background, until its files are there.
begin() {
    "$RNN_DIST" predict "$work/big" --data "$work/large.h5" --threads 1 --batch 1 \
        --out "$work/q.h5" --csv "$work/q.csv" 2>"$work/err" &
    job=$!
    wait_left=500
    until [ -e "$work/q.csv.tmp-$job" ]; do
        wait_left=$((wait_left - 1))
        [ $wait_left -gt 0 ] || die "predict does not begin"
        sleep 0.02
    done
}
for signal in TERM HUP USR1; do
    begin
    kill -"$signal" "$job"
    got=0
    wait "$job" || got=$?
    [ "$got" -gt 128 ] || die "exit $got after $signal"
    left "predict, stopped by $signal,"
done
# Nothing can be done at a kill; the next start removes what it left.
begin
kill -KILL "$job"
wait "$job" 2>/dev/null || true
[ -e "$work/q.csv.tmp-$job" ] || fault "no temporary file to remove"
cp "$work/q.csv.tmp-$job" "$work/q.csv.tmp-1"
begin
kill -TERM "$job"
wait "$job" 2>/dev/null || true
[ -e "$work/q.csv.tmp-1" ] || fault "the file of a process that lives is removed"
rm -f "$work/q.csv.tmp-1"
left "predict, after one that was killed,"
done_testing
