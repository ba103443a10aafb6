/*
 * test_blas.cu - cuBLAS: column-major conventions, leading dimensions, beta, types,
 * against a plain sum. Values are small integers, so that every order of summing gives
 * the same.
 */
#include "testing.h"

#include <cmath>
#include <cublas_v2.h>

#define EXPECT_BLAS(call) EXPECT((call) == CUBLAS_STATUS_SUCCESS)

struct Handle {
    cublasHandle_t h;
    explicit Handle(cudaStream_t s)
    {
        EXPECT_BLAS(cublasCreate(&h));
        EXPECT_BLAS(cublasSetStream(h, s));
    }
    Handle(const Handle &) = delete;
    ~Handle()
    {
        cublasDestroy(h);
    }
};

struct Shape {
    cublasOperation_t ta, tb;
    int m, n, k, lda, ldb, ldc;
    float alpha, beta;
};

static float value(size_t i, int salt)
{
    return (float)((int)(i * 7 + (size_t)salt * 13) % 11 - 5);
}

/* From the cuBLAS manual: element (i,j) of a column-major matrix is at i + j ld;
   op(A) is m x k, op(B) k x n, C m x n. */
static float product(const Shape &s, const std::vector<float> &a,
                     const std::vector<float> &b, int i, int j)
{
    float sum = 0;
    for (int l = 0; l < s.k; l++)
        sum += (s.ta == CUBLAS_OP_N ? a[i + l * s.lda] : a[l + i * s.lda]) *
               (s.tb == CUBLAS_OP_N ? b[l + j * s.ldb] : b[j + l * s.ldb]);
    return sum;
}

static std::vector<float> filled(size_t n, int salt)
{
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = value(i, salt);
    return v;
}

static void check(const Shape &s)
{
    Stream stream;
    Handle h(stream);
    size_t na = (size_t)s.lda * (s.ta == CUBLAS_OP_N ? s.k : s.m);
    size_t nb = (size_t)s.ldb * (s.tb == CUBLAS_OP_N ? s.n : s.k),
           nc = (size_t)s.ldc * s.n;
    Device<float> a(na), b(nb), c(nc);
    std::vector<float> ha = filled(na, 1), hb = filled(nb, 2), hc = filled(nc, 3);
    if (s.beta == 0)
        hc.assign(nc, NAN);
    a.put(ha, stream);
    b.put(hb, stream);
    c.put(hc, stream);
    EXPECT_BLAS(cublasSgemm(h.h, s.ta, s.tb, s.m, s.n, s.k, &s.alpha, a.p, s.lda, b.p,
                            s.ldb, &s.beta, c.p, s.ldc));
    std::vector<float> out = c.get(stream);
    for (int j = 0; j < s.n; j++)
        for (int i = 0; i < s.ldc; i++) {
            size_t at = (size_t)(i + j * s.ldc);
            if (i >= s.m) { /* between the columns nothing changes */
                EXPECT(s.beta == 0 ? std::isnan(out[at]) : out[at] == hc[at]);
                continue;
            }
            float expected = s.alpha * product(s, ha, hb, i, j);
            EXPECT(out[at] == (s.beta == 0 ? expected : expected + s.beta * hc[at]));
        }
}

static const cublasOperation_t N = CUBLAS_OP_N, T = CUBLAS_OP_T;

static void leading_dimensions()
{
    check({N, N, 5, 3, 4, 5, 4, 5, 1, 0});
    check({N, N, 5, 3, 4, 7, 6, 9, 2, 1});
    check({T, N, 5, 3, 4, 4, 4, 5, 1, 0});
    check({T, N, 5, 3, 4, 6, 5, 8, -1, 0.5f});
    check({N, T, 5, 3, 4, 5, 3, 5, 1, 1});
    check({N, T, 5, 3, 4, 8, 7, 6, 1, 0});
    check({T, T, 5, 3, 4, 4, 3, 5, 1, 0});
    check({T, T, 5, 3, 4, 9, 9, 9, 3, -2});
    check({N, N, 1, 1, 1, 1, 1, 1, 1, 0});
    check({T, N, 33, 17, 40, 40, 40, 33, 1, 1});
    check({N, N, 4, 3, 0, 4, 1, 5, 1, 2}); /* k = 0: beta C */
    check({N, N, 4, 3, 0, 4, 1, 5, 1, 0});
}

/* Each leading dimension one too small, and sizes below zero. */
static void refused()
{
    const Shape right = {T, N, 5, 3, 4, 4, 4, 5, 1, 0};
    Stream stream;
    Handle h(stream);
    Device<float> a(64);
    auto ask = [&](const Shape &s) {
        return cublasSgemm(h.h, s.ta, s.tb, s.m, s.n, s.k, &s.alpha, a.p, s.lda,
                           a.p + 20, s.ldb, &s.beta, a.p + 40, s.ldc);
    };
    EXPECT_BLAS(ask(right));
    for (cublasOperation_t ta : {N, T})
        for (cublasOperation_t tb : {N, T}) {
            Shape s = right;
            s.ta = ta;
            s.tb = tb;
            s.lda = (ta == N ? s.m : s.k) - 1;
            s.ldb = 9;
            EXPECT(ask(s) == CUBLAS_STATUS_INVALID_VALUE);
            s.lda = 9;
            s.ldb = (tb == N ? s.k : s.n) - 1;
            EXPECT(ask(s) == CUBLAS_STATUS_INVALID_VALUE);
            s.ldb = 9;
            s.ldc = s.m - 1;
            EXPECT(ask(s) == CUBLAS_STATUS_INVALID_VALUE);
        }
    Shape negative = right;
    negative.n = -1;
    EXPECT(ask(negative) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_CUDA(cudaStreamSynchronize(stream));
}

/* The last column of C reaches past its memory. */
static void past_the_end()
{
    Stream stream;
    Handle h(stream);
    Device<float> a(20), c(14);
    const float one = 1, zero = 0;
    EXPECT_CUDA(cudaMemsetAsync(a.p, 0, 80, stream));
    EXPECT_BLAS(cublasSgemm(h.h, N, N, 5, 3, 1, &one, a.p, 5, a.p, 1, &zero, c.p, 5));
    EXPECT_CUDA(cudaStreamSynchronize(stream));
}

/* C [m,n] = A^T B, all types and roundings: what goes in is rounded, sums are fp32. */
static void compute_type(cudaDataType in, cudaDataType out, cublasComputeType_t compute,
                         int bits)
{
    const int m = 3, n = 4, k = 2;
    const float one = 1, zero = 0;
    Stream stream;
    Handle h(stream);
    Device<float> a(k * m), b(k * n), c(m * n);
    std::vector<float> ha = filled(k * m, 1), hb = filled(k * n, 2);
    for (float &x : ha)
        x += 1.0f /
             4096; /* 12 bits after the point: only fp32 keeps them beside 1 .. 5 */
    std::vector<bf16> na(2 * k * m), nb(2 * k * n);
    for (size_t i = 0; i < ha.size(); i++)
        na[i] = to_bf16(ha[i]);
    for (size_t i = 0; i < hb.size(); i++)
        nb[i] = to_bf16(hb[i]);
    auto put = [&](Device<float> &to, const std::vector<float> &f,
                   const std::vector<bf16> &half) {
        const void *from = in == CUDA_R_32F ? (const void *)f.data() : half.data();
        EXPECT_CUDA(
            cudaMemcpyAsync(to.p, from, f.size() * 4, cudaMemcpyHostToDevice, stream));
        EXPECT_CUDA(cudaStreamSynchronize(stream));
    };
    put(a, ha, na);
    put(b, hb, nb);
    EXPECT_BLAS(cublasGemmEx(h.h, T, N, m, n, k, &one, a.p, in, k, b.p, in, k, &zero,
                             c.p, out, m, compute, CUBLAS_GEMM_DEFAULT));
    std::vector<float> hc = c.get(stream);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            float sum = 0, got;
            for (int l = 0; l < k; l++) {
                float x = ha[l + i * k];
                if (bits <
                    23) { /* rounds to nearest: the 1/4096 is less than half a unit */
                    float unit = ldexpf(1, (int)floorf(log2f(fabsf(x))) - bits);
                    x = roundf(x / unit) * unit;
                }
                sum += x * hb[l + j * k];
            }
            size_t at = (size_t)(i + j * m);
            got = out == CUDA_R_32F
                      ? hc[at]
                      : from_bf16(reinterpret_cast<const bf16 *>(hc.data())[at]);
            EXPECT(got == (out == CUDA_R_32F ? sum : from_bf16(to_bf16(sum))));
        }
}

static void compute_types()
{
    const cudaDataType f = CUDA_R_32F, b = CUDA_R_16BF;
    compute_type(f, f, CUBLAS_COMPUTE_32F, 23);
    compute_type(f, f, CUBLAS_COMPUTE_32F_PEDANTIC, 23);
    compute_type(f, f, CUBLAS_COMPUTE_32F_FAST_TF32, 10);
    compute_type(f, f, CUBLAS_COMPUTE_32F_FAST_16BF, 7);
    compute_type(b, f, CUBLAS_COMPUTE_32F, 7);
    compute_type(b, b, CUBLAS_COMPUTE_32F, 7);
}

static void unknown_types()
{
    Stream stream;
    Handle h(stream);
    Device<float> a(16);
    const float one = 1, zero = 0;
    EXPECT(cublasGemmEx(h.h, N, N, 2, 2, 2, &one, a.p, CUDA_R_32F, 2, a.p, CUDA_R_16BF,
                        2, &zero, a.p + 8, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(cublasGemmEx(h.h, N, N, 2, 2, 2, &one, a.p, CUDA_R_16BF, 2, a.p, CUDA_R_16BF,
                        2, &zero, a.p + 8, CUDA_R_32F, 2, CUBLAS_COMPUTE_16F,
                        CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
}

static void batches()
{
    const int m = 2, n = 3, k = 4, count = 3;
    const float one = 1, zero = 0;
    Stream stream;
    Handle h(stream);
    Device<float> a(m * k), b(k * n * count), c(10 * count);
    std::vector<float> ha = filled(m * k, 1), hb = filled(k * n * count, 2);
    a.put(ha, stream);
    b.put(hb, stream);
    EXPECT_BLAS(cublasSgemmStridedBatched(h.h, N, N, m, n, k, &one, a.p, m, 0, b.p, k,
                                          k * n, &zero, c.p, m, 10, count));
    std::vector<float> hc = c.get(stream);
    const Shape s = {N, N, m, n, k, m, k, m, 1, 0};
    for (int q = 0; q < count; q++) {
        std::vector<float> part(hb.begin() + q * k * n, hb.begin() + (q + 1) * k * n);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                EXPECT(hc[10 * q + i + j * m] == product(s, ha, part, i, j));
    }
}

static void no_stream()
{
    cublasHandle_t h;
    Device<float> a(16);
    const float one = 1, zero = 0;
    EXPECT_BLAS(cublasCreate(&h));
    cublasSgemm(h, N, N, 2, 2, 2, &one, a.p, 2, a.p, 2, &zero, a.p + 8, 2);
}

/* cublasSetStream takes the workspace away. */
static void captured(bool workspace_last)
{
    Stream stream;
    Handle h(stream);
    Device<float> a(16), workspace(1024);
    const float one = 1, zero = 0;
    cudaGraph_t graph;
    EXPECT_BLAS(cublasSetWorkspace(h.h, workspace.p, 4096));
    if (!workspace_last)
        EXPECT_BLAS(cublasSetStream(h.h, stream));
    EXPECT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_BLAS(
        cublasSgemm(h.h, N, N, 2, 2, 2, &one, a.p, 2, a.p, 2, &zero, a.p + 8, 2));
    EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

static void captured_with_workspace()
{
    captured(true);
}

static void captured_without_workspace()
{
    captured(false);
}

static const Scenario scenarios[] = {
    {"leading_dimensions", leading_dimensions, 0, nullptr, nullptr, 1},
    {"refused", refused, 0, nullptr, nullptr, 1},
    {"past_the_end", past_the_end, 86, "matrix C: 60 bytes", nullptr, 1},
    {"compute_types", compute_types, 0, nullptr, nullptr, 1},
    {"unknown_types", unknown_types, 0, nullptr, nullptr, 1},
    {"batches", batches, 0, nullptr, nullptr, 1},
    {"no_stream", no_stream, 86, "uses the default stream", nullptr, 1},
    {"captured_with_workspace", captured_with_workspace, 0, nullptr, nullptr, 1},
    {"captured_without_workspace", captured_without_workspace, 86,
     "without a workspace", nullptr, 1},
};

int main(int argc, char **argv)
{
    return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
