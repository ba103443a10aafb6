#!/bin/sh
# files.sh - files as other programs write them mean what they say: each is packed to the right
# values or refused with the reason (CASES 73, 75 to 78, 81).
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work"

# values FILE OBJECT: all values on a line.
values() {
    "$TOOL" show "$1" "$2" | tr '\n' ' ' | sed 's/ $//'
}

# packs KIND FILE OPTIONS...: to o.h5
packs() {
    kind=$1 from=$2
    shift 2
    rm -f o.h5
    expect 0 1 pack "$kind" "$@" "$from" o.h5
}

# refuses WORDS KIND FILE OPTIONS...: status 3, and no output
refuses() {
    refuses_words=$1 kind=$2 from=$3
    shift 3
    rm -f o.h5
    expect 3 1 pack "$kind" "$@" "$from" o.h5
    said "$from" "$refuses_words"
    [ ! -e o.h5 ] || fault "$from leaves a file"
}

# ---- CASE 73: the number of the row, which tells the classes of a table that is sorted by
# them, beside noise, which tells nothing
awk 'BEGIN {
    print "\"\",\"row\",\"id\",\"x\",\"state\""
    for (s = 0; s < 80; s++)
        for (t = 0; t < 3 + s % 4; t++) {
            seed = (seed * 1103515245 + 12345) % 2147483648
            printf "\"%d\",%d,\"s%d\",%.3f,\"%s\"\n", ++k, k, s, seed / 2^31 - 0.5, \
                s < 40 ? "sick" : "well"
        }
}' >leak.csv
# learned NAME OPTIONS...: the accuracy on the sequences set aside.
learned() {
    name=$1
    shift
    expect 0 1 pack csv --sequence id --label state --split 0.25 "$@" leak.csv "$name.h5"
    cp err said
    train "$name" 1 --data "$name.h5" --valid "$name-valid.h5" --normalize --hidden 16 \
        --epochs 25 --lr 0.02
    table "$name" valid accuracy | tail -n 1
}
by_default=$(learned noise)
grep -q 'warning: column 1, "", is left out' said || fault "taken: $(cat said)"
grep -q 'warning: column row is left out' said || fault "taken: $(cat said)"
equal "noise by default and by name" "$by_default" "$(learned named --features x)"
close_to "accuracy on noise" "$by_default" 0.5 0.5
equal "accuracy by the row's number" "$(learned leak --features row,x)" 1.0

# ---- CASE 75: no label is no class, and 1.0 is the class 1
printf '%s\n' id,x,state a,1,up a,2,up b,1,NA b,3,NA c,1,down d,4,nan e,1, >na.csv
packs csv na.csv --sequence id --label state
equal "targets without a label" "$(values o.h5 targets)" "1 -1 0 -1 -1"
printed "2 classes"
said "3 of 5 labels are missing"
printf '%s\n' id,x,c 1,1,1 2,2,1.0 3,3,2 >numbers.csv
packs csv numbers.csv --sequence id --label c
equal "1 and 1.0" "$(values o.h5 targets)" "0 0 1"

# ---- tables of other separators and line ends, and what is no table of numbers
printf 'id\tx\ty\na\t1\t2\n' >tab.csv
packs csv tab.csv --sequence id
equal "tabs" "$(values o.h5 inputs)" "1 2"
printf 'id,x\ra,1\ra,2\rb,3\r' >cr.csv
packs csv cr.csv --sequence id
equal "carriage returns" "$(values o.h5 offsets)" "0 2 3"
printf 'id;x\na;1,5\n' >semi.csv
refuses '"1,5" has a comma' csv semi.csv --sequence id
printf 'id,x,x\na,1,2\n' >twice.csv
refuses "two columns are named x" csv twice.csv --sequence id
printf 'id,when,x\na,1577836800,1\na,1577923200,2\n' >unix.csv
refuses "time stamps" csv unix.csv --sequence id

# ---- CASE 76: time series
# series NAME LINE...: a .ts file of these lines behind a header
series() {
    series_name=$1
    shift
    printf '%s\n' '@problemName t' '@timeStamps false' "$@" >"$series_name.ts"
}
{
    echo "% made by a tool"
    series plain '@univariate true' '@classLabel true A B' '@data' 1,2,3:a 4,5:b
    cat plain.ts
} >case.ts
packs ts case.ts
equal "labels in another case" "$(values o.h5 targets)" "0 1"
equal "values" "$(values o.h5 inputs)" "1 2 3 4 5"
series float '@univariate true' '@seriesLength -1' '@classLabel true 1 2' '@data' 1,2,3:1.0 4,5:2.0
packs ts float.ts
equal "labels as 1.0" "$(values o.h5 targets)" "0 1"
series padded '@univariate true' '@classLabel true a b' '@data' 1,2,3,NaN,NaN:a 4,5,NaN,NaN,NaN:b
packs ts padded.ts
equal "padding" "$(values o.h5 offsets)" "0 3 5"
equal "values before padding" "$(values o.h5 inputs)" "1 2 3 4 5"
said "2 cases"
series label '@univariate true' '@classLabel true a b' '@data' 1,2,3:a '4,5:?'
packs ts label.ts
equal "a missing class" "$(values o.h5 targets)" "0 -1"
series target '@univariate true' '@targetlabel true' '@data' 1,2,3:0.5 '4,5:?'
packs ts target.ts
equal "a missing target" "$(values o.h5 targets)" "0.5 nan"
series one '@univariate true' '@classLabel false' '@data' 1,2,3: 4,5:
packs ts one.ts
equal "one dimension without labels" "$(values o.h5 offsets)" "0 3 5"
series many '@univariate false' '@dimension 2' '@missing False' '@classLabel false' '@data' \
    1,2,3:4,5,6: 4,5:6,7:
packs ts many.ts
equal "two dimensions without labels" "$(values o.h5 inputs)" "1 4 2 5 3 6 4 6 5 7"
series less '@univariate false' '@dimensions 3' '@targetlabel true' '@data' 1:2:3:0.5 1:2:0.7
refuses "less.ts:8: 2 dimensions, expected 3" ts less.ts
series ragged '@univariate false' '@dimensions 2' '@classLabel true a b' '@data' 1,2,3,4:3,4:a
refuses "ragged.ts:7: dimension 2 has 2 values, but dimension 1 has 4" ts ragged.ts
printf '%s\n' '@timeStamps true' '@classLabel true a' '@data' '(0,1.5),(1,2.5):a' >time.ts
refuses "@timeStamps true is not supported" ts time.ts

# ---- CASE 77: music
echo '{"train": [[[60.0, 64.0], [60, 64], [62, 65]]]}' >float.json
echo '{"train": [[[60, 64], [60, 64], [62, 65]]]}' >whole.json
packs music-json float.json
cp o.h5 float.h5
packs music-json whole.json
cmp o.h5 float.h5 || fault "60.0 is another note than 60"
echo '{"train": [[[60, 64, -1, -1], [60, 64, -1, 48]]]}' >rest.json
packs music-json rest.json
equal "notes of a step" "$(values o.h5 inputs | tr ' ' '\n' | grep -c 1)" 2
equal "notes that follow" "$(values o.h5 targets | tr ' ' '\n' | grep -c 1)" 3

# Decimals far from 0 lose what tells them apart; the same numbers near 0 do not.
for offset in 100000000 0; do
    awk -v offset=$offset 'BEGIN {
        print "id,x,class"
        for (i = 0; i < 12; i++)
            printf "%d,%.3f,%s\n", i / 2, offset + sin(i), i % 4 < 2 ? "a" : "b"
    }' >far.csv
    packs csv far.csv --sequence id --label class
    [ $offset != 0 ] || break
    said "warning: column x: 32-bit floats tell its values" "in steps of 8 only"
done
! grep -q "32-bit" "$work/err" || fault "a warning for nothing: $(cat "$work/err")"
# Doubles of a data file: a column that is near 0, one far from it, and a constant.
data far task=classify features=3 outputs=2 lengths=2,1 \
    inputs=0.5,100000000.5,100000000.5,1.5,100000001,100000000.5,2.5,100000003,100000000.5
train far 1 --data "$work/far.h5" --max-updates 1
said "warning: $work/far.h5: /inputs, column 1: 32-bit floats tell its values" \
    "from 100000000.5 to 100000003, apart in steps of 8 only"
equal "columns that are named" "$(grep -c '32-bit' "$work/err")" 1
data whole task=classify features=2 outputs=2 lengths=2,1 \
    inputs=16777216,16777217,16777218,16777216,1,2
train whole 1 --data "$work/whole.h5" --max-updates 1
said "warning: $work/whole.h5: /inputs, column 1: 16777217 is rounded to 16777216;"
equal "columns that are named" "$(grep -c '32-bit' "$work/err")" 1

# ---- CASE 78: text that is not UTF-8, and lines that end with carriage returns
printf 'It\222s a caf\351 by the sea\nthe caf\351 is here\n' >latin.txt
for kind in text-words text-chars; do
    refuses "latin.txt:1: byte 3 of the line, 0x92, is not UTF-8" $kind latin.txt
done
printf 'id,x,\351tat\na,1,malade\n' >latin.csv
refuses "latin.csv:1: byte 6 of the line, 0xe9, is not UTF-8" csv latin.csv --sequence id \
    --label "$(printf '\351tat')"
printf 'one two three\rfour five six\rone two six\r' >cr.txt
packs text-words cr.txt
equal "lines" "$(values o.h5 offsets)" "0 4 8 12"

# ---- CASE 81: an input that stands where the output belongs
cp case.ts again.ts
expect 2 1 pack ts case.ts again.ts
said again.ts
cmp case.ts again.ts || fault "an input was overwritten"
done_testing
