/*
 * prefetch.h - data of the next update are on their way into memory while this one
 * computes.
 *
 * Takes what is shared out; asks the system, which reads by itself. Decides nothing,
 * and what it asks for in vain costs time only. Only for data sets that are read by
 * slices.
 */
#ifndef RNND_AHEAD_H
#define RNND_AHEAD_H

#include "data/shard.h"

struct rnnd__prefetch;

/* *out: NULL where all is in memory, which the other functions accept. */
RNND_CHECKED int rnnd__prefetch_new(const struct rnnd_options *opt,
                                    struct rnnd_dataset *data, int part, int parts,
                                    struct rnnd__prefetch **out);
void rnnd__prefetch_free(struct rnnd__prefetch *ahead);
/* The plan entry that comes next: this rank's shard of it. */
RNND_CHECKED int rnnd__prefetch_entry(struct rnnd__prefetch *ahead,
                                      const struct rnnd_plan *plan, int64_t entry);
/* Update k of a stream's lanes. */
void rnnd__prefetch_lanes(struct rnnd__prefetch *ahead, const struct rnnd__shard *lanes,
                          int64_t k);

#endif
