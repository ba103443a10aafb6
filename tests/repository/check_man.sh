#!/bin/sh
# check_man.sh - the manual pages as built pass mandoc's lint.
set -eu
if [ -z "${MANDOC-}" ]; then
    echo "mandoc was not found when configuring: manual pages not checked"
    exit 77
fi
set -- man/*.[1-9]
[ -e "$1" ] || { echo "no manual pages were built" >&2; exit 1; }
"$MANDOC" -Tlint -Wwarning "$@"
echo "$# pages"
