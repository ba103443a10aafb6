#!/bin/sh
# packages.sh GROUP... - installs what is missing of the Debian packages that the groups (build,
# test) stand for, and says so. Elsewhere, or without the right to, it names them and lets
# configure judge.
set -eu

build="gcc libc6-dev make autoconf automake pkg-config libopenmpi-dev openmpi-bin libhdf5-dev
    libdnnl-dev libinih-dev libjansson-dev libzip-dev"
test="check mandoc clang libomp-dev libopenblas-dev shellcheck slurmctld slurmd slurm-client
    munge python3-h5py"

wanted=
for group in "$@"; do
    case $group in
    build) wanted="$wanted $build" ;;
    test) wanted="$wanted $test" ;;
    *) echo "packages.sh: unknown group $group" >&2; exit 2 ;;
    esac
done

missing=
for package in $wanted; do
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
