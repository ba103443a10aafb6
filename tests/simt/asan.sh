#!/bin/sh
# asan.sh - all programs that test the emulator, then the suite of the kernels, built with
# AddressSanitizer and UBSan.
set -eu
sh "${srcdir:?}/tests/simt/each.sh" asan
sh "$srcdir/tests/simt/suite.sh" asan
