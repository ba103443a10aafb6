#!/bin/sh
# check_layers.sh - the fences between rooms: who may include which header.
#
# A row of the table is a header and the files that may include it, as shell patterns. A header
# in quotes must have a row; one in <> without a row is free to all. The first row that fits
# counts.
set -u
cd "${srcdir:?}" || exit 1

table() {
    cat <<'END'
mpi.h               lib/comm_mpi.c tests/mpi/*.c
hdf5*.h             lib/hdf_room.h
hdf_room.h          lib/hdf*.c
cuda*               kernels/cuda/* tests/simt/*
cublas*             kernels/cuda/* tests/simt/*
nccl.h              kernels/cuda/* tests/simt/*
dnnl*               kernels/cpu/*
oneapi/dnnl/*       kernels/cpu/*
cblas.h             kernels/cpu/* tests/simt/*
omp.h               kernels/cpu/* lib/device.c
ini.h               lib/options*.c
check.h             tests/*
rnn_dist_enums.h    *
rnn_dist.h          lib/* bin/* examples/* tests/*
random.h            lib/* kernels/* tests/*
backend.h           kernels/* lib/device.* lib/params.* lib/layer.h lib/embed.c lib/recurrent.c lib/head.c lib/loss.c lib/model.* lib/batch.* lib/reducer.c lib/optim.c lib/checkpoint.c lib/statedict.c tests/*
status.h            lib/* tests/*
log.h               lib/* bin/* tests/*
END
}

# may FILE HEADER: 0 allowed, 1 refused, 2 no row.
may() {
    while read -r row files <&3; do
        # shellcheck disable=SC2254 # patterns are meant
        case $2 in $row) ;; *) continue ;; esac
        for pattern in $files; do
            # shellcheck disable=SC2254
            case $1 in $pattern) return 0 ;; esac
        done
        return 1
    done 3<"$rows"
    return 2
}

set -f # patterns of the table are not file names
rows=$(mktemp) found=$(mktemp)
trap 'rm -f "$rows" "$found"' EXIT
table >"$rows"
set +f
find lib kernels bin examples tests \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.cpp' \) -exec grep -nH '^ *# *include' {} + |
    sed 's/^\([^:]*\):\([0-9]*\):[^<"]*\([<"]\)\([^>"]*\).*/\1 \2 \3 \4/' >"$found"
set -f

faults=0 count=0
while read -r file line mark header; do
    count=$((count + 1))
    may "$file" "$header"
    case $?$mark in
    1*) echo "$file:$line: may not include $header" >&2 ;;
    2\") echo "$file:$line: $header has no row in tests/check_layers.sh" >&2 ;;
    *) continue ;;
    esac
    faults=$((faults + 1))
done <"$found"
echo "$count includes, $faults faults"
[ $count -gt 0 ] && [ $faults = 0 ]
