#!/bin/sh
# folders.sh - one CSV file per sequence: names from files, classes and targets from a second
# table or from folders, and a model trained on them, as on the page of pack.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"
cd "$work"

# values FILE OBJECT: all values on a line.
values() {
    "$TOOL" show "$1" "$2" | tr '\n' ' ' | sed 's/ $//'
}
# packs OPTIONS...: into o.h5
packs() {
    rm -f o.h5
    expect 0 1 pack csv "$@" o.h5
}
# refused STATUS WORDS OPTIONS...: and no output
refused() {
    status=$1 words=$2
    shift 2
    rm -f o.h5
    expect "$status" 1 pack csv "$@" o.h5
    said "$words"
    [ ! -e o.h5 ] || fault "a file is written: pack csv $*"
}

# ---- names, order and columns
mkdir set
printf '%s\n' t,x,y 0,1,2 1,3,4 >set/b.csv
printf '%s\n' y,x,t 20,10,0 40,30,1 60,50,2 >set/a.long.csv
printf 't;x;y\n0;7;8\n' | gzip >set/c.tsv.gz
printf '%s\n' t,x,y >set/d.csv
packs --sequence-per-file set/b.csv set/a.long.csv set/c.tsv.gz set/d.csv
printed "4 sequences, 6 steps of 3 features, task none" "features: t, x, y"
equal "offsets" "$(values o.h5 offsets)" "0 2 5 6 6"
equal "columns by name" "$(values o.h5 inputs)" "0 1 2 1 3 4 0 10 20 1 30 40 2 50 60 0 7 8"
packs --sequence-per-file --features y,x set/b.csv set/a.long.csv
equal "features by name" "$(values o.h5 inputs)" "2 1 4 3 20 10 40 30 60 50"
packs --sequence-per-file --step-label y set/b.csv set/a.long.csv
printed "task tag" "5 classes"
packs --sequence-per-file --step-target y --features x set/b.csv set/d.csv
equal "step targets" "$(values o.h5 targets)" "2 4"
printf '%s\n' t,z,x,y 0,5,1,2 >set/more.csv
packs --sequence-per-file set/b.csv set/more.csv
said "warning" "set/more.csv: column z is left out"
equal "a column too many" "$(values o.h5 inputs)" "0 1 2 1 3 4 0 1 2"
refused 3 "set/b.csv:1: no column is named z" --sequence-per-file set/more.csv set/b.csv

# A column of numbers that rise in each of many files is the number of the row; one row each
# tells nothing.
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    printf '%s\n' n,x "$i,$((i * i % 7))" >"set/one$i.csv"
    printf '%s\n' n,x "1,$((i * i % 7))" "2,$((i % 3))" "3,$((i % 2))" >"set/three$i.csv"
done
packs --sequence-per-file set/one*.csv
printed "features: n, x"
packs --sequence-per-file set/three*.csv
printed "features: x"
said "column n is left out"

# A first line of values is not taken for names; pandas' own names are names.
printf '%s\n' 1.5,2 3,4 >set/bare.csv
refused 3 "set/bare.csv:1: the first line must name the columns" --sequence-per-file set/bare.csv
packs --sequence-per-file --features 1.5,2 set/bare.csv
equal "numbers as names" "$(values o.h5 inputs)" "3 4"
printf '%s\n' 0,1 3,4 >set/pandas.csv
packs --sequence-per-file set/pandas.csv
printed "features: 0, 1"
printf '%s\n' ,0,1 0,3,4 >set/pandas.csv
packs --sequence-per-file set/pandas.csv
printed "features: 0, 1"
printf '%s\n' x,x 3,4 >set/twice.csv
refused 3 "set/twice.csv:1: two columns are named x" --sequence-per-file set/twice.csv
: >set/empty.csv
refused 3 "set/empty.csv: missing header line" --sequence-per-file set/b.csv set/empty.csv

# ---- classes and targets from a second table
printf '%s\n' name,kind,mass a.long,run,1.5 x,swim,2 b,walk,2.5 d,walk, >kinds.csv
packs --sequence-per-file --labels kinds.csv --label kind set/b.csv set/a.long.csv set/d.csv
printed "task classify" "3 classes"
equal "classes by name" "$(values o.h5 targets)" "2 0 2"
said "1 of 4 rows are of sequences that are not among the inputs"
packs --sequence-per-file --labels kinds.csv --target mass set/b.csv set/a.long.csv set/d.csv
equal "targets by name" "$(values o.h5 targets)" "2.5 1.5 nan"
printf '%s\n' file,class set/b.csv,up a.long.csv,down d,NA >files.csv
packs --sequence-per-file --labels files.csv set/b.csv set/a.long.csv set/d.csv
equal "classes by file" "$(values o.h5 targets)" "1 0 -1"
cp o.h5 order.h5
printf '%s\n' file,class b,up >up.csv
packs --sequence-per-file --labels up.csv --classes-from order.h5 set/b.csv
equal "classes of another data set" "$(values o.h5 targets)" "1"
printf '%s\n' file,class b,sideways >side.csv
refused 3 'side.csv:2: column class: "sideways" is not a class of' \
    --sequence-per-file --labels side.csv --classes-from order.h5 set/b.csv
# for sequences of a column, too
printf '%s\n' id,x a,1 b,2 a,3 >long.csv
printf '%s\n' id,class b,1 a,0 >short.csv
packs --sequence id --labels short.csv long.csv
equal "a table beside a table" "$(values o.h5 targets)" "0 1"
# the answers are no features, should the inputs have them as well
printf '%s\n' id,x,class a,1,0 b,2,1 a,3,0 >leak.csv
packs --sequence id --labels short.csv leak.csv
printed "of 1 features"
said "column class is left out: it is read in short.csv"

refused 3 'files.csv: has no row for sequence "more", the first of 1 without one (2 in all)' \
    --sequence-per-file --labels files.csv set/b.csv set/more.csv
refused 3 "kinds.csv:1: 3 columns; use --label" --sequence-per-file --labels kinds.csv set/b.csv
refused 3 "kinds.csv:1: no column is named size" --sequence-per-file --labels kinds.csv \
    --target size set/b.csv
printf '%s\n' name,kind b,walk b,run >double.csv
refused 3 'double.csv:3: sequence "b" has a row on line 2 already' --sequence-per-file \
    --labels double.csv set/b.csv
printf '%s\n' name,mass b,heavy >words.csv
refused 3 'words.csv:2: column mass: "heavy" is not a finite number' --sequence-per-file \
    --labels words.csv --target mass set/b.csv
refused 4 "none.csv: No such file" --sequence-per-file --labels none.csv set/b.csv
refused 2 "kinds.csv: is the table of --labels, and also an input" --sequence-per-file \
    --labels kinds.csv --label kind set/b.csv ./kinds.csv

printf '%s\n' name,kind b,walk set/b.csv,run >ways.csv
refused 3 'ways.csv: has several rows for sequence "b", by its name and by its file' \
    --sequence-per-file --labels ways.csv set/b.csv

# ---- classes from folders, and names that need them
mkdir walk run
cp set/b.csv walk/1.csv
cp set/a.long.csv run/1.csv
packs --sequence-per-file --label-from-folder walk/1.csv "$work/run/1.csv"
equal "classes by folder" "$(values o.h5 targets)" "1 0"
expect 0 1 train --data o.h5 --run-dir named --hidden 3 --epochs 1 --threads 1
expect 0 1 predict named --data o.h5 --csv named.csv
equal "names" "$(sed 1d named.csv | cut -d, -f1 | tr '\n' ' ')" "walk/1 run/1 "
printf '%s\n' file,class walk/1,w run/1.csv,r >both.csv
packs --sequence-per-file --labels both.csv walk/1.csv run/1.csv
equal "names with folders" "$(values o.h5 targets)" "1 0"
printf '%s\n' file,class walk/1,w 1.csv,r >both.csv
refused 3 'both.csv: has no row for sequence "run/1", the first of 1 without one' \
    --sequence-per-file --labels both.csv walk/1.csv run/1.csv
refused 3 'walk/1.csv: "walk" is not a class of the data set given by --classes-from' \
    --sequence-per-file --label-from-folder --classes-from order.h5 walk/1.csv
refused 2 "1.csv: another input has the same name and folder" --sequence-per-file \
    walk/1.csv ./walk/1.csv
(cd walk && expect 2 1 pack csv --sequence-per-file --label-from-folder 1.csv o.h5) ||
    fault "a path without a folder"

# ---- what does not go together
refused 2 "or --sequence-per-file" set/b.csv
refused 2 "--sequence cannot be used with" --sequence t --sequence-per-file set/b.csv
refused 2 "only one of" --sequence-per-file --label-from-folder --label x walk/1.csv
refused 2 "--labels has a row per sequence" --sequence-per-file --labels kinds.csv \
    --step-label x set/b.csv
refused 2 "needs --sequence-per-file" --sequence t --label-from-folder walk/1.csv
refused 2 "does not match the given columns, which make it classify" --sequence-per-file \
    --label-from-folder --task tag walk/1.csv

# ---- the example of the page
mkdir recordings new
awk 'BEGIN {
    print "recording,motion" >"classes.csv"
    split("resting walking running", class)
    for (i = 0; i < 48; i++) {
        k = i % 3
        file = sprintf(i < 42 ? "recordings/rec%02d.csv" : "new/rec%02d.csv", i)
        print "t,x,y" >file
        for (t = 0; t < 12 + i % 7; t++)
            printf "%d,%.3f,%.3f\n", t, k * ((t + i) % 2 ? 1 : -1) + (i * 7 + t * 5) % 9 / 20, \
                (i * 3 + t) % 4 / 4 >file
        close(file)
        if (i < 42)
            printf "rec%02d,%s\n", i, class[k + 1] >"classes.csv"
        else
            printf "rec%02d,%s\n", i, class[k + 1] >"truth.csv"
    }
}'
mkdir page
sed -n '/^rnn_dist pack csv --sequence-per-file --labels/,/^\.Ed/p' \
    "$srcdir/man/rnn_dist-pack.1.in" | sed -e '/^\.Ed/d' -e 's/\\e$/\\/' \
    -e 's/--run-dir motion/& --progress none --threads 1/' >page/example.sh
[ "$(grep -c rnn_dist page/example.sh)" = 4 ] || fault "the page has another example"
sh -e page/example.sh >out 2>err || die "the example of the page fails"
said "column t is left out"
cut -d, -f1,2 new-classes.csv | sed 1d >got.csv
cmp -s got.csv truth.csv || fault "recordings are taken for $(cat new-classes.csv)"
done_testing
