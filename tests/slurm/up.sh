#!/bin/sh
# up.sh DIR - starts a private Slurm of two make-believe nodes with 4 processors each on this
# machine, all of it below DIR (a short path: unix sockets live there), and prints the line to
# eval. Needs root, slurmctld, slurmd, munged and unshare. down.sh ends it.
set -eu
mkdir -p "$1"
dir=$(cd "$1" && pwd)
host=$(hostname -s)
port=$((20000 + $$ % 3000 * 4)) # below those that the system hands out
mkdir -p "$dir/state" "$dir/log" "$dir/run" "$dir/spool" "$dir/munge"
chmod 755 "$dir" "$dir/munge"

head -c 128 /dev/urandom >"$dir/munge/key"
chmod 600 "$dir/munge/key"
munged --key-file="$dir/munge/key" --socket="$dir/munge/sock" --pid-file="$dir/munge/pid" \
    --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --num-threads=1

# No cgroups, no accounting, loopback only. TmpFS by node: PMIx makes a folder there.
cat >"$dir/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$dir/munge/sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
TmpFS=$dir/tmp/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SlurmdParameters=config_overrides
SwitchType=switch/none
ReturnToService=2
KillWait=5
InactiveLimit=0
SchedulerParameters=batch_sched_delay=0
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=4 RealMemory=1000
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=4 RealMemory=1000
PartitionName=test Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:1
END
echo 'CgroupPlugin=cgroup/v1' >"$dir/cgroup.conf"
printf '127.0.0.1 %s\n' "localhost $host" n1 n2 >"$dir/hosts"

SLURM_CONF=$dir/slurm.conf
export SLURM_CONF
slurmctld -f "$SLURM_CONF"
# Each node has its own host name and /dev/shm: Open MPI names its segments by host.
for node in n1 n2; do
    mkdir -p "$dir/spool/$node" "$dir/tmp/$node"
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare -m -u sh -c 'mount -t tmpfs -o size=256m tmpfs /dev/shm &&
        mount --bind "$2/hosts" /etc/hosts && hostname "$1" &&
        exec slurmd -N "$1" -f "$2/slurm.conf"' sh $node "$dir"
done
late=$(($(date +%s) + 40))
until [ "$(timeout 5 sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" = 2 ]; do
    if [ "$(date +%s)" -gt $late ]; then
        timeout 5 sinfo -N >&2
        exit 1
    fi
    sleep 0.2
done
echo "export SLURM_CONF='$dir/slurm.conf'"
