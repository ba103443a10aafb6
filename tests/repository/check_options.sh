#!/bin/sh
# check_options.sh - the options of each command are those of its manual page, and every option
# in the table is on a page. What a page leaves to that of train ("train options" in its
# synopsis) is looked for there.
set -u
dir=$(mktemp -d) faults=0
trap 'rm -rf "$dir"' EXIT
fault() {
    echo "check_options: $*" >&2
    faults=$((faults + 1))
}

# on_page COMMAND: the options that its page explains.
on_page() {
    page=${srcdir:?}/man/rnn_dist-$1.1.in
    sed -n 's/^\.It Fl \(.* , Fl \)\?-\([a-z0-9-]*\).*/\2/p' "$page" | grep -vx 'help\|version'
    if [ "$1" != train ] && grep -q '^\.O.* train options' "$page"; then
        on_page train
    fi
}

words() { tr '\n' ' ' <"$1"; }

for source in "$srcdir"/bin/cmd_*.c; do
    command=${source##*/cmd_} command=${command%.c}
    if [ ! -f "$srcdir/man/rnn_dist-$command.1.in" ]; then
        fault "$command has no manual page"
        continue
    fi
    on_page "$command" | sort -u >"$dir/page"
    rnn_dist help "$command" --list-options >"$dir/list" || fault "help $command: exit $?"
    grep -vx 'help\|version' "$dir/list" | sort -u >"$dir/taken"
    comm -13 "$dir/page" "$dir/taken" >"$dir/unsaid"
    comm -23 "$dir/page" "$dir/taken" >"$dir/unknown"
    [ ! -s "$dir/unsaid" ] || fault "the page of $command lacks $(words "$dir/unsaid")"
    [ ! -s "$dir/unknown" ] || fault "$command does not take $(words "$dir/unknown")"
    cat "$dir/taken" >>"$dir/all"
done

# No row of the table may be taken by no command.
tr '\n' ' ' <"$srcdir/lib/options/options.def" |
    grep -o '\(SWITCH\|INTEGER\|REAL\|CHOICE\|TEXT\) *([A-Z_]*, *"[a-z0-9-]*"' |
    sed 's/.*"\(.*\)"/\1/' | grep -vx 'help\|version' | sort -u >"$dir/table"
sort -u "$dir/all" >"$dir/known"
comm -23 "$dir/table" "$dir/known" >"$dir/lost"
[ ! -s "$dir/lost" ] || fault "no command takes $(words "$dir/lost")"

echo "$(wc -l <"$dir/known") options, $faults faults"
[ -s "$dir/known" ] && [ $faults = 0 ]
