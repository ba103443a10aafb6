/*
 * sample.h - text from a language model.
 */
#ifndef RNND_SAMPLE_H
#define RNND_SAMPLE_H

#include "rnn_dist.h"

/* Writes the prompt and its continuation of opt->length tokens to out; the end of the
   text gets a newline if it has none. opt: prompt, length, temperature, seed. EUSAGE
   where the model is no language model, or knows no texts of its tokens. */
RNND_CHECKED int rnnd__sample(struct rnnd_model *model, const struct rnnd_options *opt,
                              FILE *out);

#endif
