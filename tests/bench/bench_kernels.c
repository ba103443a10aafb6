/*
 * bench_kernels.c - training passes at the level of the back end's table, timed.
 *
 * For each shape of a list: products with the inputs, the time loops forward and
 * backward, the weights' gradients, for language models also embedding, head and loss,
 * then the norm and SGD. Prints real time steps a second, the share of the rate that
 * large products reach in the same process, and where the time goes. Usage:
 * bench_kernels [THREADS [SECONDS [NAME [bf16]]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend.h"
#include "base/random.h"

struct shape {
    const char *name;
    enum rnnd_cell cell;
    int64_t I, H;
    int L, D;
    int64_t N, shortest, longest;
    /* language model */
    int64_t V;
};

static const struct shape shapes[] = {
    {"lstm-12-50", RNND_LSTM, 12, 50, 1, 1, 32, 7, 29, 0},
    {"lstm-36-50", RNND_LSTM, 36, 50, 1, 1, 32, 32, 128, 0},
    {"lstm-64-256x2", RNND_LSTM, 64, 256, 2, 1, 64, 5, 200, 0},
    {"gru-64-256x2", RNND_GRU, 64, 256, 2, 1, 64, 5, 200, 0},
    {"bilstm-64-128x2", RNND_LSTM, 64, 128, 2, 2, 64, 5, 200, 0},
    {"lstm-128-512x2", RNND_LSTM, 128, 512, 2, 1, 64, 20, 120, 0},
    {"gru-lm-512x3", RNND_GRU, 256, 512, 3, 1, 256, 35, 35, 10000},
    {"lstm-lm-200x2", RNND_LSTM, 200, 200, 2, 1, 20, 20, 20, 10000},
};

enum { BATCHES = 4, LAYERS = 4, CHUNK = 1 << 21 };
enum part { INPUT, FORWARD, BACKWARD, WEIGHTS, HEAD, UPDATE, PARTS };
static const char *const part_names[PARTS] = {"input",   "forward", "backward",
                                              "weights", "head",    "update"};

struct net {
    const struct shape *s;
    struct rnnd_backend *be;
    const struct rnnd__backend_ops *op;
    struct rnnd__packed batch[BATCHES];
    /* most rows of a batch; parameters; of them laid out */
    int64_t rows, params, used;
    int64_t w_ih[LAYERS][2], w_hh[LAYERS][2], b[LAYERS][2], embed, head;
    struct rnnd__buf value, grad, x, dx, y[LAYERS], gates[LAYERS][2], keep[LAYERS][2];
    struct rnnd__buf scratch, scores, token, rows_of, segment, sums;
    struct rnnd__segments seg;
    double time[PARTS], mark;
};

/* On one thread its processor time, so that others on the machine disturb less. */
static clockid_t used_clock = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(used_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void lap(struct net *n, enum part part)
{
    double t = now();
    n->time[part] += t - n->mark;
    n->mark = t;
}

static void *checked(void *p)
{
    if (!p)
        abort();
    return p;
}

static struct rnnd__buf device(struct net *n, int64_t floats, double scale)
{
    struct rnnd__buf buf;
    if (n->op->alloc(n->be, &buf, (size_t)floats * 4) != 0)
        abort();
    float *x = checked(malloc((size_t)floats * 4));
    for (int64_t i = 0; i < floats; i++) {
        struct rnnd__random r = rnnd__philox(1, (uint32_t)i, 0, 0, 0);
        x[i] = (float)(scale * (2 * rnnd__uniform(r.word[0]) - 1));
    }
    n->op->upload(n->be, buf, x, (size_t)floats * 4);
    free(x);
    return buf;
}

/* ---- batches */

static int falling(const void *a, const void *b)
{
    return *(const int32_t *)b - *(const int32_t *)a;
}

static void make_batch(struct net *n, int which)
{
    const struct shape *s = n->s;
    int32_t *len = checked(calloc((size_t)s->N, 4));
    int64_t *id = checked(calloc((size_t)s->N, 8));
    for (int64_t j = 0; j < s->N; j++) {
        struct rnnd__random r = rnnd__philox(7, (uint32_t)j, (uint32_t)which, 0, 0);
        len[j] = (int32_t)(s->shortest + r.word[0] % (s->longest - s->shortest + 1));
    }
    qsort(len, (size_t)s->N, 4, falling);
    int32_t *rows = checked(calloc((size_t)len[0], 4));
    int64_t *off = checked(calloc((size_t)len[0] + 1, 8));
    for (int64_t j = 0; j < s->N; j++)
        for (int32_t t = 0; t < len[j]; t++)
            rows[t]++;
    for (int32_t t = 0; t < len[0]; t++)
        off[t + 1] = off[t] + rows[t];
    n->batch[which] = (struct rnnd__packed){.N = s->N,
                                            .T = len[0],
                                            .R = off[len[0]],
                                            .n = rows,
                                            .off = off,
                                            .len = len,
                                            .id = id};
    n->rows = off[len[0]] > n->rows ? off[len[0]] : n->rows;
}

static void free_batch(struct rnnd__packed *b)
{
    free((void *)b->n);
    free((void *)b->off);
    free((void *)b->len);
    free((void *)b->id);
}

/* ---- the net */

static int64_t place(struct net *n, int64_t count)
{
    int64_t at = n->used;
    n->used += count;
    return at;
}

static int64_t inputs_of(const struct net *n, int l)
{
    return l == 0 ? n->s->I : n->s->D * n->s->H;
}

static void make_net(struct net *n)
{
    const struct shape *s = n->s;
    int64_t GH = rnnd__cell_gates(s->cell) * s->H, width = s->D * s->H;
    for (int b = 0; b < BATCHES; b++)
        make_batch(n, b);
    n->embed = place(n, s->V * s->I);
    for (int l = 0; l < s->L; l++)
        for (int d = 0; d < s->D; d++) {
            n->w_ih[l][d] = place(n, GH * inputs_of(n, l));
            n->w_hh[l][d] = place(n, GH * s->H);
            n->b[l][d] = place(n, 2 * GH);
            n->gates[l][d] = device(n, n->rows * GH, 1);
            n->keep[l][d] = device(n, n->rows * s->H, 1);
        }
    for (int l = 0; l < s->L; l++)
        n->y[l] = device(n, n->rows * width, 1);
    n->head = place(n, s->V * (width + 1));
    n->value = device(n, n->used, 0.06);
    n->grad = device(n, n->used, 0);
    n->x = device(n, n->rows * s->I, 1);
    n->dx = device(n, 2 * n->rows * (width > s->I ? width : s->I), 0.1);
    n->scratch = device(
        n, (int64_t)n->op->rnn_scratch(n->be, s->cell, s->H, s->N, n->rows) / 4, 1);
    n->scores = device(n, s->V ? CHUNK : 1, 1);
    n->sums = device(n, 6, 0);
    int32_t *token = checked(calloc((size_t)n->rows + 1, 4));
    n->token = device(n, n->rows, 1);
    n->rows_of = device(n, n->rows, 1);
    n->segment = device(n, n->rows + 1, 1);
    for (int64_t r = 0; r < n->rows && s->V; r++)
        token[r] = (int32_t)r; /* each token once: rows are segments */
    n->op->upload(n->be, n->rows_of, token, (size_t)n->rows * 4);
    for (int64_t r = 0; r <= n->rows && s->V; r++)
        token[r] = (int32_t)r;
    n->op->upload(n->be, n->segment, token, (size_t)(n->rows + 1) * 4);
    for (int64_t r = 0; r < n->rows && s->V; r++)
        token[r] = (int32_t)(r % s->V);
    n->op->upload(n->be, n->token, token, (size_t)n->rows * 4);
    n->seg = (struct rnnd__segments){0, n->rows_of, n->segment, n->token};
    free(token);
}

static void free_net(struct net *n)
{
    struct rnnd__buf all[] = {n->value,  n->grad,  n->x,       n->dx,      n->scratch,
                              n->scores, n->token, n->rows_of, n->segment, n->sums};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        n->op->free(n->be, all[i]);
    for (int l = 0; l < n->s->L; l++) {
        n->op->free(n->be, n->y[l]);
        for (int d = 0; d < n->s->D; d++) {
            n->op->free(n->be, n->gates[l][d]);
            n->op->free(n->be, n->keep[l][d]);
        }
    }
    for (int b = 0; b < BATCHES; b++)
        free_batch(&n->batch[b]);
}

/* ---- one update */

static struct rnnd__rnn loop(struct net *n, const struct rnnd__packed *b, int l, int d)
{
    int64_t GH = rnnd__cell_gates(n->s->cell) * n->s->H;
    return (struct rnnd__rnn){
        .cell = n->s->cell,
        .reverse = d == 1,
        .H = n->s->H,
        .batch = b,
        .w_hh = rnnd__at(n->value, n->w_hh[l][d]),
        .b_ih = rnnd__at(n->value, n->b[l][d]),
        .b_hh = rnnd__at(n->value, n->b[l][d] + GH),
        .gates = n->gates[l][d],
        .y = rnnd__at(n->y[l], d * n->s->H),
        .ldy = n->s->D * n->s->H,
        .keep = n->keep[l][d],
        .dw_hh = rnnd__at(n->grad, n->w_hh[l][d]),
        .db_ih = rnnd__at(n->grad, n->b[l][d]),
        .db_hh = rnnd__at(n->grad, n->b[l][d] + GH),
        .scratch = n->scratch,
    };
}

static void forward(struct net *n, const struct rnnd__packed *b)
{
    int64_t GH = rnnd__cell_gates(n->s->cell) * n->s->H;
    if (n->s->V)
        n->op->embed_gather(n->be, b->R, n->s->I, n->x, rnnd__at(n->value, n->embed),
                            n->token);
    for (int l = 0; l < n->s->L; l++)
        for (int d = 0; d < n->s->D; d++) {
            int64_t I = inputs_of(n, l);
            struct rnnd__matmul m = {.tb = true,
                                     .m = b->R,
                                     .n = GH,
                                     .k = I,
                                     .alpha = 1,
                                     .lda = I,
                                     .ldb = I,
                                     .ldc = GH};
            struct rnnd__rnn r = loop(n, b, l, d);
            n->op->matmul(n->be, &m, n->gates[l][d], l ? n->y[l - 1] : n->x,
                          rnnd__at(n->value, n->w_ih[l][d]));
            lap(n, INPUT);
            n->op->rnn_forward(n->be, &r);
            lap(n, FORWARD);
        }
}

static void backward(struct net *n, const struct rnnd__packed *b, struct rnnd__buf dy,
                     struct rnnd__buf dx)
{
    int64_t GH = rnnd__cell_gates(n->s->cell) * n->s->H;
    for (int l = n->s->L - 1; l >= 0; l--) {
        for (int d = 0; d < n->s->D; d++) {
            int64_t I = inputs_of(n, l);
            struct rnnd__matmul w = {.ta = true,
                                     .m = GH,
                                     .n = I,
                                     .k = b->R,
                                     .alpha = 1,
                                     .beta = 1,
                                     .lda = GH,
                                     .ldb = I,
                                     .ldc = I};
            struct rnnd__matmul x = {.m = b->R,
                                     .n = I,
                                     .k = GH,
                                     .alpha = 1,
                                     .beta = (float)d,
                                     .lda = GH,
                                     .ldb = I,
                                     .ldc = I};
            struct rnnd__rnn r = loop(n, b, l, d);
            r.dy = rnnd__at(dy, d * n->s->H);
            n->op->rnn_backward(n->be, &r);
            lap(n, BACKWARD);
            n->op->matmul(n->be, &w, rnnd__at(n->grad, n->w_ih[l][d]), n->gates[l][d],
                          l ? n->y[l - 1] : n->x);
            if (l > 0 || n->s->V)
                n->op->matmul(n->be, &x, dx, n->gates[l][d],
                              rnnd__at(n->value, n->w_ih[l][d]));
            lap(n, WEIGHTS);
        }
        struct rnnd__buf swap = dy;
        dy = dx;
        dx = swap;
    }
    if (n->s->V) {
        n->seg.count = b->R;
        n->op->embed_scatter_add(n->be, n->s->I, rnnd__at(n->grad, n->embed), dy,
                                 &n->seg);
    }
}

static void head(struct net *n, const struct rnnd__packed *b, struct rnnd__buf dy)
{
    int64_t H = n->s->H, V = n->s->V, chunk = CHUNK / V;
    struct rnnd__buf w = rnnd__at(n->value, n->head), dw = rnnd__at(n->grad, n->head);
    for (int64_t r = 0; r < b->R; r += chunk) {
        int64_t m = b->R - r < chunk ? b->R - r : chunk;
        struct rnnd__buf x = rnnd__at(n->y[n->s->L - 1], r * H);
        struct rnnd__matmul s = {.tb = true,
                                 .m = m,
                                 .n = V,
                                 .k = H,
                                 .alpha = 1,
                                 .lda = H,
                                 .ldb = H,
                                 .ldc = V};
        struct rnnd__matmul g = {.ta = true,
                                 .m = V,
                                 .n = H,
                                 .k = m,
                                 .alpha = 1,
                                 .beta = 1,
                                 .lda = V,
                                 .ldb = H,
                                 .ldc = H};
        struct rnnd__matmul i = {
            .m = m, .n = H, .k = V, .alpha = 1, .lda = V, .ldb = H, .ldc = H};
        n->op->matmul(n->be, &s, n->scores, x, w);
        n->op->add_bias(n->be, m, V, n->scores, rnnd__at(w, V * H));
        struct rnnd__loss l = {.rows = m,
                               .cols = V,
                               .scores = n->scores,
                               .sums = n->sums,
                               .target = rnnd__at(n->token, r)};
        n->op->softmax_ce(n->be, &l);
        n->op->matmul(n->be, &g, dw, n->scores, x);
        n->op->col_sum(n->be, m, V, rnnd__at(dw, V * H), n->scores);
        n->op->matmul(n->be, &i, rnnd__at(dy, r * H), n->scores, w);
    }
}

static void update(struct net *n, const struct rnnd__packed *b)
{
    int64_t half =
        n->rows * (n->s->D * n->s->H > n->s->I ? n->s->D * n->s->H : n->s->I);
    struct rnnd__sgd sgd = {.n = n->used, .lr = 1e-4, .gscale = 1e-4};
    double norm;
    n->mark = now();
    forward(n, b);
    if (n->s->V)
        head(n, b, n->dx);
    lap(n, HEAD);
    backward(n, b, n->dx, rnnd__at(n->dx, half));
    n->mark = now();
    if (n->op->sum_sq(n->be, n->used, &norm, n->grad) < 0)
        abort();
    n->op->sgd(n->be, &sgd, n->value, n->grad, (struct rnnd__buf){NULL});
    lap(n, UPDATE);
}

/* ---- reports */

/* Floating-point operations of one update that a product needs. */
static double flops(const struct net *n, const struct rnnd__packed *b)
{
    double sum = 0, GH = (double)rnnd__cell_gates(n->s->cell) * (double)n->s->H;
    for (int l = 0; l < n->s->L; l++) {
        double inputs = (l > 0 || n->s->V ? 3.0 : 2.0) * (double)inputs_of(n, l);
        sum += n->s->D * GH * (inputs + 3.0 * (double)n->s->H);
    }
    sum += 3.0 * (double)(n->s->V * n->s->H);
    return 2 * sum * (double)b->R;
}

/* Best rate of large products, operations a second. */
static double peak(struct rnnd_backend *be)
{
    enum { M = 2048, N = 1024, K = 512 };
    struct net n = {.be = be, .op = be->ops};
    struct rnnd__matmul m = {
        .tb = true, .m = M, .n = N, .k = K, .alpha = 1, .lda = K, .ldb = K, .ldc = N};
    struct rnnd__buf A = device(&n, M * K, 1), B = device(&n, N * K, 1),
                     C = device(&n, M * N, 1);
    double best = 1e9;
    for (int i = 0; i < 12; i++) {
        double t = now();
        be->ops->matmul(be, &m, C, A, B);
        t = now() - t;
        best = t < best ? t : best;
    }
    be->ops->free(be, A);
    be->ops->free(be, B);
    be->ops->free(be, C);
    return 2.0 * M * N * K / best;
}

/* Median over rounds of the rate; the rounds fill about `seconds`. */
static void measure(struct rnnd_backend *be, const struct shape *s, double seconds,
                    double best)
{
    enum { ROUNDS = 5 };
    struct net n = {.s = s, .be = be, .op = be->ops};
    double rate[ROUNDS], share[ROUNDS], all = 0;
    make_net(&n);
    update(&n, &n.batch[0]);
    memset(n.time, 0, sizeof n.time);
    for (int r = 0; r < ROUNDS; r++) {
        double start = now(), steps = 0, work = 0;
        do {
            for (int b = 0; b < BATCHES; b++) {
                update(&n, &n.batch[b]);
                steps += (double)n.batch[b].R;
                work += flops(&n, &n.batch[b]);
            }
        } while (now() - start < seconds / ROUNDS);
        double time = now() - start;
        int at = r;
        for (; at > 0 && rate[at - 1] > steps / time; at--) {
            rate[at] = rate[at - 1];
            share[at] = share[at - 1];
        }
        rate[at] = steps / time;
        share[at] = work / time / best;
    }
    printf("%-16s %10.0f steps/s  roofline %4.2f ", s->name, rate[ROUNDS / 2],
           share[ROUNDS / 2]);
    for (int p = 0; p < PARTS; p++)
        all += n.time[p];
    for (int p = 0; p < PARTS; p++)
        printf(" %s %.0f%%", part_names[p], 100 * n.time[p] / all);
    printf("\n");
    fflush(stdout);
    free_net(&n);
}

int main(int argc, char **argv)
{
    struct rnnd__backend_config config = {.threads = argc > 1 ? atoi(argv[1]) : 1,
                                          .precision = RNND_FP32};
    if (argc > 4 && strcmp(argv[4], "bf16") == 0)
        config.precision = RNND_BF16;
    struct rnnd_backend *be;
    char error[256];
    if (rnnd__cpu_open(&config, &be, error) < 0) {
        fprintf(stderr, "bench_kernels: %s\n", error);
        return EXIT_FAILURE;
    }
    if (config.threads == 1)
        used_clock = CLOCK_PROCESS_CPUTIME_ID;
    double best = peak(be);
    printf("%s: large products reach %.0f GFLOP/s\n", be->ops->describe(be),
           best * 1e-9);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (argc <= 3 || strstr(shapes[i].name, argv[3]))
            measure(be, &shapes[i], argc > 2 ? atof(argv[2]) : 2, best);
    be->ops->close(be);
    return EXIT_SUCCESS;
}
