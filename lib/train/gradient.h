/*
 * gradient.h - one rank's passes of one update: the windows of a group, micro-batch by
 * micro-batch.
 */
#ifndef RNND_GROUP_H
#define RNND_GROUP_H

#include "data/shard.h"

struct rnnd__group {
    struct rnnd_model *model;
    struct rnnd_batch *batch;
    struct rnnd__share *share;
    struct rnnd_state *state;      /* carried, NULL without truncated BPTT */
    uint64_t seed;
    int64_t update;
    int64_t index;                 /* which group of the entry */
    double loading; /* out: seconds spent reading and packing are added */
};

/* Adds this rank's gradient and loss sums of the group to the model's, and announces
   the gradients as final, also where there is no work. */
RNND_CHECKED int rnnd__group_run(struct rnnd__group *group);

#endif
