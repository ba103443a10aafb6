#!/bin/sh
# faults.sh - a peer dies, hangs, stops or leaves: the job ends by itself within the deadline,
# with the status and the message that it should.
set -u
peer=tests/mpi/peer
dir=$(mktemp -d) faults=0
trap 'rm -rf "$dir"' EXIT

# shellcheck source=tests/tally.sh
. "${srcdir:?}/tests/tally.sh"
fault() {
    echo "FAULT: $*"
    sed 's/^/    /' "$dir/out" "$dir/err"
    faults=$((faults + 1))
    tally_fault
}
trying "peers that die, hang, stop, leave or are out of step"

# run SCENARIO RANKS SECONDS STATUS [MORE]: ends within SECONDS with STATUS (any = not 0).
run() {
    begun=$(date +%s)
    # shellcheck disable=SC2086 # two words
    timeout -k 5 60 mpirun -np "$2" $peer "$1" 2 ${5:-} >"$dir/out" 2>"$dir/err"
    status=$? took=$(($(date +%s) - begun))
    echo "$1 on $2 ranks: status $status after $took s"
    tried
    [ $took -le "$3" ] || hung "$1 took $took s"
    case $4$status in
    any0) wrong "$1 went unnoticed" ;;
    any*) ;;
    *) [ $status = "$4" ] || fault "$1 ended with $status, not $4" ;;
    esac
}

says() {
    grep -q "$1" "$dir/err" || fault "nobody says '$1'"
}

late="rank 0 on $(hostname) timed out after 2 s (--comm-timeout) waiting for the"
late="$late gradient sum in update 41"
run fine 3 10 0
run fail 3 10 3
says '^rnn_dist: rank 2: bad data'
says '^rnn_dist: rank 0: rank 2 failed'
run die 2 15 any
run exit 2 15 any
run abort 3 15 4
run hang 2 15 6
says "$late: no answer from rank 1 on $(hostname): dead, hanging or late"
run stop 2 15 6
says "$late: no answer from rank 1 on $(hostname)"
run stop 3 15 6
says "no answer from rank 2 on $(hostname): dead"
run leave 2 15 6
says "$late: rank 1 on $(hostname) waits for the end"

# A disk that does not take a checkpoint is told apart from a rank that hangs. The run goes on
# while rank 0 writes, until it has to wait.
tests/cases/tool data "$dir/d.h5" task=classify outputs=2 lengths=3,2,5,1,4,2,3,3 || exit 1
run save 2 15 6 "$dir/d.h5 $dir/run"
says "rank 1 on $(hostname) timed out after 2 s .* in update [0-9]*, while rank 0 writes a checkpoint:"

# Ranks that begin another operation, or the same with another amount, fail together and at
# once: no rank receives what was meant for another place.
uneven() {
    for ranks in 2 3; do
        run "$1" $ranks 10 6
        says "out of step: here is the $2, but rank [0-9] on $(hostname) waits for the $3\$"
            done
}
uneven broadcasts 'broadcast of [0-9]*' 'broadcast of [0-9]*'
uneven allgathers 'allgather of [0-9]*' 'allgather of [0-9]*'
uneven sums 'sum of [34]' 'sum of [34]'
uneven longsums 'sum of 4' 'sum of 40'
uneven maxima 'maximum of [0-9]*' 'maximum of [0-9]*'
uneven sum-max '[a-z]* of 3' '[a-z]* of 3'
uneven gradients 'gradient sum of [45]00000' 'gradient sum of [45]00000'
uneven small 'gradient sum of [15]0*' 'gradient sum of [15]0*'

# The start has a deadline, too. What mpirun itself does with such jobs is its own affair:
# `run` allows it a minute.
begin() {
    name=$1 said=$2
    shift 2
    begun=$(date +%s)
    timeout -k 5 60 mpirun -np 1 $peer start 5 : -np 1 "$@" >"$dir/out" 2>"$dir/err"
    status=$? took=$(($(date +%s) - begun))
    echo "a peer that is $name: status $status after $took s"
    tried
    [ $took -le 25 ] || hung "a peer that is $name: it took $took s"
    [ $status = 6 ] || fault "a peer that is $name: status $status, not 6"
    says "rank 0 on $(hostname): MPI did not start in 5 s (--comm-timeout): $said"
}
begin true 'rank 1 has ended or was not started' /bin/true
begin asleep 'rank 1 runs sleep (process' sleep 100
# shellcheck disable=SC2016 # the inner shell's own process
begin stopped 'rank 1 has stopped (sh, process' sh -c 'kill -STOP $$'

# A signal to the launcher reaches the ranks, and all leave together, in time.
mpirun -np 2 $peer signal 20 >"$dir/out" 2>"$dir/err" &
pid=$!
i=0
until [ "$(grep -c ready "$dir/err")" = 2 ] || [ $i -gt 100 ]; do
    i=$((i + 1))
    sleep 0.1
done
kill -USR1 $pid
wait $pid
status=$?
echo "USR1 to mpirun: status $status"
[ $status = 75 ] || fault "USR1 ended with $status, not 75"

# Alone, without a launcher.
env -u OMPI_COMM_WORLD_SIZE $peer fine >"$dir/out" 2>"$dir/err" || fault "alone: $?"
grep -q '^rank 0 of 1 on .* by self$' "$dir/out" || fault "alone it is not by itself"

# A Slurm step of several tasks without PMIx is refused; one task, or a batch script, is not.
refused() {
    env -i PATH="$PATH" "$@" $peer fine >"$dir/out" 2>"$dir/err"
    status=$?
}
refused SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2
[ $status = 6 ] || fault "two tasks without PMIx: $status"
says 'use `srun --mpi=pmix`'
refused SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 PMI_RANK=0 PMI_SIZE=2
[ $status = 6 ] || fault "two tasks with PMI-2: $status"
refused SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=4
[ $status = 0 ] || fault "one task: $status"
refused SLURM_PROCID=0 SLURM_NTASKS=4
[ $status = 0 ] || fault "batch script: $status"

tally_end
echo "$faults faults"
[ $faults = 0 ]
