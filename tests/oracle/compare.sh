#!/bin/sh
# compare.sh - the whole program against PyTorch float64. It takes some minutes: LONG=1 only,
# and exit 77 where python3 (or $PYTHON) has no PyTorch.
[ -n "${LONG:-}" ] || { echo "skipped: needs LONG=1"; exit 77; }
exec "${PYTHON:-python3}" "${srcdir:-.}/tests/oracle/compare.py" --random 40
