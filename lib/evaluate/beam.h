/*
 * beam.h - prefix beam search: the most probable strings of labels (ctc), where the
 * best path finds the string of the most probable path.
 */
#ifndef RNND_BEAM_H
#define RNND_BEAM_H

#include "rnn_dist.h"

struct rnnd__beam;

/* Keeps `width` prefixes at every step. */
RNND_CHECKED int rnnd__beam_new(int64_t width, int64_t outputs,
                                struct rnnd__beam **out);
void rnnd__beam_free(struct rnnd__beam *beam);
/* Searches the scores of T steps; *found strings, at most `width`, are kept until the
   next search. There is none if no score of a step is a number. */
RNND_CHECKED int rnnd__beam_search(struct rnnd__beam *beam, const float *const *row,
                                   int64_t T, int64_t *found);
/* Of these, the best (rank 0) or a later one: label [T] receives it, *count its length,
   *log_p the logarithm of its probability, summed over the paths that were kept. */
void rnnd__beam_string(const struct rnnd__beam *beam, int64_t rank, int32_t *label,
                       int64_t *count, double *log_p);

#endif
