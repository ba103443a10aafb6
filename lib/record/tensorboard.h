/*
 * tensorboard.h - event files: the curves of a run for TensorBoard.
 *
 * Rank 0 only. Each start of a run writes a file of its own in run_dir/tensorboard/.
 * Knows tags and numbers, no records.
 */
#ifndef RNND_TENSORBOARD_H
#define RNND_TENSORBOARD_H

#include "rnn_dist.h"

struct rnnd__tensorboard;

struct rnnd__scalar {
    /* at most RNND_TAG_BYTES long */
    const char *tag;
    /* becomes a float */
    double value;
};
enum { RNND_TAG_BYTES = 64, RNND_SCALARS = 8 };

/* update: where this start goes on; viewers then drop what an earlier start wrote of
   later ones. EFILE where the folder or the file cannot be made. */
RNND_CHECKED int rnnd__tensorboard_open(const char *run_dir, int64_t update,
                                        struct rnnd__tensorboard **out);
/* count at most RNND_SCALARS points at this update. */
RNND_CHECKED int rnnd__tensorboard_add(struct rnnd__tensorboard *board, int64_t update,
                                       const struct rnnd__scalar *scalar, int count);
/* NULL is nothing. */
void rnnd__tensorboard_close(struct rnnd__tensorboard *board);

#endif
