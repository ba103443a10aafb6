#!/bin/sh
# examples.sh - the example scripts on small settings: a language model of a text, outputs of
# unequal length, and a sweep; build-aux/follow.sh.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

RNN_DIST=$(command -v "$RNN_DIST")
export RNN_DIST
RANKS=3 EPOCHS=2 HIDDEN=12 EMBED=8 LAYERS=3 BATCH=7 WINDOW=5 WINDOWS=4 OUT=$work/lm \
    sh "$srcdir/examples/gru_lm/run.sh" "$srcdir/README.md" >"$work/out" 2>"$work/err" ||
    die "gru_lm: exit $?"
printed "perplexity"
[ -s "$work/lm/run/best.h5" ] || fault "gru_lm: no best model"
OUT=$work/ragged sh "$srcdir/examples/packed_outputs/run.sh" >"$work/out" 2>"$work/err" ||
    die "packed_outputs: exit $?"
printed "steps in: "
[ -s "$work/ragged/padded.h5" ] || fault "packed_outputs: no padded outputs"

# A sweep by GNU parallel, which starts again where runs are missing: the page has the best
# first.
if parallel --version 2>/dev/null | grep -q GNU; then
    data "a b" task=classify outputs=2 lengths="$(lengths 24 1 9)"
    for hidden in 4 "4 5"; do
        OUT=$work/sweep HIDDEN=$hidden LR='0.1 0.001' \
            sh "$srcdir/examples/sweep/parallel.sh" --data "$work/a b.h5" \
            --valid "$work/a b.h5" --epochs 3 >"$work/out" 2>"$work/err" ||
            die "sweep: exit $?: $(cat "$work/err")"
    done
    sed '/<.table>/q' "$work/sweep/report.html" | grep -o "<td>$work/[^<]*" |
        sed 's|.*/||' >"$work/order"
    for run in $(sort "$work/order"); do
        echo "$(table "sweep/$run" valid loss | sort -g | head -n 1) $run"
    done | sort -g | sed 's/.* //' >"$work/expected"
    cmp -s "$work/order" "$work/expected" || fault "sweep: $(cat "$work/order")"
    [ "$(wc -l <"$work/order")" = 4 ] || fault "sweep: runs: $(cat "$work/order")"
    starts=$(grep -c '"event": "start"' "$work/sweep/hidden-4-lr-0.1/metrics.jsonl")
    [ "$starts" = 2 ] || fault "sweep: a run was not repeated, but started $starts times"
else
    echo "no GNU parallel here: the sweep was not tried"
fi

# ---- what shows how far a long command is
got=0
sh "$srcdir/build-aux/follow.sh" "$work/log" sh -c 'echo one; sleep 7; echo two; exit 3' \
    >"$work/out" 2>"$work/err" || got=$?
[ $got = 3 ] || fault "follow.sh: exit $got"
printed " s: one"
said two "status 3"
[ "$(tr '\n' ' ' <"$work/log")" = "one two " ] || fault "follow.sh: $(cat "$work/log")"
done_testing
