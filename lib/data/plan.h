/*
 * plan.h - shards pieces over ranks by an integer cost.
 */
#ifndef RNND_PLAN_H
#define RNND_PLAN_H

#include "rnn_dist.h"

/* The cost of a row, in the unit of the other costs. */
enum { RNND_COST_ROW = 4 };

struct rnnd__deal {
    /* [count] rows of each piece, borrowed */
    const int64_t *length;
    int64_t count;
    /* the number of shards, and the one that is wanted */
    int ranks, rank;
    /* cost of a step of a packed batch; 0 for pieces that run one by one */
    int64_t step_cost;
};

/* The cost of a step of a layer with this many recurrent weights. */
int64_t rnnd__plan_step_cost(int64_t weights);

/* As rnnd_plan_shard(). */
RNND_CHECKED int rnnd__plan_deal(const struct rnnd__deal *deal, int32_t *mine,
                                 int64_t *n, double *straggler);

#endif
