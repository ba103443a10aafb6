/*
 * head.c - the linear output layer and the losses.
 *
 * Scores are computed one chunk of rows at a time. The loss replaces them by their
 * gradient, which is used before the next chunk, so that memory is bounded for any size
 * of vocabulary.
 */
#include "base/status.h"
#include "base/task.h"
#include "device/device.h"
#include "model/layer.h"

/* Floats of the scores' buffer, and the rows that it has in any case. */
enum { CHUNK_FLOATS = 1 << 21, LEAST_ROWS = 64 };

int64_t rnnd__head_chunk(int64_t rows, int64_t outputs)
{
    int64_t fit = CHUNK_FLOATS / outputs;
    fit = fit > LEAST_ROWS ? fit : LEAST_ROWS;
    fit = fit < rows ? fit : rows;
    return fit > 0 ? fit : 1;
}

static void forward(const struct rnnd__head *h, const struct rnnd__params *par,
                    int64_t rows, struct rnnd__buf x)
{
    const struct rnnd__backend_ops *op = par->be->ops;
    struct rnnd__matmul s = {.tb = true,
                             .m = rows,
                             .n = h->outputs,
                             .k = h->in,
                             .alpha = 1,
                             .lda = h->in,
                             .ldb = h->in,
                             .ldc = h->outputs};
    op->matmul(par->be, &s, h->scores, x, rnnd__at(par->value, h->weight));
    op->add_bias(par->be, rows, h->outputs, h->scores, rnnd__at(par->value, h->bias));
}

/* Weights and smoothing are for training alone. */
static void loss_of_rows(const struct rnnd__head *h, const struct rnnd__params *par,
                         int64_t rows, struct rnnd__buf sums, struct rnnd__buf target,
                         bool training)
{
    const struct rnnd__backend_ops *op = par->be->ops;
    struct rnnd__loss l = {.rows = rows,
                           .cols = h->outputs,
                           .scores = h->scores,
                           .sums = sums,
                           .target = target};
    if (training) {
        l.weight = h->class_weight;
        l.smoothing = h->smoothing;
        l.weights = h->weights;
    }
    if (rnnd__task_is_categorical(h->task))
        op->softmax_ce(par->be, &l);
    else if (rnnd__task(h->task)->target == RNND__TARGET_ANSWERS)
        op->bce(par->be, &l);
    else
        op->mse(par->be, &l);
}

/* The rows are all of the batch. */
static void loss_of_strings(const struct rnnd__head *h, const struct rnnd__params *par,
                            struct rnnd__buf sums, const struct rnnd_batch *batch,
                            bool gradient)
{
    struct rnnd__ctc ctc = {.batch = &batch->packed,
                            .strings = &batch->strings,
                            .cols = h->outputs,
                            .gradient = gradient,
                            .scratch = h->scratch};
    par->be->ops->ctc(par->be, &ctc, h->scores, sums);
}

/* Of span[1] rows of the batch, from row span[0] on. */
static void loss(const struct rnnd__head *h, const struct rnnd__params *par,
                 const int64_t span[2], struct rnnd__buf sums,
                 const struct rnnd_batch *batch, bool training)
{
    int64_t width = rnnd__task_target_width(h->task, h->outputs);
    if (rnnd__task_has_strings(h->task))
        loss_of_strings(h, par, sums, batch, training);
    else
        loss_of_rows(h, par, span[1], sums, rnnd__at(batch->targets, span[0] * width),
                     training);
}

/* Whether there is a loss without rows: empty strings of empty sequences are
   targets. */
static bool counts_nothing(const struct rnnd__head *h, int64_t rows)
{
    return rows == 0 && rnnd__task_has_strings(h->task);
}

/* From the gradient of the scores, which the loss has put in their place. */
static void backward(const struct rnnd__head *h, const struct rnnd__params *par,
                     int64_t rows, struct rnnd__buf dx, struct rnnd__buf x)
{
    const struct rnnd__backend_ops *op = par->be->ops;
    struct rnnd__matmul weights = {.ta = true,
                                   .m = h->outputs,
                                   .n = h->in,
                                   .k = rows,
                                   .alpha = 1,
                                   .beta = 1,
                                   .lda = h->outputs,
                                   .ldb = h->in,
                                   .ldc = h->in};
    struct rnnd__matmul inputs = {.m = rows,
                                  .n = h->in,
                                  .k = h->outputs,
                                  .alpha = 1,
                                  .lda = h->outputs,
                                  .ldb = h->in,
                                  .ldc = h->in};
    op->matmul(par->be, &weights, rnnd__at(par->grad, h->weight), h->scores, x);
    op->col_sum(par->be, rows, h->outputs, rnnd__at(par->grad, h->bias), h->scores);
    op->matmul(par->be, &inputs, dx, h->scores, rnnd__at(par->value, h->weight));
}

void rnnd__head_gradient(const struct rnnd__head *h, const struct rnnd__params *par,
                         int64_t rows, struct rnnd__buf sums, struct rnnd__buf dx,
                         struct rnnd__buf x, const struct rnnd_batch *batch)
{
    if (counts_nothing(h, rows))
        loss(h, par, (int64_t[]){0, 0}, sums, batch, true);
    for (int64_t r = 0, n; r < rows; r += n) {
        n = rows - r < h->chunk ? rows - r : h->chunk;
        struct rnnd__buf xr = rnnd__at(x, r * h->in);
        forward(h, par, n, xr);
        loss(h, par, (int64_t[]){r, n}, sums, batch, true);
        backward(h, par, n, rnnd__at(dx, r * h->in), xr);
    }
}

/* Shows the scores of a chunk to the reader, who finds them in host memory. */
static int show(struct rnnd__head *h, const struct rnnd__params *par, int64_t first,
                int64_t rows)
{
    const float *scores = par->be->ops->host(par->be, h->scores);
    if (!h->reader || rows == 0)
        return 0;
    if (!scores) {
        if (h->chunk > h->host_rows)
            RNND_TRY(RNND_GROW(&h->host_scores, h->chunk * h->outputs, "scores"));
        h->host_rows = h->chunk > h->host_rows ? h->chunk : h->host_rows;
        RNND_TRY(rnnd__device_download(par->be, h->host_scores, h->scores,
                                       (size_t)(rows * h->outputs) * sizeof *scores));
        scores = h->host_scores;
    }
    return h->reader(h->reader_context, first, rows, scores);
}

int rnnd__head_evaluate(struct rnnd__head *h, const struct rnnd__params *par,
                        int64_t rows, struct rnnd__buf sums, struct rnnd__buf x,
                        const struct rnnd_batch *batch)
{
    if (counts_nothing(h, rows))
        loss(h, par, (int64_t[]){0, 0}, sums, batch, false);
    for (int64_t r = 0, n; r < rows; r += n) {
        n = rows - r < h->chunk ? rows - r : h->chunk;
        forward(h, par, n, rnnd__at(x, r * h->in));
        RNND_TRY(show(h, par, r, n));
        loss(h, par, (int64_t[]){r, n}, sums, batch, false);
    }
    return 0;
}

int rnnd__head_scores(const struct rnnd__head *h, const struct rnnd__params *par,
                      int64_t rows, float *out, struct rnnd__buf x)
{
    for (int64_t r = 0, n; r < rows; r += n) {
        n = rows - r < h->chunk ? rows - r : h->chunk;
        forward(h, par, n, rnnd__at(x, r * h->in));
        RNND_TRY(rnnd__device_download(par->be, out + r * h->outputs, h->scores,
                                       (size_t)(n * h->outputs) * sizeof *out));
    }
    return 0;
}
