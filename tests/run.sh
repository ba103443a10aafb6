#!/bin/sh
# run.sh [STEP...] - all tests, or the steps named:
#   warnings    build with gcc without a warning
#   gcc         the same, and make check
#   clang       build without a warning
#   cblas       build with another matrix library, tests of kernels
#   cuda        the CUDA plug-in for all architectures, and its PTX, where nvcc is
#   faults      faults planted in the CUDA kernels are found on the emulated GPU
#   sanitize    make check under the address and undefined-behaviour sanitizers
#   fuzz        every reader is given damaged input, 3 s each (LONG=1: 20 minutes each)
#   threads     unit tests, and a training, under ThreadSanitizer
#   install     an installed library, and a program compiled against it
#   distcheck   make distcheck with some of the tests (LONG=1: all); all files of the
#               repository are in the release
#   scripts     shellcheck
# and these, which run only when named:
#   reliability make check-reliability, some seven minutes
#   valgrind    each command once under valgrind, some ten minutes
# LONG=1 takes the long counts. Installs the Debian packages that are needed, but not Slurm
# (sh build-aux/packages.sh slurm), without which its test is skipped. Builds and logs are in
# ./build-tests. The last line counts tests; the exit status is 0 if none failed.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
all_steps="gcc clang cblas cuda faults sanitize fuzz threads install distcheck scripts"
steps=${*:-$all_steps}
export LONG="${LONG-}"
jobs=$(nproc)

sh build-aux/packages.sh build check test || exit 1
# Tests that need h5py take a Python that has it.
for PYTHON in "${PYTHON:-python3}" /usr/bin/python3; do
    "$PYTHON" -c 'import h5py' 2>/dev/null && break
done
export PYTHON
. tests/mpi_env.sh

# in_build NAME [CONFIGURE ARGUMENTS]: enters build-tests/NAME, configured.
in_build() {
    [ -x "$top/configure" ] || (cd "$top" && ./autogen.sh)
    mkdir -p "$top/build-tests/$1"
    cd "$top/build-tests/$1"
    shift
    [ -f Makefile ] || "$top/configure" "$@"
}

step_warnings() {
    in_build gcc CC=gcc
    make -j "$jobs" WERROR=-Werror all
    make -j "$jobs" WERROR=-Werror check TESTS= # only builds them
}

step_gcc() {
    in_build gcc CC=gcc
    make -j "$jobs" WERROR=-Werror check
}

step_clang() {
    in_build clang CC=clang
    make -j "$jobs" WERROR=-Werror all
    make -j "$jobs" WERROR=-Werror check TESTS= # only builds them
}

step_cblas() {
    in_build cblas --with-gemm=cblas
    make -j "$jobs" WERROR=-Werror all
    make -j "$jobs" WERROR=-Werror check TESTS="tests/kernels/test_kernels"
}

# The plug-in for all architectures, with its table of registers and spills; PTX. Status 77
# where the toolkit is not.
step_cuda() {
    in_build gcc CC=gcc
    if ! grep -q '^NVCC_ARCH = .' Makefile; then
        echo "SKIP: the CUDA plug-in: nvcc or CUDA's libraries are not here"
        return 77
    fi
    make -j "$jobs" WERROR=-Werror cuda
    make cuda-ptx
}

# The emulated GPU finds what was planted; LONG=1: and every kernel passes on it, under all
# schedules and sanitizers.
step_faults() {
    in_build gcc CC=gcc
    if ! grep -q '^simt_compile = ' Makefile; then
        echo "SKIP: the emulated GPU: CUDA's headers are not here"
        return 77
    fi
    make -j "$jobs" WERROR=-Werror check-faults
    [ -z "$LONG" ] || make -j "$jobs" WERROR=-Werror check-simt
}

step_sanitize() {
    in_build sanitize --enable-sanitize
    # test_kernels takes minutes under them, and more where others use the machine.
    export RNND_TEST_TIMEOUT="${RNND_TEST_TIMEOUT:-900}"
    make -j "$jobs" check
}

step_fuzz() {
    in_build sanitize --enable-sanitize
    seconds=3
    [ -z "$LONG" ] || seconds=1200
    make -j "$jobs" check-fuzz FUZZ_SECONDS="${FUZZ_SECONDS:-$seconds}"
}

# Kernels on several threads, the writer, the threads for signals and deadlines.
step_threads() {
    in_build threads --enable-sanitize=thread
    export TSAN_OPTIONS="exitcode=99 history_size=4 suppressions=$top/tests/tsan.supp"
    make -j "$jobs" check TESTS="tests/unit/test_comm tests/unit/test_golden
        tests/unit/test_shard tests/unit/test_signals tests/unit/test_trainer
        tests/unit/test_writer tests/cases/threads.sh ${LONG:+tests/kernels/test_kernels}"
}

step_reliability() {
    in_build gcc CC=gcc
    make -j "$jobs" WERROR=-Werror check TESTS=
    make check-reliability
}

step_valgrind() {
    in_build gcc CC=gcc
    make -j "$jobs" WERROR=-Werror check TESTS=
    RNND_TEST_TIMEOUT="${RNND_TEST_TIMEOUT:-3600}" srcdir=$top \
        sh "$top/tests/wrapper.sh" sh "$top/tests/valgrind.sh"
}

# The library as others use it: through its header and rnn_dist.pc, from another folder.
step_install() {
    in_build install --prefix="$top/build-tests/prefix"
    make -j "$jobs" install
    mkdir -p "$top/build-tests/user"
    cd "$top/build-tests/user"
    export PKG_CONFIG_PATH="$top/build-tests/prefix/lib/pkgconfig"
    for example in own_loop stream; do
        # shellcheck disable=SC2046 # a list of flags
        gcc -o $example "$top/examples/$example.c" $(pkg-config --cflags --libs rnn_dist)
    done
    "$top/build-tests/prefix/bin/rnn_dist" --version
}

step_distcheck() {
    in_build gcc CC=gcc
    # All tests ran in other steps; here those that read most of the sources, read-only.
    set -- TESTS="tests/unit/test_golden tests/cli/examples.sh tests/cli/pack.sh
        tests/mpi/golden.sh tests/repository/check_man.sh"
    [ -z "$LONG" ] || set --
    make -j "$jobs" distcheck "$@"
    # Whatever is kept in the repository is in the release.
    if [ -d "$top/.git" ]; then
        tar tzf rnn_dist-*.tar.gz | sed -n 's/^[^/]*\/\(.*[^/]\)$/\1/p' | sort >released
        git -C "$top" ls-files | grep -v '^\.git' | sort >kept
        comm -23 kept released >forgotten
        sed 's/^/not in the release: /' forgotten
        [ ! -s forgotten ]
    fi
}

step_scripts() {
    cd "$top"
    find autogen.sh build-aux/follow.sh build-aux/packages.sh doc examples tests -name '*.sh' \
        -exec shellcheck -S warning -x -e SC1091 {} + -exec dash -n {} \;
    shellcheck -S warning .ci/run
}

# sum_of WORD: the sum of the "# WORD: n" lines that test harnesses left in the log.
sum_of() {
    sed -n "s/^# $1: *\([0-9]*\)\$/\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'
}

# follow LOG PID: while the process runs, what fails as it fails, and a line every 20 s.
follow() {
    shown=0 since=$(date +%s) spoke=$(date +%s)
    while kill -0 "$2" 2>/dev/null; do
        sleep 1
        failures=$(grep -c '^\(FAIL\|ERROR\): ' "$1")
        if [ "$failures" -gt $shown ]; then
            grep '^\(FAIL\|ERROR\): ' "$1" | tail -n +$((shown + 1)) | sed 's/^/    /'
            shown=$failures
        fi
        now=$(date +%s)
        [ $((now - spoke)) -lt 20 ] && continue
        spoke=$now
        printf '    %4d s, %s tests done: %.60s\n' $((now - since)) \
            "$(grep -c '^\(PASS\|FAIL\|ERROR\|SKIP\): ' "$1")" \
            "$(tail -n 1 "$1" | tr -d '\033\r')"
    done
}

mkdir -p build-tests
passed=0 failed=0 skipped=0 begun=$(date +%s)
for step in $steps; do
    log=$top/build-tests/$step.log
    before=$(date +%s)
    echo "$step"
    : >"$log"
    (set -e; "step_$step") >"$log" 2>&1 </dev/null &
    follow "$log" $!
    wait $!
    status=$?
    good=$(sum_of PASS) bad=$(($(sum_of FAIL) + $(sum_of ERROR))) left=$(sum_of SKIP)
    # The step itself counts where no failed test tells of it.
    if [ $status = 0 ]; then
        good=$((good + 1)) word=passed
    elif [ $status = 77 ]; then
        left=$((left + 1)) word=skipped status=0
    else
        [ $bad -gt 0 ] || bad=1
        word=FAILED
    fi
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left))
    printf '%s: %s in %d s (%d passed, %d failed, %d skipped)\n' "$step" \
        $word $(($(date +%s) - before)) "$good" $bad "$left"
    grep -h '^SKIP: ' "$log" | sed 's/^/    /'
    if [ $status != 0 ]; then
        suite=$top/build-tests/$step/test-suite.log
        if grep -q '^\(FAIL\|ERROR\): ' "$log" && [ -s "$suite" ]; then
            tail -n 100 "$suite"
        else
            tail -n 40 "$log"
        fi
        echo "    the whole log: $log"
    fi
done

echo "All steps took $(($(date +%s) - begun)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
