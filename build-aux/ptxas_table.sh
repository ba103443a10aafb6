#!/bin/sh
# ptxas_table.sh WORDS FILE... - a table of what `ptxas -v` printed: registers, shared memory and
# spills of each kernel on each architecture. Fails if a kernel with one of WORDS in its
# name spills.
set -eu
words=$1
shift
[ $# -gt 0 ] || { echo "no kernels yet"; exit 0; }
filter="cat"
command -v c++filt >/dev/null && filter=c++filt

# One line a kernel: registers by architecture, the most shared memory and spills of any.
cat "$@" | "$filter" | awk -v words="$words" '
BEGIN { count = split(words, word, " ") }
function may_not(name, i) {
    for (i = 1; i <= count; i++)
        if (index(name, word[i])) return 1
    return 0
}
/Compiling entry function/ {
    line = $0
    sub(/.*entry function ./, "", line)
    split(line, part, /. for ./)
    name = part[1]
    sub(/^void /, "", name)
    gsub(/\([A-Za-z_]+\)/, "", name) # of template arguments
    sub(/\(.*/, "", name)
    arch = part[2]
    gsub(/[^0-9a-z_]/, "", arch)
    if (!(name in spills)) { order[++kernels] = name; spills[name] = 0 }
    if (!(arch in known)) { known[arch] = 1; archs[++columns] = arch }
}
/spill stores/ {
    if ($5 + $9 > spills[name]) spills[name] = $5 + $9
    if ($5 + $9 > 0 && may_not(name)) bad = bad "\n  " name " on " arch
}
/Used [0-9]+ registers/ {
    for (i = 1; i < NF; i++) {
        if ($(i + 1) ~ /^registers/) registers[name, arch] = $i
        if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/ && $i > shared[name]) shared[name] = $i
    }
}
END {
    printf "registers of  "
    for (c = 1; c <= columns; c++) printf "%7s", archs[c]
    printf "%8s%8s  %s\n", "shared", "spills", "kernel"
    for (k = 1; k <= kernels; k++) {
        name = order[k]
        printf "              "
        for (c = 1; c <= columns; c++) printf "%7s", registers[name, archs[c]]
        printf "%8d%8d  %s\n", shared[name], spills[name], name
    }
    if (bad != "") {
        print "spills where none may be:" bad > "/dev/stderr"
        exit 1
    }
}'
