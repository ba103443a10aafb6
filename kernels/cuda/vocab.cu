/*
 * vocab.cu - embedding rows in and out, and the softmax loss over classes or a
 * vocabulary.
 */
#include "cuda_backend.cuh"

/* ---- embedding */

__global__ void __launch_bounds__(RNND__BLOCK)
    gather_rows(float *out, const float *table, const int32_t *token, int64_t R,
                int64_t E)
{
    for (int64_t i = thread_index(); i < R * E; i += thread_count()) {
        rnnd__place p = place_of(i, E);
        out[i] = __ldg(table + (int64_t)__ldg(token + p.row) * E + p.col);
    }
}

void rnnd__cuda_embed_gather(struct rnnd_backend *be, int64_t R, int64_t E,
                             struct rnnd__buf out, struct rnnd__buf table,
                             struct rnnd__buf token)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    if (R > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(gather_rows, rnnd__blocks(R * E), dim3(RNND__BLOCK), 0,
                             cuda->stream, rnnd__floats(out), rnnd__floats(table),
                             rnnd__ints(token), R, E),
                      "embedding");
}

enum { TILE = 32, LANES = RNND__BLOCK / TILE };

/* A block adds up 32 columns of the rows of one token, always in the same order. */
__global__ void __launch_bounds__(RNND__BLOCK)
    scatter_segments(float *dtable, const float *dx, const int32_t *rows,
                     const int32_t *segment, const int32_t *token, int64_t E, int tiles)
{
    SHARED_ARRAY(double, lane_sum, [LANES][TILE]);
    int64_t s = blockIdx.x / tiles;
    int64_t col = (int64_t)(blockIdx.x - s * tiles) * TILE + threadIdx.x % TILE;
    int lane = (int)threadIdx.x / TILE, end = segment[s + 1];
    double sum = 0;
    for (int r = segment[s] + lane; r < end && col < E; r += LANES)
        sum += dx[(int64_t)__ldg(rows + r) * E + col];
    lane_sum[lane][threadIdx.x % TILE] = sum;
#if RNND_FAULT == 11 /* only threads with a column come to the barrier */
    if (col < E)
#endif
        __syncthreads();
    if (lane > 0 || col >= E)
        return;
    for (int l = 1; l < LANES; l++)
        sum += lane_sum[l][threadIdx.x];
#if RNND_FAULT == 12 /* an atomic sum of floats, whose order would change the bits */
    atomicAdd(dtable + token[s] * E + col, (float)sum);
    return;
#endif
    dtable[token[s] * E + col] += (float)sum;
}

void rnnd__cuda_embed_scatter_add(struct rnnd_backend *be, int64_t E,
                                  struct rnnd__buf dtable, struct rnnd__buf dx,
                                  const struct rnnd__segments *seg)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    int tiles = (int)rnnd__ratio_up(E, TILE);
    if (seg->count > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(scatter_segments, dim3((unsigned)(seg->count * tiles)),
                             dim3(RNND__BLOCK), 0, cuda->stream, rnnd__floats(dtable),
                             rnnd__floats(dx), rnnd__ints(seg->rows),
                             rnnd__ints(seg->segment), rnnd__ints(seg->token), E,
                             tiles),
                      "embedding");
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
#if RNND_FAULT == 13 /* the target's score is read where its gradient is by now */
    score = row[label];
#endif
    *correct = best.at == label;
    return log(sum) - ((double)score - max);
}

/* Blocks take rows in turn; each leaves its three sums in partial. */
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
            for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
                row[j] = 0;
        }
    }
    if (threadIdx.x != 0)
        return;
    partial[3 * blockIdx.x] = loss;
    partial[3 * blockIdx.x + 1] = targets;
    partial[3 * blockIdx.x + 2] = right;
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
    int blocks = (int)rnnd__least(rows, RNND__SUM_BLOCKS);
    if (rows == 0 || !rnnd__cuda_sound(cuda))
        return;
    if (rnnd__cuda_ok(cuda,
                      launch(softmax_loss, dim3((unsigned)blocks),
                             dim3(row_threads(cols)), 0, cuda->stream, cuda->partial,
                             rnnd__floats(scores), rnnd__ints(label), rows, cols),
                      "softmax"))
        rnnd__cuda_add_sums(cuda, blocks, sums);
}
