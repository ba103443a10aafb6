/*
 * bench_probe.c - times single operations of a back end.
 *
 * Back ends compute the recurrent product and the cell in one operation. In a batch of
 * one-step sequences that start from zero states there is no recurrent product: its
 * time loop consists of the cells and one gradient of W_hh, whose matrix product is
 * timed alone and subtracted.
 */
#include "commands/bench_probe.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "device/device.h"

enum { GEMM_SIZE = 1024, TRIES = 8 };
/* Bounds on the rows of the cells' batch. In training the time loop prefetches its
   rows; a batch too large for the caches would measure memory instead. */
enum { LEAST_ROWS = 256, MOST_FLOATS = 1 << 21 };

/* The faster of *best (0 = none yet) and the time since start; waits for the device. */
static int keep_best(struct rnnd_backend *be, double start, double *best)
{
    RNND_TRY(rnnd__device_sync(be));
    double seconds = rnnd__clock() - start;
    *best = *best == 0 || seconds < *best ? seconds : *best;
    return 0;
}

int rnnd__bench_gemm(struct rnnd_backend *be, double *rate)
{
    const int64_t n = GEMM_SIZE;
    struct rnnd__matmul s = {
        .tb = true, .m = n, .n = n, .k = n, .alpha = 1, .lda = n, .ldb = n, .ldc = n};
    struct rnnd__buf x = {NULL};
    double best = 0;
    int status = 0;
    RNND_TRY(rnnd__device_alloc(be, &x, 3 * n * n));
    be->ops->zero(be, x, (size_t)(3 * n * n) * sizeof(float));
    for (int i = 0; status == 0 && i < TRIES; i++) {
        double start = rnnd__clock();
        be->ops->matmul(be, &s, x, rnnd__at(x, n * n), rnnd__at(x, 2 * n * n));
        status = keep_best(be, start, &best);
    }
    rnnd__device_free(be, &x);
    RNND_TRY(status);
    double now = 2.0 * (double)(n * n * n) / best;
    *rate = now > *rate ? now : *rate;
    return 0;
}

/* ---- cells */

/* A layer over one-step sequences, and its memory. */
struct cells {
    struct rnnd_backend *be;
    struct rnnd__packed batch;
    struct rnnd__rnn rnn;
    int32_t n, *len;
    int64_t off[2], *id;
    struct rnnd__buf memory, scratch;
};

/* Takes memory from the front of *left; whole cache lines, to keep it aligned. */
static struct rnnd__buf take(struct rnnd__buf *left, int64_t floats)
{
    struct rnnd__buf out = *left;
    *left = rnnd__at(out, (floats + 15) / 16 * 16);
    return out;
}

static void lay_out(struct cells *c, enum rnnd_cell cell, int64_t H)
{
    int64_t R = c->n, GH = rnnd__cell_gates(cell) * H;
    struct rnnd__buf left = c->memory;
    struct rnnd__packed *p = &c->batch;
    *p = (struct rnnd__packed){
        .N = R, .T = 1, .R = R, .n = &c->n, .off = c->off, .len = c->len, .id = c->id};
    p->d_n = take(&left, 1);
    p->d_off = take(&left, 4);
    p->d_len = take(&left, R);
    p->d_id = take(&left, 2 * R);
    c->rnn = (struct rnnd__rnn){.cell = cell, .H = H, .batch = p, .ldy = H};
    c->rnn.w_hh = take(&left, GH * H);
    c->rnn.dw_hh = take(&left, GH * H);
    c->rnn.b_ih = c->rnn.b_hh = take(&left, GH);
    c->rnn.db_ih = take(&left, GH);
    c->rnn.db_hh = take(&left, GH);
    c->rnn.gates = take(&left, R * GH);
    c->rnn.keep = take(&left, R * H);
    c->rnn.y = take(&left, R * H);
    c->rnn.dy = take(&left, R * H);
    c->rnn.scratch = c->scratch;
}

static int open_cells(struct cells *c, enum rnnd_cell cell, int64_t H, int64_t rows)
{
    const struct rnnd__backend_ops *op = c->be->ops;
    int64_t GH = rnnd__cell_gates(cell) * H, R = MOST_FLOATS / GH + 1;
    R = rows < R ? rows : R;
    R = R > LEAST_ROWS ? R : LEAST_ROWS;
    c->n = (int32_t)R;
    c->off[1] = R;
    int64_t floats = 2 * GH * H + 3 * GH + R * (GH + 3 * H + 3) + 14 * 16;
    size_t scratch = op->rnn_scratch(c->be, cell, H, R, R);
    RNND_TRY(RNND_NEW(&c->len, R, "bench batch"));
    RNND_TRY(RNND_NEW(&c->id, R, "bench batch"));
    RNND_TRY(rnnd__device_alloc(c->be, &c->memory, floats));
    RNND_TRY(
        rnnd__device_alloc(c->be, &c->scratch, (int64_t)(scratch / sizeof(float) + 1)));
    op->zero(c->be, c->memory, (size_t)floats * sizeof(float));
    lay_out(c, cell, H);
    for (int64_t i = 0; i < R; i++) {
        c->len[i] = 1;
        c->id[i] = i;
    }
    op->upload(c->be, c->batch.d_n, &c->n, sizeof c->n);
    op->upload(c->be, c->batch.d_off, c->off, sizeof c->off);
    op->upload(c->be, c->batch.d_len, c->len, (size_t)R * sizeof *c->len);
    op->upload(c->be, c->batch.d_id, c->id, (size_t)R * sizeof *c->id);
    return rnnd__device_sync(c->be);
}

static void close_cells(struct cells *c)
{
    rnnd__device_free(c->be, &c->scratch);
    rnnd__device_free(c->be, &c->memory);
    free(c->len);
    free(c->id);
}

static int time_cells(struct cells *c, double *seconds)
{
    const struct rnnd__backend_ops *op = c->be->ops;
    const struct rnnd__rnn *r = &c->rnn;
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H;
    struct rnnd__matmul weights = {.ta = true,
                                   .m = GH,
                                   .n = H,
                                   .k = c->n,
                                   .alpha = 1,
                                   .beta = 1,
                                   .lda = GH,
                                   .ldb = H,
                                   .ldc = H};
    double loop = 0, product = 0;
    for (int i = 0; i < TRIES; i++) {
        double start = rnnd__clock();
        op->rnn_forward(c->be, r);
        op->rnn_backward(c->be, r);
        RNND_TRY(keep_best(c->be, start, &loop));
        start = rnnd__clock();
        op->matmul(c->be, &weights, r->dw_hh, r->gates, r->y);
        RNND_TRY(keep_best(c->be, start, &product));
    }
    *seconds = loop > product ? (loop - product) / (double)c->n : 0;
    return 0;
}

int rnnd__bench_cell(struct rnnd_backend *be, enum rnnd_cell cell, int64_t H,
                     int64_t rows, double *seconds)
{
    struct cells c = {.be = be};
    double result = 0;
    int status = open_cells(&c, cell, H, rows);
    if (status == 0)
        status = time_cells(&c, &result);
    close_cells(&c);
    if (status == 0)
        *seconds = result;
    return status;
}
