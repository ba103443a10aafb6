/*
 * gemm.c - one matrix product on the calling thread, by oneDNN or any CBLAS.
 *
 * The only file that uses the matrix library. Row-major, as in kernels/backend.h.
 */
#include "cpu.h"

#if defined(RNND_GEMM_ONEDNN)
#include <dnnl.h>
#elif defined(RNND_GEMM_CBLAS)
#include <cblas.h>
/* Weak, because only OpenBLAS has it. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));
#else
#error "define RNND_GEMM_ONEDNN or RNND_GEMM_CBLAS"
#endif

/* C = beta C, where the product itself is empty or zero. */
static void scale(const struct rnnd__matmul *s, float *C)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++)
            C[i * s->ldc + j] = s->beta == 0 ? 0 : s->beta * C[i * s->ldc + j];
}

#if defined(RNND_GEMM_ONEDNN)
const char *rnnd__gemm_name(void)
{
    return "oneDNN";
}

void rnnd__gemm_init(void)
{
}

static bool product(const struct rnnd__matmul *s, float *C, const float *A,
                    const float *B)
{
    return dnnl_sgemm(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, s->alpha,
                      A, s->lda, B, s->ldb, s->beta, C, s->ldc) == dnnl_success;
}
#else
const char *rnnd__gemm_name(void)
{
    return "CBLAS";
}

void rnnd__gemm_init(void)
{
    if (openblas_set_num_threads)
        openblas_set_num_threads(1);
}

static bool product(const struct rnnd__matmul *s, float *C, const float *A,
                    const float *B)
{
    cblas_sgemm(CblasRowMajor, s->ta ? CblasTrans : CblasNoTrans,
                s->tb ? CblasTrans : CblasNoTrans, (int)s->m, (int)s->n, (int)s->k,
                s->alpha, A, (int)s->lda, B, (int)s->ldb, s->beta, C, (int)s->ldc);
    return true;
}
#endif

void rnnd__gemm(const struct rnnd__cpu *cpu, const struct rnnd__matmul *s, float *C,
                const float *A, const float *B)
{
    if (s->m == 0 || s->n == 0)
        return;
    if (s->k == 0)
        scale(s, C);
    else if (!product(s, C, A, B))
        rnnd__cpu_fail(cpu, "matrix product failed: out of memory");
}
