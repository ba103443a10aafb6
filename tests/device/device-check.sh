#!/bin/sh
# device-check.sh [OUT] - what only a real GPU can tell, in at most five minutes: the tests of
# kernels by every path and precision, the same under compute-sanitizer, and the time of the
# benchmark's shapes beside PyTorch's. Needs nvcc, gcc and an NVIDIA GPU; uses compute-sanitizer
# and PyTorch (${PYTHON:-python3}) where they are. No MPI, HDF5, Check or Autotools.
# Builds in OUT (a temporary folder). Exit 77 without a GPU or nvcc, 1 if a test failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
PATH=$PATH:/usr/local/cuda/bin
python=${PYTHON:-python3}
command -v nvcc >/dev/null 2>&1 || { echo "no nvcc: nothing is checked"; exit 77; }
nvidia-smi -L >/dev/null 2>&1 || { echo "no GPU here: nothing is checked"; exit 77; }
nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader
out=${1:-}
[ "$out" ] || { out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT; }
mkdir -p "$out"
failed=0 begun=$(date +%s)

left() {
    echo $((300 - $(date +%s) + begun))
}

say() {
    printf '%-34s %s\n' "$1" "$2"
}

# ---- building
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
objects=
for source in kernels/cuda/*.cu; do
    object=$out/$(basename "$source" .cu).o
    nvcc -std=c++17 -O3 -lineinfo -gencode="arch=compute_$arch,code=sm_$arch" -Ilib -Ikernels \
        -Xcompiler -fPIC,-fvisibility=hidden -c -o "$object" "$source" >"$object.log" 2>&1 &
    objects="$objects $object"
done
wait
# shellcheck disable=SC2086 # a list
nvcc -shared -o "$out/plugin.so" $objects -lcublas -ldl || { cat "$out"/*.log; exit 1; }
gcc -std=gnu11 -O1 -D_GNU_SOURCE -Itests/device -Ilib -Ikernels -o "$out/test_kernels" \
    tests/kernels/*.c tests/device/check.c -lm -ldl &&
    gcc -std=gnu11 -O1 -D_GNU_SOURCE -Ilib -Ikernels -o "$out/bench" tests/device/bench.c -ldl ||
    exit 1
export RNND_CUDA_PLUGIN="$out/plugin.so" RNND_TEST_TARGETS=cuda
say "built in" "$(($(date +%s) - begun)) s"

# ---- tests
# run NAME COMMAND...
run() {
    name=$1
    shift
    if [ "$(left)" -lt 20 ]; then
        say "$name" "not run: no time left"
        return
    fi
    timeout "$(left)" "$@" >"$out/log" 2>&1
    status=$?
    say "$name" "$([ $status = 0 ] && echo passed || echo "FAILED ($status)") \
$(grep -E 'passed,|ERROR SUMMARY|RACECHECK SUMMARY' "$out/log" | tail -n 1)"
    if [ $status != 0 ]; then
        failed=1
        grep -v '^=* *$' "$out/log" | head -n 20
    fi
}
run "kernels, a few cases" env RNND_TEST_BRIEF=1 "$out/test_kernels"
if command -v compute-sanitizer >/dev/null 2>&1; then
    for tool in memcheck racecheck synccheck; do
        for target in "cuda, stepwise" "cuda, small" "cuda, persistent, bf16"; do
            [ $tool = memcheck ] || [ "$target" != "cuda, stepwise" ] || continue
            run "$tool, $target" env RNND_TEST_BRIEF=1 RNND_TEST_TARGETS="$target" \
                CK_RUN_CASE=rnn timeout 40 compute-sanitizer --tool $tool --error-exitcode 9 \
                "$out/test_kernels"
        done
    done
else
    say "compute-sanitizer" "not here"
fi

# ---- times
# shape NAME CELL INPUT HIDDEN LAYERS DIRECTIONS BATCH SHORTEST LONGEST PRECISION
shape() {
    name=$1
    shift
    [ "$(left)" -gt 10 ] || { say "$name" "not run: no time left"; return; }
    for path in auto stepwise; do
        result=$("$out/bench" "$out/plugin.so" "$@" $path 2>&1)
        say "$name, $path" "$result"
        # What the planner cannot know yet: whether reading less is worth a barrier.
        case $result in *persistent*)
            for gates in together apart; do
                say "$name, gates $gates" \
                    "$(RNND_CUDA_GATES=$gates "$out/bench" "$out/plugin.so" "$@" auto 2>&1)"
            done ;;
        esac
    done
    if "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
        for form in packed padded; do
            say "$name, PyTorch $form" "$("$python" tests/device/peers.py "$@" $form 2>&1 |
                tail -n 1)"
        done
    fi
}
echo "milliseconds of forward, of forward and backward"
shape "S1 LSTM 768, 16 x 1024" lstm 768 768 1 1 16 1024 1024 bf16
shape "S2 LSTM 1024 x 2, 64 x 64..512" lstm 1024 1024 2 1 64 64 512 bf16
shape "S3 GRU 512 x 2 bi, 128 x 16..256" gru 512 512 2 2 128 16 256 bf16
shape "S4 LSTM 512, 64 x 1024, tf32" lstm 512 512 1 1 64 512 1024 tf32
shape "S4 GRU 512, 64 x 1024, tf32" gru 512 512 1 1 64 512 1024 tf32
shape "S6 LSTM 512, 128 x 256" lstm 512 512 1 1 128 256 256 bf16
shape "S6 the same, 16..256" lstm 512 512 1 1 128 16 256 bf16
shape "small LSTM 36-50, 32 x 32..128" lstm 36 50 1 1 32 32 128 fp32
run "kernels, all cases" "$out/test_kernels"
say "all of it took" "$(($(date +%s) - begun)) s"
exit $failed
