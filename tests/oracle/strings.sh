#!/bin/sh
# strings.sh - losses and gradients of label strings against PyTorch float64: 10 random cases,
# with LONG=1 a thousand. Exit 77 where python3 (or $PYTHON) has no PyTorch.
exec "${PYTHON:-python3}" "${srcdir:-.}/tests/oracle/strings.py" \
    --random "$([ -n "${LONG:-}" ] && echo 1000 || echo 10)"
