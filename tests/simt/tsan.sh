#!/bin/sh
# tsan.sh - all programs that test the emulator, built with ThreadSanitizer.
exec sh "${srcdir:?}/tests/simt/each.sh" tsan
