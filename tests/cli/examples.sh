#!/bin/sh
# examples.sh - the example scripts on small settings: a language model of a text, and outputs
# of unequal length; build-aux/follow.sh.
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

# ---- what shows how far a long command is
got=0
sh "$srcdir/build-aux/follow.sh" "$work/log" sh -c 'echo one; sleep 7; echo two; exit 3' \
    >"$work/out" 2>"$work/err" || got=$?
[ $got = 3 ] || fault "follow.sh: exit $got"
printed " s: one"
said two "status 3"
[ "$(tr '\n' ' ' <"$work/log")" = "one two " ] || fault "follow.sh: $(cat "$work/log")"
done_testing
