#!/bin/sh
# ptxas_table.sh WORD FILE... - a table of what `ptxas -v` printed: registers, shared memory and
# spills of each kernel on each architecture. Fails if a kernel with WORD in its name spills.
set -eu
word=$1
shift
[ $# -gt 0 ] || { echo "no kernels yet"; exit 0; }
filter=cat
command -v c++filt >/dev/null && filter=c++filt

# One line a kernel: its name to the first parenthesis, its figures by architecture.
cat "$@" | "$filter" | awk -v word="$word" '
/Compiling entry function/ {
    line = $0
    sub(/.*entry function ./, "", line)
    split(line, part, /. for ./)
    name = part[1]
    sub(/\(.*/, "", name)
    sub(/^void /, "", name)
    arch = part[2]
    gsub(/[^0-9a-z_]/, "", arch)
}
/spill stores/ {
    spills = $5 + $9
}
/Used [0-9]+ registers/ {
    registers = shared = 0
    for (i = 1; i < NF; i++) {
        if ($(i + 1) ~ /^registers/) registers = $i
        if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared = $i
    }
    printf "%-10s%5d%8d%8d  %s\n", arch, registers, shared, spills, name
    if (spills > 0 && index(name, word)) {
        bad = bad "\n  " name " on " arch
    }
}
BEGIN {
    printf "%-10s%5s%8s%8s  %s\n", "arch", "regs", "shared", "spills", "kernel"
}
END {
    if (bad != "") {
        print "spills where none may be:" bad > "/dev/stderr"
        exit 1
    }
}'
