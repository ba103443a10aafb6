/*
 * matrix.cu - products by cuBLAS, biases and column sums.
 *
 * cuBLAS counts columns first: a row-major matrix is its own transpose there, so that
 * C = A B is asked for as C^T = B^T A^T.
 */
#include "cuda_backend.cuh"

/* ---- products */

/* C = beta C: a product over nothing. */
__global__ void __launch_bounds__(RNND__BLOCK)
    scale_matrix(float *C, int64_t rows, int64_t cols, int64_t ld, float beta)
{
    for (int64_t i = thread_index(); i < rows * cols; i += thread_count()) {
        rnnd__place p = place_of(i, cols);
        float *c = C + p.row * ld + p.col;
        *c = beta == 0 ? 0 : beta * *c;
    }
}

void rnnd__cuda_matmul(struct rnnd_backend *be, const struct rnnd__matmul *s,
                       struct rnnd__buf C, struct rnnd__buf A, struct rnnd__buf B)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    if (s->m == 0 || s->n == 0 || !rnnd__cuda_sound(cuda))
        return;
    if (s->k == 0) {
        rnnd__cuda_ok(cuda,
                      launch(scale_matrix, rnnd__blocks(s->m * s->n), dim3(RNND__BLOCK),
                             0, cuda->stream, rnnd__floats(C), s->m, s->n, s->ldc,
                             s->beta),
                      "matrix product");
        return;
    }
    rnnd__cublas_ok(cuda,
                    cublasGemmEx(cuda->blas, s->tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                                 s->ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int)s->n,
                                 (int)s->m, (int)s->k, &s->alpha, B.dev, CUDA_R_32F,
                                 (int)s->ldb, A.dev, CUDA_R_32F, (int)s->lda, &s->beta,
                                 C.dev, CUDA_R_32F, (int)s->ldc, cuda->compute,
                                 CUBLAS_GEMM_DEFAULT),
                    "matrix product");
}

/* ---- biases */

__global__ void __launch_bounds__(RNND__BLOCK)
    add_bias_rows(float *y, const float *bias, int64_t rows, int64_t cols)
{
    for (int64_t i = thread_index(); i < rows * cols; i += thread_count())
        y[i] += __ldg(bias + place_of(i, cols).col);
}

void rnnd__cuda_add_bias(struct rnnd_backend *be, int64_t rows, int64_t cols,
                         struct rnnd__buf y, struct rnnd__buf bias)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    if (rows * cols > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(add_bias_rows, rnnd__blocks(rows * cols),
                             dim3(RNND__BLOCK), 0, cuda->stream, rnnd__floats(y),
                             rnnd__floats(bias), rows, cols),
                      "bias");
}

/* ---- column sums, in two stages */

enum { TILE = 32, LANES = RNND__BLOCK / TILE, SHORT = 16 };

struct rnnd__col_sum {
    /* each: rows of a part */
    int64_t rows, cols, ld, each;
    int tiles, parts;
};

/* A block sums 32 columns over the rows of one part: in float over few rows, in double
   beyond. With one part the sums are added to out at once. */
__global__ void __launch_bounds__(RNND__BLOCK)
    sum_columns(float *out, double *partial, const float *x, rnnd__col_sum s)
{
    SHARED_ARRAY(double, lane_sum, [LANES][TILE]);
    int64_t part = blockIdx.x / s.tiles;
    int64_t col = (int64_t)(blockIdx.x - part * s.tiles) * TILE + threadIdx.x % TILE;
    int lane = (int)threadIdx.x / TILE;
    int64_t begin = part * s.each,
            end = begin + s.each < s.rows ? begin + s.each : s.rows;
    double sum = 0;
    for (int64_t r = begin + lane; r < end && col < s.cols;) {
        float few = 0;
        for (int i = 0; i < SHORT && r < end; i++, r += LANES)
            few += x[r * s.ld + col];
        sum += few;
    }
    if (PLANTED(5, "the last lane writes beyond its array"))
        lane_sum[lane + 1][threadIdx.x % TILE] = sum;
    lane_sum[lane][threadIdx.x % TILE] = sum;
    __syncthreads();
    if (lane > 0 || col >= s.cols)
        return;
    for (int l = 1; l < LANES; l++)
        sum += lane_sum[l][threadIdx.x];
    if (s.parts == 1)
        out[col] += (float)sum;
    else
        partial[part * s.cols + col] = sum;
}

__global__ void __launch_bounds__(RNND__BLOCK)
    add_column_parts(float *out, const double *partial, int64_t cols, int parts)
{
    for (int64_t c = thread_index(); c < cols; c += thread_count()) {
        double sum = 0;
        for (int p = 0; p < parts; p++)
            sum += partial[p * cols + c];
        out[c] += (float)sum;
    }
}

void rnnd__cuda_sum_rows(struct rnnd__cuda *cuda, int64_t rows, int64_t cols,
                         int64_t ld, float *out, const float *x)
{
    const int64_t most_parts = 64, least_rows = LANES * SHORT;
    if (rows == 0 || cols == 0 || !rnnd__cuda_sound(cuda))
        return;
    int64_t parts = rnnd__least(rnnd__ratio_up(rows, least_rows), most_parts);
    parts = rnnd__most(1, rnnd__least(parts, RNND__PARTIALS / cols));
    rnnd__col_sum s = {
        rows, cols, ld, rnnd__ratio_up(rows, parts), (int)rnnd__ratio_up(cols, TILE),
        0};
    s.parts = (int)rnnd__ratio_up(rows, s.each);
    if (!rnnd__cuda_ok(cuda,
                       launch(sum_columns, dim3((unsigned)(s.tiles * s.parts)),
                              dim3(RNND__BLOCK), 0, cuda->stream, out, cuda->partial, x,
                              s),
                       "column sums") ||
        s.parts == 1)
        return;
    rnnd__cuda_ok(cuda,
                  launch(add_column_parts, rnnd__blocks(cols), dim3(RNND__BLOCK), 0,
                         cuda->stream, out, cuda->partial, cols, s.parts),
                  "column sums");
}

void rnnd__cuda_col_sum(struct rnnd_backend *be, int64_t rows, int64_t cols,
                        struct rnnd__buf out, struct rnnd__buf x)
{
    rnnd__cuda_sum_rows(rnnd__cuda_of(be), rows, cols, cols, rnnd__floats(out),
                        rnnd__floats(x));
}
