/*
 * gradient.c - one rank's passes of one update.
 */
#include "train/gradient.h"

#include "base/clock.h"
#include "base/status.h"
#include "base/timeline.h"

/* The last micro-batch with work, after which gradients are final; window -1: none. */
struct last {
    int64_t window, micro;
};

static struct last find_last(struct rnnd__shard *s, int64_t first, int64_t end)
{
    const struct rnnd_piece *pieces;
    for (int64_t w = end - 1; w >= first; w--)
        for (int64_t m = s->cuts - 1; m >= 0; m--)
            if (rnnd__shard_slice(s, w, m, &pieces) > 0)
                return (struct last){w, m};
    return (struct last){-1, -1};
}

static int run_micro(struct rnnd__gradient *g, int64_t w, int64_t m, bool last)
{
    const struct rnnd_piece *pieces;
    int64_t count = rnnd__shard_slice(g->shard, w, m, &pieces);
    struct rnnd_pass pass = {.seed = g->seed,
                             .update = g->update,
                             .state = g->state,
                             .state_row = g->shard->cut[m],
                             .last = last};
    if (count == 0)
        return 0;
    struct rnnd__moment mark = rnnd__timeline_now();
    double start = rnnd__clock();
    RNND_TRY(rnnd_batch_load(g->batch, pieces, count, w * g->shard->window));
    rnnd__timeline_mark(RNND_WORK_LOAD, false, -1, mark);
    g->loading += rnnd__clock() - start;
    return rnnd_model_gradient(g->model, g->batch, &pass, g->loss);
}

int rnnd__gradient_accumulate(struct rnnd__gradient *g)
{
    int64_t end, first = rnnd__shard_windows(g->shard, g->index, &end);
    struct last last = find_last(g->shard, first, end);
    for (int64_t w = first; w < end; w++) {
        for (int64_t m = 0; m < g->shard->cuts; m++)
            RNND_TRY(run_micro(g, w, m, w == last.window && m == last.micro));
        if (g->state)
            rnnd_state_advance(g->state);
    }
    return last.window < 0 ? rnnd_model_announce(g->model) : 0;
}
