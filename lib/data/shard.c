/*
 * shard.c - one rank's shard of a plan entry, cut into windows and micro-batches.
 */
#include "data/shard.h"

#include <stdlib.h>

#include "base/status.h"
#include "data/plan.h"

static int64_t recurrent_weights(const struct rnnd_options *opt)
{
    int64_t gates = opt->cell == RNND_LSTM ? 4 : opt->cell == RNND_GRU ? 3 : 1;
    return gates * opt->hidden * opt->hidden;
}

int rnnd__shard_new(const struct rnnd_options *opt, const struct rnnd_dataset *data,
                    int part, int parts, struct rnnd__shard **out)
{
    struct rnnd__shard *s = NULL;
    RNND_TRY(RNND_NEW(&s, 1, "shards"));
    s->offsets = rnnd_dataset_offsets(data);
    s->pairs = rnnd_dataset_info(data)->task == RNND_LM;
    s->tokens = rnnd_dataset_info(data)->steps;
    s->longest_string = rnnd_dataset_info(data)->longest_string;
    s->part = part;
    s->parts = parts;
    s->window = opt->tbptt;
    s->windows_per_update = opt->tbptt ? opt->windows : 0;
    s->bound = opt->microbatch_tokens;
    s->step_cost = rnnd__plan_step_cost(recurrent_weights(opt));
    *out = s;
    return 0;
}

void rnnd__shard_free(struct rnnd__shard *s)
{
    if (!s)
        return;
    void *all[] = {s->length, s->piece, s->cut, s->all, s->slice, s->mine};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(s);
}

static int make_room(struct rnnd__shard *s, int64_t count)
{
    size_t n = (size_t)count;
    if (count <= s->room && s->length)
        return 0;
    RNND_TRY(RNND_GROW(&s->length, n, "shards"));
    RNND_TRY(RNND_GROW(&s->piece, n, "shards"));
    RNND_TRY(RNND_GROW(&s->cut, n + 1, "shards"));
    RNND_TRY(RNND_GROW(&s->all, n, "shards"));
    RNND_TRY(RNND_GROW(&s->slice, n, "shards"));
    RNND_TRY(RNND_GROW(&s->mine, n, "shards"));
    s->room = count;
    return 0;
}

static int64_t steps_of(const struct rnnd__shard *s, int32_t id)
{
    int64_t stored = s->offsets[id + 1] - s->offsets[id];
    return s->pairs && stored > 0 ? stored - 1 : stored;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The most rows that a piece has in one window. */
static int64_t window_rows(const struct rnnd__shard *s, int64_t length)
{
    return s->window ? at_most(length, s->window) : length;
}

static int64_t windows_of(const struct rnnd__shard *s, int64_t longest)
{
    return s->window ? at_least(1, (longest + s->window - 1) / s->window) : 1;
}

/* Pieces of similar length make a micro-batch, so that its last steps have enough
   rows. */
static void cut_micro_batches(struct rnnd__shard *s)
{
    int64_t rows = 0;
    s->cuts = 0;
    s->cut[0] = 0;
    for (int64_t j = 0; j < s->count; j++) {
        int64_t more = window_rows(s, s->piece[j].length);
        bool begins = j == 0 || (s->bound && rows + more > s->bound && rows > 0);
        rows = begins ? more : rows + more;
        s->cuts += begins;
        s->cut[s->cuts] = j + 1;
    }
}

/* Takes this part's pieces from all [members]. */
static int take_own(struct rnnd__shard *s)
{
    int64_t longest = 0;
    struct rnnd__deal deal = {s->length, s->members, s->parts, s->part, s->step_cost};
    RNND_TRY(rnnd__plan_deal(&deal, s->mine, &s->count, &s->straggler));
    for (int64_t j = 0; j < s->count; j++)
        s->piece[j] = s->all[s->mine[j]];
    for (int64_t i = 0; i < s->members; i++)
        longest = at_least(longest, s->length[i]);
    s->windows = windows_of(s, longest);
    cut_micro_batches(s);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    const struct rnnd_piece *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

int rnnd__shard_sequences(struct rnnd__shard *s, const int32_t *ids, int64_t count)
{
    RNND_TRY(make_room(s, count));
    for (int64_t i = 0; i < count; i++)
        s->all[i] = (struct rnnd_piece){.id = ids[i],
                                        .begin = s->offsets[ids[i]],
                                        .length = steps_of(s, ids[i]),
                                        .sequence = ids[i]};
    /* Equal lengths are packed by id, so that the order of the plan does not matter. */
    qsort(s->all, (size_t)count, sizeof *s->all, by_id);
    for (int64_t i = 0; i < count; i++)
        s->length[i] = s->all[i].length;
    s->members = count;
    return take_own(s);
}

/* floor(i * pairs / lanes) without overflow. */
static int64_t lane_begin(int64_t i, int64_t pairs, int64_t lanes)
{
    return (int64_t)((__int128)i * pairs / lanes);
}

int rnnd__shard_lanes(struct rnnd__shard *s, int64_t lanes)
{
    int64_t pairs = s->tokens - 1;
    if (pairs < lanes)
        return rnnd__fail(RNND_EDATA,
                          "%lld tokens make %lld pairs: too few for --batch %lld "
                          "lanes",
                          (long long)s->tokens, (long long)at_least(pairs, 0),
                          (long long)lanes);
    RNND_TRY(make_room(s, lanes));
    for (int64_t i = 0; i < lanes; i++) {
        int64_t begin = lane_begin(i, pairs, lanes);
        s->all[i] =
            (struct rnnd_piece){.id = i,
                                .begin = begin,
                                .length = lane_begin(i + 1, pairs, lanes) - begin,
                                .sequence = -1};
        s->length[i] = s->all[i].length;
    }
    s->members = lanes;
    return take_own(s);
}

int64_t rnnd__shard_updates(const struct rnnd__shard *s, int64_t longest)
{
    int64_t windows = windows_of(s, longest);
    return s->windows_per_update
               ? (windows + s->windows_per_update - 1) / s->windows_per_update
               : 1;
}

int64_t rnnd__shard_windows(const struct rnnd__shard *s, int64_t k, int64_t *end)
{
    int64_t first = s->windows_per_update ? k * s->windows_per_update : 0;
    *end = s->windows_per_update ? at_most(first + s->windows_per_update, s->windows)
                                 : s->windows;
    return first;
}

int64_t rnnd__shard_steps(const struct rnnd__shard *s, int64_t first, int64_t end)
{
    int64_t steps = 0;
    for (int64_t i = 0; i < s->members; i++) {
        int64_t from = s->window ? at_most(first * s->window, s->length[i]) : 0;
        int64_t to = s->window ? at_most(end * s->window, s->length[i]) : s->length[i];
        steps += to - from;
    }
    return steps;
}

int64_t rnnd__shard_slice(struct rnnd__shard *s, int64_t w, int64_t m,
                          const struct rnnd_piece **pieces)
{
    const struct rnnd_piece *from = s->piece + s->cut[m];
    int64_t count = s->cut[m + 1] - s->cut[m], n = 0;
    *pieces = from;
    if (!s->window)
        return count;
    for (; n < count && from[n].length > w * s->window; n++) {
        s->slice[n] = from[n];
        s->slice[n].begin += w * s->window;
        s->slice[n].length = at_most(s->window, from[n].length - w * s->window);
    }
    *pieces = s->slice;
    return n;
}

void rnnd__shard_limits(const struct rnnd__shard *s, const int32_t *ids, int64_t count,
                        struct rnnd_limits *limits)
{
    int64_t total = 0, longest = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t rows = window_rows(s, ids ? steps_of(s, ids[i]) : s->length[i]);
        total += rows;
        longest = at_least(longest, rows);
    }
    /* Assigning the longest first to the least loaded rank gives no rank more than the
       mean load and one sequence; a rank with few steps can have more rows instead. */
    int64_t mean = total / s->parts + 1;
    int64_t traded = s->step_cost * at_most(longest, mean) / RNND_COST_ROW;
    int64_t rows =
        s->parts == 1 ? total : at_most(total, mean + longest + traded + count);
    if (s->bound)
        rows = at_most(rows, at_least(s->bound, longest));
    limits->sequences = at_least(limits->sequences, count);
    limits->steps = at_least(limits->steps, longest);
    limits->rows = at_least(limits->rows, rows);
    limits->labels =
        at_least(limits->labels, at_most(s->longest_string, limits->steps));
}
