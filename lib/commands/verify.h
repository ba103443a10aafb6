/*
 * verify.h - proofs on the user's own data that how work is split does not change it.
 */
#ifndef RNND_VERIFY_H
#define RNND_VERIFY_H

#include "rnn_dist.h"

/* Compares, for the first update that the options make: N ranks with one (on a world of
   one: 3 shares in turn), packed batches with one sequence at a time, micro-batches
   with the whole; and a run that was stopped and resumed with one that was not. Rank 0
   writes a line each to out, with the largest difference. RNND_FAULT where one does not
   hold. Collective; files go to a temporary folder. */
RNND_CHECKED int rnnd__verify(const struct rnnd_options *opt, struct rnnd_comm *comm,
                              FILE *out);

#endif
