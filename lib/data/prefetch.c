/*
 * prefetch.c - prefetches the data of the next update.
 */
#include "data/prefetch.h"

#include <stdlib.h>

#include "base/status.h"

struct rnnd__prefetch {
    struct rnnd_dataset *data;
    /* this rank's shard of the next entry */
    struct rnnd__shard *shard;
};

int rnnd__prefetch_new(const struct rnnd_options *opt, struct rnnd_dataset *data,
                       int part, int parts, struct rnnd__prefetch **out)
{
    struct rnnd__prefetch *p = NULL;
    *out = NULL;
    if (rnnd_dataset_in_memory(data))
        return 0;
    RNND_TRY(RNND_NEW(&p, 1, "prefetch"));
    p->data = data;
    int status = rnnd__shard_new(opt, data, part, parts, &p->shard);
    if (status < 0)
        free(p);
    else
        *out = p;
    return status;
}

void rnnd__prefetch_free(struct rnnd__prefetch *p)
{
    if (!p)
        return;
    rnnd__shard_free(p->shard);
    free(p);
}

int rnnd__prefetch_entry(struct rnnd__prefetch *p, const struct rnnd_plan *plan,
                         int64_t entry)
{
    const int32_t *ids;
    int64_t count;
    if (!p || entry >= rnnd_plan_entries(plan))
        return 0;
    rnnd_plan_entry(plan, entry, &ids, &count);
    RNND_TRY(rnnd__shard_sequences(p->shard, ids, count));
    for (int64_t j = 0; j < p->shard->count; j++) {
        const struct rnnd_piece *piece = &p->shard->piece[j];
        rnnd_dataset_prefetch(p->data, piece->begin, piece->length + p->shard->pairs);
    }
    return 0;
}

void rnnd__prefetch_lanes(struct rnnd__prefetch *p, const struct rnnd__shard *lanes,
                          int64_t k)
{
    int64_t end, first = rnnd__shard_windows(lanes, k, &end);
    for (int64_t j = 0; p && j < lanes->count; j++) {
        const struct rnnd_piece *piece = &lanes->piece[j];
        int64_t from = first * lanes->window, to = end * lanes->window;
        to = to < piece->length ? to : piece->length;
        if (from < to)
            rnnd_dataset_prefetch(p->data, piece->begin + from, to - from + 1);
    }
}
