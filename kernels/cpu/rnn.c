/*
 * rnn.c - the time loop of one recurrent layer in one direction, forward beside backward.
 *
 * Sequences do not meet in the recurrence, so each thread owns a block of neighbouring
 * sequences for the whole loop: no barrier inside. The rows alive at step t are the first
 * n[t], so the state before a step is a prefix of the rows of the step it comes from.
 */
#include "cpu.h"

#include <string.h>

/* A thread's sequences first .. first+count-1. */
struct block {
    const struct rnnd_cpu *cpu;
    const struct rnnd_rnn *r;
    int G;
    int64_t first, count, steps;
};

/* The states before some rows: of the step they come from, or the initial ones. */
struct before {
    const float *h, *c;
    int64_t ldh;
};

/* The scratch, in floats: two carried gradients of the states, and the states before every
   row (for dW_hh). */
struct scratch {
    float *dh, *dc, *h_prev;
};

/* ---- blocks ------------------------------------------------------------------------- */

/* Where part begins: blocks hold about the same number of rows. */
static int64_t block_start(const struct rnnd_packed *b, int part, int parts)
{
    int64_t rows = 0, j = 0;
    if (part == parts)
        return b->N;
    while (j < b->N && rows * parts < b->R * part)
        rows += b->len[j++];
    return j;
}

static struct block block_of(const struct rnnd_cpu *cpu, const struct rnnd_rnn *r, int part,
                             int parts)
{
    int64_t first = block_start(r->batch, part, parts);
    int64_t count = block_start(r->batch, part + 1, parts) - first;
    return (struct block){cpu, r, rnnd_cell_gates(r->cell), first, count,
                          count > 0 ? r->batch->len[first] : 0};
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

static const float *or_null(struct rnnd_buf buf, int64_t at)
{
    return rnnd_buf_is_null(buf) ? NULL : rnnd__floats(buf) + at;
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

static struct rnnd_step step_of(const struct block *k, int64_t row, int64_t rows,
                                struct before p)
{
    const struct rnnd_rnn *r = k->r;
    return (struct rnnd_step){
        .rows = rows, .H = r->H, .gates = rnnd__floats(r->gates) + row * k->G * r->H,
        .b_ih = rnnd__floats(r->b_ih), .b_hh = rnnd__floats(r->b_hh),
        .y = rnnd__floats(r->y) + row * r->ldy, .ldy = r->ldy, .h_prev = p.h, .ldh = p.ldh,
        .keep = (float *)or_null(r->keep, row * r->H), .c_prev = p.c,
    };
}

/* Copies a row of H floats, or zeros where there is none. */
static void put_row(float *out, const float *in, int64_t H)
{
    if (in)
        memcpy(out, in, (size_t)H * sizeof(float));
    else
        memset(out, 0, (size_t)H * sizeof(float));
}

/* ---- forward ------------------------------------------------------------------------ */

/* Adds h' W_hh^T to the gates; the part of the GRU's n goes to keep. */
static void forward_product(const struct block *k, const struct rnnd_step *s)
{
    int64_t H = s->H, GH = k->G * H;
    const float *w = rnnd__floats(k->r->w_hh);
    bool gru = k->r->cell == RNND_GRU;
    struct rnnd_matmul m = {.tb = true, .m = s->rows, .n = gru ? 2 * H : GH, .k = H,
                            .alpha = 1, .beta = 1, .lda = s->ldh, .ldb = H, .ldc = GH};
    if (s->h_prev)
        rnnd__gemm(k->cpu, &m, s->gates, s->h_prev, w);
    if (!gru)
        return;
    m.n = m.ldc = H;
    m.beta = 0;
    if (s->h_prev)
        rnnd__gemm(k->cpu, &m, s->keep, s->h_prev, w + 2 * H * H);
    else
        memset(s->keep, 0, (size_t)(s->rows * H) * sizeof(float));
}

/* Sequences j .. j+rows-1 at step t, after the states p. */
static void forward_rows(const struct block *k, int64_t t, int64_t j, int64_t rows,
                         struct before p)
{
    if (rows == 0)
        return;
    struct rnnd_step s = step_of(k, row_at(k, t, j), rows, p);
    forward_product(k, &s);
    k->cpu->simd->cell_forward(k->r->cell, &s);
}

static void forward_steps(const struct block *k)
{
    if (!k->r->reverse) {
        for (int64_t t = 0; t < k->steps; t++)
            forward_rows(k, t, 0, alive(k, t), t ? before_at(k, t - 1, 0) : initial(k, 0));
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
    const struct rnnd_rnn *r = k->r;
    for (int64_t j = 0; j < k->count; j++) {
        int64_t len = r->batch->len[k->first + j], at = (k->first + j) * r->H;
        struct before p = len == 0 ? initial(k, j)
                                   : before_at(k, r->reverse ? 0 : len - 1, j);
        if (!rnnd_buf_is_null(r->hn))
            put_row(rnnd__floats(r->hn) + at, p.h, r->H);
        if (!rnnd_buf_is_null(r->cn))
            put_row(rnnd__floats(r->cn) + at, p.c, r->H);
    }
}

static void forward_part(const struct rnnd_cpu *cpu, const void *arg, int part, int parts)
{
    struct block k = block_of(cpu, arg, part, parts);
    forward_steps(&k);
    forward_final(&k);
}

/* ---- backward ----------------------------------------------------------------------- */

static struct scratch scratch_of(const struct rnnd_rnn *r)
{
    float *p = rnnd__floats(r->scratch);
    int64_t states = r->batch->N * r->H;
    return (struct scratch){p, p + states, p + 2 * states};
}

/* dh (GRU: added to what went straight) for the states before, from the gate gradients. */
static void backward_product(const struct block *k, const struct rnnd_step *s)
{
    int64_t H = s->H, GH = k->G * H;
    const float *w = rnnd__floats(k->r->w_hh);
    bool gru = k->r->cell == RNND_GRU;
    struct rnnd_matmul m = {.m = s->rows, .n = H, .k = gru ? 2 * H : GH, .alpha = 1,
                            .beta = gru, .lda = GH, .ldb = H, .ldc = H};
    rnnd__gemm(k->cpu, &m, s->dh, s->gates, w);
    if (!gru)
        return;
    m.k = m.lda = H;
    rnnd__gemm(k->cpu, &m, s->dh, s->keep, w + 2 * H * H);
}

/* The cells of sequences j .. j+rows-1 at step t, and the states before them kept for dW_hh. */
static void backward_rows(const struct block *k, int64_t t, int64_t j, int64_t rows,
                          struct before p)
{
    int64_t H = k->r->H, at = (k->first + j) * H, row = row_at(k, t, j);
    struct scratch x = scratch_of(k->r);
    if (rows == 0)
        return;
    struct rnnd_step s = step_of(k, row, rows, p);
    s.dh = x.dh + at;
    s.dc = x.dc + at;
    if (!rnnd_buf_is_null(k->r->dy))
        for (int64_t i = 0; i < rows; i++)
            k->cpu->simd->add(s.dh + i * H,
                              rnnd__floats(k->r->dy) + (row + i) * k->r->ldy, H);
    k->cpu->simd->cell_backward(k->r->cell, &s);
    for (int64_t i = 0; i < rows; i++)
        put_row(x.h_prev + (row + i) * H, p.h ? p.h + i * p.ldh : NULL, H);
}

/* From the gate gradients of step t to dh of the states before its first `rows` rows. */
static void backward_states(const struct block *k, int64_t t, int64_t rows)
{
    if (rows == 0)
        return;
    struct rnnd_step s = step_of(k, row_at(k, t, 0), rows, (struct before){NULL, NULL, 0});
    s.dh = scratch_of(k->r).dh + k->first * k->r->H;
    backward_product(k, &s);
}

static void backward_steps(const struct block *k)
{
    bool states = !rnnd_buf_is_null(k->r->dh0);
    if (!k->r->reverse) {
        for (int64_t t = k->steps - 1; t >= 0; t--) {
            backward_rows(k, t, 0, alive(k, t), t ? before_at(k, t - 1, 0) : initial(k, 0));
            if (t > 0 || states)
                backward_states(k, t, alive(k, t));
        }
        return;
    }
    for (int64_t t = 0; t < k->steps; t++) {
        int64_t old = alive(k, t + 1);
        if (old > 0)
            backward_rows(k, t, 0, old, before_at(k, t + 1, 0));
        backward_rows(k, t, old, alive(k, t) - old, initial(k, old));
        backward_states(k, t, states ? alive(k, t) : old);
    }
}

/* The carried gradients begin as those of the final states, and end as those of the initial
   ones. */
static void backward_part(const struct rnnd_cpu *cpu, const void *arg, int part, int parts)
{
    const struct rnnd_rnn *r = arg;
    struct block k = block_of(cpu, r, part, parts);
    struct scratch x = scratch_of(r);
    int64_t at = k.first * r->H, n = k.count * r->H;
    put_row(x.dh + at, or_null(r->dhn, at), n);
    put_row(x.dc + at, or_null(r->dcn, at), n);
    backward_steps(&k);
    if (!rnnd_buf_is_null(r->dh0))
        put_row(rnnd__floats(r->dh0) + at, x.dh + at, n);
    if (!rnnd_buf_is_null(r->dc0))
        put_row(rnnd__floats(r->dc0) + at, x.dc + at, n);
}

/* Parameter gradients of gates from .. to-1, whose gradients are g [R,ldg]. */
static void weight_gradients(struct rnnd_backend *be, const struct rnnd_rnn *r, int64_t from,
                             int64_t to, const float *g, int64_t ldg)
{
    int64_t H = r->H;
    float *h_prev = scratch_of(r).h_prev;
    struct rnnd_matmul m = {.ta = true, .m = (to - from) * H, .n = H, .k = r->batch->R,
                            .alpha = 1, .beta = 1, .lda = ldg, .ldb = H, .ldc = H};
    rnnd__cpu_matmul(be, &m, rnnd_at(r->dw_hh, from * H * H), (struct rnnd_buf){(char *)g},
                     (struct rnnd_buf){(char *)h_prev});
}

struct bias {
    float *out;
    const float *g;
    int64_t ld, rows, cols;
};

static void bias_part(const struct rnnd_cpu *cpu, const void *arg, int part, int parts)
{
    const struct bias *b = arg;
    int64_t range[2];
    rnnd__cpu_range(b->cols, part, parts, range);
    cpu->simd->sum_rows(b->out + range[0], b->g + range[0], b->ld, NULL, b->rows,
                        range[1] - range[0]);
}

static void bias_gradient(const struct rnnd_cpu *cpu, const struct rnnd_rnn *r,
                          struct rnnd_buf out, int64_t cols, const float *g, int64_t ld)
{
    struct bias b = {rnnd__floats(out), g, ld, r->batch->R, cols};
    rnnd__cpu_share(cpu, rnnd__cpu_parts(cpu, b.rows * cols), bias_part, &b);
}

/* ---- entries ------------------------------------------------------------------------ */

size_t rnnd__cpu_rnn_scratch(struct rnnd_backend *be, enum rnnd_cell cell, int64_t H,
                             int64_t N, int64_t R)
{
    (void)be;
    (void)cell;
    return (size_t)((2 * N + R) * H) * sizeof(float);
}

static int loop_parts(const struct rnnd_cpu *cpu, const struct rnnd_rnn *r)
{
    return rnnd__cpu_parts(cpu, r->batch->R * r->H * 8);
}

void rnnd__cpu_rnn_forward(struct rnnd_backend *be, const struct rnnd_rnn *r)
{
    const struct rnnd_cpu *cpu = rnnd__cpu(be);
    rnnd__cpu_share(cpu, loop_parts(cpu, r), forward_part, r);
}

void rnnd__cpu_rnn_backward(struct rnnd_backend *be, const struct rnnd_rnn *r)
{
    const struct rnnd_cpu *cpu = rnnd__cpu(be);
    rnnd__cpu_share(cpu, loop_parts(cpu, r), backward_part, r);
    if (r->batch->R == 0)
        return;
    int64_t H = r->H, G = rnnd_cell_gates(r->cell), GH = G * H;
    const float *gates = rnnd__floats(r->gates), *keep = rnnd__floats(r->keep);
    bias_gradient(cpu, r, r->db_ih, GH, gates, GH);
    if (r->cell == RNND_GRU) { /* the recurrent side's view of n differs by r */
        weight_gradients(be, r, 0, 2, gates, GH);
        weight_gradients(be, r, 2, 3, keep, H);
        bias_gradient(cpu, r, r->db_hh, 2 * H, gates, GH);
        bias_gradient(cpu, r, rnnd_at(r->db_hh, 2 * H), H, keep, H);
    } else {
        weight_gradients(be, r, 0, G, gates, GH);
        bias_gradient(cpu, r, r->db_hh, GH, gates, GH);
    }
}
