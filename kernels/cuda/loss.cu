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
__device__ __forceinline__ void leave_sums(double *partial, const rnnd__sums &sums)
{
    if (threadIdx.x != 0)
        return;
    double *own = partial + 4 * blockIdx.x;
    own[0] = sums.loss;
    own[1] = sums.targets;
    own[2] = sums.correct;
    own[3] = sums.weight;
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

/* The largest score of a row, NaN without any; *best: its first place. */
__device__ __forceinline__ float row_max(const float *row, int64_t cols, int64_t *best)
{
    rnnd__best x = {0, -1};
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        rnnd__best own = {row[j], row[j] == row[j] ? j : -1};
        x = better(x, own);
    }
    x = block_best(x);
    *best = x.at;
    return x.at < 0 ? __uint_as_float(0x7fc00000u) : x.value;
}

/* A row's loss; the row becomes its gradient. All threads of the block call it. */
__device__ __forceinline__ double softmax_row(float *row, int64_t cols, int32_t label,
                                              int64_t *best)
{
    double sum = 0;
    float max = row_max(row, cols, best);
    float score = row[label]; /* before anyone writes: a barrier is between */
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        sum += expf(row[j] - max);
    sum = block_sum(sum);
    float scale = (float)(1 / sum);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        row[j] = expf(row[j] - max) * scale - (j == label ? 1.0f : 0.0f);
    if (PLANTED(13, "the target's score is read where its gradient is by now"))
        score = row[label];
    return log(sum) - ((double)score - max);
}

/* Weights of classes, NULL = 1, and how much of the loss all classes share. */
struct rnnd__weighting {
    const float *weight;
    double smoothing, weights;
};

__device__ __forceinline__ double weight_of(const rnnd__weighting &w, int64_t k)
{
    return w.weight ? (double)w.weight[k] : 1;
}

/* The same: own * (-log p of the label) + spread * sum over classes of weight *
   (-log p). */
__device__ __forceinline__ double weighted_row(float *row, int64_t cols, int32_t label,
                                               const rnnd__weighting &w, int64_t *best)
{
    double own = (1 - w.smoothing) * weight_of(w, label);
    double spread = w.smoothing / (double)cols, sum = 0, below = 0;
    float max = row_max(row, cols, best);
    float score = row[label]; /* as above */
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        sum += expf(row[j] - max);
        below += weight_of(w, j) * ((double)row[j] - max);
    }
    sum = block_sum(sum);
    below = spread > 0 ? block_sum(below) : 0;
    double all = own + spread * w.weights;
    float scale = (float)(all / sum);
    if (PLANTED(25, "smoothing takes from every class as if it weighed 1"))
        spread = spread > 0 && w.weight ? spread * w.weights / (double)cols : spread;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        row[j] = expf(row[j] - max) * scale - (float)(spread * weight_of(w, j)) -
                 (j == label ? (float)own : 0.0f);
    return all * log(sum) - own * ((double)score - max) - spread * below;
}

template <bool weighted>
__global__ void __launch_bounds__(1024)
    softmax_loss(double *partial, float *scores, const int32_t *label, int64_t rows,
                 int64_t cols, rnnd__weighting w)
{
    rnnd__sums sums = {0, 0, 0, 0};
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        float *row = scores + r * cols;
        int64_t best;
        if (label[r] < 0) {
            clear_row(row, cols);
            continue;
        }
        sums.loss += weighted ? weighted_row(row, cols, label[r], w, &best)
                              : softmax_row(row, cols, label[r], &best);
        sums.targets += 1;
        sums.correct += best == label[r];
        sums.weight += weighted ? weight_of(w, label[r]) : 1;
    }
    leave_sums(partial, sums);
}

/* A warp for few classes, more for a vocabulary. */
static unsigned row_threads(int64_t cols)
{
    unsigned threads = 32;
    while (threads < 512 && threads * 4 < cols)
        threads *= 2;
    return threads;
}

template <bool weighted>
static bool launch_softmax(struct rnnd__cuda *cuda, const struct rnnd__loss *l,
                           int blocks)
{
    rnnd__weighting w = {rnnd__floats(l->weight), l->smoothing, l->weights};
    return rnnd__cuda_ok(cuda,
                         launch(softmax_loss<weighted>, dim3((unsigned)blocks),
                                dim3(row_threads(l->cols)), 0, cuda->stream,
                                cuda->partial, rnnd__floats(l->scores),
                                rnnd__ints(l->target), l->rows, l->cols, w),
                         "softmax");
}

void rnnd__cuda_softmax_ce(struct rnnd_backend *be, const struct rnnd__loss *l)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    int blocks = loss_blocks(l->rows);
    bool weighted = !rnnd__buf_is_null(l->weight) || l->smoothing > 0;
    if (l->rows == 0 || !rnnd__cuda_sound(cuda))
        return;
    if (weighted ? launch_softmax<true>(cuda, l, blocks)
                 : launch_softmax<false>(cuda, l, blocks))
        rnnd__cuda_add_sums(cuda, blocks, l->sums);
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

/* With weight w of a yes: (1-t) x + (1 - t + w t) log(1 + e^-x). */
__device__ __forceinline__ double weighted_bce_of(float *x, float target, float weight)
{
    float s = *x, both = 1 - target + weight * target;
    float loss = (1 - target) * s + both * (log1pf(expf(-fabsf(s))) + (s < 0 ? -s : 0));
    *x = both / (1.0f + expf(-s)) - weight * target;
    return loss;
}

enum rnnd__value_loss { RNND__MSE, RNND__BCE, RNND__WEIGHTED_BCE };

/* A row's loss; the row becomes its gradient. All threads of the block call it. */
template <rnnd__value_loss kind>
__device__ __forceinline__ double value_row(float *row, const float *target,
                                            int64_t cols, const float *weight)
{
    float factor = 2.0f / (float)cols;
    double sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        sum += kind == RNND__MSE   ? mse_of(row + j, target[j], factor)
               : kind == RNND__BCE ? bce_of(row + j, target[j])
                                   : weighted_bce_of(row + j, target[j], weight[j]);
    sum = block_sum(sum);
    return kind == RNND__MSE ? sum / (double)cols : sum;
}

template <rnnd__value_loss kind>
__global__ void __launch_bounds__(1024)
    value_loss(double *partial, float *scores, const float *target, int64_t rows,
               int64_t cols, const float *weight)
{
    rnnd__sums sums = {0, 0, 0, 0};
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        float *row = scores + r * cols;
        const float *t = target + r * cols;
        int missing = 0;
        for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
            missing |= t[j] != t[j];
        if (!__syncthreads_or(missing)) {
            sums.loss += value_row<kind>(row, t, cols, weight);
            sums.targets += 1;
            sums.weight += 1;
        } else {
            clear_row(row, cols);
        }
    }
    leave_sums(partial, sums);
}

template <rnnd__value_loss kind>
static void value_losses(struct rnnd__cuda *cuda, const struct rnnd__loss *l)
{
    unsigned threads = l->cols <= 128 ? 32 : RNND__BLOCK;
    int blocks = loss_blocks(l->rows);
    if (l->rows == 0 || !rnnd__cuda_sound(cuda))
        return;
    if (rnnd__cuda_ok(cuda,
                      launch(value_loss<kind>, dim3((unsigned)blocks), dim3(threads), 0,
                             cuda->stream, cuda->partial, rnnd__floats(l->scores),
                             rnnd__floats(l->target), l->rows, l->cols,
                             rnnd__floats(l->weight)),
                      "loss"))
        rnnd__cuda_add_sums(cuda, blocks, l->sums);
}

void rnnd__cuda_mse(struct rnnd_backend *be, const struct rnnd__loss *l)
{
    value_losses<RNND__MSE>(rnnd__cuda_of(be), l);
}

void rnnd__cuda_bce(struct rnnd_backend *be, const struct rnnd__loss *l)
{
    if (rnnd__buf_is_null(l->weight))
        value_losses<RNND__BCE>(rnnd__cuda_of(be), l);
    else
        value_losses<RNND__WEIGHTED_BCE>(rnnd__cuda_of(be), l);
}
