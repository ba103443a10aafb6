/*
 * ends.c - what lies between the recurrent layers and the loss: pooling over time,
 * dropout, and the losses on values.
 *
 * Pooling is shared out by sequences, the others by rows.
 */
#include "cpu.h"

#include <math.h>
#include <string.h>

/* ---- pooling */

struct pool {
    const struct rnnd__pooling *s;
    /* y or dy [R,D*H] */
    float *rows;
    /* out or dout [N,D*H] */
    float *out;
    int32_t *argmax;
};

/* The row of step t of sequence j. */
static float *row_of(const struct pool *p, int64_t t, int64_t j)
{
    return p->rows + (p->s->batch->off[t] + j) * p->s->D * p->s->H;
}

/* Where the last state of a direction stands: forward ends at the last step, reverse at
   the first. */
static int64_t last_step(int64_t direction, int64_t len)
{
    return direction == 0 ? len - 1 : 0;
}

static void pool_last(const struct pool *p, int64_t j, int64_t len)
{
    int64_t H = p->s->H, D = p->s->D;
    for (int64_t d = 0; d < D; d++)
        memcpy(p->out + (j * D + d) * H, row_of(p, last_step(d, len), j) + d * H,
               (size_t)H * sizeof(float));
}

static void pool_mean(const struct pool *p, int64_t j, int64_t len)
{
    enum { WIDTH = 64 };
    int64_t cols = p->s->D * p->s->H;
    for (int64_t c = 0; c < cols; c += WIDTH) {
        int64_t n = cols - c < WIDTH ? cols - c : WIDTH;
        double sum[WIDTH] = {0};
        for (int64_t t = 0; t < len; t++) {
            const float *y = row_of(p, t, j) + c;
            for (int64_t i = 0; i < n; i++)
                sum[i] += y[i];
        }
        for (int64_t i = 0; i < n; i++)
            p->out[j * cols + c + i] = (float)(sum[i] / (double)len);
    }
}

/* The first of the largest values; a NaN is larger than any number. */
static void pool_max(const struct pool *p, int64_t j, int64_t len)
{
    int64_t cols = p->s->D * p->s->H;
    float *best = p->out + j * cols;
    int32_t *at = p->argmax + j * cols;
    memcpy(best, row_of(p, 0, j), (size_t)cols * sizeof(float));
    memset(at, 0, (size_t)cols * sizeof(int32_t));
    for (int64_t t = 1; t < len; t++) {
        const float *y = row_of(p, t, j);
        for (int64_t i = 0; i < cols; i++) {
            bool better = y[i] > best[i] || (isnan(y[i]) && !isnan(best[i]));
            best[i] = better ? y[i] : best[i];
            at[i] = better ? (int32_t)t : at[i];
        }
    }
}

static void pool_empty(const struct pool *p, int64_t j)
{
    int64_t cols = p->s->D * p->s->H;
    memset(p->out + j * cols, 0, (size_t)cols * sizeof(float));
    if (p->s->pool == RNND_POOL_MAX)
        memset(p->argmax + j * cols, 0, (size_t)cols * sizeof(int32_t));
}

static void pool_part(const struct rnnd__cpu *cpu, const void *arg, int part, int parts)
{
    const struct pool *p = arg;
    (void)cpu;
    for (int64_t j = part; j < p->s->batch->N; j += parts) {
        int64_t len = p->s->batch->len[j];
        if (len == 0)
            pool_empty(p, j);
        else if (p->s->pool == RNND_POOL_LAST)
            pool_last(p, j, len);
        else if (p->s->pool == RNND_POOL_MEAN)
            pool_mean(p, j, len);
        else
            pool_max(p, j, len);
    }
}

/* dy of one sequence at step t. */
static void pool_backward_step(const struct pool *p, int64_t j, int64_t t, int64_t len)
{
    int64_t H = p->s->H, D = p->s->D, cols = D * H;
    float *dy = row_of(p, t, j);
    const float *dout = p->out + j * cols;
    switch (p->s->pool) {
    case RNND_POOL_LAST:
        for (int64_t d = 0; d < D; d++)
            for (int64_t i = d * H; i < (d + 1) * H; i++)
                dy[i] = t == last_step(d, len) ? dout[i] : 0;
        break;
    case RNND_POOL_MEAN:
        for (int64_t i = 0; i < cols; i++)
            dy[i] = dout[i] / (float)len;
        break;
    case RNND_POOL_MAX:
        for (int64_t i = 0; i < cols; i++)
            dy[i] = p->argmax[j * cols + i] == t ? dout[i] : 0;
        break;
    }
}

static void pool_backward_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                               int parts)
{
    const struct pool *p = arg;
    const struct rnnd__packed *b = p->s->batch;
    (void)cpu;
    for (int64_t t = 0; t < b->T; t++)
        for (int64_t j = part; j < b->n[t]; j += parts)
            pool_backward_step(p, j, t, b->len[j]);
}

void rnnd__cpu_pool(struct rnnd_backend *be, const struct rnnd__pooling *s,
                    struct rnnd__buf out, struct rnnd__buf argmax, struct rnnd__buf y)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct pool p = {s, rnnd__floats(y), rnnd__floats(out), (int32_t *)argmax.dev};
    int64_t work = s->pool == RNND_POOL_LAST ? s->batch->N : s->batch->R;
    rnnd__cpu_share(cpu, rnnd__cpu_parts(cpu, work * s->D * s->H), pool_part, &p);
}

void rnnd__cpu_pool_backward(struct rnnd_backend *be, const struct rnnd__pooling *s,
                             struct rnnd__buf dy, struct rnnd__buf dout,
                             struct rnnd__buf argmax)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct pool p = {s, rnnd__floats(dy), rnnd__floats(dout), (int32_t *)argmax.dev};
    int64_t work = s->batch->R * s->D * s->H;
    rnnd__cpu_share(cpu, rnnd__cpu_parts(cpu, work), pool_backward_part, &p);
}

/* ---- dropout */

struct drop {
    const struct rnnd__dropout *s;
    float *out;
    const float *in;
};

static void drop_row(const struct rnnd__cpu *cpu, const struct drop *d, int64_t row,
                     int64_t j, int64_t step)
{
    int64_t at = row * d->s->cols;
    cpu->simd->dropout(d->out + at, d->in + at, d->s, d->s->batch->id[j], step);
}

static void dropout_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                         int parts)
{
    const struct drop *d = arg;
    const struct rnnd__packed *b = d->s->batch;
    bool timeless = d->s->by_sequence || d->s->kind == RNND_DROPOUT_SEQUENCE;
    if (d->s->by_sequence) {
        for (int64_t j = part; j < b->N; j += parts)
            drop_row(cpu, d, j, j, 0);
        return;
    }
    for (int64_t t = 0; t < b->T; t++)
        for (int64_t j = part; j < b->n[t]; j += parts)
            drop_row(cpu, d, b->off[t] + j, j, timeless ? 0 : b->first + t);
}

void rnnd__cpu_dropout(struct rnnd_backend *be, const struct rnnd__dropout *s,
                       struct rnnd__buf out, struct rnnd__buf in)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct drop d = {s, rnnd__floats(out), rnnd__floats(in)};
    int64_t rows = s->by_sequence ? s->batch->N : s->batch->R;
    rnnd__cpu_share(cpu, rnnd__cpu_parts(cpu, 4 * rows * s->cols), dropout_part, &d);
}

/* ---- losses on values */

struct values {
    int64_t rows, cols;
    float *scores;
    const float *target;
    double (*loss)(float *scores, const float *target, int64_t cols);
};

static bool is_target(const float *target, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        if (isnan(target[j]))
            return false;
    return true;
}

static void values_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                        int parts)
{
    const struct values *v = arg;
    struct rnnd__sums sums = {0, 0, 0};
    int64_t range[2];
    rnnd__cpu_range(v->rows, part, parts, range);
    for (int64_t r = range[0]; r < range[1]; r++) {
        float *row = v->scores + r * v->cols;
        const float *target = v->target + r * v->cols;
        if (!is_target(target, v->cols)) {
            memset(row, 0, (size_t)v->cols * sizeof(float));
            continue;
        }
        sums.loss += v->loss(row, target, v->cols);
        sums.targets += 1;
    }
    memcpy(cpu->partial + part * RNND__CPU_LINE, &sums, sizeof sums);
}

static void values_loss(const struct rnnd__cpu *cpu, const struct values *v,
                        struct rnnd__buf sums)
{
    int parts = rnnd__cpu_parts(cpu, 4 * v->rows * v->cols);
    rnnd__cpu_share(cpu, parts, values_part, v);
    rnnd__cpu_add_sums(cpu, parts, sums);
}

void rnnd__cpu_mse(struct rnnd_backend *be, int64_t rows, int64_t cols,
                   struct rnnd__buf scores, struct rnnd__buf sums,
                   struct rnnd__buf target)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct values v = {rows, cols, rnnd__floats(scores), rnnd__floats(target),
                       cpu->simd->mse};
    values_loss(cpu, &v, sums);
}

void rnnd__cpu_bce(struct rnnd_backend *be, int64_t rows, int64_t cols,
                   struct rnnd__buf scores, struct rnnd__buf sums,
                   struct rnnd__buf target)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct values v = {rows, cols, rnnd__floats(scores), rnnd__floats(target),
                       cpu->simd->bce};
    values_loss(cpu, &v, sums);
}
