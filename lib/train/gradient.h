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
    struct rnnd_state *state;      /* carried, NULL without truncated BPTT */
    uint64_t seed;
    int64_t update;
    int64_t index;                 /* of the update within its entry */
    double loading; /* out: seconds spent reading and packing are added */
};

/* Adds this rank's gradient and loss sums of the update to the model's, and announces
   the gradients as final, also where there is no work. */
RNND_CHECKED int rnnd__gradient_accumulate(struct rnnd__gradient *gradient);

#endif
