/*
 * ends.cu - what lies between the recurrent layers and the loss: pooling over time,
 * dropout, and the losses on values.
 */
#include "base/random.h"
#include "cuda_backend.cuh"

/* ---- pooling */

struct rnnd__pool_shape {
    enum rnnd_pool pool;
    /* cols = D*H */
    int64_t N, H, cols;
    const int64_t *off;
    const int32_t *len;
};

static rnnd__pool_shape pool_shape(const struct rnnd__pooling *s)
{
    return {s->pool,
            s->batch->N,
            s->H,
            s->D * s->H,
            rnnd__longs(s->batch->d_off),
            rnnd__ints(s->batch->d_len)};
}

/* Where the last state of a column's direction stands: forward ends at the last step,
   reverse at the first. */
__device__ __forceinline__ int64_t last_step(const rnnd__pool_shape &s, rnnd__place p,
                                             int64_t len)
{
    return p.col < s.H ? len - 1 : 0;
}

__device__ __forceinline__ float value_at(const rnnd__pool_shape &s, const float *y,
                                          rnnd__place p, int64_t t)
{
    return y[(__ldg(s.off + t) + p.row) * s.cols + p.col];
}

/* The first of the largest values; a NaN is larger than any number. */
__device__ __forceinline__ float pool_max(const rnnd__pool_shape &s, const float *y,
                                          rnnd__place p, int64_t len, int32_t *at)
{
    float best = value_at(s, y, p, 0);
    *at = 0;
    for (int64_t t = 1; t < len; t++) {
        float v = value_at(s, y, p, t);
        if (v > best || (v != v && best == best)) {
            best = v;
            *at = (int32_t)t;
        }
    }
    return best;
}

__device__ __forceinline__ float pool_mean(const rnnd__pool_shape &s, const float *y,
                                           rnnd__place p, int64_t len)
{
    double sum = 0;
    for (int64_t t = 0; t < len; t++)
        sum += value_at(s, y, p, t);
    return (float)(sum / (double)len);
}

/* A thread for each column of each sequence. */
__global__ void __launch_bounds__(RNND__BLOCK)
    pool_columns(float *out, int32_t *argmax, const float *y, rnnd__pool_shape s)
{
    for (int64_t i = thread_index(); i < s.N * s.cols; i += thread_count()) {
        rnnd__place p = place_of(i, s.cols);
        int64_t len = s.len[p.row];
        int32_t at = 0;
        if (len == 0)
            out[i] = 0;
        else if (s.pool == RNND_POOL_LAST)
            out[i] = value_at(s, y, p, last_step(s, p, len));
        else if (s.pool == RNND_POOL_MEAN)
            out[i] = pool_mean(s, y, p, len);
        else
            out[i] = pool_max(s, y, p, len, &at);
        if (s.pool == RNND_POOL_MAX)
            argmax[i] = at;
    }
}

void rnnd__cuda_pool(struct rnnd_backend *be, const struct rnnd__pooling *s,
                     struct rnnd__buf out, struct rnnd__buf argmax, struct rnnd__buf y)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    rnnd__pool_shape shape = pool_shape(s);
    if (shape.N > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(pool_columns, rnnd__blocks(shape.N * shape.cols),
                             dim3(RNND__BLOCK), 0, cuda->stream, rnnd__floats(out),
                             rnnd__ints(argmax), rnnd__floats(y), shape),
                      "pooling");
}

__global__ void __launch_bounds__(RNND__BLOCK)
    pool_columns_backward(float *dy, const float *dout, const int32_t *argmax,
                          rnnd__pool_shape s)
{
    for (int64_t i = thread_index(); i < s.N * s.cols; i += thread_count()) {
        rnnd__place p = place_of(i, s.cols);
        int64_t len = s.len[p.row], at = 0;
        float d = dout[i];
        if (s.pool == RNND_POOL_LAST)
            at = last_step(s, p, len);
        else if (s.pool == RNND_POOL_MAX)
            at = argmax[i];
        else if (len > 0)
            d /= (float)len;
        for (int64_t t = 0; t < len; t++)
            dy[(__ldg(s.off + t) + p.row) * s.cols + p.col] =
                s.pool == RNND_POOL_MEAN || t == at ? d : 0;
    }
}

void rnnd__cuda_pool_backward(struct rnnd_backend *be, const struct rnnd__pooling *s,
                              struct rnnd__buf dy, struct rnnd__buf dout,
                              struct rnnd__buf argmax)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    rnnd__pool_shape shape = pool_shape(s);
    if (shape.N > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(pool_columns_backward, rnnd__blocks(shape.N * shape.cols),
                             dim3(RNND__BLOCK), 0, cuda->stream, rnnd__floats(dy),
                             rnnd__floats(dout), rnnd__ints(argmax), shape),
                      "pooling");
}

/* ---- dropout */

struct rnnd__drop {
    uint64_t key;
    uint32_t threshold;
    float scale;
    bool by_sequence, timeless;
    int64_t rows, cols, T, first;
    const int64_t *off, *id;
};

/* A thread for four columns: what one draw is enough for. */
__global__ void __launch_bounds__(RNND__BLOCK)
    drop_units(float *out, const float *in, rnnd__drop d)
{
    int64_t quads = (d.cols + 3) / 4;
    for (int64_t i = thread_index(); i < d.rows * quads; i += thread_count()) {
        rnnd__place p = place_of(i, quads);
        int64_t t = d.by_sequence ? 0 : step_of_row(d.off, d.T, p.row);
        int64_t j = d.by_sequence ? p.row : p.row - __ldg(d.off + t);
#if RNND_FAULT == 15 /* masks by the place in the batch, not by the sequence */
        j = p.row % 2;
#endif
        rnnd__random r = rnnd__dropout_words(d.key, __ldg(d.id + j),
                                             d.timeless ? 0 : d.first + t, 4 * p.col);
        int64_t at = p.row * d.cols + 4 * p.col, left = d.cols - 4 * p.col;
        UNROLL
        for (int k = 0; k < 4; k++)
            if (k < left)
                out[at + k] = r.word[k] < d.threshold ? 0.0f : in[at + k] * d.scale;
    }
}

void rnnd__cuda_dropout(struct rnnd_backend *be, const struct rnnd__dropout *s,
                        struct rnnd__buf out, struct rnnd__buf in)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    const struct rnnd__packed *b = s->batch;
    rnnd__drop d = {s->key,
                    rnnd__dropout_threshold(s->p),
                    (float)(1.0 / (1.0 - s->p)),
                    s->by_sequence,
                    s->by_sequence || s->kind == RNND_DROPOUT_SEQUENCE,
                    s->by_sequence ? b->N : b->R,
                    s->cols,
                    b->T,
                    b->first,
                    rnnd__longs(b->d_off),
                    rnnd__longs(b->d_id)};
    int64_t threads = d.rows * rnnd__ratio_up(d.cols, 4);
    if (threads > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(drop_units, rnnd__blocks(threads), dim3(RNND__BLOCK), 0,
                             cuda->stream, rnnd__floats(out), rnnd__floats(in), d),
                      "dropout");
}

/* ---- losses on values */

/* (x - t)^2, of which the mean over the row is the loss; x becomes the gradient. */
__device__ __forceinline__ double mse_of(float *x, float target, float factor)
{
    float d = *x - target;
    *x = d * factor;
    return (double)d * d;
}

/* On logits: max(x,0) - x t + log(1 + e^-|x|), and sigmoid(x) - t. */
__device__ __forceinline__ double bce_of(float *x, float target)
{
    float s = *x, e = expf(-fabsf(s));
    float loss = (s < 0 ? 0 : s) - s * target + log1pf(e);
    *x = 1.0f / (1.0f + expf(-s)) - target;
    return loss;
}

/* A row's loss; the row becomes its gradient. All threads of the block call it. */
template <bool mse>
__device__ __forceinline__ double value_row(float *row, const float *target,
                                            int64_t cols)
{
    float factor = 2.0f / (float)cols;
    double sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        sum += mse ? mse_of(row + j, target[j], factor) : bce_of(row + j, target[j]);
    sum = block_sum(sum);
    return mse ? sum / (double)cols : sum;
}

/* Blocks take rows in turn; each leaves its sums in partial. */
template <bool mse>
__global__ void __launch_bounds__(1024)
    value_loss(double *partial, float *scores, const float *target, int64_t rows,
               int64_t cols)
{
    double loss = 0, targets = 0;
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        float *row = scores + r * cols;
        const float *t = target + r * cols;
        int missing = 0;
        for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
            missing |= t[j] != t[j];
        if (!__syncthreads_or(missing)) {
            loss += value_row<mse>(row, t, cols);
            targets += 1;
        } else {
            for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
                row[j] = 0;
        }
    }
    if (threadIdx.x != 0)
        return;
    partial[3 * blockIdx.x] = loss;
    partial[3 * blockIdx.x + 1] = targets;
    partial[3 * blockIdx.x + 2] = 0;
}

template <bool mse>
static void value_losses(struct rnnd__cuda *cuda, int64_t rows, int64_t cols,
                         struct rnnd__buf scores, struct rnnd__buf sums,
                         struct rnnd__buf target)
{
    unsigned threads = cols <= 128 ? 32 : RNND__BLOCK;
    int blocks = (int)rnnd__least(rows, RNND__SUM_BLOCKS);
    if (rows == 0 || !rnnd__cuda_sound(cuda))
        return;
    if (rnnd__cuda_ok(cuda,
                      launch(value_loss<mse>, dim3((unsigned)blocks), dim3(threads), 0,
                             cuda->stream, cuda->partial, rnnd__floats(scores),
                             rnnd__floats(target), rows, cols),
                      "loss"))
        rnnd__cuda_add_sums(cuda, blocks, sums);
}

void rnnd__cuda_mse(struct rnnd_backend *be, int64_t rows, int64_t cols,
                    struct rnnd__buf scores, struct rnnd__buf sums,
                    struct rnnd__buf target)
{
    value_losses<true>(rnnd__cuda_of(be), rows, cols, scores, sums, target);
}

void rnnd__cuda_bce(struct rnnd_backend *be, int64_t rows, int64_t cols,
                    struct rnnd__buf scores, struct rnnd__buf sums,
                    struct rnnd__buf target)
{
    value_losses<false>(rnnd__cuda_of(be), rows, cols, scores, sums, target);
}
