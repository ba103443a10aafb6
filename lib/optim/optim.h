/*
 * optim.h - the optimizer's moments, for the checkpoint, and the learning rate's
 * schedule.
 */
#ifndef RNND_OPTIM_H
#define RNND_OPTIM_H

#include "backend.h"
#include "rnn_dist.h"

/* Flat arrays over the parameter arena: 0 (plain sgd), 1 (momentum) or 2 (adam). */
int rnnd_optim_moments(const struct rnnd_optim *optim);
/* PyTorch's names: "momentum_buffer"; "exp_avg", "exp_avg_sq". */
const char *rnnd_optim_moment_name(const struct rnnd_optim *optim, int i);
struct rnnd_buf rnnd_optim_moment(const struct rnnd_optim *optim, int i);
/* Updates that changed the parameters. */
int64_t rnnd_optim_step_count(const struct rnnd_optim *optim);
void rnnd_optim_set_step_count(struct rnnd_optim *optim, int64_t count);

/* Where a run stands, as the schedule sees it. */
struct rnnd_schedule_point {
    int64_t update;                /* updates done */
    int64_t epoch;                 /* epochs done */
    double part;                   /* share of this epoch's updates done */
    double plateau_factor;         /* product of the plateau schedule's cuts */
};

/* The learning rate of the next update (rnn_dist-train(1), "Schedules"). */
double rnnd_learning_rate(const struct rnnd_options *opt,
                          const struct rnnd_schedule_point *at);

/* What --patience and the plateau schedule remember: the value to beat, and for how
   many epochs it has stood. */
struct rnnd_watch {
    double best;                   /* infinity before the first epoch */
    int64_t count;
};

/* Takes an epoch's loss; relative: how much lower it must be to count as a gain.
   Returns whether `patience` epochs have now passed without one. NaN is no gain. */
bool rnnd_watch_epoch(struct rnnd_watch *watch, double loss, double relative,
                      int64_t patience);

#endif
