#!/bin/sh
# names.sh - the same data with other numbers for classes, tokens and features give the same
# result; names that the model does not know are refused, or counted as wrong.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# series SEED: 18 sequences "mean:class" of 3 classes that their mean tells
# apart, as lines of a .ts file.
series() {
    awk -v seed="$1" 'BEGIN {
        split("low mid high", class)
        for (i = 0; i < 18; i++) {
            k = i % 3
            line = ""
            for (t = 0; t < 3 + (i + seed) % 4; t++)
                line = line (t ? "," : "") 2 * (k - 1) + ((i * 7 + t * 5 + seed) % 9 - 4) / 20
            print line ":" class[k + 1]
        }
    }'
}
ts() {
    printf '@problemName p\n@timeStamps false\n@univariate true\n@classLabel true %s\n@data\n' \
        "$2"
    series "$1"
}
pack() {
    kind=$1 from=$2
    shift 2
    "$RNN_DIST" pack "$kind" "$@" "$work/$from" "$work/${from%.*}.h5" >"$work/out" 2>"$work/err" ||
        die "pack $from"
}
learn() {
    train "$@" --threads 1 --lr 0.03 --batch 6
}
# metric MODEL DATA: the metric that eval prints.
metric() {
    expect 0 "${ranks:-1}" eval "$work/$1" --data "$work/$2.h5" --threads 1
    sed -n 3p "$work/out"
}

# ---- classes
ts 1 "low mid high" >"$work/train.ts"
ts 2 "low mid high" >"$work/same.ts"
ts 2 "high low mid" >"$work/other.ts"
ts 2 "high low mid broken" | sed '8,9s/:.*/:broken/' >"$work/broken.ts"
for f in train same other broken; do pack ts "$f.ts"; done
learn model 1 --data "$work/train.h5" --hidden 8 --epochs 25
equal "classes in the model's order" "$(metric model same)" "accuracy 1"
for ranks in 1 2; do
    equal "classes in another order" "$(metric model other)" "accuracy 1"
done
ranks=1
expect 0 1 predict "$work/model" --data "$work/other.h5" --csv "$work/other.csv"
equal "the model's names" "$(sed -n 1p "$work/other.csv")" \
    "sequence,prediction,target,low,mid,high"
equal "the first is a low" "$(sed -n 2p "$work/other.csv" | cut -d, -f2)" "low"
# predictions of data of other classes, which no eval can judge
printf '%s\n' '@univariate true' '@classLabel true x y' @data -2,-2:x 2,2:y >"$work/two.ts"
pack ts two.ts
expect 0 1 predict "$work/model" --data "$work/two.h5" --csv "$work/two.csv"
equal "names of the model" "$(cut -d, -f2 "$work/two.csv" | tr '\n' ' ')" "prediction low high "
expect 3 1 eval "$work/model" --data "$work/two.h5"
said two.h5 '"x"' '"low", "mid", "high"'
# 2 of 18 are of a class that the model does not know
equal "an unknown class counts as wrong" "$(metric model broken)" "accuracy 0.8888888888888888"
said 'warning' '2 targets' '"broken"'
expect 3 1 train --data "$work/train.h5" --valid "$work/broken.h5" --run-dir "$work/refused"
said broken.h5 '"broken"' '"low", "mid", "high"'
expect 3 2 train --data "$work/broken.h5" --init "$work/model/ckpt-0000000075.h5" --hidden 8 \
    --run-dir "$work/refused"
said '"broken"'
[ ! -e "$work/refused" ] || fault "a run directory was made"
# parameters that number the classes differently from the data
learn tuned 1 --data "$work/other.h5" --valid "$work/same.h5" --hidden 8 --epochs 1 \
    --init "$work/model/ckpt-0000000075.h5" --lr 0.0001
equal "--init keeps its classes" "$(table tuned valid accuracy)" "1.0"
train tuned 1 --resume --epochs 2
equal "and so does --resume" "$(table tuned valid accuracy | tr '\n' ' ')" "1.0 1.0 "

# ---- tokens: two texts of the same words, whose numbers go by frequency
words() {
    awk -v turn="$1" 'BEGIN {
        for (i = 0; i < 60; i++) {
            first = i % 2 ? 0 : turn
            line = ""
            for (t = 0; t < 4 + i % 3; t++) line = line "w" (first + t) % 6 " "
            print line
        }
    }'
}
words 0 >"$work/a.txt"
words 3 >"$work/b.txt"
{ words 3; echo "w1 new w3"; } >"$work/c.txt"
for f in a b c; do pack text-words "$f.txt"; done
pack text-words b.txt --vocab-from "$work/a.h5"
cp "$work/b.h5" "$work/numbered.h5"
pack text-words b.txt
cmp -s "$work/b.h5" "$work/numbered.h5" && fault "both texts number their words alike"
learn words 1 --data "$work/a.h5" --embed 4 --hidden 8 --epochs 8
equal "words by their text" "$(metric words b)" "$(metric words numbered)"
metric words c >"$work/unk"
said 'warning' '"new"' '<unk>'
printf 'xyz\n' >"$work/d.txt"
pack text-words d.txt
expect 3 1 eval "$work/words" --data "$work/d.h5"
said d.h5 '"xyz"' '"w0"' --vocab-from

# ---- features: columns in another order, one too many, and one that is missing
{
    echo "id,far,near,s"
    series 3 | awk -F: '{ n = split($1, x, ","); for (t = 1; t <= n; t++)
        print "s" NR "," (NR * t * 37) % 11 "," x[t] "," $2 }'
} >"$work/f.csv"
awk -F, '{ print $1 "," $3 "," $2 "," $4 }' "$work/f.csv" >"$work/g.csv"
awk -F, '{ print $1 "," $3 ",9," $2 "," $4 }' "$work/f.csv" |
    sed '1s/,9,/,extra,/' >"$work/more.csv"
awk -F, '{ print $1 "," $2 "," $4 }' "$work/f.csv" >"$work/less.csv"
for f in f g more less; do pack csv "$f.csv" --sequence id --label s; done
learn columns 1 --data "$work/f.h5" --normalize --hidden 8 --epochs 25
for f in f g more; do equal "columns of $f" "$(metric columns $f)" "accuracy 1"; done
said 'warning' '"extra"'
expect 3 1 eval "$work/columns" --data "$work/less.h5"
said less.h5 '"near"' '"far"'
expect 0 1 inspect "$work/g.h5"
grep -q near "$work/out" || fault "inspect does not name the features"
expect 0 1 export "$work/columns" "$work/columns.safetensors"
expect 0 1 import "$work/columns.safetensors" "$work/columns.h5"
equal "names travel with an export" "$(metric columns.h5 g)" "accuracy 1"

# Names that an export cannot hold are not left out in silence.
train latin 1 --data "${srcdir:-.}/tests/golden/h5py/latin.h5" --hidden 2 --epochs 1
expect 0 1 export "$work/latin" "$work/latin.safetensors"
said 'warning' 'classes' 'not UTF-8'

# ---- validation data that have changed
cp "$work/same.h5" "$work/valid.h5"
learn watched 1 --data "$work/train.h5" --valid "$work/valid.h5" --hidden 8 --epochs 3 \
    --patience 4
pack ts same.ts
# so wrong that no loss is below the third, the best so far
ts 2 "low mid high" | sed '6,$s/:low/:x/; 6,$s/:mid/:low/; 6,$s/:x/:mid/' >"$work/valid.ts"
pack ts valid.ts
train watched 1 --resume --epochs 5
said 'warning' 'validation data' 'anew'
losses=$(table watched valid loss | tr '\n' ' ')
echo "$losses" | awk '{ exit !($3 < $2 && $4 > $3 && $5 > $3) }' ||
    fault "the third loss is not the lowest: $losses"
expect 0 1 inspect "$work/watched"
grep -q '^best .* epoch [45],' "$work/out" || fault "best is from before: $(cat "$work/out")"

# Names that are not harmless: neither a terminal nor a reader takes them for anything else,
# and a spreadsheet takes none for a formula; -1 and +5 are numbers.
esc=$(printf '\033')
printf '%s\n' 'name,x,class' '=s,1,-1' 's1,0,+5' 's2,3,=1+2' 's3,2,-1+A1' 's4,5,@x' \
    "s5,1,re${esc}[31md" '"s6",2,"a' 'intact           no"' 's7,1,c1'"$(printf '\302\233')" \
    >"$work/odd.csv"
expect 0 1 pack csv --sequence name --features x --label class "$work/odd.csv" "$work/odd.h5"
printed 'a\nintact           no' 're\x1b[31md' 'c1\x9b'
for command in pack inspect; do
    [ $command = pack ] || expect 0 1 inspect "$work/odd.h5"
    ! LC_ALL=C grep -q "[$esc$(printf '\302')]" "$work/out" || fault "$command prints ESC or CSI"
    ! grep -q '^intact  *no' "$work/out" || fault "$command lets a name forge a line"
done
printed 'a\nintact           no' 're\x1b[31md' 'c1\x9b'
train odd 1 --data "$work/odd.h5" --hidden 3 --epochs 1
expect 0 1 eval "$work/odd" --data "$work/odd.h5"
printed 'a\nintact           no  ' 're\x1b[31md' 'c1\x9b'
! LC_ALL=C grep -q "[$esc$(printf '\302')]" "$work/out" || fault "eval prints ESC or CSI"
expect 0 1 predict "$work/odd" --data "$work/odd.h5" --csv "$work/odd-out.csv"
grep -q "^sequence,prediction,target,+5,-1,'-1+A1,'=1+2,'@x,\"a\$" "$work/odd-out.csv" ||
    fault "the header is $(head -n 2 "$work/odd-out.csv")"
grep -q "^'=s," "$work/odd-out.csv" || fault "=s is not guarded"
done_testing
