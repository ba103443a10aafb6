#!/bin/sh
# baddata.sh - files that are not what they should be: every command says which file and what
# is wrong, on all ranks, within seconds, and writes nothing; inspect tells what it can.
# (Wrong labels, ids and values: tests/cases/labels.sh and the unit test of the data set.)
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

cd "$work"
data good task=classify outputs=3 features=2 lengths=3,1,2
expect 0 1 train --data good.h5 --run-dir good --hidden 3 --epochs 1 --threads 1 --save-every 1
model=$(last good)
size=$(wc -c <good.h5)

# flip FILE OFFSET: one byte becomes another.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059 # the byte, as octal
    printf "\\$(printf %o $((byte ^ 16)))" |
        dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

echo "not HDF5" >text.h5
: >empty.h5
mkdir folder.h5
head -c $((size / 2)) good.h5 >half.h5
head -c $((size - 1)) good.h5 >short.h5
cp good.h5 flipped.h5
flip flipped.h5 $((size / 2))
head -c 100000 /dev/zero >zeros.h5

trying "files that are not what they should be"
# refused STATUS FILE WORDS...
refused() {
    status=$1
    file=$2
    shift 2
    tried
    started=$(date +%s)
    expect "$status" 2 train --data "$file" --run-dir none --hidden 3
    said "$file" "$@"
    equal "messages about $file" "$(grep -c "^rnn_dist: .*$file" err)" 1
    [ $(($(date +%s) - started)) -le 5 ] || hung "$file took long to be refused"
    expect "$status" 1 train --data good.h5 --valid "$file" --run-dir none --hidden 3
    said "$file" "$@"
    [ ! -e none ] || fault "$file: a run directory was made"
    expect "$status" 1 eval "$model" --data "$file"
    said "$file" "$@"
    expect "$status" 1 predict "$model" --data "$file" --out none.h5
    said "$file" "$@"
    [ ! -e none.h5 ] || fault "$file: predictions were written"
}

refused 4 missing.h5 "No such file"
refused 3 text.h5 "not an HDF5 file"
refused 3 empty.h5 "empty"
refused 4 folder.h5 "folder"
refused 3 zeros.h5 "not an HDF5 file"
refused 3 half.h5 "truncated"
refused 3 short.h5 "truncated within its checksum"
refused 3 flipped.h5 "damaged"
refused 3 "$model" "rnn_dist-checkpoint" "rnn_dist-data"

# ---- inspect
# inspected STATUS FILE KIND INTACT: in both forms.
inspected() {
    expect "$1" 1 inspect "$2"
    grep -q "^kind  *$3\$" out || fault "inspect $2: $(cat out)"
    expect "$1" "${ranks:-1}" inspect "$2" --json
    grep -q "^{.*\"kind\": \"$3\".*\"intact\": $4.*}\$" out || fault "inspect $2: $(cat out)"
    [ "$(wc -l <out)" = 1 ] || fault "inspect $2 --json prints $(cat out)"
    [ "$1" = 0 ] || said "${5:-$2}"
}

ranks=2 inspected 0 good.h5 data true
grep -q '"task": "classify", "sequences": 3, "steps": 6, "inputs": 2' out ||
    fault "inspect: $(cat out)"
ranks=2 inspected 3 flipped.h5 data false
unset ranks
inspected 3 half.h5 data false
inspected 3 short.h5 data false
for file in text empty zeros; do
    expect 3 1 inspect $file.h5
    said "$file.h5" "not an HDF5 file"
done
for file in missing.h5 .; do
    expect 4 1 inspect $file
    said "$file"
done

inspected 0 "$model" checkpoint true
cp "$model" bad.h5
size=$(wc -c <bad.h5)
flip bad.h5 $((size / 2))
inspected 4 bad.h5 checkpoint false
head -c $((size / 3)) "$model" >cut.h5
inspected 4 cut.h5 checkpoint false
head -c $((size - 5)) "$model" >end.h5
inspected 4 end.h5 checkpoint false

inspected 0 good run true
cp bad.h5 good/ckpt-0000000099.h5
inspected 1 good run false ckpt-0000000099.h5
mkdir all
cp bad.h5 all/ckpt-0000000001.h5
inspected 4 all run false ckpt-0000000001.h5
mkdir empty
inspected 4 empty run false
done_testing
