#!/bin/bash
# mpirun.sh - as srun.sh, for a Slurm without PMIx: sbatch mpirun.sh TRAIN OPTIONS...
#
#   sbatch -N 2 --ntasks-per-node=8 -t 4:00:00 mpirun.sh \
#       --data train.h5 --valid valid.h5 --run-dir run
#
# mpirun of Open MPI finds the nodes and tasks of the job by itself. Two minutes before the
# time limit all ranks save and leave with status 75; then the job requeues itself and resumes
# from there. After the loss of a node Slurm requeues it, and it resumes from the last
# checkpoint. After scancel it stays cancelled. See rnn_dist-slurm(7).
#SBATCH --job-name=rnn_dist
#SBATCH --signal=B:USR1@120 --requeue --open-mode=append
ended=no
trap 'kill -USR1 $step 2>/dev/null' USR1
trap 'ended=yes; kill -TERM $step 2>/dev/null' TERM # scancel, or Slurm requeues it itself
mpirun --bind-to none "${RNN_DIST:-rnn_dist}" --resume "$@" &
step=$!
wait $step
status=$?
# a signal to this script ends the wait, not mpirun
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
