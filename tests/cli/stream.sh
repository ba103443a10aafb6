#!/bin/sh
# stream.sh - examples/stream.c: step by step, with the state in its hands, it answers what
# predict does for whole sequences; and a state in a file continues to the bit.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

stream=$PWD/examples/stream
awk 'BEGIN {
    print "name,x,y,class"
    for (s = 1; s <= 3; s++)
        for (t = 1; t <= 4 * s - 3; t++)
            printf "s%d,%.3f,%.3f,%s\n", s, sin(t * s), cos(t + s) * 9, t % 2 ? "a" : "b"
}' >"$work/steps.csv"
expect 0 1 pack csv --sequence name --step-label class "$work/steps.csv" "$work/steps.h5"
# The features alone, with an empty line after each sequence.
awk -F, 'NR > 1 { if (NR > 2 && $1 != last) print ""; print $2 "," $3; last = $1 }' \
    "$work/steps.csv" >"$work/lines"

for cell in lstm gru; do
    train $cell 1 --data "$work/steps.h5" --cell $cell --hidden 6 --layers 2 --normalize \
        --epochs 3 --lr 0.1 --task tag
    expect 0 1 predict "$work/$cell" --data "$work/steps.h5" --raw --threads 1 \
        --csv "$work/want.csv"
    sed 1d "$work/want.csv" | cut -d, -f5- | tr , ' ' >"$work/want"
    model=$(last $cell)
    "$stream" "$model" <"$work/lines" >"$work/answers" 2>"$work/err" || die "exit $?"
    tr , ' ' <"$work/answers" >"$work/got"
    equal "answers" "$(wc -l <"$work/got")" 15
    near 2e-5 "$work/got" "$work/want" || fault "$cell: answers are not predictions"

    rm -f "$work/state"
    head -n 9 "$work/lines" | "$stream" "$model" "$work/state" >"$work/parts"
    tail -n +10 "$work/lines" | "$stream" "$model" "$work/state" >>"$work/parts"
    cmp "$work/answers" "$work/parts" || fault "$cell: two calls answer otherwise"
    tail -n +10 "$work/lines" | "$stream" "$model" >"$work/parts"
    tail -n 8 "$work/answers" | cmp -s - "$work/parts" && fault "$cell: no state is needed"
done

# ---- what is refused, with the state as it was
cp "$work/state" "$work/before"
refuse() {
    refuse_status=$1 refuse_words=$2
    shift 2
    got=0
    "$stream" "$@" >"$work/out" 2>"$work/err" || got=$?
    equal "exit of stream $*" "$got" "$refuse_status"
    said "$refuse_words"
}
echo 1,2,3 >"$work/long"
refuse 3 "line 1: not the features of a step" "$model" "$work/state" <"$work/long"
printf '1,2\n1\n' >"$work/few"
refuse 3 "line 2: not the features" "$model" "$work/state" <"$work/few"
echo 1,nan >"$work/nan"
refuse 2 "feature 1: nan, expected a finite number" "$model" "$work/state" <"$work/nan"
cmp "$work/state" "$work/before" || fault "a failure changes the state"
echo 1 >"$work/short"
refuse 3 "short: is not a state of this model" "$model" "$work/short" </dev/null
refuse 4 "none.h5" "$work/none.h5" </dev/null
train both 1 --data "$work/steps.h5" --bidirectional --hidden 3 --epochs 1
refuse 2 "is bidirectional" "$(last both)" </dev/null
done_testing
