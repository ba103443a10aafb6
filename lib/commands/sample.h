/*
 * sample.h - generates text from a language model.
 */
#ifndef RNND_SAMPLE_H
#define RNND_SAMPLE_H

#include "rnn_dist.h"

/* Writes the prompt and opt->length generated tokens to out, and a newline if the text
   does not end with one. Uses prompt, length, temperature and seed of opt. EUSAGE: the
   model is not a language model, or does not contain its vocabulary; EFILE: out cannot
   be written. */
RNND_CHECKED int rnnd__sample(struct rnnd_model *model, const struct rnnd_options *opt,
                              FILE *out);

#endif
