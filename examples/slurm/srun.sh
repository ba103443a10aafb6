#!/bin/bash
# srun.sh - a job that outlives its time limit: sbatch srun.sh TRAIN OPTIONS...
#
#   sbatch -N 2 --ntasks-per-node=8 -t 4:00:00 srun.sh \
#       --data train.h5 --valid valid.h5 --run-dir run
#
# For a Slurm with PMIx (`srun --mpi=list` names it). Two minutes before the time limit all
# ranks save and leave with status 75; then the job requeues itself and resumes from there.
# After the loss of a node Slurm requeues it, and it resumes from the last checkpoint. After
# scancel it stays cancelled. See rnn_dist-slurm(7).
#SBATCH --job-name=rnn_dist
#SBATCH --signal=B:USR1@120 --requeue --open-mode=append
ended=no
trap 'kill -USR1 $step 2>/dev/null' USR1
trap 'ended=yes; kill -TERM $step 2>/dev/null' TERM # scancel, or Slurm requeues it itself
srun --mpi=pmix --kill-on-bad-exit=1 "${RNN_DIST:-rnn_dist}" --resume "$@" &
step=$!
wait $step
status=$?
# a signal to this script ends the wait, not the step
while kill -0 $step 2>/dev/null; do
    wait $step
    status=$?
done
# 75: a signal has stopped the run, which is saved. 6: ranks have lost each other; try again,
# but not for ever.
again=no
case $status in
75) again=yes ;;
6) [ "${SLURM_RESTART_COUNT:-0}" -ge 10 ] || again=yes ;;
esac
[ $again = no ] || [ $ended = yes ] || exec scontrol requeue "$SLURM_JOB_ID"
exit $status
