#!/bin/sh
# packages.sh PACKAGE... - installs those Debian packages that are missing, and says so.
# Elsewhere, or without the right to, it names what is needed and lets configure judge.
set -eu

missing=
for package in "$@"; do
    if ! command -v dpkg-query >/dev/null ||
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]
    then
        missing="$missing $package"
    fi
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "packages.sh: no apt-get here; needed, under the names of Debian:$missing"
    exit 0
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "packages.sh: neither root nor sudo; please have installed:$missing" >&2
        exit 1
    fi
    sudo=sudo
fi
echo "Installing with ${sudo:+sudo }apt-get:$missing"
export DEBIAN_FRONTEND=noninteractive
keep=DEBIAN_FRONTEND=noninteractive # sudo drops the environment
lock=DPkg::Lock::Timeout=300
$sudo ${sudo:+env $keep} apt-get -qq -o $lock update >/dev/null
# shellcheck disable=SC2086 # a list of words
$sudo ${sudo:+env $keep} apt-get install -y -qq --no-install-recommends -o $lock $missing \
    >/dev/null
