#!/bin/bash
# array.sh - one run for each task of a job array: sbatch --array=1-10 array.sh OPTIONS...
#
#   sbatch --array=1-10 -n 4 -t 1:00:00 array.sh --data train.h5 --valid valid.h5
#   rnn_dist report run-* --out report.html
#
# Task N trains with --seed N in the run directory run-N. Each task saves before its time
# limit, requeues itself alone, and resumes. See rnn_dist-slurm(7).
#SBATCH --job-name=rnn_dist
#SBATCH --signal=B:USR1@120 --requeue --open-mode=append
ended=no
trap 'kill -USR1 $step 2>/dev/null' USR1
trap 'ended=yes; kill -TERM $step 2>/dev/null' TERM # scancel, or Slurm requeues it itself
srun --mpi=pmix --kill-on-bad-exit=1 "${RNN_DIST:-rnn_dist}" --resume "$@" \
    --seed "$SLURM_ARRAY_TASK_ID" --run-dir "run-$SLURM_ARRAY_TASK_ID" &
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
# The number of the last task's job is that of the array, and would requeue all tasks.
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
[ $again = no ] || [ $ended = yes ] || exec scontrol requeue "$task"
exit $status
