#!/bin/sh
# check_size.sh - no function of the product is longer than 60 lines, and no file longer than
# 500. Functions are found as clang-format lays them out: a brace in the first column opens
# and closes one.
set -u
cd "${srcdir:-$(dirname "$0")/../..}" || exit 1
sources=$(find lib bin kernels \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name \
    '*.def' \) | sort)
# shellcheck disable=SC2086 # a list of words
awk '
    function file_ends() {
        if (lines > 500) {
            printf "%s: %d lines, more than 500\n", file, lines
            faults++
        }
        if (lines > longest_file) longest_file = lines
    }
    FNR == 1 && file != "" { file_ends() }
    { file = FILENAME; lines = FNR }
    /^{/ { first = FNR; functions++ }
    /^}/ && first {
        n = FNR - first + 1
        if (n > longest) longest = n
        if (n > 60) {
            printf "%s:%d: a function of %d lines, more than 60\n", FILENAME, first, n
            faults++
        }
        first = 0
    }
    END {
        file_ends()
        printf "%d functions, the longest of %d lines; the longest file has %d; %d faults\n",
            functions, longest, longest_file, faults
        exit faults > 0 || functions < 100
    }' $sources
