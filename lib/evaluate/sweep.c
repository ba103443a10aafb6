/*
 * sweep.c - goes once over a whole data set, pool by pool, batch by batch.
 */
#include "evaluate/sweep.h"

#include <stdlib.h>

#include "base/status.h"
#include "data/plan.h"

enum { POOL_BATCHES = 64, POOL_FLOATS = 1 << 24 };

static int64_t length_of(const struct rnnd__sweep *w, int64_t id)
{
    return w->offsets[id + 1] - w->offsets[id];
}

int rnnd__sweep_new(const struct rnnd_options *opt, const struct rnnd_dataset *data,
                    struct rnnd_comm *comm, int64_t width, struct rnnd__sweep **out)
{
    struct rnnd__sweep *w = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&w, 1, "sweep"));
    w->offsets = rnnd_dataset_offsets(data);
    w->sequences = rnnd_dataset_info(data)->sequences;
    w->comm = comm;
    w->batch = opt->batch;
    w->bound = opt->microbatch_tokens ? opt->microbatch_tokens : opt->batch_tokens;
    w->pool_rows = width ? POOL_FLOATS / width : INT64_MAX;
    size_t most =
        (size_t)(w->batch < w->sequences / POOL_BATCHES ? w->batch * POOL_BATCHES
                                                        : w->sequences);
    RNND_TRY_GOTO(RNND_NEW(&w->order, most, "sweep"));
    RNND_TRY_GOTO(RNND_NEW(&w->start, most + 1, "sweep"));
    RNND_TRY_GOTO(RNND_NEW(&w->rows, most, "sweep"));
    RNND_TRY_GOTO(RNND_NEW(&w->mine, most, "sweep"));
    *out = w;
    return 0;
done:
    rnnd__sweep_free(w);
    return status;
}

void rnnd__sweep_free(struct rnnd__sweep *w)
{
    if (!w)
        return;
    free(w->order);
    free(w->start);
    free(w->rows);
    free(w->mine);
    free(w);
}

static void take_pool(struct rnnd__sweep *w)
{
    int64_t room = w->pool_rows, most = w->batch * POOL_BATCHES;
    w->first = w->end;
    while (w->end < w->sequences && w->end - w->first < most) {
        room -= length_of(w, w->end);
        if (room < 0 && w->end > w->first)
            break;
        w->end++;
    }
}

static int longer_first(const void *a, const void *b, void *context)
{
    const struct rnnd__sweep *w = context;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    int64_t lx = length_of(w, x), ly = length_of(w, y);
    return lx != ly ? (lx < ly) - (lx > ly) : (x > y) - (x < y);
}

static void cut_batches(struct rnnd__sweep *w)
{
    int64_t count = w->end - w->first;
    w->batches = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = length_of(w, w->order[i]), b = w->batches - 1;
        if (i == 0 || i - w->start[b] == w->batch ||
            (w->bound && w->rows[b] && w->rows[b] + length > w->bound)) {
            w->start[w->batches] = i;
            w->rows[w->batches++] = length;
        } else {
            w->rows[b] += length;
        }
    }
    w->start[w->batches] = count;
}

int rnnd__sweep_assign(const struct rnnd__sweep *w, int rank, int32_t *mine,
                       int64_t *own)
{
    double straggler;
    struct rnnd__deal deal = {w->rows, w->batches, rnnd_comm_size(w->comm), rank, 0};
    return rnnd__plan_deal(&deal, mine, own, &straggler);
}

int rnnd__sweep_next(struct rnnd__sweep *w, bool *more)
{
    take_pool(w);
    for (int64_t id = w->first; id < w->end; id++)
        w->order[id - w->first] = (int32_t)id;
    qsort_r(w->order, (size_t)(w->end - w->first), sizeof *w->order, longer_first, w);
    cut_batches(w);
    *more = w->end > w->first;
    return rnnd__sweep_assign(w, rnnd_comm_rank(w->comm), w->mine, &w->own);
}

int64_t rnnd__sweep_batch(const struct rnnd__sweep *w, int64_t b, const int32_t **ids)
{
    *ids = w->order + w->start[b];
    return w->start[b + 1] - w->start[b];
}
