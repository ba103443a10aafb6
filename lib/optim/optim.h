/*
 * optim.h - the moments of an optimizer, for checkpoints, and learning rate schedules.
 */
#ifndef RNND_OPTIM_H
#define RNND_OPTIM_H

#include "backend.h"
#include "rnn_dist.h"

/* The number of moments: 0 (plain sgd), 1 (momentum) or 2 (adam, adamw). */
int rnnd__optim_moments(const struct rnnd_optim *optim);
/* PyTorch's name of moment i: "momentum_buffer"; "exp_avg", "exp_avg_sq". */
const char *rnnd__optim_moment_name(const struct rnnd_optim *optim, int i);
/* Moment i: float [count], laid out like the parameter arena. */
struct rnnd__buf rnnd__optim_moment(const struct rnnd_optim *optim, int i);
/* Number of updates that changed the parameters. */
int64_t rnnd__optim_step_count(const struct rnnd_optim *optim);
void rnnd__optim_set_step_count(struct rnnd_optim *optim, int64_t count);

/* The position of a run, as schedules use it. */
struct rnnd__schedule_point {
    /* updates and epochs completed */
    int64_t update, epoch;
    /* completed fraction of the updates of this epoch, 0 .. 1 */
    double part;
    /* product of the cuts made by the plateau schedule */
    double plateau_factor;
};

/* The learning rate of the next update; see "LEARNING RATE" in rnn_dist-train(1). */
double rnnd__learning_rate(const struct rnnd_options *opt,
                           const struct rnnd__schedule_point *at);

/* The best loss, or other cost, so far, and the number of epochs since; used by
   --patience and by the plateau schedule. */
struct rnnd__watch {
    /* infinity before the first epoch */
    double best;
    int64_t count;
};

/* Records the loss of an epoch. It is an improvement if it is lower than the best by
   the fraction `relative`; NaN never is. Returns whether at least `patience` epochs
   have now passed without an improvement. */
bool rnnd__watch_epoch(struct rnnd__watch *watch, double loss, double relative,
                       int64_t patience);

#endif
