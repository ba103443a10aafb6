/*
 * plan.c - which sequences make which update, and how an update is sharded over ranks.
 *
 * The plan depends on lengths, seed and batch options, not on ranks or clocks, so every
 * process lays out the same epoch without communication.
 */
#include "data/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"

struct rnnd_plan {
    const int64_t *offsets;
    int64_t sequences;
    struct rnnd_plan_options opt;
    /* [sequences] the sequences of this epoch, batch by batch */
    int32_t *order;
    /* [entries+1] position in order where each batch begins */
    int64_t *start;
    int64_t entries;
    /* [entries] the batch of each entry */
    int32_t *turn;
    /* [sequences of a pool] scratch for sorting */
    uint64_t *key;
};

/* Draws of 64 bits from one Philox stream. */
struct draws {
    uint64_t key, next;
};

static uint64_t draw_below(struct draws *d, uint64_t bound)
{
    uint32_t half = (uint32_t)(d->next & 1) * 2;
    uint64_t c = d->next++ >> 1;
    struct rnnd__random r =
        rnnd__philox(d->key, (uint32_t)c, (uint32_t)(c >> 32), 0, 0);
    uint64_t word = ((uint64_t)r.word[half + 1] << 32) | r.word[half];
    return (uint64_t)(((unsigned __int128)word * bound) >> 64);
}

/* Shuffles list (Fisher-Yates). */
static void shuffle(int32_t *list, int64_t count, uint64_t key)
{
    struct draws d = {key, 0};
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)draw_below(&d, (uint64_t)i + 1);
        int32_t swap = list[i];
        list[i] = list[j];
        list[j] = swap;
    }
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A sort key: by falling length, then by position. */
static uint64_t length_key(int64_t length, int64_t position)
{
    uint32_t cut = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
    return ((uint64_t)(UINT32_MAX - cut) << 32) | (uint32_t)position;
}

static int64_t length_of(const struct rnnd_plan *plan, int32_t id)
{
    return plan->offsets[id + 1] - plan->offsets[id];
}

/* Sorts order[from..to) by falling length; equal lengths keep their order. */
static void sort_pool(struct rnnd_plan *plan, int64_t from, int64_t to)
{
    int32_t *pool = plan->order + from;
    int64_t count = to - from;
    uint64_t *key = plan->key;
    for (int64_t i = 0; i < count; i++)
        key[i] = length_key(length_of(plan, pool[i]), i);
    qsort(key, (size_t)count, sizeof *key, by_key);
    for (int64_t i = 0; i < count; i++) /* replace the position in the key by the id */
        key[i] = (uint32_t)pool[(uint32_t)key[i]];
    for (int64_t i = 0; i < count; i++)
        pool[i] = (int32_t)key[i];
}

static int64_t pool_end(const struct rnnd_plan *plan, int64_t from)
{
    const struct rnnd_plan_options *o = &plan->opt;
    if (o->batch)
        return plan->sequences - from > o->bucket * o->batch
                   ? from + o->bucket * o->batch
                   : plan->sequences;
    int64_t room = o->bucket * o->batch_tokens, to = from;
    while (to < plan->sequences) {
        room -= length_of(plan, plan->order[to]);
        if (room < 0 && to > from)
            break;
        to++;
    }
    return to;
}

static int64_t batch_end(const struct rnnd_plan *plan, int64_t from)
{
    const struct rnnd_plan_options *o = &plan->opt;
    if (o->batch)
        return plan->sequences - from > o->batch ? from + o->batch : plan->sequences;
    int64_t room = o->batch_tokens, to = from;
    while (to < plan->sequences) {
        int64_t length = length_of(plan, plan->order[to]);
        room -= length;
        if (room < 0 && length > 0 && to > from)
            break;
        to++;
    }
    return to;
}

struct rnnd_plan_options rnnd_plan_options_of(const struct rnnd_options *opt)
{
    return (struct rnnd_plan_options){.seed = (uint64_t)opt->seed,
                                      .shuffle = opt->shuffle == RNND_SHUFFLE_EPOCH,
                                      .bucket = opt->bucket,
                                      .batch = opt->batch_tokens ? 0 : opt->batch,
                                      .batch_tokens = opt->batch_tokens};
}

int rnnd_plan_new(const int64_t *offsets, int64_t sequences,
                  const struct rnnd_plan_options *opt, struct rnnd_plan **out)
{
    if (sequences > INT32_MAX)
        return rnnd__fail(RNND_EDATA, "%lld sequences: a data set can have at most %d",
                          (long long)sequences, INT32_MAX);
    struct rnnd_plan *plan = NULL;
    size_t n = (size_t)sequences, entries = n, pool = n;
    int status = 0;
    if (opt->batch) {
        entries = (n + (size_t)opt->batch - 1) / (size_t)opt->batch;
        pool = entries < (size_t)opt->bucket ? n : (size_t)(opt->bucket * opt->batch);
    }
    RNND_TRY_GOTO(RNND_NEW(&plan, 1, "plan"));
    plan->offsets = offsets;
    plan->sequences = sequences;
    plan->opt = *opt;
    RNND_TRY_GOTO(RNND_NEW(&plan->order, n, "plan"));
    RNND_TRY_GOTO(RNND_NEW(&plan->start, entries + 1, "plan"));
    RNND_TRY_GOTO(RNND_NEW(&plan->turn, entries, "plan"));
    RNND_TRY_GOTO(RNND_NEW(&plan->key, pool, "plan"));
    *out = plan;
    return 0;
done:
    rnnd_plan_free(plan);
    return status;
}

void rnnd_plan_free(struct rnnd_plan *plan)
{
    if (!plan)
        return;
    free(plan->order);
    free(plan->start);
    free(plan->turn);
    free(plan->key);
    free(plan);
}

static void cut_batches(struct rnnd_plan *plan)
{
    plan->entries = 0;
    for (int64_t from = 0; from < plan->sequences; from = plan->start[plan->entries]) {
        plan->turn[plan->entries] = (int32_t)plan->entries;
        plan->start[plan->entries++] = from;
        plan->start[plan->entries] = batch_end(plan, from);
    }
}

/* The number of batches to shuffle: a last batch that the end of the data cut short
   stays last. */
static int64_t full_batches(const struct rnnd_plan *plan)
{
    if (plan->entries == 0)
        return 0;
    int64_t last = plan->sequences - plan->start[plan->entries - 1];
    bool full = plan->opt.batch && last == plan->opt.batch;
    return plan->entries - !full;
}

void rnnd_plan_epoch(struct rnnd_plan *plan, int64_t epoch)
{
    const struct rnnd_plan_options *o = &plan->opt;
    for (int64_t i = 0; i < plan->sequences; i++)
        plan->order[i] = (int32_t)i;
    if (o->shuffle) {
        shuffle(plan->order, plan->sequences,
                rnnd__random_key(o->seed, RNND_FOR_SHUFFLE, 0, (uint64_t)epoch));
        for (int64_t from = 0, to; o->bucket > 1 && from < plan->sequences; from = to) {
            to = pool_end(plan, from);
            sort_pool(plan, from, to);
        }
    }
    cut_batches(plan);
    if (o->shuffle)
        shuffle(plan->turn, full_batches(plan),
                rnnd__random_key(o->seed, RNND_FOR_BATCHES, 0, (uint64_t)epoch));
}

int64_t rnnd_plan_entries(const struct rnnd_plan *plan)
{
    return plan->entries;
}

void rnnd_plan_entry(const struct rnnd_plan *plan, int64_t entry, const int32_t **ids,
                     int64_t *count)
{
    int64_t b = plan->turn[entry];
    *ids = plan->order + plan->start[b];
    *count = plan->start[b + 1] - plan->start[b];
}

/* ---- sharding */

/* The cost of a shard, in quarters of the cost of a row: its rows, a little for each
   sequence and, if it runs as one batch, its steps, each of which reads the recurrent
   weights once; far steps read them from beyond the core's cache. Measurements are in
   doc/performance.md. */
enum { COST_SEQUENCE = 1, COST_STEP = 4, COST_FAR_STEP = 20 };
enum { NEAR_WEIGHTS = 1 << 19 }; /* floats that fit into a core's own cache */

int64_t rnnd__plan_step_cost(int64_t weights)
{
    return weights > NEAR_WEIGHTS ? COST_FAR_STEP : COST_STEP;
}

/* A heap of ranks, the least loaded on top; among equals the lowest rank. */
struct heap {
    /* [ranks] load of each rank, 0 = no sequence yet */
    int64_t *load;
    /* [ranks] the heap */
    int32_t *rank;
    int ranks;
};

static bool lighter(const struct heap *h, int a, int b)
{
    int64_t la = h->load[h->rank[a]], lb = h->load[h->rank[b]];
    return la < lb || (la == lb && h->rank[a] < h->rank[b]);
}

static void sink_top(struct heap *h)
{
    for (int i = 0;;) {
        int least = i, left = 2 * i + 1;
        if (left < h->ranks && lighter(h, left, least))
            least = left;
        if (left + 1 < h->ranks && lighter(h, left + 1, least))
            least = left + 1;
        if (least == i)
            return;
        int32_t swap = h->rank[i];
        h->rank[i] = h->rank[least];
        h->rank[least] = swap;
        i = least;
    }
}

static double longest_over_mean(const struct heap *h)
{
    int64_t longest = 0, sum = 0;
    for (int r = 0; r < h->ranks; r++) {
        longest = h->load[r] > longest ? h->load[r] : longest;
        sum += h->load[r];
    }
    return sum ? (double)longest * h->ranks / (double)sum : 1;
}

/* Adds a sequence to the top rank. The first one, its longest, determines its steps. */
static void charge_top(struct heap *h, int64_t length, int64_t step_cost)
{
    int64_t *load = &h->load[h->rank[0]];
    bool first = *load == 0;
    *load += COST_SEQUENCE + RNND_COST_ROW * length + (first ? step_cost * length : 0);
    sink_top(h);
}

int rnnd__plan_deal(const struct rnnd__deal *d, int32_t *mine, int64_t *n,
                    double *straggler)
{
    struct heap h = {NULL, NULL, d->ranks};
    size_t count = (size_t)d->count, ranks = (size_t)d->ranks;
    uint64_t *key = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&key, count, "shards"));
    RNND_TRY_GOTO(RNND_NEW(&h.load, ranks, "shards"));
    RNND_TRY_GOTO(RNND_NEW(&h.rank, ranks, "shards"));
    for (int r = 0; r < d->ranks; r++)
        h.rank[r] = r;
    for (int64_t i = 0; i < d->count; i++)
        key[i] = length_key(d->length[i], i);
    qsort(key, count, sizeof *key, by_key);
    int64_t taken = 0;
    for (int64_t i = 0; i < d->count; i++) {
        int32_t position = (int32_t)(uint32_t)key[i];
        if (h.rank[0] == d->rank)
            mine[taken++] = position;
        charge_top(&h, d->length[position], d->step_cost);
    }
    *n = taken;
    *straggler = longest_over_mean(&h);
done:
    free(key);
    free(h.load);
    free(h.rank);
    return status;
}

int rnnd_plan_shard(const int64_t *length, int64_t count, int ranks, int rank,
                    int32_t *mine, int64_t *n, double *straggler)
{
    struct rnnd__deal deal = {length, count, ranks, rank, COST_STEP};
    return rnnd__plan_deal(&deal, mine, n, straggler);
}
