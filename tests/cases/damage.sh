#!/bin/sh
# damage.sh - what a damaged file, a clock or another run does to a folder loses nothing that
# was announced.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

data many task=classify outputs=3 lengths="$(lengths 40 1 15)"
options="--data $work/many.h5 --batch 4 --hidden 4"

trying "damaged checkpoints, clocks set back, folders made anew"
# The newest checkpoint is damaged and, as the clock was set back, written in the future: what
# is saved now stays.
# shellcheck disable=SC2086 # a list of options
train ahead 1 $options --epochs 99 --max-updates 60 --save-every 10 --keep 2
printf x | dd of="$work/ahead/ckpt-0000000060.h5" bs=1 seek=5000 conv=notrunc 2>/dev/null
touch -d '+1 hour' "$work/ahead/ckpt-0000000060.h5"
expect 0 1 train --resume --run-dir "$work/ahead" --keep 1 --max-updates 58
tried
[ -f "$work/ahead/ckpt-0000000058.h5" ] || lost "the checkpoint of update 58 is gone"

# The folder of a run is removed, and another run makes it anew: the first ends and leaves the
# second's checkpoints alone.
tried
# shellcheck disable=SC2086
start two 1 $options --epochs 100000000 --keep 1 --seed 1
first=$job
wait_for two 3
rm -rf "$work/two"
# shellcheck disable=SC2086
train two 1 $options --epochs 99 --max-updates 40 --save-every 10 --keep 2 --seed 2
kill -TERM "$first"
got=0
wait "$first" || got=$?
equal "status of a run whose folder is another's" "$got" 4
ls "$work/two" >"$work/files"
equal "checkpoints" "$(grep ckpt "$work/files" | tr '\n' ' ')" \
    "ckpt-0000000030.h5 ckpt-0000000040.h5 "

# zeroed FILE BYTES: so many bytes at its end become zeros, as where a file system reserved the
# space and never wrote there.
zeroed() {
    zeroed_size=$(wc -c <"$1")
    truncate -s -"$2" "$1"
    truncate -s "$zeroed_size" "$1"
}

# A checkpoint whose end is zeros is damaged, and the one before it is used.
# shellcheck disable=SC2086
train zeros 1 $options --epochs 99 --max-updates 20 --save-every 10
for bytes in 40 600 5000; do
    cp -r "$work/zeros" "$work/zeros-$bytes"
    tried
    zeroed "$work/zeros-$bytes/ckpt-0000000020.h5" $bytes
    expect 4 1 inspect "$work/zeros-$bytes/ckpt-0000000020.h5"
    said "ckpt-0000000020.h5: damaged"
    expect 0 1 train --resume --run-dir "$work/zeros-$bytes" --max-updates 30
    said "ckpt-0000000020.h5: damaged" "resuming at update 10"
done
# So is one without a checksum, which every checkpoint of a run has.
tried
truncate -s -32 "$work/zeros/ckpt-0000000020.h5"
expect 0 1 train --resume --run-dir "$work/zeros" --max-updates 30
said "ckpt-0000000020.h5: has no checksum" "resuming at update 10"

# A data file of pack likewise.
trying "data files with zeros at the end, cut, or on which HDF5 crashes"
cp "$work/many.h5" "$work/tail.h5"
for bytes in 32 100 3000; do
    tried
    zeroed "$work/tail.h5" $bytes
    expect 3 1 inspect "$work/tail.h5"
    said "tail.h5: damaged"
    expect 3 1 train --data "$work/tail.h5" --run-dir "$work/none"
done
# One that is cut exactly where HDF5's part ends says itself that it had more; one that was
# never protected is accepted.
printf '%s\n' '@problemName a' '@univariate true' '@classLabel true x y' @data 1,2:x 4,5:y \
    >"$work/a.ts"
expect 0 1 pack ts "$work/a.ts" "$work/a.h5"
expect 0 1 inspect "$work/a.h5"
grep -q '^whole_file_checksum  *yes$' "$work/out" || fault "inspect: $(cat "$work/out")"
tried
truncate -s -32 "$work/a.h5"
expect 3 1 inspect "$work/a.h5"
said "a.h5: its checksum is missing: cut short"
expect 3 2 train --data "$work/a.h5" --run-dir "$work/none"
said "a.h5: its checksum is missing: cut short"
cp "$work/many.h5" "$work/bare.h5"
truncate -s -32 "$work/bare.h5"
expect 0 1 inspect "$work/bare.h5" --json
grep -q '"whole_file_checksum": false' "$work/out" || fault "inspect: $(cat "$work/out")"

# Files on which HDF5 1.10.8 crashes, loops or takes 3 GB are refused, by one rank and by two.
damaged=${srcdir:-.}/tests/golden/damaged
for name in crash loop memory; do
    for ranks in 1 2; do
        tried
        expect 3 $ranks train --data "$damaged/$name.h5" --run-dir "$work/refused"
        said "$name.h5: "
    done
    expect 3 1 inspect "$damaged/$name.h5"
    [ ! -e "$work/refused" ] || fault "a run folder was made for $name.h5"
done
for command in "inspect" "eval --data $work/many.h5" "sample"; do
    tried
    # shellcheck disable=SC2086
    expect 4 1 $command "$damaged/checkpoint.h5"
    said "checkpoint.h5: "
done
expect 4 1 train --data "$work/many.h5" --init "$damaged/checkpoint.h5" --run-dir "$work/refused"
said "checkpoint.h5: "
done_testing
