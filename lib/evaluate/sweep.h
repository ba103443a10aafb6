/*
 * sweep.h - goes once over a whole data set, for evaluation and prediction.
 *
 * Sequences are taken in pools, in file order. A pool is sorted by length and cut into
 * batches, and whole batches are distributed over ranks. Batches do not depend on
 * ranks, so neither do the bits of what is computed from them. Pools bound the memory
 * for results that wait to be written.
 */
#ifndef RNND_SWEEP_H
#define RNND_SWEEP_H

#include "rnn_dist.h"

struct rnnd__sweep {
    const int64_t *offsets;
    int64_t sequences;
    /* most sequences per batch */
    int64_t batch;
    /* most steps per batch (0 = no limit) and per pool; one sequence may exceed them */
    int64_t bound, pool_rows;
    struct rnnd_comm *comm;

    /* the current pool: sequences first .. end-1 */
    int64_t first, end;
    /* [end-first] its sequences, batch by batch */
    int32_t *order;
    /* [batches+1] position in order where each batch begins */
    int64_t *start;
    int64_t batches;
    /* [batches] steps of each batch */
    int64_t *rows;
    /* [own] the batches of this rank */
    int32_t *mine;
    int64_t own;
};

/* Uses batch, batch_tokens and microbatch_tokens of opt. width: floats per step that
   are kept until the pool is written, 0 = none. data and comm are borrowed. */
RNND_CHECKED int rnnd__sweep_new(const struct rnnd_options *opt,
                                 const struct rnnd_dataset *data,
                                 struct rnnd_comm *comm, int64_t width,
                                 struct rnnd__sweep **out);
void rnnd__sweep_free(struct rnnd__sweep *sweep);
/* Advances to the next pool; *more is false past the last one. */
RNND_CHECKED int rnnd__sweep_next(struct rnnd__sweep *sweep, bool *more);
/* The sequences of batch b of the pool: *ids, valid until the next pool; returns their
   number. */
int64_t rnnd__sweep_batch(const struct rnnd__sweep *sweep, int64_t b,
                          const int32_t **ids);
/* The batches of any rank: mine [batches] receives them, *own their number. */
RNND_CHECKED int rnnd__sweep_assign(const struct rnnd__sweep *sweep, int rank,
                                    int32_t *mine, int64_t *own);

#endif
