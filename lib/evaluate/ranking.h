/*
 * ranking.h - how well scores separate yes from no: figures of the ranking alone.
 *
 * Takes scores and answers in any order: only the multiset of pairs counts, so the
 * result does not depend on how they were gathered. Knows no model and no rank.
 */
#ifndef RNND_RANKING_H
#define RNND_RANKING_H

#include "rnn_dist.h"

struct rnnd__ranking {
    /* area under the ROC curve; NaN unless there are both answers */
    double auroc;
    /* NaN without a yes */
    double average_precision;
};

/* The ranking of `count` scores, of which one is at every stride-th place, like its
   answer, 0 or 1. Both figures are NaN where a score is. */
RNND_CHECKED int rnnd__ranking_of(const float *score, const unsigned char *answer,
                                  int64_t count, int64_t stride,
                                  struct rnnd__ranking *out);

#endif
