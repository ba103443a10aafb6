#!/bin/sh
# down.sh DIR - cancels what runs and ends the daemons that up.sh started there, by their pid
# files; munged goes last, since the others need it until they are gone.
dir=$1
SLURM_CONF=$dir/slurm.conf
export SLURM_CONF
[ -f "$SLURM_CONF" ] || exit 0

# wait_for COMMAND...: until it succeeds, 10 seconds at most.
wait_for() {
    i=0
    until "$@" || [ $i -gt 50 ]; do
        i=$((i + 1))
        sleep 0.2
    done
}
no_jobs() {
    [ -z "$(timeout 5 squeue -h -t R,CG 2>/dev/null)" ]
}
no_daemons() {
    ! ls "$dir"/run/*.pid >/dev/null 2>&1
}

timeout 10 scancel --user="$(id -un)" 2>/dev/null
wait_for no_jobs
for file in "$dir"/run/slurmd-*.pid "$dir/run/slurmctld.pid" "$dir/munge/pid"; do
    [ "$file" = "$dir/munge/pid" ] && wait_for no_daemons
    [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null
done
exit 0
