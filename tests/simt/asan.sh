#!/bin/sh
# asan.sh - all programs that test the emulator, built with AddressSanitizer and UBSan.
exec sh "${srcdir:?}/tests/simt/each.sh" asan
