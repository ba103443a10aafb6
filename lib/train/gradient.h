/*
 * gradient.h - one rank's gradient of one update: passes over the update's windows,
 * micro-batch by micro-batch, accumulated.
 */
#ifndef RNND_GROUP_H
#define RNND_GROUP_H

#include "data/shard.h"

struct rnnd__gradient {
    struct rnnd_model *model;
    struct rnnd_batch *batch;
    struct rnnd__shard *shard;
    /* the passes' loss is added to it */
    struct rnnd_loss_sums *loss;
    /* carried, NULL without truncated BPTT */
    struct rnnd_state *state;
    uint64_t seed;
    int64_t update;
    /* of the update within its entry */
    int64_t index;
    /* out: seconds spent reading and packing are added */
    double loading;
};

/* Adds this rank's gradient sums of the update to the model's, and announces
   the gradients as final, also where there is no work. */
RNND_CHECKED int rnnd__gradient_accumulate(struct rnnd__gradient *gradient);

#endif
