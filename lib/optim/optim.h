/*
 * optim.h - the optimizer's moments, for the checkpoint, and the learning rate's
 * schedule.
 */
#ifndef RNND_OPTIM_H
#define RNND_OPTIM_H

#include "backend.h"
#include "rnn_dist.h"

/* Flat arrays over the parameter arena: 0 (plain sgd), 1 (momentum) or 2 (adam). */
int rnnd__optim_moments(const struct rnnd_optim *optim);
/* PyTorch's names: "momentum_buffer"; "exp_avg", "exp_avg_sq". */
const char *rnnd__optim_moment_name(const struct rnnd_optim *optim, int i);
struct rnnd__buf rnnd__optim_moment(const struct rnnd_optim *optim, int i);
/* Updates that changed the parameters. */
int64_t rnnd__optim_step_count(const struct rnnd_optim *optim);
void rnnd__optim_set_step_count(struct rnnd_optim *optim, int64_t count);

/* Where a run stands, as the schedule sees it. */
struct rnnd__schedule_point {
    /* updates done */
    int64_t update;
    /* epochs done */
    int64_t epoch;
    /* share of this epoch's updates done */
    double part;
    /* product of the plateau schedule's cuts */
    double plateau_factor;
};

/* The learning rate of the next update (rnn_dist-train(1), "Schedules"). */
double rnnd__learning_rate(const struct rnnd_options *opt,
                           const struct rnnd__schedule_point *at);

/* What --patience and the plateau schedule remember: the value to beat, and for how
   many epochs it has stood. */
struct rnnd__watch {
    /* infinity before the first epoch */
    double best;
    int64_t count;
};

/* Takes an epoch's loss; relative: how much lower it must be to count as a gain.
   Returns whether `patience` epochs have now passed without one. NaN is no gain. */
bool rnnd__watch_epoch(struct rnnd__watch *watch, double loss, double relative,
                       int64_t patience);

#endif
