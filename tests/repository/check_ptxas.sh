#!/bin/sh
# check_ptxas.sh - the table of what ptxas made of the kernels: its columns, and that a spill
# where none may be is a failure.
set -eu
table="${srcdir:?}/build-aux/ptxas_table.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# kernel NAME ARCH REGISTERS SPILLS: what `ptxas -v` prints of one.
kernel() {
    cat <<END
ptxas info    : Compiling entry function '$1' for '$2'
ptxas info    : Function properties for $1
    $4 bytes stack frame, $4 bytes spill stores, 0 bytes spill loads
ptxas info    : Used $3 registers, used 1 barriers, 64 bytes smem, 400 bytes cmem[0]
END
}

# expect STATUS TEXT FILE
expect() {
    status=0
    sh "$table" "persistent small<96>" "$work/$3" >"$work/out" 2>&1 || status=$?
    if [ $status != "$1" ] || ! tr -s ' ' <"$work/out" | grep -qF -e "$2"; then
        echo "expected status $1 and: $2; there was $status and:"
        cat "$work/out"
        exit 1
    fi
}
{ kernel persistent_a sm_80 90 0; kernel persistent_a sm_90 91 0; kernel b sm_80 20 8; } \
    >"$work/good"
{ cat "$work/good"; kernel persistent_b sm_90 255 12; } >"$work/bad"
{ cat "$work/good"; kernel 'small<96>' sm_90 168 4; } >"$work/second"
expect 0 'registers of sm_80 sm_90 shared spills kernel' good
expect 0 '90 91 64 0 persistent_a' good
expect 0 '20 64 8 b' good
expect 1 'persistent_b on sm_90' bad
expect 1 'small<96> on sm_90' second
