/*
 * touched.h - the rows of the embedding that the gradient of an update reaches.
 *
 * With --sparse-embedding only these rows are zeroed, summed over ranks, counted in the
 * norm and updated. All other rows of the gradient arena are zero at any time.
 */
#ifndef RNND_TOUCHED_H
#define RNND_TOUCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "rnn_dist.h"

struct rnnd__touched {
    /* else gradients of the whole arena are dense, and nothing is listed */
    bool on;
    /* where the embedding begins in the arenas, and the width of its rows */
    int64_t begin, cols;
    /* row [room], count of them; sorted and distinct unless rows were added since
       rnnd__touched_settle() */
    int32_t *row;
    int64_t count, room;
    bool settled;
};

/* Makes room for this many rows in all. */
RNND_CHECKED int rnnd__touched_reserve(struct rnnd__touched *touched, int64_t rows);
/* Adds rows; row [count], each at least 0. They may be there already. */
RNND_CHECKED int rnnd__touched_add(struct rnnd__touched *touched, const int32_t *row,
                                   int64_t count);
/* Sorts the rows and drops duplicates. */
void rnnd__touched_settle(struct rnnd__touched *touched);
void rnnd__touched_forget(struct rnnd__touched *touched);
void rnnd__touched_clear(struct rnnd__touched *touched);

/* The offset of listed row i in the arenas. */
static inline int64_t rnnd__touched_at(const struct rnnd__touched *t, int64_t i)
{
    return t->begin + t->row[i] * t->cols;
}

#endif
