/*
 * tensorboard.h - event files: the curves of a run for TensorBoard.
 *
 * Rank 0 only. Each start of a run writes a file of its own in run_dir/tensorboard/.
 * Knows tags and numbers, no records.
 */
#ifndef RNND_TENSORBOARD_H
#define RNND_TENSORBOARD_H

#include "rnn_dist.h"

struct rnnd_tensorboard;

struct rnnd_scalar {
    const char *tag; /* at most RNND_TAG_BYTES long */
    double value;    /* becomes a float */
};
enum { RNND_TAG_BYTES = 64, RNND_SCALARS = 8 };

/* update: where this start goes on; viewers then drop what an earlier start wrote of
   later ones. EFILE where the folder or the file cannot be made. */
RNND_CHECKED int rnnd_tensorboard_open(const char *run_dir, int64_t update,
                                       struct rnnd_tensorboard **out);
/* count at most RNND_SCALARS points at this update. */
RNND_CHECKED int rnnd_tensorboard_add(struct rnnd_tensorboard *board, int64_t update,
                                      const struct rnnd_scalar *scalar, int count);
/* NULL is nothing. */
void rnnd_tensorboard_close(struct rnnd_tensorboard *board);

#endif
