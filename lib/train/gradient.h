/*
 * gradient.h - accumulates one rank's gradient of one update: passes over its windows,
 * micro-batch by micro-batch.
 */
#ifndef RNND_GRADIENT_H
#define RNND_GRADIENT_H

#include "data/shard.h"

/* All pointers are borrowed. */
struct rnnd__gradient {
    struct rnnd_model *model;
    struct rnnd_batch *batch;
    struct rnnd__shard *shard;
    /* the loss of the passes is added to it */
    struct rnnd_loss_sums *loss;
    /* carried hidden state, NULL without truncated BPTT */
    struct rnnd_state *state;
    /* keys of the dropout masks */
    uint64_t seed;
    int64_t update;
    /* index of the update within its plan entry */
    int64_t index;
    /* seconds spent reading and packing are added to it */
    double loading;
};

/* Adds this rank's gradient sums of the update to the model's, and announces them as
   final, even if this rank has no work. */
RNND_CHECKED int rnnd__gradient_accumulate(struct rnnd__gradient *gradient);

#endif
