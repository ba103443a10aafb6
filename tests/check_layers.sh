#!/bin/sh
# check_layers.sh - the fences between rooms: who may include which header.
#
# A row of the table is a header and the files that may include it, as shell patterns. A header
# in quotes must have a row; one in <> without a row is free to all. The first row that fits
# counts. tests/simt stands on both sides of every fence and is left out.
set -u
cd "${srcdir:?}" || exit 1

table() {
    cat <<'END'
# libraries, each behind one door
mpi.h             lib/comm_mpi.c
hdf5*.h           lib/hdf_room.h
dnnl*             kernels/cpu/gemm.c
oneapi/dnnl/*     kernels/cpu/gemm.c
cblas.h           kernels/cpu/gemm.c
omp.h             kernels/cpu/threads.c
cuda.h            kernels/cuda/*
cuda_*            kernels/cuda/*
cublas*           kernels/cuda/*
nccl.h            kernels/cuda/*
ini.h             lib/options_config.c
jansson.h         lib/* tests/*
zip.h             lib/formats/npz.c tests/test_formats.c
check.h           tests/*
# what all may know
rnn_dist_enums.h  lib/* kernels/*
rnn_dist.h        lib/* kernels/cpu/backend.c bin/* examples/* tests/*
status.h          lib/* bin/* tests/*
log.h             lib/* bin/* tests/*
random.h          lib/* kernels/* tests/*
hash.h            lib/*
clock.h           lib/* bin/*
file.h            lib/*
timeline.h        lib/* bin/*
# devices: the table, and those who compute with it
backend.h         kernels/* lib/bench_probe.h lib/device.* lib/batch.* lib/params.* lib/layer.h lib/optim.h lib/comm.h tests/*
cell.h            kernels/*
cpu.h             kernels/cpu/*
simd*.h           kernels/cpu/*
vec.h             kernels/cpu/simd.c
*plugin.h         kernels/cuda/* lib/device_cuda.* lib/comm_nccl.c tests/*
comm_nccl.h       kernels/cuda/*
rnn*.cuh          kernels/cuda/*
device_cuda.h     lib/device* lib/comm_nccl.c
*.cuh             kernels/cuda/*
comm_nccl.h       kernels/cuda/*
simt.h            kernels/cuda/dialect.cuh
device.h          lib/device.c lib/batch.c lib/params.c lib/head.c lib/model.c lib/passes.c lib/state.c lib/optim.c lib/checkpoint.c lib/statedict* lib/trainer_save.c lib/verify.c lib/bench_probe.c tests/*
# rooms, from left to right: each for itself and for those to its right
options_table.h   lib/options* tests/*
options.def       lib/options*
options.h         lib/options* lib/formats/contents.c lib/progress.c lib/metrics.c lib/checkpoint* lib/statedict* lib/setup.c lib/trainer* lib/verify.c bin/* tests/*
hdf_room.h        lib/hdf*
hdf.h             lib/hdf* lib/dataset* lib/formats/* lib/inspect.c lib/statedict* lib/checkpoint* lib/predict* tests/*
dataset.h         lib/dataset* lib/formats/* tests/*
list.h            lib/* bin/* tests/*
text.h            lib/formats/*
csv*.h            lib/formats/*
npy.h             lib/formats/*
tokens.h          lib/formats/*
formats.h         lib/formats/* lib/formats* bin/cmd_pack.c tests/*
plan.h            lib/plan.c lib/share.c lib/walk.c tests/*
ahead.h           lib/ahead.c lib/setup.h tests/*
share.h           lib/setup.h lib/share.c lib/ahead.h lib/group.h lib/evaluate.c lib/predict* lib/trainer.h tests/*
batch.h           lib/batch.c lib/layer.h lib/sample.c tests/*
params.h          lib/params.c lib/layer.h lib/reducer.c lib/optim.c lib/checkpoint* lib/statedict* lib/trainer* lib/verify.c tests/*
layer.h           lib/recurrent.c lib/head.c lib/model.h tests/*
model.h           lib/model.c lib/passes.c lib/state.c lib/checkpoint* lib/statedict* tests/*
comm.h            lib/comm* lib/device_cuda.c lib/reducer.c lib/timeline.c lib/trainer* bin/rnn_dist.c tests/*
optim.h           lib/optim* lib/checkpoint* lib/trainer.h tests/*
checkpoint.h      lib/checkpoint* lib/inspect.c lib/run_dir* lib/setup.c lib/trainer.h lib/verify.c bin/* tests/*
statedict.h       lib/statedict* lib/safetensors* lib/checkpoint* bin/cmd_export.c bin/cmd_import.c tests/*
checkpoint_model.h tests/*
run_dir.h         lib/run_dir* lib/inspect.c lib/metrics.c lib/report.c lib/checkpoint_dir.c lib/trainer.h bin/* tests/* lib/tensorboard.c
metrics.h         lib/metrics* lib/trainer.h bin/* tests/*
tensorboard.h     lib/tensorboard.c lib/trainer.h tests/*
progress.h        lib/progress* lib/trainer.h tests/*
stop.h            lib/stop.c lib/evaluate.c lib/trainer* bin/* tests/*
group.h           lib/group.c lib/trainer* lib/verify.c lib/bench.c tests/*
setup.h           lib/setup.c lib/trainer.h lib/verify.c lib/bench.c
trainer.h         lib/trainer*
walk.h            lib/walk.c lib/evaluate.c lib/predict*
predict_out.h     lib/predict*
sample.h          lib/sample.c bin/cmd_sample.c
bench.h           lib/bench.c bin/cmd_bench.c
bench_probe.h     lib/bench*
verify.h          lib/verify.c bin/cmd_verify.c
inspect.h         lib/inspect.c bin/cmd_inspect.c
report.h          lib/report.c bin/cmd_report.c
chart.h           lib/chart.c lib/report.c
# the program, and the tests
bin.h             bin/*
testing.h         tests/*
kernels_ref.h     tests/*
kernels_rnn.h     tests/*
data.h            tests/cases/*
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
find lib kernels bin examples tests -path tests/simt -prune -o \( -name '*.[ch]' \
    -o -name '*.cu' -o -name '*.cuh' \) -exec grep -nH '^ *# *include' {} + |
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
