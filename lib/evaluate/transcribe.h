/*
 * transcribe.h - the strings that a model reads from a batch, and their distances from
 * the targets.
 */
#ifndef RNND_TRANSCRIBE_H
#define RNND_TRANSCRIBE_H

#include "evaluate/figures.h"

struct rnnd__transcriber;

/* *out is NULL for other tasks than ctc. EUSAGE: as rnnd__decoder_new(). */
RNND_CHECKED int rnnd__transcriber_new(const struct rnnd_options *opt,
                                       const struct rnnd_model_spec *spec,
                                       const struct rnnd_dataset *data,
                                       struct rnnd__transcriber **out);
void rnnd__transcriber_free(struct rnnd__transcriber *t);
/* Adds the strings of a batch of whole sequences to the figures, by its scores in
   packed order. Strings that do not fit are left out. */
RNND_CHECKED int rnnd__transcriber_add(struct rnnd__transcriber *t,
                                       const struct rnnd_batch *batch,
                                       const float *score, struct rnnd__figures *f);

#endif
