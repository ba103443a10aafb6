#!/bin/sh
# launch.sh - under Slurm: with PMIx a world, on one node and on two; without it several tasks
# are refused, while one task and a batch script run alone; signals, lost peers, exit status.
set -u
# shellcheck source=tests/slurm/lib.sh
. "${srcdir:?}/tests/slurm/lib.sh"
peer=$PWD/tests/mpi/peer

# run STATUS ARGUMENTS OF SRUN...
run() {
    want=$1
    shift
    timeout -k 5 60 srun "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    echo "srun $*: status $status"
    [ $status = "$want" ] || fault "ended with $status, not $want"
}

# says N PATTERN: so many lines of standard output.
says() {
    [ "$(grep -c "$2" "$dir/out")" = "$1" ] || fault "not $1 lines of '$2'"
}

run 0 --mpi=pmix -N1 -n2 "$peer" fine
says 2 'rank [01] of 2 on n1 by mpi'
run 0 --mpi=pmix -N2 --ntasks-per-node=2 "$peer" fine
says 2 'rank [01] of 4 on n1 by mpi'
says 2 'rank [23] of 4 on n2 by mpi'
run 6 -n2 "$peer" fine
# shellcheck disable=SC2016 # the back quotes are the message's
grep -q 'use `srun --mpi=pmix`' "$dir/err" || fault "the way out is not named"
says 0 rank
run 6 --mpi=pmi2 -n2 "$peer" fine
run 0 -n1 "$peer" fine
says 1 'rank 0 of 1 on n[12] by self'
run 3 --mpi=pmix -N2 -n2 "$peer" fail
run 6 --mpi=pmix -N2 -n2 "$peer" hang 2
grep -q 'rank 0 on n1 timed out after 2 s .* gradient sum in update 41' "$dir/err" ||
    fault "the timeout is not reported"

srun --mpi=pmix -N2 -n2 "$peer" signal 30 >"$dir/out" 2>"$dir/err" &
pid=$!
both_ready() {
    [ "$(grep -c ready "$dir/err")" = 2 ]
}
wait_until 10 both_ready || fault "the ranks are not ready"
kill -USR1 $pid # srun passes it on
wait $pid
status=$?
echo "USR1 to srun: status $status"
[ $status = 75 ] || fault "USR1 ended with $status, not 75"

cat >"$dir/job" <<END
#!/bin/sh
#SBATCH -N2 -n4 -o $dir/out
$peer fine || echo "alone: \$?"
mpirun $peer fine || echo "mpirun: \$?"
END
: >"$dir/err"
job=$(sbatch --parsable "$dir/job")
job_is_over() {
    [ -z "$(squeue -h -j "$job" -t PD,R,CG,CF)" ]
}
wait_until 40 job_is_over || fault "the batch job does not end"
echo "batch job:"
sed 's/^/    /' "$dir/out"
says 1 'rank 0 of 1 on n1 by self'
says 4 'rank [0-3] of 4 on n[12] by mpi'
says 0 'alone:\|mpirun:'

done_testing
