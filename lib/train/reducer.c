/*
 * reducer.c - sums the gradients of a model over all ranks.
 *
 * Takes the ranges that the model announces as final, joins adjacent ones into buckets,
 * and passes these to the communicator. Where sums progress in the background (NCCL) a
 * bucket starts as soon as it is full, or as nothing can fill it any more, during the
 * rest of the backward pass: nothing is left to start in finish. Where they
 * do not (MPI makes no progress during the time loop) all sums start in finish, once
 * all ranks have arrived. Sees the gradients as one flat array, no layers.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeline.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/params.h"

struct range {
    int64_t begin, end;
};

/* Ranges that wait side by side: of a layer in two directions, and of the one above. */
enum { PIECES = 4 };

struct rnnd_reducer {
    struct rnnd_model *model;
    const struct rnnd__params *params;
    /* the communicator in use; `own` is the same if it was opened here, else NULL */
    struct rnnd_comm *comm, *own;
    /* size of a bucket in floats, and of the least that is worth a sum of its own */
    int64_t bucket, least;
    /* whether sums start during the backward pass */
    bool early;
    /* announced, but not yet passed on: piece [pieces], not adjacent, and their
       floats */
    struct range piece[PIECES];
    int pieces;
    int64_t pending;
    /* ranges announced in this update: seen [room], seen_count of them, and their
       floats */
    struct range *seen;
    int seen_count, room;
    int64_t seen_floats;
    /* --sparse-embedding: touched rows of this rank and of all, [most] and
       [ranks * most], and packed gradients, float [packed_rows, cols] */
    int32_t *own_rows, *all_rows;
    int64_t most;
    struct rnnd__buf packed;
    int64_t packed_rows;
    /* seconds spent in finish */
    double wait;
};

/* ---- buckets */

static int begin(struct rnnd_reducer *r, struct range range)
{
    const struct rnnd__params *p = r->params;
    for (int64_t at = range.begin; at < range.end; at += r->bucket) {
        int64_t left = range.end - at;
        RNND_TRY(rnnd__comm_sum_begin(r->comm, p->be, rnnd__at(p->grad, at),
                                      left < r->bucket ? left : r->bucket,
                                      "gradient sum"));
    }
    return 0;
}

static void forget(struct rnnd_reducer *r)
{
    r->pieces = 0;
    r->pending = 0;
}

static int flush(struct rnnd_reducer *r)
{
    int status = 0;
    for (int i = 0; i < r->pieces && status >= 0; i++)
        status = begin(r, r->piece[i]);
    forget(r);
    return status;
}

static int64_t length(struct range range)
{
    return range.end - range.begin;
}

static bool join(struct range *to, struct range range)
{
    if (range.end == to->begin)
        to->begin = range.begin;
    else if (range.begin == to->end)
        to->end = range.end;
    else
        return false;
    return true;
}

/* Joins it with what it is adjacent to. */
static int add(struct rnnd_reducer *r, struct range range)
{
    int64_t floats = length(range);
    if (r->pending + floats > r->bucket || r->pieces == PIECES)
        RNND_TRY(flush(r));
    for (int i = 0; i < r->pieces; i++)
        if (join(&range, r->piece[i])) {
            r->piece[i] = r->piece[--r->pieces];
            i = -1; /* the longer one may be adjacent to others */
        }
    r->piece[r->pieces++] = range;
    r->pending += floats;
    return 0;
}

/* Whether what is pending is passed on: a full bucket, or the last one. Once the rest
   fills none, what is worth a sum does not wait for it. */
static bool is_due(const struct rnnd_reducer *r)
{
    int64_t rest = r->params->count - r->seen_floats;
    return r->pending >= r->bucket || rest == 0 ||
           (rest < r->bucket && r->pending >= r->least);
}

static bool was_seen(const struct rnnd_reducer *r, struct range range)
{
    for (int i = 0; i < r->seen_count; i++)
        if (r->seen[i].begin <= range.begin && range.end <= r->seen[i].end)
            return true;
    return false;
}

static int remember(struct rnnd_reducer *r, struct range range)
{
    if (r->seen_count == r->room) {
        int room = r->room ? 2 * r->room : 64;
        RNND_TRY(RNND_GROW(&r->seen, room, "gradient buckets"));
        r->room = room;
    }
    r->seen[r->seen_count++] = range;
    r->seen_floats += length(range);
    return 0;
}

/* Called by the model. After a failure within an update everything is announced again
   from the start; skipping what was announced before keeps the buckets the same as on
   the other ranks. */
static int ready(void *context, int64_t offset, int64_t count)
{
    struct rnnd_reducer *r = context;
    struct range range = {offset, offset + count};
    if (was_seen(r, range))
        return 0;
    RNND_TRY(remember(r, range));
    RNND_TRY(add(r, range));
    return is_due(r) ? flush(r) : 0;
}

/* ---- touched rows of the embedding */

/* Room for the longest list of any rank, and for the union of all lists. */
static int reserve_rows(struct rnnd_reducer *r, int64_t most)
{
    int64_t ranks = rnnd_comm_size(r->comm);
    RNND_TRY(rnnd__touched_reserve(rnnd__model_touched(r->model), ranks * most));
    if (most <= r->most)
        return 0;
    most = most > 2 * r->most ? most : 2 * r->most;
    RNND_TRY(RNND_GROW(&r->own_rows, most, "rows of the embedding"));
    RNND_TRY(RNND_GROW(&r->all_rows, ranks * most, "rows of the embedding"));
    r->most = most;
    return 0;
}

/* Makes the list of touched rows the union of those of all ranks. Shorter lists are
   filled up with -1. */
static int unite_rows(struct rnnd_reducer *r)
{
    struct rnnd__touched *t = rnnd__model_touched(r->model);
    int64_t most, listed;
    rnnd__touched_settle(t);
    most = t->count;
    RNND_TRY(rnnd_comm_max(r->comm, &most, 1));
    RNND_TRY(rnnd_comm_agree(r->comm, reserve_rows(r, most)));
    if (most == 0)
        return 0;
    for (int64_t i = 0; i < most; i++)
        r->own_rows[i] = i < t->count ? t->row[i] : -1;
    RNND_TRY(rnnd__comm_allgather(r->comm, r->own_rows,
                                  (size_t)most * sizeof *r->own_rows, r->all_rows));
    listed = rnnd_comm_size(r->comm) * most;
    rnnd__touched_forget(t);
    for (int64_t i = 0; i < listed; i++)
        if (r->all_rows[i] >= 0)
            RNND_TRY(rnnd__touched_add(t, &r->all_rows[i], 1));
    rnnd__touched_settle(t);
    return 0;
}

/* Copies `rows` listed rows, from the first on, between the arena and the packed
   gradients. */
static void pack_rows(struct rnnd_reducer *r, int64_t first, int64_t rows, bool unpack)
{
    const struct rnnd__touched *t = &r->params->touched;
    struct rnnd_backend *be = r->params->be;
    for (int64_t i = 0; i < rows; i++) {
        struct rnnd__buf packed = rnnd__at(r->packed, i * t->cols);
        int64_t at = rnnd__touched_at(t, first + i);
        struct rnnd__buf grad = rnnd__at(r->params->grad, at);
        be->ops->copy(be, unpack ? grad : packed, unpack ? packed : grad,
                      (size_t)t->cols * sizeof(float));
    }
}

/* Sums the touched rows, a bucket at a time. */
static int sum_rows(struct rnnd_reducer *r)
{
    const struct rnnd__touched *t = &r->params->touched;
    if (!t->on)
        return 0;
    RNND_TRY(unite_rows(r));
    for (int64_t at = 0; at < t->count; at += r->packed_rows) {
        int64_t left = t->count - at;
        int64_t rows = left < r->packed_rows ? left : r->packed_rows;
        pack_rows(r, at, rows, false);
        RNND_TRY(rnnd__comm_sum_begin(r->comm, r->params->be, r->packed, rows * t->cols,
                                      "gradient sum"));
        RNND_TRY(rnnd__comm_sum_wait(r->comm));
        pack_rows(r, at, rows, true);
    }
    return 0;
}

static int open_rows(struct rnnd_reducer *r)
{
    const struct rnnd__touched *t = &r->params->touched;
    if (!t->on || rnnd_comm_size(r->comm) == 1)
        return 0;
    int64_t table = (r->params->count - t->begin) / t->cols;
    int64_t rows = r->bucket / t->cols > 0 ? r->bucket / t->cols : 1;
    r->packed_rows = rows < table ? rows : table;
    return rnnd__device_alloc(r->params->be, &r->packed, r->packed_rows * t->cols);
}

/* ---- the end of an update */

/* What ranks exchange at the end of an update, in one small sum. */
struct shared {
    int status;
    unsigned flags;
    struct rnnd_loss loss;
};

enum { FLAGS = 8 };

/* One sum carries loss, flags and the number of failed ranks; which rank failed, and
   why, is exchanged only if one did. */
static int exchange(struct rnnd_reducer *r, struct shared *s)
{
    double value[5 + FLAGS] = {s->loss.loss, s->loss.targets, s->loss.correct,
                               s->loss.weight, s->status < 0};
    for (int i = 0; i < FLAGS; i++)
        value[5 + i] = s->flags >> i & 1;
    RNND_TRY(rnnd_comm_sum(r->comm, value, 5 + FLAGS));
    if (value[4] > 0)
        return rnnd_comm_agree(r->comm, s->status);
    s->loss = (struct rnnd_loss){value[0], value[1], value[2], value[3]};
    for (int i = 0; i < FLAGS; i++)
        if (value[5 + i] > 0)
            s->flags |= 1u << i;
    return 0;
}

/* Sums are already running, so a rank that failed takes part in them, whatever its
   gradients are. */
static int finish_early(struct rnnd_reducer *r, struct shared *s)
{
    struct rnnd__moment mark = rnnd__timeline_now();
    double start = rnnd__clock();
    int begun = 0;
    if (r->seen_floats < r->params->count)
        begun = rnnd_model_announce(r->model);
    if (begun >= 0)
        begun = rnnd__comm_sum_wait(r->comm);
    if (s->status >= 0)
        s->status = begun;
    int status = exchange(r, s);
    r->wait += rnnd__clock() - start;
    rnnd__timeline_mark(RNND_WORK_REDUCE, false, -1, mark);
    return status;
}

/* The ranks first wait for the slowest one in the small sum; then all sum their
   gradients at full speed, or not at all if one failed. */
static int finish_late(struct rnnd_reducer *r, struct shared *s)
{
    const struct rnnd__params *p = r->params;
    if (s->status >= 0)
        s->status = rnnd__device_sync(p->be);
    struct rnnd__moment mark = rnnd__timeline_now();
    double start = rnnd__clock();
    RNND_TRY(exchange(r, s));
    rnnd__timeline_mark(RNND_WORK_MEET, false, -1, mark);
    mark = rnnd__timeline_now();
    RNND_TRY(begin(r, (struct range){0, rnnd__params_dense(p)}));
    RNND_TRY(rnnd__comm_sum_wait(r->comm));
    RNND_TRY(sum_rows(r));
    rnnd__timeline_mark(RNND_WORK_REDUCE, false, -1, mark);
    r->wait += rnnd__clock() - start;
    return 0;
}

int rnnd_reducer_finish(struct rnnd_reducer *r, int status, unsigned *flags,
                        struct rnnd_loss *loss)
{
    if (rnnd_comm_size(r->comm) == 1)
        return status;
    struct shared s = {.status = status, .flags = flags ? *flags : 0, .loss = *loss};
    status = r->early ? finish_early(r, &s) : finish_late(r, &s);
    forget(r);
    r->seen_count = 0;
    r->seen_floats = 0;
    RNND_TRY(status);
    *loss = s.loss;
    if (flags)
        *flags = s.flags;
    return 0;
}

bool rnnd_reducer_overlaps(const struct rnnd_reducer *r)
{
    return r->early;
}

double rnnd_reducer_take_wait(struct rnnd_reducer *r)
{
    double wait = r->wait;
    r->wait = 0;
    return wait;
}

int rnnd_reducer_new(struct rnnd_model *model, struct rnnd_comm *comm, double bucket_mb,
                     struct rnnd_reducer **out)
{
    struct rnnd_reducer *r;
    RNND_TRY(RNND_NEW(&r, 1, "gradient sums"));
    r->model = model;
    r->params = rnnd__model_params(model);
    int status = rnnd__comm_open_sums(comm, r->params->be, &r->own);
    if (status < 0) {
        free(r);
        return status;
    }
    r->comm = r->own ? r->own : comm;
    double floats = bucket_mb * 1e6 / sizeof(float);
    r->bucket = floats < 1 ? 1 : floats < 1e15 ? (int64_t)floats : (int64_t)1e15;
    r->least = (r->bucket + 15) / 16; /* at 25 MB, what a link moves in 20 us or so */
    r->early = rnnd__comm_overlaps(r->comm) && rnnd_comm_size(r->comm) > 1;
    if (r->early)
        rnnd_model_on_ready(model, ready, r);
    status = open_rows(r);
    if (status < 0) {
        rnnd_reducer_free(r);
        return status;
    }
    *out = r;
    return 0;
}

void rnnd_reducer_free(struct rnnd_reducer *r)
{
    if (!r)
        return;
    if (r->early)
        rnnd_model_on_ready(r->model, NULL, NULL);
    rnnd_comm_close(r->own);
    rnnd__device_free(r->params->be, &r->packed);
    free(r->own_rows);
    free(r->all_rows);
    free(r->seen);
    free(r);
}
