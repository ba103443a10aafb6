/*
 * prefetch.h - reads the data of the next update into memory while the current one
 * computes.
 *
 * Only for data sets that are read in slices. It asks the system to read in the
 * background; results do not depend on it.
 */
#ifndef RNND_PREFETCH_H
#define RNND_PREFETCH_H

#include "data/shard.h"

struct rnnd__prefetch;

/* *out is NULL if all data are in memory; the other functions accept that. part, parts:
   as rnnd__shard_new(). data is borrowed. */
RNND_CHECKED int rnnd__prefetch_new(const struct rnnd_options *opt,
                                    struct rnnd_dataset *data, int part, int parts,
                                    struct rnnd__prefetch **out);
void rnnd__prefetch_free(struct rnnd__prefetch *prefetch);
/* Prefetches this rank's shard of a plan entry; nothing past the last entry. */
RNND_CHECKED int rnnd__prefetch_entry(struct rnnd__prefetch *prefetch,
                                      const struct rnnd_plan *plan, int64_t entry);
/* Prefetches update k of the lanes of a stream. */
void rnnd__prefetch_lanes(struct rnnd__prefetch *prefetch,
                          const struct rnnd__shard *lanes, int64_t k);

#endif
