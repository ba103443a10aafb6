/*
 * sweep.h - once over a whole data set, for evaluation and prediction.
 *
 * The sequences are taken in pools, in file order; a pool is sorted by length, cut into
 * batches, and whole batches are given to ranks. Batches do not depend on ranks, so
 * neither do the bits of what is computed from them, and a pool bounds what is held for
 * writing.
 */
#ifndef RNND_WALK_H
#define RNND_WALK_H

#include "rnn_dist.h"

struct rnnd__sweep {
    const int64_t *offsets;
    int64_t sequences;
    /* sequences of a batch at most */
    int64_t batch;
    /* steps of a batch at most (one sequence may have more) */
    int64_t bound;
    /* steps of a pool at most, likewise */
    int64_t pool_rows;
    struct rnnd_comm *comm;

    /* the pool: sequences first .. end-1 */
    int64_t first, end;
    /* [end-first] of the pool, batch by batch */
    int32_t *order;
    /* [batches+1] where batches begin in order */
    int64_t *start;
    int64_t batches;
    /* [batches] */
    int64_t *rows;
    /* [own] batches of this rank */
    int32_t *mine;
    int64_t own;
};

/* opt: batch, batch_tokens, microbatch_tokens. width: floats that a step keeps until
   its pool is written, 0 = none. */
RNND_CHECKED int rnnd__sweep_new(const struct rnnd_options *opt,
                                 const struct rnnd_dataset *data,
                                 struct rnnd_comm *comm, int64_t width,
                                 struct rnnd__sweep **out);
void rnnd__sweep_free(struct rnnd__sweep *sweep);
/* Moves to the next pool; *more is false past the last. */
RNND_CHECKED int rnnd__sweep_next(struct rnnd__sweep *sweep, bool *more);
/* The sequences of batch b of the pool. */
int64_t rnnd__sweep_batch(const struct rnnd__sweep *sweep, int64_t b,
                          const int32_t **ids);
/* The batches of another rank, as mine and own. */
RNND_CHECKED int rnnd__sweep_assign(const struct rnnd__sweep *sweep, int rank,
                                    int32_t *mine, int64_t *own);

#endif
