/*
 * align.h - where the labels of a given string are: the most probable path through the
 * scores of a sequence that reads as the string (ctc).
 */
#ifndef RNND_ALIGN_H
#define RNND_ALIGN_H

#include "rnn_dist.h"

struct rnnd__aligner;

RNND_CHECKED int rnnd__aligner_new(int64_t outputs, struct rnnd__aligner **out);
void rnnd__aligner_free(struct rnnd__aligner *aligner);

struct rnnd__alignment {
    /* [T] of each step the place of its label in the string, -1 = blank; valid until
       the next call. NULL: there is no path. */
    const int32_t *place;
    /* the logarithm of the path's probability, NaN where there is none */
    double log_p;
};

/* Aligns a string of labels, classes from 0 on, with the scores of T steps. Of paths
   that are equally probable, the one that comes to its later labels first. */
RNND_CHECKED int rnnd__align(struct rnnd__aligner *aligner, const float *const *row,
                             int64_t T, const int32_t *label, int64_t count,
                             struct rnnd__alignment *out);

#endif
