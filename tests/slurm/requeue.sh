#!/bin/sh
# requeue.sh - examples/slurm: jobs that meet a time limit, a signal, a requeue, scancel, a
# node that goes down and one that is drained end with the bits of a run that met nothing.
set -u
# shellcheck source=tests/slurm/lib.sh
. "${srcdir:?}/tests/slurm/lib.sh"
RNN_DIST=$PWD/bin/rnn_dist tool=$PWD/tests/cases/tool
export RNN_DIST
: >"$dir/out"
: >"$dir/err"

"$tool" data "$dir/a.h5" task=classify outputs=3 lengths="$(
    awk 'BEGIN { for (i = 0; i < 96; i++) printf "%s%d", i ? "," : "", i * 7919 % 120 + 1 }')"
options="--data $dir/a.h5 --hidden 128 --layers 2 --dropout 0.2 --batch 16 --threads 1
    --progress none --log-every 1 --save-every 10 --comm-timeout 60 --epochs 100000"

# What went wrong beyond repair.
die() {
    fault "$*"
    tally_end
    tail -n 20 "$dir/log/slurmctld.log"
    exit 1
}

# submit DIR SCRIPT UPDATES SBATCH-OPTIONS...: $job trains into DIR.
submit() {
    run=$1 script=$2 updates=$3
    shift 3
    # shellcheck disable=SC2086 # a list of options
    job=$(sbatch --parsable -N2 -n4 -o "$dir/out" "$@" "${srcdir:?}/examples/slurm/$script" \
        $options --max-updates "$updates" --run-dir "$dir/$run")
}

state() {
    scontrol -o show job "$job" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'
}
update_of() {
    sed -n 's/.*"event": *"train".*"update": *\([0-9]*\).*/\1/p' "$dir/$1/metrics.jsonl" \
        2>/dev/null | tail -n 1
}
reached() {
    [ "$(update_of "$1")" -ge "$2" ] 2>/dev/null
}
is() {
    [ "$(state)" = "$1" ]
}
ended() {
    case $(state) in
    COMPLETED | CANCELLED | FAILED | TIMEOUT | NODE_FAIL) ;;
    *) return 1 ;;
    esac
}
# The daemons of a job's steps hold the sockets of PMIx for a while after it.
no_daemons_of_steps() {
    ! pgrep -f "^slurmstepd: \[${job}[.]" >/dev/null
}

# progress UPDATES: the job gets so many updates on.
progress() {
    wait_until 60 reached "$run" $(($(update_of "$run") + $1)) ||
        die "$run makes no progress: $(state)"
}

# resumed WHY: the job is pending again. It starts now, not after two minutes.
resumed() {
    tried
    wait_until 60 is PENDING || die "$run is not requeued: $(state)"
    at=$(update_of "$run")
    wait_until 30 no_daemons_of_steps || hung "the steps of $run do not end"
    sleep 1.2 # slurmd revokes credentials of a job that are not from a later second
    scontrol update JobId="$job" StartTime=now || die "StartTime"
    wait_until 60 is RUNNING || die "$run does not start again: $(state)"
    echo "$(($(date +%s) - began)) s: $run requeued after update $at: $1"
}

# whole STATE: the job has ended so.
whole() {
    wait_until 90 ended || die "$run does not end: $(state)"
    is "$1" || fault "$run ended as $(state), not $1"
    echo "$(($(date +%s) - began)) s: $run: $1 after update $(update_of "$run")"
}

# same DIR DIR: the last checkpoints have the same parameters and moments, bit for bit.
same() {
    last=$(find "$dir/$1" -name 'ckpt-*.h5' | sort | tail -n 1)
    other=$(find "$dir/$2" -name 'ckpt-*.h5' | sort | tail -n 1)
    if [ "${last##*/}" != "${other##*/}" ] || [ -z "$last" ]; then
        lost "$1 ends with $last, $2 with $other"
    fi
    "$tool" diff 0 "$last" "$other" >"$dir/diff" ||
        wrong "parameters of $1: $(cat "$dir/diff")"
    "$tool" diff 0 "$last" "$other" /optimizer >"$dir/diff" ||
        wrong "moments of $1: $(cat "$dir/diff")"
}

began=$(date +%s)
trying "Slurm jobs that are requeued, cancelled or lose a node"
# A job array: each task is a run of its own. The last, whose job has the number of the
# array, is asked to stop, and is the only one that is requeued.
# shellcheck disable=SC2086
array=$(cd "$dir" && sbatch --parsable -n2 -t 10 -o "$dir/array-%a" --array=1-2 \
    "$(cd "${srcdir:?}" && pwd)/examples/slurm/array.sh" $options)
both_reached() {
    reached run-1 5 && reached run-2 5
}
wait_until 60 both_reached || die "the array does not start"
tried
scancel --batch --signal=USR1 "${array}_2"
array_2_is_pending() {
    [ "$(squeue -h -r -j "${array}_2" -o %T)" = PENDING ]
}
wait_until 60 array_2_is_pending || fault "task 2 of the array is not requeued"
[ "$(squeue -h -r -j "${array}_1" -o %T)" = RUNNING ] || fault "task 1 has left with task 2"
scancel "$array"
for task in 1 2; do
    grep -q "^seed = $task$" "$dir/run-$task/config.ini" || fault "task $task: another seed"
done
find "$dir/run-2" -name 'ckpt-*.h5' | grep -q . || fault "task 2 is not saved"
echo "$(($(date +%s) - began)) s: array"

# A run, and what happens to it.
submit worn srun.sh 100000 -t 10 --signal=B:USR1@60

# A node goes down: Slurm kills the job, with no word to the ranks, and requeues it. The node
# is back at once, since its daemon still answers.
progress 15
scontrol update NodeName=n2 State=DOWN Reason=test
resumed "node down"

# A user asks for a requeue, which Slurm does by itself.
progress 15
scontrol requeue "$job"
resumed "scontrol requeue"

# The time limit. Slurm looks for it every half minute, and the script saves and requeues.
scontrol update JobId="$job" TimeLimit=1
resumed "time limit"
scontrol update JobId="$job" TimeLimit=10

# scancel: the ranks save and leave; another job goes on, by the other launcher.
progress 15
tried
scancel "$job"
whole CANCELLED

# A signal, and a node that is drained: what runs there may end, and nothing else starts there.
submit worn mpirun.sh $(($(update_of worn) + 50)) -t 10
progress 15
scancel --batch --signal=USR1 "$job"
resumed "scancel --batch --signal=USR1"
progress 1
tried
scontrol update NodeName=n2 State=DRAIN Reason=test
whole COMPLETED
job=$(sbatch --parsable -N2 -n2 -o "$dir/out" --wrap true)
sleep 1
is PENDING || fault "a job starts on a node that is drained: $(state)"
scancel "$job"
scontrol update NodeName=n2 State=RESUME

submit calm srun.sh "$(update_of worn)" -t 10
whole COMPLETED
same worn calm
done_testing
