/*
 * tensorboard.h - event files: the curves of a run for TensorBoard.
 *
 * Rank 0 only. Each start of a run writes a new file in run_dir/tensorboard/. Knows
 * tags and numbers, no records.
 */
#ifndef RNND_TENSORBOARD_H
#define RNND_TENSORBOARD_H

#include "rnn_dist.h"

struct rnnd__tensorboard;

/* A point of a curve. */
struct rnnd__scalar {
    /* name of the curve, at most RNND_TAG_BYTES long; borrowed */
    const char *tag;
    /* stored as float */
    double value;
};
enum { RNND_TAG_BYTES = 64, RNND_SCALARS = 8 };

/* update: the update that the run starts or resumes from; viewers discard points beyond
   it that an earlier start wrote. EFILE where folder or file cannot be created. */
RNND_CHECKED int rnnd__tensorboard_open(const char *run_dir, int64_t update,
                                        struct rnnd__tensorboard **out);
/* Writes count points, at most RNND_SCALARS, at this update. EFILE on failure. */
RNND_CHECKED int rnnd__tensorboard_add(struct rnnd__tensorboard *board, int64_t update,
                                       const struct rnnd__scalar *scalar, int count);
/* NULL is accepted. */
void rnnd__tensorboard_close(struct rnnd__tensorboard *board);

#endif
