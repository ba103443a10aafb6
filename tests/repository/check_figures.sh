#!/bin/sh
# check_figures.sh - the pictures in doc/ are what make_figures.sh draws, and the table of
# performance.md has the speeds of speed.csv.
set -u
doc=${srcdir:?}/doc
work=$(mktemp -d "${TMPDIR:-/tmp}/rnn_dist-figures-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
faults=0
fault() {
    echo "check_figures: $*" >&2
    faults=$((faults + 1))
}

sh "$doc/make_figures.sh" "$work" || fault "make_figures.sh: exit $?"
for picture in speed.svg flow.svg; do
    cmp "$doc/$picture" "$work/$picture" ||
        fault "doc/$picture is out of date: run sh doc/make_figures.sh"
done

# Numbers of each measurement, side by side.
sed -n '/^[^#]/p' "$doc/speed.csv" | awk -F, '{ print $4, $5, $6 }' >"$work/csv"
awk -F '|' '/^## / { here = $0 == "## Comparison with PyTorch" }
    here && $6 ~ /[0-9]/ { for (i = 4; i <= 6; i++) gsub(/[^0-9]/, "", $i); print $4, $5, $6 }' \
    "$doc/performance.md" >"$work/table"
[ -s "$work/csv" ] || fault "speed.csv is empty"
diff "$work/csv" "$work/table" || fault "the table of performance.md differs from speed.csv"
[ "$faults" = 0 ]
