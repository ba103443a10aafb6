#!/bin/sh
# format.sh - C and CUDA sources are laid out as .clang-format says (clang-format 14, whose
# word is final), in lines of at most 88 columns, with comments above fields.
set -u
cd "${srcdir:-$(dirname "$0")/../..}" || exit 1
faults=0
sources() {
    find lib bin kernels examples tests \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o \
        -name '*.cc' \) -exec "$@" {} +
}

# report WHAT: the lines read are places where that is so.
report() {
    while read -r line; do
        echo "$line: $1" >&2
        echo fault
    done | wc -l
}

n=$(sources awk 'length > 88 { print FILENAME ":" FNR }' | report "longer than 88 columns")
faults=$((faults + n))
n=$(sources grep -nE '^/\* -{3,}' | grep -vE ':/\* ---- [^-].*[^-] \*/$' | cut -d: -f1,2 |
    report "a heading is /* ---- words */")
faults=$((faults + n))
# Inside the braces of a struct, union or enum, after code.
# shellcheck disable=SC2016 # awk's own
n=$(sources awk '
    FNR == 1 { inside = 0 }
    /^(typedef )?(static )?(const )?(struct|union|enum)[ a-z_0-9]*\{$/ { inside = 1; next }
    /^}/ { inside = 0 }
    inside && /[;,][ \t]*\/\*/ { print FILENAME ":" FNR }' |
    report "a comment belongs above its field")
faults=$((faults + n))

case $(clang-format --version 2>/dev/null) in
*"version 14."*)
    n=$(sources clang-format --dry-run 2>&1 | grep -c 'code should be clang-formatted')
    [ "$n" = 0 ] || echo "$n places are not as clang-format -i makes them" >&2
    faults=$((faults + n))
    ;;
*)
    [ $faults = 0 ] || exit 1
    echo "SKIP: clang-format 14 is not here; the other rules hold"
    exit 77
    ;;
esac
echo "$faults faults"
[ $faults = 0 ]
