#!/bin/sh
# help.sh - --help and --version everywhere, the list of commands, completion; and results
# that cannot be written.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

# prints COMMAND...: with status 0, and nothing on standard error.
prints() {
    expect 0 1 "$@"
    [ -s "$work/out" ] || fault "$*: prints nothing"
    [ ! -s "$work/err" ] || fault "$*: says $(cat "$work/err")"
}

shows() {
    grep -qF -- "$1" "$work/out" || fault "no '$1' in: $(cat "$work/out")"
}

version() {
    prints "$@"
    [ "$(head -n 1 "$work/out")" = "rnn_dist ${PACKAGE_VERSION:?}" ] ||
        fault "$*: $(head -n 1 "$work/out")"
}

version --version
version --lr 3 --version
version -V
version eval -V
prints help && cp "$work/out" "$work/help"
prints -h
cmp "$work/out" "$work/help" || fault "-h is not help"
commands=$(prints help && sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/out")
for word in train eval predict pack inspect export import info help; do
    case " $(echo "$commands" | tr '\n' ' ') " in
    *" $word "*) ;;
    *) fault "help does not list $word" ;;
    esac
done
prints --help
shows "Usage: rnn_dist [train] --data FILE"
for command in $commands; do
    version "$command" --version
    prints help "$command"
    cp "$work/out" "$work/help"
    prints "$command" --help
    cmp "$work/out" "$work/help" || fault "help $command and $command --help differ"
    prints "$command" -h
    cmp "$work/out" "$work/help" || fault "$command -h and $command --help differ"
    shows "Usage: rnn_dist "
    [ "$(awk 'length > 80' "$work/help")" = "" ] || fault "help $command has long lines"
    prints help "$command" --list-options
    while read -r option; do
        grep -q -- "^  \(-., \)\?--$option\( \|$\)" "$work/help" || fault "$command: no --$option"
    done <"$work/out"
done
prints help train
shows "--hidden N"
shows "(default 128)"
shows "--cell rnn_tanh|rnn_relu|lstm|gru"
prints --data x --help
shows "--weight-decay X"

if command -v bash >/dev/null; then
    prints help --completion
    # complete WORD...: what is offered for the last word
    cat >"$work/complete" <<'END'
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_rnn_dist
echo "${COMPREPLY[*]}"
END
    completes() {
        wanted=$1
        shift
        got=$(bash "$work/complete" "$work/out" rnn_dist "$@")
        [ "$got" = "$wanted" ] || fault "completion of '$*': '$got', not '$wanted'"
    }
    completes "train" tr
    completes "--hidden" --hid
    completes "" eval m --hid
    completes "lstm" --cell l
    completes "lstm" --cell = l
    completes "sgd adam adamw" train --optimizer ""
    completes "predict" help pr
    completes "" --lr ""
    completes "csv" pack c
    completes "text-words text-chars" pack text
fi

# ---- results that do not arrive
unwritten() {
    got=0
    "$RNN_DIST" "$@" >/dev/full 2>"$work/err" || got=$?
    [ $got = 4 ] || fault "$* to a full disk: exit $got"
    said "cannot write to standard output: No space left on device"
    got=0
    "$RNN_DIST" "$@" >&- 2>"$work/err" || got=$?
    [ $got = 4 ] || fault "$* to a closed output: exit $got"
}
if [ -c /dev/full ]; then
    unwritten help
    unwritten --version
    unwritten eval --help
    unwritten info
fi

done_testing
