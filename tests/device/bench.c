/*
 * bench.c - times recurrent layers on a GPU through the plug-in: forward, and forward
 * with backward.
 *
 *   bench PLUGIN CELL INPUT HIDDEN LAYERS DIRECTIONS BATCH SHORTEST LONGEST PRECISION
 *         PATH
 *
 * Prints milliseconds of both and the path taken. Lengths are spread evenly over the
 * range.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/plugin.h"

enum { WARM_UP = 3, ROUNDS = 10, MOST_LAYERS = 8 };

struct layer {
    struct rnnd__buf w_ih[2], w_hh[2], b_ih[2], b_hh[2], dw_ih[2], dw_hh[2], db[2][2];
    struct rnnd__buf gates[2], keep[2], y;
    int64_t in;
};

struct bench {
    struct rnnd_backend *be;
    const struct rnnd__backend_ops *op;
    enum rnnd_cell cell;
    int64_t I, H, G;
    int L, D;
    struct rnnd__packed batch;
    struct rnnd__buf x, dy, dx, scratch[2];
    struct layer layer[MOST_LAYERS];
};

static void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static struct rnnd__buf room(struct bench *b, int64_t floats)
{
    struct rnnd__buf buf;
    if (b->op->alloc(b->be, &buf, (size_t)floats * 4) != 0)
        die(b->be->error);
    b->op->zero(b->be, buf, (size_t)floats * 4);
    return buf;
}

/* Small numbers, the same in every run. */
static struct rnnd__buf noise(struct bench *b, int64_t floats)
{
    struct rnnd__buf buf = room(b, floats);
    float *x = malloc((size_t)floats * 4);
    unsigned state = 1;
    if (!x)
        die("out of memory");
    for (int64_t i = 0; i < floats; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) / 8388608.0f - 1.0f) * 0.03f;
    }
    b->op->upload(b->be, buf, x, (size_t)floats * 4);
    free(x);
    return buf;
}

static struct rnnd__buf put(struct bench *b, const void *src, size_t bytes)
{
    struct rnnd__buf buf = room(b, (int64_t)(bytes + 3) / 4);
    b->op->upload(b->be, buf, src, bytes);
    return buf;
}

static void make_batch(struct bench *b, int64_t N, int64_t shortest, int64_t longest)
{
    int64_t T = longest, *off = calloc((size_t)T + 1, 8), *id = calloc((size_t)N, 8);
    int32_t *n = calloc((size_t)T, 4), *len = calloc((size_t)N, 4);
    if (!off || !id || !n || !len)
        die("out of memory");
    for (int64_t j = 0; j < N; j++) {
        len[j] = (int32_t)(longest - (N > 1 ? j * (longest - shortest) / (N - 1) : 0));
        for (int64_t t = 0; t < len[j]; t++)
            n[t]++;
    }
    for (int64_t t = 0; t < T; t++)
        off[t + 1] = off[t] + n[t];
    b->batch = (struct rnnd__packed){
        .N = N, .T = T, .R = off[T], .n = n, .off = off, .len = len, .id = id};
    b->batch.d_n = put(b, n, (size_t)T * 4);
    b->batch.d_off = put(b, off, (size_t)(T + 1) * 8);
    b->batch.d_len = put(b, len, (size_t)N * 4);
    b->batch.d_id = put(b, id, (size_t)N * 8);
}

static void make_layers(struct bench *b)
{
    int64_t GH = b->G * b->H, R = b->batch.R;
    for (int l = 0; l < b->L; l++) {
        struct layer *y = &b->layer[l];
        y->in = l ? b->D * b->H : b->I;
        y->y = room(b, R * b->D * b->H);
        for (int d = 0; d < b->D; d++) {
            y->w_ih[d] = noise(b, GH * y->in);
            y->w_hh[d] = noise(b, GH * b->H);
            y->b_ih[d] = noise(b, GH);
            y->b_hh[d] = noise(b, GH);
            y->dw_ih[d] = room(b, GH * y->in);
            y->dw_hh[d] = room(b, GH * b->H);
            y->db[d][0] = room(b, GH);
            y->db[d][1] = room(b, GH);
            y->gates[d] = room(b, R * GH);
            y->keep[d] = room(b, R * b->H);
        }
    }
    int64_t widest = b->I > b->D * b->H ? b->I : b->D * b->H;
    b->x = noise(b, R * b->I);
    b->dy = noise(b, R * widest);
    b->dx = room(b, R * widest);
    size_t scratch = b->op->rnn_scratch(b->be, b->cell, b->H, b->batch.N, R);
    for (int d = 0; d < b->D; d++)
        b->scratch[d] = room(b, (int64_t)scratch / 4);
}

/* The directions of a layer, for one call. */
static void loops_of(struct bench *b, struct layer *y, struct rnnd__rnn r[2])
{
    for (int d = 0; d < b->D; d++)
        r[d] = (struct rnnd__rnn){
            .cell = b->cell,
            .reverse = d == 1,
            .H = b->H,
            .batch = &b->batch,
            .w_hh = y->w_hh[d],
            .b_ih = y->b_ih[d],
            .b_hh = y->b_hh[d],
            .gates = y->gates[d],
            .y = rnnd__at(y->y, d * b->H),
            .ldy = b->D * b->H,
            .keep = y->keep[d],
            .dy = rnnd__at(b->dy, d * b->H),
            .dw_hh = y->dw_hh[d],
            .db_ih = y->db[d][0],
            .db_hh = y->db[d][1],
            .scratch = b->scratch[d],
        };
    r[0].other = b->D == 2 ? &r[1] : NULL;
}

static void forward(struct bench *b)
{
    int64_t GH = b->G * b->H;
    for (int l = 0; l < b->L; l++) {
        struct layer *y = &b->layer[l];
        struct rnnd__matmul m = {.tb = true,
                                 .m = b->batch.R,
                                 .n = GH,
                                 .k = y->in,
                                 .alpha = 1,
                                 .lda = y->in,
                                 .ldb = y->in,
                                 .ldc = GH};
        struct rnnd__rnn r[2];
        loops_of(b, y, r);
        for (int d = 0; d < b->D; d++)
            b->op->matmul(b->be, &m, y->gates[d], l ? b->layer[l - 1].y : b->x,
                          y->w_ih[d]);
        b->op->rnn_forward(b->be, r);
    }
}

/* Every layer takes the same dy: what is timed does not depend on its values. */
static void backward(struct bench *b)
{
    int64_t GH = b->G * b->H, R = b->batch.R;
    for (int l = b->L - 1; l >= 0; l--) {
        struct layer *y = &b->layer[l];
        struct rnnd__matmul w = {.ta = true,
                                 .m = GH,
                                 .n = y->in,
                                 .k = R,
                                 .alpha = 1,
                                 .beta = 1,
                                 .lda = GH,
                                 .ldb = y->in,
                                 .ldc = y->in};
        struct rnnd__matmul x = {.m = R,
                                 .n = y->in,
                                 .k = GH,
                                 .alpha = 1,
                                 .lda = GH,
                                 .ldb = y->in,
                                 .ldc = y->in};
        struct rnnd__rnn r[2];
        loops_of(b, y, r);
        b->op->rnn_backward(b->be, r);
        for (int d = 0; d < b->D; d++) {
            b->op->matmul(b->be, &w, y->dw_ih[d], y->gates[d],
                          l ? b->layer[l - 1].y : b->x);
            x.beta = (float)d;
            if (l > 0)
                b->op->matmul(b->be, &x, b->dx, y->gates[d], y->w_ih[d]);
        }
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double milliseconds(struct bench *b, bool both)
{
    double start = 0;
    for (int i = -WARM_UP; i < ROUNDS; i++) {
        if (i == 0 && b->op->sync(b->be) == 0)
            start = now();
        forward(b);
        if (both)
            backward(b);
    }
    if (b->op->sync(b->be) != 0)
        die(b->be->error);
    return (now() - start) * 1e3 / ROUNDS;
}

static int index_of(const char *word, const char *const *list)
{
    for (int i = 0; list[i]; i++)
        if (strcmp(word, list[i]) == 0)
            return i;
    die(word);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const cells[] = {"rnn_tanh", "rnn_relu", "lstm", "gru", NULL};
    static const enum rnnd_cell cell_of[] = {RNND_RNN_TANH, RNND_RNN_RELU, RNND_LSTM,
                                             RNND_GRU};
    static const char *const precisions[] = {"auto", "fp32", "tf32", "bf16", NULL};
    static const char *const paths[] = {"auto", "stepwise", "small", "persistent",
                                        NULL};
    struct bench b = {0};
    char error[256], why[160];
    if (argc != 12)
        die("bench PLUGIN CELL INPUT HIDDEN LAYERS DIRECTIONS BATCH SHORTEST LONGEST "
            "PRECISION PATH");
    void *library = dlopen(argv[1], RTLD_NOW);
    const struct rnnd__cuda_plugin *plugin =
        library ? dlsym(library, RNND_CUDA_PLUGIN_SYMBOL) : NULL;
    if (!plugin)
        die(dlerror());
    struct rnnd__backend_config config = {.precision = index_of(argv[10], precisions),
                                          .rnn_path = index_of(argv[11], paths)};
    if (plugin->open(&config, &b.be, error) != 0)
        die(error);
    b.op = b.be->ops;
    b.cell = cell_of[index_of(argv[2], cells)];
    b.I = atoll(argv[3]);
    b.H = atoll(argv[4]);
    b.L = atoi(argv[5]);
    b.D = atoi(argv[6]);
    b.G = rnnd__cell_gates(b.cell);
    if (b.L < 1 || b.L > MOST_LAYERS || b.D < 1 || b.D > 2)
        die("too many layers or directions");
    make_batch(&b, atoll(argv[7]), atoll(argv[8]), atoll(argv[9]));
    make_layers(&b);
    b.op->rnn_explain(b.be, b.cell, b.H, b.batch.N, why);
    printf("%.3f %.3f %s\n", milliseconds(&b, false), milliseconds(&b, true), why);
    return 0; /* the process ends, and with it all that it holds */
}
