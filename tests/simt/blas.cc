/*
 * blas.cc - cuBLAS: the matrix products that kernels/cuda/ asks for, by the CPU's
 * library.
 *
 * Takes column-major matrices of float or bfloat16, checks leading dimensions, types
 * and the memory that a product touches, and queues it. Rounds inputs as the compute
 * type says; sums in fp32. With beta = 0, C is not read. Setting the stream forgets the
 * workspace, as cuBLAS does; a product without one is no part of a graph, since cuBLAS
 * would allocate there, and products that share one are not to run side by side. In a
 * graph, products of some shapes are two kernels.
 */
#include <cublas_v2.h>

#if defined(RNND_GEMM_ONEDNN)
#include <dnnl.h>
#elif defined(RNND_GEMM_CBLAS)
#include <cblas.h>
#else
#error "define RNND_GEMM_ONEDNN or RNND_GEMM_CBLAS"
#endif

#include "core.h"

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    cublasMath_t math;
};

namespace simt
{

namespace
{

/* One operand in memory: rows by columns, a column after the other. */
struct Matrix {
    void *p;
    cudaDataType type;
    int64_t rows, columns, ld, stride;
};

struct Product {
    cublasOperation_t ta, tb;
    int m, n, k, count;
    float alpha, beta;
    Matrix a, b, c;
    cublasComputeType_t compute;
    void *workspace;
};

size_t size_of(cudaDataType type)
{
    return type == CUDA_R_16BF ? 2 : 4;
}

char *column(const Matrix &x, int batch, int64_t j)
{
    return static_cast<char *>(x.p) +
           (x.stride * batch + x.ld * j) * (int64_t)size_of(x.type);
}

/* ---- what a product touches */

void check_matrix(const Matrix &x, int count, int device, const char *what)
{
    if (x.rows == 0 || x.columns == 0)
        return;
    size_t bytes = (size_t)(x.ld * (x.columns - 1) + x.rows) * size_of(x.type);
    if ((uintptr_t)x.p % size_of(x.type))
        error("%s: %p is not aligned", what, x.p);
    for (int i = 0; i < count; i++)
        check_device(column(x, i, 0), bytes, device, what);
}

void announce(const Matrix &x, int batch, bool write)
{
    for (int64_t j = 0; j < x.columns; j++)
        if (write)
            announce_write(column(x, batch, j), (size_t)x.rows * size_of(x.type));
        else
            announce_read(column(x, batch, j), (size_t)x.rows * size_of(x.type));
}

/* ---- the product */

float rounded(float x, cublasComputeType_t compute)
{
    if (compute == CUBLAS_COMPUTE_32F_FAST_16BF)
        return __bfloat162float(__float2bfloat16_rn(x));
    if (compute != CUBLAS_COMPUTE_32F_FAST_TF32)
        return x;
    uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return x;
    return __uint_as_float((bits + 0x1000u) & 0xffffe000u);
}

/* Floats of an operand: where it is, or a rounded copy. */
struct Floats {
    const float *p;
    int64_t ld;
    std::vector<float> copy;
};

bool is_plain(const Matrix &x, cublasComputeType_t compute)
{
    return x.type == CUDA_R_32F &&
           (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC);
}

Floats load(const Matrix &x, int batch, cublasComputeType_t compute)
{
    Floats out = {reinterpret_cast<const float *>(column(x, batch, 0)), x.ld, {}};
    if (is_plain(x, compute))
        return out;
    out.copy.resize((size_t)(x.rows * x.columns));
    for (int64_t j = 0; j < x.columns; j++) {
        const char *from = column(x, batch, j);
        float *to = &out.copy[(size_t)(j * x.rows)];
        for (int64_t i = 0; i < x.rows; i++)
            if (x.type == CUDA_R_16BF)
                to[i] =
                    __bfloat162float(reinterpret_cast<const __nv_bfloat16 *>(from)[i]);
            else
                to[i] = rounded(reinterpret_cast<const float *>(from)[i], compute);
    }
    out.p = out.copy.data();
    out.ld = x.rows;
    return out;
}

void store(const Matrix &x, int batch, const std::vector<float> &from)
{
    for (int64_t j = 0; j < x.columns; j++) {
        __nv_bfloat16 *to = reinterpret_cast<__nv_bfloat16 *>(column(x, batch, j));
        for (int64_t i = 0; i < x.rows; i++)
            to[i] = __float2bfloat16_rn(from[(size_t)(j * x.rows + i)]);
    }
}

/* The libraries are row-major: all is transposed there. */
void sgemm(const Product &p, const Floats &a, const Floats &b, float *c, int64_t ldc)
{
    bool ta = p.ta != CUBLAS_OP_N, tb = p.tb != CUBLAS_OP_N;
#if defined(RNND_GEMM_ONEDNN)
    if (dnnl_sgemm(tb ? 'T' : 'N', ta ? 'T' : 'N', p.n, p.m, p.k, p.alpha, b.p, b.ld,
                   a.p, a.ld, p.beta, c, ldc) != dnnl_success)
        error("the matrix product of %d x %d x %d failed", p.m, p.n, p.k);
#else
    cblas_sgemm(CblasRowMajor, tb ? CblasTrans : CblasNoTrans,
                ta ? CblasTrans : CblasNoTrans, p.n, p.m, p.k, p.alpha, b.p, (int)b.ld,
                a.p, (int)a.ld, p.beta, c, (int)ldc);
#endif
}

/* C = beta C: what is left of a product over nothing. */
void scale(const Product &p, float *c, int64_t ldc)
{
    for (int64_t j = 0; j < p.n; j++)
        for (int64_t i = 0; i < p.m; i++)
            c[j * ldc + i] = p.beta == 0 ? 0 : p.beta * c[j * ldc + i];
}

void multiply(const Product &p, int batch)
{
    announce(p.a, batch, false);
    announce(p.b, batch, false);
    if (p.beta != 0)
        announce(p.c, batch, false);
    announce(p.c, batch, true);
    if (p.workspace)
        announce_write(p.workspace, 1);
    Unseen unseen;
    Floats c = load(p.c, batch, CUBLAS_COMPUTE_32F);
    float *out = const_cast<float *>(c.p);
    if (p.k == 0)
        scale(p, out, c.ld);
    else
        sgemm(p, load(p.a, batch, p.compute), load(p.b, batch, p.compute), out, c.ld);
    if (!c.copy.empty())
        store(p.c, batch, c.copy);
}

/* ---- asking for it */

bool sizes_are_right(const Product &p)
{
    return p.m >= 0 && p.n >= 0 && p.k >= 0 && p.count >= 0 &&
           p.a.ld >= std::max<int64_t>(1, p.a.rows) &&
           p.b.ld >= std::max<int64_t>(1, p.b.rows) && p.c.ld >= std::max(1, p.m);
}

bool types_are_known(const Product &p)
{
    bool bf16 = p.a.type == CUDA_R_16BF;
    bool fast = p.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                p.compute == CUBLAS_COMPUTE_32F_FAST_16BF;
    bool known = p.compute == CUBLAS_COMPUTE_32F ||
                 p.compute == CUBLAS_COMPUTE_32F_PEDANTIC || (fast && !bf16);
    if (!known || p.a.type != p.b.type)
        return false;
    if (bf16)
        return settings().arch >= 80 &&
               (p.c.type == CUDA_R_16BF || p.c.type == CUDA_R_32F);
    return p.a.type == CUDA_R_32F && p.c.type == CUDA_R_32F;
}

/* cuBLAS adds up parts of a long product in a second kernel. For which shapes is its
   own affair: any fifth will do. */
bool has_two_kernels(const Product &p)
{
    return (p.m + p.n) % 5 == 0;
}

cublasStatus_t ask(cublasHandle_t h, Product p, const char *what)
{
    enter(what);
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    p.a.rows = p.ta == CUBLAS_OP_N ? p.m : p.k;
    p.a.columns = p.ta == CUBLAS_OP_N ? p.k : p.m;
    p.b.rows = p.tb == CUBLAS_OP_N ? p.k : p.n;
    p.b.columns = p.tb == CUBLAS_OP_N ? p.n : p.k;
    p.c.rows = p.m;
    p.c.columns = p.n;
    if (!sizes_are_right(p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!types_are_known(p))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (p.m == 0 || p.n == 0)
        return CUBLAS_STATUS_SUCCESS;
    check_stream(h->stream, what);
    if (is_capturing(h->stream) && !h->workspace)
        error("%s is captured without a workspace (cublasSetWorkspace after the last "
              "cublasSetStream)",
              what);
    if (h->math == CUBLAS_TF32_TENSOR_OP_MATH && p.compute == CUBLAS_COMPUTE_32F)
        p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    if (settings().arch < 80 && p.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        p.compute = CUBLAS_COMPUTE_32F;
    int device = stream_device(h->stream);
    p.workspace = h->workspace;
    enqueue(h->stream, what, [=] {
        check_matrix(p.a, p.count, device, "matrix A");
        check_matrix(p.b, p.count, device, "matrix B");
        check_matrix(p.c, p.count, device, "matrix C");
        for (int i = 0; i < p.count; i++)
            multiply(p, i);
        return true;
    });
    if (is_capturing(h->stream) && has_two_kernels(p))
        enqueue(h->stream, what, [] { return true; });
    return CUBLAS_STATUS_SUCCESS;
}

Matrix matrix(const void *p, cudaDataType type, int ld, long long stride)
{
    return {const_cast<void *>(p), type, 0, 0, ld, stride};
}

} // namespace
} // namespace simt

using namespace simt;

/* ---- entry points: cublas_api.h */

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t *h)
{
    enter("cublasCreate");
    *h = new cublasContext();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t h)
{
    enter("cublasDestroy");
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream)
{
    enter("cublasSetStream");
    check_stream(stream, "cublasSetStream");
    h->stream = stream;
    h->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t h, cudaStream_t *stream)
{
    *stream = h->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t bytes)
{
    enter("cublasSetWorkspace");
    check_device(workspace, bytes, current_device(), "cublasSetWorkspace");
    if ((uintptr_t)workspace % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    h->workspace = bytes > 0 ? workspace : nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t mode)
{
    h->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t mode)
{
    if (mode == CUBLAS_ATOMICS_ALLOWED)
        error("cublasSetAtomicsMode: sums would depend on the schedule");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t mode)
{
    if (mode != CUBLAS_POINTER_MODE_HOST)
        error("cublasSetPointerMode: only the host's is emulated");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *version)
{
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "an unknown status of cuBLAS";
    }
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t h, cublasOperation_t ta,
                              cublasOperation_t tb, int m, int n, int k,
                              const float *alpha, const float *A, int lda,
                              const float *B, int ldb, const float *beta, float *C,
                              int ldc)
{
    return ask(h,
               {ta, tb, m, n, k, 1, *alpha, *beta, matrix(A, CUDA_R_32F, lda, 0),
                matrix(B, CUDA_R_32F, ldb, 0), matrix(C, CUDA_R_32F, ldc, 0),
                CUBLAS_COMPUTE_32F, nullptr},
               "cublasSgemm");
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t h, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k,
                                         const float *alpha, const float *A, int lda,
                                         long long stride_a, const float *B, int ldb,
                                         long long stride_b, const float *beta,
                                         float *C, int ldc, long long stride_c,
                                         int count)
{
    return ask(h,
               {ta, tb, m, n, k, count, *alpha, *beta,
                matrix(A, CUDA_R_32F, lda, stride_a),
                matrix(B, CUDA_R_32F, ldb, stride_b),
                matrix(C, CUDA_R_32F, ldc, stride_c), CUBLAS_COMPUTE_32F, nullptr},
               "cublasSgemmStridedBatched");
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void *alpha, const void *A, cudaDataType type_a, int lda, long long stride_a,
    const void *B, cudaDataType type_b, int ldb, long long stride_b, const void *beta,
    void *C, cudaDataType type_c, int ldc, long long stride_c, int count,
    cublasComputeType_t compute, cublasGemmAlgo_t)
{
    return ask(h,
               {ta, tb, m, n, k, count, *static_cast<const float *>(alpha),
                *static_cast<const float *>(beta), matrix(A, type_a, lda, stride_a),
                matrix(B, type_b, ldb, stride_b), matrix(C, type_c, ldc, stride_c),
                compute, nullptr},
               "cublasGemmStridedBatchedEx");
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta,
                            cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *A, cudaDataType type_a,
                            int lda, const void *B, cudaDataType type_b, int ldb,
                            const void *beta, void *C, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t)
{
    return ask(h,
               {ta, tb, m, n, k, 1, *static_cast<const float *>(alpha),
                *static_cast<const float *>(beta), matrix(A, type_a, lda, 0),
                matrix(B, type_b, ldb, 0), matrix(C, type_c, ldc, 0), compute, nullptr},
               "cublasGemmEx");
}

} // extern "C"
