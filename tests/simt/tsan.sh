#!/bin/sh
# tsan.sh - all programs that test the emulator, then the suite of the kernels, built with
# ThreadSanitizer.
set -eu
sh "${srcdir:?}/tests/simt/each.sh" tsan
sh "$srcdir/tests/simt/suite.sh" tsan
