#!/bin/sh
# pack.sh - data files from every kind of input: what is written, what is printed, what is
# refused, and that a failure leaves no file.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

vowels=$srcdir/examples/japanese_vowels
cd "$work"

prints() {
    grep -qF -- "$1" "$work/out" || fault "no '$1' in: $(cat "$work/out")"
}

# values FILE OBJECT: all values on a line.
values() {
    "$TOOL" show "$1" "$2" | tr '\n' ' ' | sed 's/ $//'
}

# refused STATUS OUTPUT OPTIONS...: and leaves no output, nor a piece of it.
refused() {
    status=$1
    output=$2
    shift 2
    expect "$status" 1 pack "$@" "$output"
    [ ! -s out ] || fault "pack $* prints $(cat out)"
    for left in "$output" "${output%.h5}-valid.h5" "$output".tmp-*; do
        [ ! -e "$left" ] || fault "pack $* leaves $left"
    done
}

# ---- ts: the numbers that the archive gives for these files
expect 0 1 pack ts "$vowels/JapaneseVowels_TRAIN.ts" train.h5
prints "train.h5: 270 sequences, 4274 steps of 12 features, task classify"
prints "lengths 7 to 26, median 15, mean 15.8"
equal "classes" "$(sed -n '/^9 classes/,$p' out | awk 'NR > 1 { print $3 }' | sort -u)" 30
expect 0 1 pack ts "$vowels/JapaneseVowels_TEST.ts" test.h5
prints "test.h5: 370 sequences, 5687 steps of 12 features, task classify"
equal "test classes" "$(sed -n '/^9 classes/,$p' out | awk 'NR > 1 { print $3 }' | tr '\n' ' ')" \
    "31 35 88 44 29 24 40 50 29 "
equal "first value" "$("$TOOL" show train.h5 /inputs | head -n 1)" 1.86093605
expect 0 1 pack ts "$vowels/JapaneseVowels_TRAIN.ts" "$vowels/JapaneseVowels_TEST.ts" both.h5
prints "both.h5: 640 sequences, 9961 steps"
[ ! -s err ] || fault "pack says $(cat err)"

# The same on several ranks: one report, the same bytes.
cp train.h5 train1.h5
expect 0 2 pack ts "$vowels/JapaneseVowels_TRAIN.ts" train.h5
equal "reports" "$(grep -c '^train.h5' out)" 1
cmp train.h5 train1.h5 || fault "two ranks write something else"

# ---- csv, and training on it
cat >t.csv <<'END'
id,t,temp,"load, %",who
a,1,20.5,3,ann
b,1,19,1,bob
a,2,21,4,ann
b,2,18.5,0,bob
b,3,18,2,bob
END
expect 0 1 pack csv t.csv t.h5 --sequence id --features "temp,t" --label who
prints "t.h5: 2 sequences, 5 steps of 2 features, task classify"
prints "features: temp, t"
equal "inputs" "$(values t.h5 inputs)" "20.5 1 21 2 19 1 18.5 2 18 3"
equal "offsets" "$(values t.h5 offsets)" "0 2 5"
equal "targets" "$(values t.h5 targets)" "0 1"
expect 0 2 train --data t.h5 --run-dir run --hidden 3 --epochs 1 --threads 1
expect 0 1 pack csv --sequence=id --step-target temp t.csv t2.h5
prints "t2.h5: 2 sequences, 5 steps of 2 features, task regress_steps of 1 values"
said "column who is left out" "t.csv:2"
expect 0 1 pack csv --sequence id --step-label who --classes-from t.h5 t.csv t3.h5
expect 0 1 train --data t3.h5 --run-dir run3 --hidden 3 --epochs 1 --threads 1

refused 2 no.h5 csv t.csv
said "--sequence"
refused 3 no.h5 csv --sequence id --features temp,humidity t.csv
said "t.csv:1" "humidity"
sed 's/18.5//' t.csv >gap.csv
refused 3 no.h5 csv --sequence id --label who gap.csv
said "gap.csv:5" "temp"
sed '$ s/bob/ann/' t.csv >two.csv
refused 3 no.h5 csv --sequence id --label who two.csv
said "two.csv:6" "who" '"b"'
printf 'id,x,who\na,1,cyd\n' >new.csv
refused 3 no.h5 csv --sequence id --label who --classes-from t.h5 new.csv
said "new.csv:2" "cyd"
refused 2 no.h5 csv --sequence id --block 3 t.csv
said "--block" "csv"

# ---- text
printf 'the cat sat\nthe dog sat\n' >t.txt
expect 0 1 pack text-words t.txt w.h5
prints "w.h5: 2 sequences, 8 tokens, vocabulary 6, task lm"
equal "tokens" "$(values w.h5 inputs)" "2 4 3 1 2 5 3 1"
printf 'the bird' >more.txt
expect 0 1 pack text-words --vocab-from w.h5 more.txt w2.h5
equal "tokens" "$(values w2.h5 inputs)" "2 0 1"
said "1 of 3 tokens"
expect 0 1 pack text-chars --block 5 t.txt c.h5
equal "offsets" "$(values c.h5 offsets)" "0 5 10 15 20 24"
expect 0 1 train --data c.h5 --run-dir runc --hidden 3 --embed 2 --epochs 1 --threads 1
refused 2 no.h5 text-chars --vocab-size 5 t.txt
said "--vocab-size" "text-chars"
refused 2 no.h5 text-words --vocab-size 5 --vocab-from w.h5 t.txt
printf 'a\377' >latin.txt
refused 3 no.h5 text-chars latin.txt
said "latin.txt:1" "UTF-8"

refused 3 no.h5 text-words latin.txt
said "latin.txt:1" "UTF-8"

# ---- music
printf '{"a": [[[60], [62, 64], []]], "b": []}' >m.json
expect 0 1 pack music-json --part a m.json m.h5
prints "m.h5: 1 sequences, 2 steps of 88 features, task multilabel of 88 values"
refused 2 no.h5 music-json m.json
said "--part"
refused 3 no.h5 music-json --part c m.json
said "a, b"
refused 3 no.h5 music-json --part b m.json

# ---- split: by sequence, by seed, order kept
expect 0 1 pack ts "$vowels/JapaneseVowels_TRAIN.ts" s.h5 --split 0.1 --seed 3
prints "s.h5: 243 sequences"
prints "s-valid.h5: 27 sequences"
cp s-valid.h5 first.h5
expect 0 1 pack ts "$vowels/JapaneseVowels_TRAIN.ts" s.h5 --split 0.1 --seed 3
cmp first.h5 s-valid.h5 || fault "the same seed splits otherwise"
expect 0 1 pack ts "$vowels/JapaneseVowels_TRAIN.ts" s.h5 --split 0.1 --seed 4
cmp -s first.h5 s-valid.h5 && fault "another seed splits the same way"
equal "steps in all" "$(($("$TOOL" show s.h5 offsets | tail -n 1) +
    $("$TOOL" show s-valid.h5 offsets | tail -n 1)))" 4274
mkdir dir.d
expect 0 1 pack text-words t.txt dir.d/plain --split 0.5
[ -e dir.d/plain-valid ] || fault "plain-valid is missing: $(ls dir.d)"
refused 3 no.h5 text-words more.txt --split 0.5
said "--split"
refused 2 no.h5 text-words t.txt --split 1
said "split"

# ---- operands
refused 2 no.h5 text-word t.txt
said "text-words"
expect 2 1 pack ts
said "INPUT"
expect 2 1 pack ts only.h5
refused 4 no.h5 text-words missing.txt
said "missing.txt" "No such file"
refused 4 no.h5 text-words dir.d
expect 4 1 pack text-words t.txt dir.d
said "dir.d"
expect 4 1 pack text-words t.txt none/x.h5
said "none/x.h5" "No such file"
cp t.txt same.txt
expect 2 1 pack text-words same.txt ./same.txt
said "same.txt"
cmp t.txt same.txt || fault "the input was overwritten"
expect 2 1 pack text-words --vocab-from w.h5 t.txt w.h5
cp t.txt x-valid.h5
expect 2 1 pack text-words x-valid.h5 x.h5 --split 0.5
cmp t.txt x-valid.h5 || fault "the input was overwritten by the split"

# ---- other readers of HDF5, where there are any
if command -v h5dump >/dev/null; then
    h5dump -d /targets -y -w 80 t.h5 >dump 2>&1 || fault "h5dump: $(cat dump)"
    grep -q "0, 1" dump || fault "h5dump shows $(cat dump)"
fi
if ${PYTHON:-python3} -c 'import h5py' 2>/dev/null; then
    ${PYTHON:-python3} - <<'END' || fault "h5py reads something else"
import h5py
with h5py.File("t.h5") as f:
    assert f.attrs["format"] == "rnn_dist-data" and f.attrs["version"] == 1
    assert f.attrs["task"] == "classify" and f.attrs["num_classes"] == 2
    assert f["classes"].asstr()[:].tolist() == ["ann", "bob"]
    assert f["names"][:].tolist() == [b"a", b"b"]
    assert f["features"].asstr()[:].tolist() == ["temp", "t"]
    assert f["inputs"].dtype == "f4" and f["inputs"].shape == (5, 2)
    assert f["offsets"].dtype == "i8" and f["targets"].dtype == "i4"
with h5py.File("c.h5") as f:
    assert f["inputs"].dtype == "i4" and f.attrs["vocab_size"] == len(f["vocab"])
    assert f["vocab"].asstr()[0] == "<unk>" and "\n" in f["vocab"].asstr()[:]
with h5py.File("m.h5") as f:
    assert f["targets"].dtype == "u1" and f["targets"][0].nonzero()[0].tolist() == [41, 43]
with h5py.File("t.h5", "r+") as f:
    f.attrs["note"] = "changed by another program"
    f["targets"][0] = 1
END
    expect 3 1 inspect t.h5
    said "t.h5: its checksum is missing" "delete the attribute checksum"
    ${PYTHON:-python3} -c 'import h5py; del h5py.File("t.h5", "r+").attrs["checksum"]'
    expect 0 1 inspect t.h5
    grep -q "^whole_file_checksum  *no$" "$work/out" || fault "t.h5 still has a checksum"
    equal "changed target" "$(values t.h5 targets)" "1 1"
fi

# ---- kaldi: archives and lists, with labels; what is missing is named and counted
cp "$(cd "$srcdir" && pwd)"/tests/golden/kaldi/* .
expect 0 1 pack kaldi feats.ark k.h5 --labels-from text
prints "k.h5: 7 sequences, 66 steps of 5 features, task ctc"
prints "9 labels, 0 to 4 per sequence"
equal "kaldi labels" "$(values k.h5 targets)" "1 0 2 0 1 2 2 0 2"
equal "kaldi strings" "$(values k.h5 target_offsets)" "0 2 3 7 8 8 8 9"
expect 0 1 pack kaldi feats.scp same.h5 --labels-from text
cmp -s k.h5 same.h5 || fault "a list is not what its archive is"
sed -n '2p;3p' text | sed 's/$/ b/' >few
refused 3 no.h5 kaldi feats.scp --labels-from few
said 'few: has no line for utterance "utt_fm", the first of 5 without one (7 in all)'
head -n 2 feats.scp >two.scp
expect 0 1 pack kaldi two.scp two.h5 --labels-from text --classes-from k.h5
said 'text: 5 of 7 utterances are not among the features, the first "utt_one"'
equal "kaldi classes" "$(values two.h5 targets)" "1 0 2"
echo 'utt_fm b x' >other
refused 3 no.h5 kaldi two.scp --labels-from other --classes-from k.h5
said 'other:1: "x" is not a class of the data set given by --classes-from'
head -c 200 feats.ark >cut.ark
refused 3 no.h5 kaldi cut.ark
said "cut.ark: byte 124: a matrix of 3 rows and 5 columns, for which the file is too short"
expect 0 1 pack kaldi feats.ark bare.h5
prints "bare.h5: 7 sequences, 66 steps of 5 features, task none"
refused 2 no.h5 kaldi feats.ark --classes-from k.h5

if ${PYTHON:-python3} -c 'import numpy' 2>/dev/null; then
    ${PYTHON:-python3} - <<'END'
import numpy as np
x = np.arange(10, dtype="f8").reshape(5, 2) / 4
np.savez("a.npz", inputs=x, lengths=[2, 0, 3], targets=[1, -1, 0])
np.savez_compressed("b.npz", inputs=np.asfortranarray(x), offsets=[0, 2, 5],
                    targets=np.ones((2, 1), "f2"))
END
    ${PYTHON:-python3} -c 'import numpy as np
o = np.empty(2, object); o[:] = [np.ones((2, 1)), np.ones((3, 1))]
np.savez("o.npz", inputs=o)'
    if on 1 pack npz a.npz a.h5 >out; then
        refused 3 no.h5 npz o.npz
        said "o.npz: inputs: an array of Python objects" "np.concatenate"
        equal "npz inputs" "$(values a.h5 inputs)" "0 0.25 0.5 0.75 1 1.25 1.5 1.75 2 2.25"
        equal "npz targets" "$(values a.h5 targets)" "1 -1 0"
        expect 0 1 pack npz b.npz b.h5 --task regress
        cmp "$work/out" /dev/null 2>/dev/null && fault "npz prints nothing"
        equal "npz inputs by columns" "$(values b.h5 inputs)" "$(values a.h5 inputs)"
    else
        said "libzip"
    fi
fi
done_testing
