#!/bin/sh
# hosts.sh - two machines: namespaces with a name, an address and shared memory of their own,
# which Open MPI joins over TCP and a launch agent. Training equals that on one machine, also
# over a link that delays and loses packets; a link that is down for 2 s is survived; one that
# stays down ends the job in time, and the message names both hosts.
for need in ip nsenter unshare; do
    command -v $need >/dev/null || { echo "no $need here"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
[ -w /dev/net/tun ] || { echo "no /dev/net/tun here"; exit 77; }
unshare -m -u -n mount -t tmpfs tmpfs /dev/shm 2>/dev/null ||
    { echo "may not make namespaces"; exit 77; }
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"
LINK=${LINK:-$PWD/tests/mpi/link}

# within SECONDS COMMAND...: it succeeds in that time.
within() {
    late=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt $late ] || return 1
        sleep 0.1
    done
}

# ---- the hosts one and two

# A process of each holds its namespaces, and writes its number and theirs.
printf '%s\n' '127.0.0.1 localhost' '10.99.0.1 one' '10.99.0.2 two' >"$work/hosts"
for host in one two; do
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare -m -u -n sh -c 'mount -t tmpfs tmpfs /dev/shm && mount --bind "$2" /etc/hosts &&
        hostname "$1" && readlink /proc/self/ns/net >"$3-net" && echo "$$" >"$3" &&
        exec sleep 1000' sh $host "$work/hosts" "$work/$host" &
done

# ps_on HOST: number and command of all that runs there.
ps_on() {
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/ns/net" 2>/dev/null)" != "$(cat "$work/$1-net")" ] ||
            echo "${process#/proc/} $(tr '\0' ' ' 2>/dev/null <"$process/cmdline")"
    done
}

# Ends what runs on the hosts, and the link.
down() {
    for host in one two; do
        ps_on $host | while read -r process _; do
            kill -KILL "$process" 2>/dev/null || true
        done
    done
    [ -z "${link:-}" ] || kill "$link" 2>/dev/null || true
    rm -rf "$work"
}
trap down EXIT

# What mpirun calls instead of ssh: HOST WORDS OF A COMMAND...
cat >"$work/agent" <<END
#!/bin/sh
host=\$1
shift
exec nsenter -t "\$(cat "$work/\$host")" -m -u -n sh -c "\$*"
END
chmod +x "$work/agent"
for host in one two; do
    within 10 test -s "$work/$host" || die "host $host does not start"
done
equal "name of a host" "$("$work/agent" two hostname)" two

export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$work/agent"
export OMPI_MCA_btl_tcp_if_include=10.99.0.0/24 OMPI_MCA_oob_tcp_if_include=10.99.0.0/24

# plug HOST INTERFACE ADDRESS
plug() {
    ip link set "$2" netns "$(cat "$work/$1")"
    "$work/agent" "$1" "ip link set lo up && ip addr add $3/24 dev $2 &&
        ip link set $2 mtu 9000 up"
}

# connect DELAY LOSS: another link between them: so many us one way, so many percent.
connect() {
    if [ -n "${link:-}" ]; then
        kill "$link"
        wait "$link" 2>/dev/null || true
    fi
    rm -f "$work/link"
    "$LINK" "$1" "$2" "rnnd$$a" "rnnd$$b" >"$work/link" &
    link=$!
    within 10 test -s "$work/link" || die "no link"
    plug one "rnnd$$a" 10.99.0.1
    plug two "rnnd$$b" 10.99.0.2
}

# across COMMAND...: the program on two ranks of each host, started on host one; in the
# background, $job.
across() {
    nsenter -t "$(cat "$work/one")" -m -u -n mpirun -np 4 --host one:2,two:2 "$RNN_DIST" "$@" \
        >"$work/out" 2>"$work/err" &
    job=$!
}
RNN_DIST=$(command -v "$RNN_DIST")

# ---- training

data many task=classify outputs=3 lengths="$(lengths 60 1 30)"
options="--data $work/many.h5 --batch 12 --hidden 24 --layers 2 --dropout 0.2 --threads 1
    --progress none --log-every 1 --epochs 1000"
# shellcheck disable=SC2086 # a list of options
train same 4 $options --max-updates 40

trying "links that delay, lose packets or drop"
# shellcheck disable=SC2086
for link_of in "0 0" "1000 0" "200 1"; do
    tried
    connect $link_of
    run=$(echo "link $link_of" | tr ' ' -)
    across train --run-dir "$work/$run" $options --max-updates 40
    ended 0
    identical "$run" same
    echo "a link of ${link_of% *} us that loses ${link_of#* } %: the same bits"
done
across info
ended 0
printed one two

# down for 2 s: packets are lost, and sent again
tried
# shellcheck disable=SC2086
across train --run-dir "$work/pulled" $options --max-updates 80 --comm-timeout 20
wait_for pulled 20
kill -USR1 "$link"
sleep 2
at=$(table pulled train update | tail -n 1)
sleep 0.2
equal "updates without a link" "$(table pulled train update | tail -n 1)" "$at"
kill -USR2 "$link"
ended 0
# shellcheck disable=SC2086
train whole 4 $options --max-updates 80
identical pulled whole
echo "a link that was down for 2 s at update $at: survived"

# Down for good. The ranks that hear nothing end, and say whom they miss; mpirun waits for
# the daemon on the other host, and is ended here.
tried
connect 0 0
# shellcheck disable=SC2086
across train --run-dir "$work/lost" $options --save-every 5 --comm-timeout 5
wait_for lost 20
kill -USR1 "$link"
missed() {
    grep -q "rank [01] on one timed out after 5 s .*no answer from rank [23] on two" "$work/err"
}
within 20 missed || fault "the hosts are not named: $(cat "$work/err")"
no_rank_on() {
    ! ps_on "$1" | grep -q "^[0-9]* $RNN_DIST "
}
within 10 no_rank_on one || hung "ranks stay on host one"
echo "a link that stays down: both hosts named after --comm-timeout 5"
kill -KILL "$job"
wait "$job" 2>/dev/null || true

# With a shorter keepalive, mpirun notices first: all of the job ends, on both hosts.
export OMPI_MCA_oob_tcp_keepalive_time=3 OMPI_MCA_oob_tcp_keepalive_intvl=1 \
    OMPI_MCA_oob_tcp_keepalive_probes=3
tried
connect 0 0
# shellcheck disable=SC2086
across train --resume --run-dir "$work/lost" --comm-timeout 60
wait_for lost 40
kill -USR1 "$link"
begun=$(date +%s)
got=0
wait "$job" || got=$?
took=$(($(date +%s) - begun))
[ $got != 0 ] || wrong "a lost host goes unnoticed"
[ $took -le 25 ] || hung "a lost host is noticed after $took s"
said "node one" "node two"
within 15 no_rank_on two || hung "ranks stay on host two"
echo "the same with keepalive: status $got after $took s"
expect 0 4 train --resume --run-dir "$work/lost" --max-updates 60
done_testing
