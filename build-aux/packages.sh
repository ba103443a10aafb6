#!/bin/sh
# packages.sh GROUP... - installs the Debian packages of these groups that are missing:
#   build   what the program is built from
#   check   what make check needs besides
#   test    what tests/run.sh needs besides
#   slurm   Slurm's daemons, for tests/slurm; on Debian they are started as services
# Without apt-get it names them and leaves the rest to configure; without the right to
# install, it fails.
set -eu

wanted=
for group in "$@"; do
    case $group in
    build)
        wanted="$wanted gcc libc6-dev make autoconf automake pkg-config libopenmpi-dev
            openmpi-bin libhdf5-dev libdnnl-dev libinih-dev libjansson-dev zlib1g-dev
            libzip-dev libprotobuf-c-dev protobuf-c-compiler libonnx-dev"
        ;;
    check) wanted="$wanted check mandoc" ;;
    test)
        wanted="$wanted clang clang-format libomp-dev libopenblas-dev shellcheck
            python3-h5py iproute2 parallel valgrind
            libc6-dbg" # libc6-dbg: names of functions for tests/lsan.supp
        ;;
    slurm) wanted="$wanted slurmctld slurmd slurm-client munge procps" ;;
    *)
        echo "packages.sh: unknown group $group" >&2
        exit 2
        ;;
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
    echo "packages.sh: no apt-get here; these are needed (names of Debian):$missing"
    exit 0
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "packages.sh: neither root nor sudo; please install:$missing" >&2
        exit 1
    fi
    sudo=sudo
fi
echo "Installing with ${sudo:+sudo }apt-get:$missing"
export DEBIAN_FRONTEND=noninteractive
keep=DEBIAN_FRONTEND=noninteractive # sudo drops the environment
lock=DPkg::Lock::Timeout=300
log=$(mktemp)
trap 'rm -f "$log"' EXIT
follow="sh $(dirname "$0")/follow.sh $log"
# A password is asked for here, where it is seen.
${sudo:+$sudo true}
# shellcheck disable=SC2086 # lists of words
$follow $sudo ${sudo:+env $keep} apt-get -q -o $lock update
# shellcheck disable=SC2086 # lists of words
$follow $sudo ${sudo:+env $keep} apt-get install -y -q --no-install-recommends -o $lock $missing
