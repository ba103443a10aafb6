/*
 * beam.h - prefix beam search: the most probable string of labels (ctc), where the best
 * path finds the string of the most probable path.
 */
#ifndef RNND_BEAM_H
#define RNND_BEAM_H

#include "rnn_dist.h"

struct rnnd__beam;

/* Keeps `width` prefixes at every step. */
RNND_CHECKED int rnnd__beam_new(int64_t width, int64_t outputs,
                                struct rnnd__beam **out);
void rnnd__beam_free(struct rnnd__beam *beam);
/* As rnnd__decode_best(): label [T] receives the string, *count its length. */
RNND_CHECKED int rnnd__beam_search(struct rnnd__beam *beam, const float *const *row,
                                   int64_t T, int32_t *label, int64_t *count);

#endif
