#!/bin/sh
# autogen.sh - makes configure and the Makefile templates in a checkout; a release has them.
set -eu
cd "$(dirname "$0")"
for tool in autoconf automake pkg-config; do
    command -v "$tool" >/dev/null || {
        echo "autogen.sh: $tool is missing (Debian: autoconf automake pkg-config)" >&2
        exit 1
    }
done
exec autoreconf --install --force "$@"
