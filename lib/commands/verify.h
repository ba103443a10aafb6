/*
 * verify.h - checks, on the user's own data, that results do not depend on how the work
 * is split.
 */
#ifndef RNND_VERIFY_H
#define RNND_VERIFY_H

#include "rnn_dist.h"

/* Compares, for the first update that the options make: N ranks with one (in a world of
   one: 3 shards in turn), another device with the CPU, one sequence at a time and
   micro-batches with whole batches; then a run that was stopped and resumed with an
   uninterrupted one. Rank 0 writes one line per comparison to out. Temporary files go
   to $TMPDIR or /tmp. FAULT: a comparison failed. Collective. */
RNND_CHECKED int rnnd__verify(const struct rnnd_options *opt, struct rnnd_comm *comm,
                              FILE *out);

#endif
