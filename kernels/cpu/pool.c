/*
 * pool.c - pooling over time, and its gradient; threads take sequences.
 */
#include <math.h>
#include <string.h>

#include "cpu.h"

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

/* The step that holds the last state of a direction: forward ends at the last step,
   reverse at the first. */
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
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, work * s->D * s->H), pool_part, &p);
}

void rnnd__cpu_pool_backward(struct rnnd_backend *be, const struct rnnd__pooling *s,
                             struct rnnd__buf dy, struct rnnd__buf dout,
                             struct rnnd__buf argmax)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct pool p = {s, rnnd__floats(dy), rnnd__floats(dout), (int32_t *)argmax.dev};
    int64_t work = s->batch->R * s->D * s->H;
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, work), pool_backward_part, &p);
}
