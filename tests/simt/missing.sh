#!/bin/sh
# missing.sh - in place of the tests of the emulated GPU where it cannot be built.
echo "configure did not find CUDA's and NCCL's headers and a C++17 compiler (or was told"
echo "--with-cuda=no): nothing is tested on the emulated GPU"
exit 77
