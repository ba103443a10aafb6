#!/bin/sh
# check_rooms.sh [--graph] - the fences between rooms: which folder may include headers of
# which, and who may include the header of a library.
#
# A room is a folder of lib/, bin/ or kernels/. What is not granted below is refused, and a
# grant that no file uses is a fault as well, so that the tables say what is. The grants of
# rooms must have no cycle. --graph prints the includes between rooms, with their number.
# tests/simt is on both sides of every fence and is left out.
set -u
cd "${srcdir:-$(dirname "$0")/../..}" || exit 1

# Room, and the rooms whose headers it may include; above what is below it.
rooms() {
    cat <<'END'
bin         base options hdf formats comm model checkpoint exchange record commands
commands    base options hdf device model checkpoint record train kernels
train       base options comm device data model optim checkpoint record
evaluate    base hdf data
exchange    base model checkpoint kernels
record      base options comm checkpoint
checkpoint  base options hdf device model optim
optim       base device model kernels
model       base device data kernels
data        base hdf device kernels
formats     base options hdf
device      base comm kernels cuda
comm        base kernels cuda
hdf         base
options     base
cpu         kernels
cuda        base kernels
kernels     base
END
}

# A library's headers, and who may include them; tests may as well.
libraries() {
    cat <<'END'
mpi.h            lib/comm/comm_mpi*
hdf5.h           lib/hdf/hdf_room.h
dnnl.h           kernels/cpu/gemm.c
cblas.h          kernels/cpu/gemm.c
omp.h            kernels/cpu/threads.c
cuda_*           kernels/cuda/*
cublas_v2.h      kernels/cuda/*
nccl.h           kernels/cuda/*
ini.h            lib/options/options_config.c
zip.h            lib/exchange/npz_write.c lib/formats/npz.c
zlib.h           lib/formats/text.c
jansson.h        lib/checkpoint/* lib/commands/* lib/formats/* lib/record/*
check.h          tests/*
END
}

# Headers that are for the files of their room, and for tests.
private="comm/comm_mpi.h comm/comm_watch.h data/dataset.h device/device_cuda.h
    evaluate/figures.h evaluate/predict_out.h evaluate/predict_strings.h
    evaluate/ranking.h evaluate/strings_out.h evaluate/sweep.h
    formats/ark.h formats/classes.h formats/csv.h formats/csv_table.h formats/npy.h
    formats/symbols.h formats/text.h formats/tokens.h hdf/hdf_room.h options/options.def
    options/options_table.h train/trainer.h"

flat=$(echo "$private" | tr -s ' \n' ' ')

work=$(mktemp -d) faults=0
trap 'rm -rf "$work"' EXIT
fault() {
    echo "$*" >&2
    faults=$((faults + 1))
}

# FILE ROOM LINE MARK HEADER of every include; the room of tests and examples is "tests".
find lib kernels bin examples tests -path tests/simt -prune -o \( -name '*.[ch]' -o \
    -name '*.cu' -o -name '*.cuh' \) -exec grep -nH '^ *# *include' {} + |
    sed 's/^\([^:]*\):\([0-9]*\):[^<"]*\([<"]\)\([^>"]*\).*/\1 \2 \3 \4/' |
    awk '{
        n = split($1, part, "/")
        room = "tests"
        if (part[1] == "bin")
            room = "bin"
        else if (part[1] == "lib")
            room = n > 2 ? part[2] : "top"
        else if (part[1] == "kernels")
            room = n > 2 ? part[2] : "kernels"
        print $1, room, $2, $3, $4
    }' >"$work/includes"
[ -s "$work/includes" ] || fault "no include was found"

# FILE ROOM LINE ROOM-OF-HEADER HEADER, where it is another room's.
awk '$4 == "\"" && $5 !~ /^rnn_dist(_enums)?\.h$/ {
        of = $2
        if ($5 ~ /^(backend|cell)\.h$/)
            of = "kernels"
        else if ($5 ~ /\//)
            of = substr($5, 1, index($5, "/") - 1)
        if (of != $2)
            print $1, $2, $3, of, $5
    }' "$work/includes" >"$work/between"

if [ "${1-}" = --graph ]; then
    awk '$2 != "tests" { n[$2 " -> " $4]++ }
         END { for (e in n) printf "%s (%d)\n", e, n[e] }' "$work/between" | sort
    exit
fi

rooms | awk '{ for (i = 2; i <= NF; i++) print $1, $i }' >"$work/grants"
tsort "$work/grants" >/dev/null 2>"$work/cycle" || fault "the rooms' grants have a cycle:" \
    "$(sed 's/^tsort: *//' "$work/cycle" | tr '\n' ' ')"

while read -r file room line of header; do
    [ "$room" != tests ] || continue
    grep -qx "$room $of" "$work/grants" ||
        fault "$file:$line: room $room may not include $header"
    case " $flat " in
    *" $header "*) fault "$file:$line: $header is for its own room" ;;
    esac
done <"$work/between"
while read -r room of; do
    awk -v a="$room" -v b="$of" '$2 == a && $4 == b { found = 1 } END { exit !found }' \
        "$work/between" || fault "room $room never includes $of: the grant goes"
done <"$work/grants"
for header in $private; do
    [ -f "lib/$header" ] || fault "there is no lib/$header: it goes from the private ones"
done

# allowed FILE PLACE...: whether the file is at one of the places.
allowed() {
    candidate=$1
    shift
    for place in "$@" 'tests/*'; do
        # shellcheck disable=SC2254 # patterns are meant
        case $candidate in $place) return 0 ;; esac
    done
    return 1
}

set -f
libraries >"$work/libraries"
while read -r pattern places; do
    used=no
    while read -r file room line mark header; do
        # shellcheck disable=SC2254 # patterns are meant
        case $mark$header in "<"$pattern) ;; *) continue ;; esac
        used=yes
        # shellcheck disable=SC2086 # a list of words
        allowed "$file" $places || fault "$file:$line: <$header> is for $places"
    done <"$work/includes"
    [ $used = yes ] || fault "nobody includes $pattern: its row goes"
done <"$work/libraries"

echo "$(wc -l <"$work/includes") includes, $(wc -l <"$work/grants") grants, $faults faults"
[ $faults = 0 ]
