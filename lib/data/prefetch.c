/*
 * prefetch.c - asks for the data of the next update.
 */
#include "data/prefetch.h"

#include <stdlib.h>

#include "base/status.h"

struct rnnd__ahead {
    struct rnnd_dataset *data;
    struct rnnd__share *share;      /* of the entry that comes next */
};

int rnnd__ahead_new(const struct rnnd_options *opt, struct rnnd_dataset *data,
                   struct rnnd_comm *comm, struct rnnd__ahead **out)
{
    struct rnnd__ahead *a = NULL;
    *out = NULL;
    if (rnnd_dataset_in_memory(data))
        return 0;
    RNND_TRY(rnnd__new(1, sizeof *a, "reading ahead", (void **)&a));
    a->data = data;
    int status = rnnd__share_new(opt, data, comm, &a->share);
    if (status < 0)
        free(a);
    else
        *out = a;
    return status;
}

void rnnd__ahead_free(struct rnnd__ahead *a)
{
    if (!a)
        return;
    rnnd__share_free(a->share);
    free(a);
}

int rnnd__ahead_entry(struct rnnd__ahead *a, const struct rnnd_plan *plan, int64_t entry)
{
    const int32_t *ids;
    int64_t count;
    if (!a || entry >= rnnd_plan_entries(plan))
        return 0;
    rnnd_plan_entry(plan, entry, &ids, &count);
    RNND_TRY(rnnd__share_sequences(a->share, ids, count));
    for (int64_t j = 0; j < a->share->count; j++) {
        const struct rnnd_piece *p = &a->share->piece[j];
        rnnd_dataset_ahead(a->data, p->begin, p->length + a->share->pairs);
    }
    return 0;
}

void rnnd__ahead_lanes(struct rnnd__ahead *a, const struct rnnd__share *lanes, int64_t g)
{
    int64_t end, first = rnnd__share_group(lanes, g, &end);
    for (int64_t j = 0; a && j < lanes->count; j++) {
        const struct rnnd_piece *p = &lanes->piece[j];
        int64_t from = first * lanes->window, to = end * lanes->window;
        to = to < p->length ? to : p->length;
        if (from < to)
            rnnd_dataset_ahead(a->data, p->begin + from, to - from + 1);
    }
}
