/*
 * embed.cu - rows of the embedding, and their gradients.
 */
#include "cuda_backend.cuh"

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
    if (!PLANTED(11, "only threads with a column reach the barrier") || col < E)
        __syncthreads();
    if (lane > 0 || col >= E)
        return;
    for (int l = 1; l < LANES; l++)
        sum += lane_sum[l][threadIdx.x];
    if (PLANTED(12, "an atomic sum of floats, whose order would change the bits"))
        atomicAdd(dtable + token[s] * E + col, (float)sum);
    else
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
