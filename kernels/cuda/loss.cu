/*
 * loss.cu - losses of rows of scores, which become their gradients: softmax with
 * cross-entropy over classes or a vocabulary, squared errors, and yes/no answers.
 *
 * Blocks take rows in turn; each leaves its sums in partial, to be added in one order.
 */
#include "cuda_backend.cuh"

/* A row that is no target: its gradient is zero. All threads of the block call it. */
__device__ __forceinline__ void clear_row(float *row, int64_t cols)
{
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        row[j] = 0;
}

/* The sums of a block's rows, which thread 0 knows. */
__device__ __forceinline__ void leave_sums(double *partial, double loss, double targets,
                                           double correct)
{
    if (threadIdx.x != 0)
        return;
    partial[3 * blockIdx.x] = loss;
    partial[3 * blockIdx.x + 1] = targets;
    partial[3 * blockIdx.x + 2] = correct;
}

/* Blocks for so many rows. */
static int loss_blocks(int64_t rows)
{
    return (int)rnnd__least(rows, RNND__SUM_BLOCKS);
}

/* ---- softmax and cross-entropy */

/* The largest value of a row and its first place. NaN is no value; without one: -1. */
struct rnnd__best {
    float value;
    int64_t at;
};

__device__ __forceinline__ rnnd__best better(rnnd__best a, rnnd__best b)
{
    if (b.at < 0 ||
        (a.at >= 0 && (a.value > b.value || (a.value == b.value && a.at < b.at))))
        return a;
    return b;
}

/* Over all threads of a block, to all of them. */
__device__ __forceinline__ rnnd__best block_best(rnnd__best x)
{
    SHARED_ARRAY(float, warp_value, [32]);
    SHARED_ARRAY(int64_t, warp_at, [32]);
    UNROLL
    for (int step = 16; step > 0; step /= 2) {
        rnnd__best y = {__shfl_xor_sync(~0u, x.value, step),
                        (int64_t)__shfl_xor_sync(~0u, (long long)x.at, step)};
        x = better(x, y);
    }
    if (threadIdx.x % 32 == 0) {
        warp_value[threadIdx.x / 32] = x.value;
        warp_at[threadIdx.x / 32] = x.at;
    }
    __syncthreads();
    for (unsigned w = 0; w < blockDim.x / 32; w++) {
        rnnd__best y = {warp_value[w], warp_at[w]};
        x = better(x, y);
    }
    __syncthreads(); /* before the arrays are used again */
    return x;
}

/* A row's loss; the row becomes its gradient. All threads of the block call it. */
__device__ __forceinline__ double softmax_row(float *row, int64_t cols, int32_t label,
                                              bool *correct)
{
    rnnd__best best = {0, -1};
    double sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        rnnd__best own = {row[j], row[j] == row[j] ? j : -1};
        best = better(best, own);
    }
    best = block_best(best);
    float max = best.at < 0 ? __uint_as_float(0x7fc00000u) : best.value;
    float score = row[label]; /* before anyone writes: a barrier is between */
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        sum += expf(row[j] - max);
    sum = block_sum(sum);
    float scale = (float)(1 / sum);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        row[j] = expf(row[j] - max) * scale - (j == label ? 1.0f : 0.0f);
    if (PLANTED(13, "the target's score is read where its gradient is by now"))
        score = row[label];
    *correct = best.at == label;
    return log(sum) - ((double)score - max);
}

__global__ void __launch_bounds__(1024)
    softmax_loss(double *partial, float *scores, const int32_t *label, int64_t rows,
                 int64_t cols)
{
    double loss = 0, targets = 0, right = 0;
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        float *row = scores + r * cols;
        bool correct;
        if (label[r] >= 0) {
            loss += softmax_row(row, cols, label[r], &correct);
            targets += 1;
            right += correct;
        } else {
            clear_row(row, cols);
        }
    }
    leave_sums(partial, loss, targets, right);
}

/* A warp for few classes, more for a vocabulary. */
static unsigned row_threads(int64_t cols)
{
    unsigned threads = 32;
    while (threads < 512 && threads * 4 < cols)
        threads *= 2;
    return threads;
}

void rnnd__cuda_softmax_ce(struct rnnd_backend *be, int64_t rows, int64_t cols,
                           struct rnnd__buf scores, struct rnnd__buf sums,
                           struct rnnd__buf label)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    int blocks = loss_blocks(rows);
    if (rows == 0 || !rnnd__cuda_sound(cuda))
        return;
    if (rnnd__cuda_ok(cuda,
                      launch(softmax_loss, dim3((unsigned)blocks),
                             dim3(row_threads(cols)), 0, cuda->stream, cuda->partial,
                             rnnd__floats(scores), rnnd__ints(label), rows, cols),
                      "softmax"))
        rnnd__cuda_add_sums(cuda, blocks, sums);
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
            clear_row(row, cols);
        }
    }
    leave_sums(partial, loss, targets, 0);
}

template <bool mse>
static void value_losses(struct rnnd__cuda *cuda, int64_t rows, int64_t cols,
                         struct rnnd__buf scores, struct rnnd__buf sums,
                         struct rnnd__buf target)
{
    unsigned threads = cols <= 128 ? 32 : RNND__BLOCK;
    int blocks = loss_blocks(rows);
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
