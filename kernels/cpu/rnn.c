/*
 * rnn.c - the time loop of one recurrent layer in one direction, forward beside
 * backward.
 *
 * Sequences do not depend on each other, so each thread owns a block of neighbouring
 * sequences for the whole loop: no barrier inside. The rows alive at step t are the
 * first n[t], so the state before a step is a prefix of the rows of the step it comes
 * from.
 */
#include <string.h>

#include "cpu.h"

/* A thread's sequences first .. first+count-1. */
struct block {
    const struct rnnd__cpu *cpu;
    const struct rnnd__rnn *r;
    int G;
    int64_t first, count, steps;
    /* backward: its sums of bias gradients */
    double *db;
};

/* The states before some rows: of the step they come from, or the initial ones. */
struct before {
    const float *h, *c;
    int64_t ldh;
};

/* The scratch: packed weights, two carried gradients of the states [N,H], in bf16 the
   factors of a step [N,G*H] in pairs, each thread's sums of bias gradients [G+1] of H
   padded, and the place of the state before each row [R]. */
struct scratch {
    float *w, *dh, *dc, *pairs;
    double *db;
    const float **rows;
};

enum { LINE_FLOATS = 16 };

static int64_t packed_floats(int G, int64_t H)
{
    return G * H * rnnd__simd_padded(H);
}

/* Of one sequence. */
static int64_t pair_floats(const struct rnnd__cpu *cpu, int G, int64_t H)
{
    return cpu->bf16 ? (G * H + 1) / 2 : 0;
}

static int64_t bias_doubles(int G, int64_t H)
{
    return (G + 1) * rnnd__simd_padded(H);
}

/* The next cache line from p on. */
static float *lined(float *p)
{
    const uintptr_t line = LINE_FLOATS * sizeof(float);
    return (float *)(((uintptr_t)p + line - 1) / line * line);
}

static struct scratch scratch_of(const struct rnnd__cpu *cpu, const struct rnnd__rnn *r)
{
    int G = rnnd__cell_gates(r->cell);
    int64_t N = r->batch->N, states = N * r->H;
    const float **rows = (const float **)lined(rnnd__floats(r->scratch));
    float *w = lined((float *)(rows + r->batch->R));
    float *dh = w + packed_floats(G, r->H), *pairs = dh + 2 * states;
    double *db = (double *)lined(pairs + N * pair_floats(cpu, G, r->H));
    return (struct scratch){w, dh, dh + states, pairs, db, rows};
}

/* ---- blocks */

/* Where part begins: blocks hold about the same number of rows. */
static int64_t block_start(const struct rnnd__packed *b, int part, int parts)
{
    int64_t rows = 0, j = 0;
    if (part == parts)
        return b->N;
    while (j < b->N && rows * parts < b->R * part)
        rows += b->len[j++];
    return j;
}

static struct block block_of(const struct rnnd__cpu *cpu, const struct rnnd__rnn *r,
                             int part, int parts)
{
    int64_t first = block_start(r->batch, part, parts);
    int64_t count = block_start(r->batch, part + 1, parts) - first;
    return (struct block){cpu,   r,     rnnd__cell_gates(r->cell),
                          first, count, count > 0 ? r->batch->len[first] : 0,
                          NULL};
}

/* How many of a block's sequences are alive at step t. */
static int64_t alive(const struct block *k, int64_t t)
{
    if (t >= k->r->batch->T)
        return 0;
    int64_t n = k->r->batch->n[t] - k->first;
    return n < 0 ? 0 : n < k->count ? n : k->count;
}

/* The packed row of a block's sequence j at step t. */
static int64_t row_at(const struct block *k, int64_t t, int64_t j)
{
    return k->r->batch->off[t] + k->first + j;
}

static const float *or_null(struct rnnd__buf buf, int64_t at)
{
    return rnnd__buf_is_null(buf) ? NULL : rnnd__floats(buf) + at;
}

static struct before before_at(const struct block *k, int64_t t, int64_t j)
{
    int64_t row = row_at(k, t, j);
    return (struct before){rnnd__floats(k->r->y) + row * k->r->ldy,
                           or_null(k->r->keep, row * k->r->H), k->r->ldy};
}

static struct before initial(const struct block *k, int64_t j)
{
    int64_t at = (k->first + j) * k->r->H;
    return (struct before){or_null(k->r->h0, at), or_null(k->r->c0, at), k->r->H};
}

static struct rnnd__step step_of(const struct block *k, int64_t row, int64_t rows,
                                 struct before p)
{
    const struct rnnd__rnn *r = k->r;
    struct scratch x = scratch_of(k->cpu, r);
    return (struct rnnd__step){
        .rows = rows,
        .H = r->H,
        .w = x.w,
        .pairs =
            k->cpu->bf16 ? x.pairs + k->first * pair_floats(k->cpu, k->G, r->H) : NULL,
        .gates = rnnd__floats(r->gates) + row * k->G * r->H,
        .b_ih = rnnd__floats(r->b_ih),
        .b_hh = rnnd__floats(r->b_hh),
        .y = rnnd__floats(r->y) + row * r->ldy,
        .ldy = r->ldy,
        .h_prev = p.h,
        .ldh = p.ldh,
        .keep = (float *)or_null(r->keep, row * r->H),
        .c_prev = p.c,
    };
}

/* Lets a step know the gates of the step that is computed after it. */
static void prefetch_step(const struct block *k, struct rnnd__step *s, int64_t then)
{
    if (then < 0 || then >= k->steps)
        return;
    s->prefetch = rnnd__floats(k->r->gates) + row_at(k, then, 0) * k->G * s->H;
    s->prefetch_floats = alive(k, then) * k->G * s->H;
}

/* Copies a row of H floats, or zeros where there is none. */
static void put_row(float *out, const float *in, int64_t H)
{
    if (in)
        memcpy(out, in, (size_t)H * sizeof(float));
    else
        memset(out, 0, (size_t)H * sizeof(float));
}

/* ---- forward */

/* Sequences j .. j+rows-1 at step t, after the states p. */
static void forward_rows(const struct block *k, int64_t t, int64_t j, int64_t rows,
                         struct before p)
{
    if (rows == 0)
        return;
    struct rnnd__step s = step_of(k, row_at(k, t, j), rows, p);
    prefetch_step(k, &s, k->r->reverse ? t - 1 : t + 1);
    k->cpu->simd->step_forward(k->r->cell, &s);
}

static void forward_steps(const struct block *k)
{
    if (!k->r->reverse) {
        for (int64_t t = 0; t < k->steps; t++)
            forward_rows(k, t, 0, alive(k, t),
                         t ? before_at(k, t - 1, 0) : initial(k, 0));
        return;
    }
    for (int64_t t = k->steps - 1; t >= 0; t--) {
        int64_t old = alive(k, t + 1);
        if (old > 0)
            forward_rows(k, t, 0, old, before_at(k, t + 1, 0));
        forward_rows(k, t, old, alive(k, t) - old, initial(k, old));
    }
}

/* hn and cn of a block's sequences. */
static void forward_final(const struct block *k)
{
    const struct rnnd__rnn *r = k->r;
    for (int64_t j = 0; j < k->count; j++) {
        int64_t len = r->batch->len[k->first + j], at = (k->first + j) * r->H;
        struct before p =
            len == 0 ? initial(k, j) : before_at(k, r->reverse ? 0 : len - 1, j);
        if (!rnnd__buf_is_null(r->hn))
            put_row(rnnd__floats(r->hn) + at, p.h, r->H);
        if (!rnnd__buf_is_null(r->cn))
            put_row(rnnd__floats(r->cn) + at, p.c, r->H);
    }
}

static void forward_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                         int parts)
{
    struct block k = block_of(cpu, arg, part, parts);
    forward_steps(&k);
    forward_final(&k);
}

/* ---- backward */

/* The carried gradients of a step, and the gate gradients of the step after it. */
static void backward_carried(const struct block *k, struct rnnd__step *s, int64_t later,
                             int64_t j)
{
    struct scratch x = scratch_of(k->cpu, k->r);
    int64_t H = s->H, at = (k->first + j) * H;
    s->dh = x.dh + at;
    s->dc = x.dc + at;
    s->db = k->db;
    if (later < 0)
        return;
    s->next = rnnd__floats(k->r->gates) + row_at(k, later, j) * k->G * H;
    s->next_q = or_null(k->r->keep, row_at(k, later, j) * H);
}

/* The cells of sequences j .. j+rows-1 at step t, after which came step `later` (-1:
   none). */
static void backward_rows(const struct block *k, int64_t t, int64_t later, int64_t j,
                          int64_t rows, struct before p)
{
    const struct rnnd__rnn *r = k->r;
    if (rows == 0)
        return;
    int64_t row = row_at(k, t, j);
    struct rnnd__step s = step_of(k, row, rows, p);
    backward_carried(k, &s, later, j);
    s.dy = or_null(r->dy, row * r->ldy);
    prefetch_step(k, &s, r->reverse ? t + 1 : t - 1);
    k->cpu->simd->step_backward(r->cell, &s);
}

/* dh of the states before step t, its sequences' first one. */
static void backward_state(const struct block *k, int64_t t, int64_t j, int64_t rows)
{
    if (rows == 0 || rnnd__buf_is_null(k->r->dh0))
        return;
    struct rnnd__step s =
        step_of(k, row_at(k, t, j), rows, (struct before){NULL, NULL, 0});
    backward_carried(k, &s, t, j);
    k->cpu->simd->step_state(k->r->cell, &s);
}

static void backward_steps(const struct block *k)
{
    if (!k->r->reverse) {
        for (int64_t t = k->steps - 1; t >= 0; t--) {
            struct before p = t ? before_at(k, t - 1, 0) : initial(k, 0);
            int64_t old = alive(k, t + 1);
            backward_rows(k, t, t + 1, 0, old, p);
            p.h = p.h ? p.h + old * p.ldh : NULL;
            p.c = p.c ? p.c + old * k->r->H : NULL;
            backward_rows(k, t, -1, old, alive(k, t) - old, p);
        }
        backward_state(k, 0, 0, alive(k, 0));
        return;
    }
    for (int64_t t = 0; t < k->steps; t++) {
        int64_t old = alive(k, t + 1);
        if (old > 0)
            backward_rows(k, t, t - 1, 0, old, before_at(k, t + 1, 0));
        backward_rows(k, t, t - 1, old, alive(k, t) - old, initial(k, old));
        backward_state(k, t, old, alive(k, t) - old);
    }
}

/* The carried gradients begin as those of the final states, and end as those of the
   initial ones. */
static void backward_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                          int parts)
{
    const struct rnnd__rnn *r = arg;
    struct block k = block_of(cpu, r, part, parts);
    struct scratch x = scratch_of(cpu, r);
    int64_t at = k.first * r->H, n = k.count * r->H;
    k.db = x.db + part * bias_doubles(k.G, r->H);
    memset(k.db, 0, (size_t)bias_doubles(k.G, r->H) * sizeof(double));
    put_row(x.dh + at, or_null(r->dhn, at), n);
    put_row(x.dc + at, or_null(r->dcn, at), n);
    backward_steps(&k);
    if (!rnnd__buf_is_null(r->dh0))
        put_row(rnnd__floats(r->dh0) + at, x.dh + at, n);
    if (!rnnd__buf_is_null(r->dc0))
        put_row(rnnd__floats(r->dc0) + at, x.dc + at, n);
}

/* ---- gradients of the parameters */

/* The hidden state before each packed row; NULL where it is zero. */
static void states_before(const struct rnnd__rnn *r, const float **rows)
{
    const struct rnnd__packed *b = r->batch;
    for (int64_t t = 0; t < b->T; t++) {
        int64_t from = r->reverse ? t + 1 : t - 1; /* the step they come from */
        int64_t old = from < 0 || from == b->T ? 0 : b->n[from];
        for (int64_t j = 0; j < b->n[t]; j++)
            *rows++ = j < old ? rnnd__floats(r->y) + (b->off[from] + j) * r->ldy
                              : or_null(r->h0, j * r->H);
    }
}

/* Rows range[0] .. range[1]-1 of dW_hh from their gates' gradients g [R,ld]. */
static void outer_rows(const struct rnnd__cpu *cpu, const struct rnnd__rnn *r, int part,
                       const int64_t range[2], const float *g, int64_t ld)
{
    struct rnnd__outer o = {.m = range[1] - range[0],
                            .n = r->H,
                            .k = r->batch->R,
                            .c = rnnd__floats(r->dw_hh) + range[0] * r->H,
                            .ldc = r->H,
                            .a = g,
                            .lda = ld,
                            .rows = scratch_of(cpu, r).rows,
                            .work = cpu->work + part * (int64_t)RNND__OUTER_WORK,
                            .bf16 = cpu->bf16};
    if (o.m > 0)
        cpu->simd->outer(&o);
}

/* A part's rows of dW_hh. Those of the GRU's n have their gradient in keep. */
static void weight_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                        int parts)
{
    const struct rnnd__rnn *r = arg;
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H, range[2];
    int64_t own =
        r->cell == RNND_GRU ? 2 * H : GH; /* rows with their gradient in gates */
    rnnd__cpu_range(GH, part, parts, range);
    int64_t gates[2] = {range[0], range[1] < own ? range[1] : own};
    int64_t keep[2] = {range[0] > own ? range[0] : own, range[1]};
    outer_rows(cpu, r, part, gates, rnnd__floats(r->gates) + gates[0], GH);
    if (own < GH)
        outer_rows(cpu, r, part, keep, rnnd__floats(r->keep) + keep[0] - own, H);
}

/* Adds the threads' sums, in their order. */
static void bias_gradient(const struct rnnd__cpu *cpu, const struct rnnd__rnn *r,
                          int parts)
{
    int64_t H = r->H, G = rnnd__cell_gates(r->cell), stride = rnnd__simd_padded(H);
    float *db_ih = rnnd__floats(r->db_ih), *db_hh = rnnd__floats(r->db_hh);
    const double *db = scratch_of(cpu, r).db;
    for (int64_t g = 0; g < G; g++) {
        int64_t recurrent = r->cell == RNND_GRU && g == 2 ? 3 : g; /* q in place of n */
        for (int64_t j = 0; j < H; j++) {
            double ih = 0, hh = 0;
            for (int part = 0; part < parts; part++) {
                const double *own = db + part * bias_doubles((int)G, H) + j;
                ih += own[g * stride];
                hh += own[recurrent * stride];
            }
            db_ih[g * H + j] += (float)ih;
            db_hh[g * H + j] += (float)hh;
        }
    }
}

/* ---- packing */

static void pack_forward_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                              int parts)
{
    const struct rnnd__rnn *r = arg;
    const struct rnnd__packing packing = {r->cell, r->H, cpu->bf16};
    int64_t panels = cpu->simd->panels_forward(r->cell, r->H);
    for (int64_t p = part; p < panels; p += parts)
        cpu->simd->pack_forward(&packing, p, scratch_of(cpu, r).w,
                                rnnd__floats(r->w_hh));
}

static void pack_backward_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                               int parts)
{
    const struct rnnd__rnn *r = arg;
    const struct rnnd__packing packing = {r->cell, r->H, cpu->bf16};
    int64_t panels = cpu->simd->panels_backward(r->cell, r->H);
    for (int64_t p = part; p < panels; p += parts)
        cpu->simd->pack_backward(&packing, p, scratch_of(cpu, r).w,
                                 rnnd__floats(r->w_hh));
}

/* ---- entries */

size_t rnnd__cpu_rnn_scratch(struct rnnd_backend *be, enum rnnd_cell cell, int64_t H,
                             int64_t N, int64_t R)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    int G = rnnd__cell_gates(cell);
    size_t floats = (size_t)(packed_floats(G, H) + 2 * N * H +
                             N * pair_floats(cpu, G, H) + 3 * LINE_FLOATS);
    size_t doubles = (size_t)(cpu->threads * bias_doubles(G, H));
    return floats * sizeof(float) + doubles * sizeof(double) +
           (size_t)R * sizeof(float *);
}

static int loop_parts(const struct rnnd__cpu *cpu, const struct rnnd__rnn *r)
{
    return rnnd__cpu_parts(cpu, r->batch->R * r->H * 8);
}

static void direction_forward(const struct rnnd__cpu *cpu, const struct rnnd__rnn *r)
{
    int64_t weights = r->H * r->H * rnnd__cell_gates(r->cell);
    if (r->batch->R > 0)
        rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, weights), pack_forward_part, r);
    rnnd__cpu_parallel(cpu, loop_parts(cpu, r), forward_part, r);
}

static void direction_backward(const struct rnnd__cpu *cpu, const struct rnnd__rnn *r)
{
    int64_t weights = r->H * r->H * rnnd__cell_gates(r->cell);
    int parts = loop_parts(cpu, r);
    if (r->batch->R > 0)
        rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, weights), pack_backward_part, r);
    rnnd__cpu_parallel(cpu, parts, backward_part, r);
    if (r->batch->R == 0)
        return;
    states_before(r, scratch_of(cpu, r).rows);
    rnnd__cpu_parallel(cpu, parts, weight_part, r);
    if (!rnnd__buf_is_null(r->db_ih))
        bias_gradient(cpu, r, parts);
}

void rnnd__cpu_rnn_forward(struct rnnd_backend *be, const struct rnnd__rnn *r)
{
    for (; r; r = r->other)
        direction_forward(rnnd__cpu_of(be), r);
}

void rnnd__cpu_rnn_backward(struct rnnd_backend *be, const struct rnnd__rnn *r)
{
    for (; r; r = r->other)
        direction_backward(rnnd__cpu_of(be), r);
}
