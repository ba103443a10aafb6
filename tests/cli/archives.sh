#!/bin/sh
# archives.sh - every .ts file in the wheels of aeon and sktime, packed and compared value by
# value with another parse. LONG=1 only; WHEELS is a folder that has the wheels, else pip
# fetches them. Exit 77 without them, or without NumPy and h5py.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

python=${PYTHON:-python3}
[ -n "${LONG:-}" ] || {
    echo "skipped: needs LONG=1"
    exit 77
}
if ! "$python" -c 'import numpy, h5py' 2>"$work/why"; then
    tail -n 1 "$work/why"
    exit 77
fi
wheels=${WHEELS:-$work/wheels}
if [ -z "${WHEELS:-}" ] && ! timeout 300 "$python" -m pip download --quiet --no-deps \
    --dest "$wheels" aeon sktime >"$work/why" 2>&1; then
    echo "skipped: the wheels cannot be fetched: $(tail -n 1 "$work/why")"
    exit 77
fi
set -- "$wheels"/aeon-*.whl "$wheels"/sktime-*.whl
for wheel in "$@"; do
    [ -f "$wheel" ] || {
        echo "skipped: no $wheel"
        exit 77
    }
done
"$python" "$srcdir/tests/cli/archives.py" "$(command -v "$RNN_DIST")" "$work" "$@" ||
    fault "see above"
done_testing
