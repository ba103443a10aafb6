/*
 * matrix.c - products, biases and column sums over the threads.
 *
 * A product is cut along the longer side of its result, so every element is summed by
 * one thread in one order.
 */
#include "cpu.h"

struct product {
    const struct rnnd__matmul *s;
    float *C;
    const float *A, *B;
};

static void product_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                         int parts)
{
    const struct product *p = arg;
    struct rnnd__matmul s = *p->s;
    float *C = p->C;
    const float *A = p->A, *B = p->B;
    int64_t range[2];
    if (s.m >= s.n) {
        rnnd__cpu_range(s.m, part, parts, range);
        s.m = range[1] - range[0];
        A += range[0] * (s.ta ? 1 : s.lda);
        C += range[0] * s.ldc;
    } else {
        rnnd__cpu_range(s.n, part, parts, range);
        s.n = range[1] - range[0];
        B += range[0] * (s.tb ? s.ldb : 1);
        C += range[0];
    }
    if (s.m > 0 && s.n > 0 && cpu->bf16)
        cpu->simd->gemm_bf16(&s, C, A, B, cpu->work + part * (int64_t)RNND__OUTER_WORK);
    else
        rnnd__gemm(cpu, &s, C, A, B);
}

/* C += A^T B, the gradient of a weight, by our own loops. */
static void outer_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                       int parts)
{
    const struct product *p = arg;
    const struct rnnd__matmul *s = p->s;
    int64_t range[2];
    rnnd__cpu_range(s->m, part, parts, range);
    struct rnnd__outer o = {.m = range[1] - range[0],
                            .n = s->n,
                            .k = s->k,
                            .c = p->C + range[0] * s->ldc,
                            .ldc = s->ldc,
                            .a = p->A + range[0],
                            .lda = s->lda,
                            .b = p->B,
                            .ldb = s->ldb,
                            .work = cpu->work + part * (int64_t)RNND__OUTER_WORK,
                            .bf16 = cpu->bf16};
    cpu->simd->outer(&o);
}

void rnnd__cpu_matmul(struct rnnd_backend *be, const struct rnnd__matmul *s,
                      struct rnnd__buf C, struct rnnd__buf A, struct rnnd__buf B)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct product p = {s, rnnd__floats(C), rnnd__floats(A), rnnd__floats(B)};
    int64_t work = s->m * s->n * (s->k > 16 ? s->k / 16 : 1);
    /* Our own loops are up to half as fast again where a row of A is a power of two
       long, as with most gates; where C is larger than a cache, oneDNN is faster. */
    const int64_t large = 1 << 21;
    bool outer = s->ta && !s->tb && s->alpha == 1 && s->beta == 1 &&
                 (cpu->bf16 || s->m * s->n <= large);
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, work),
                       outer ? outer_part : product_part, &p);
}

struct rows {
    int64_t rows, cols;
    float *out;
    const float *in;
};

static void add_bias_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                          int parts)
{
    const struct rows *a = arg;
    int64_t range[2];
    rnnd__cpu_range(a->rows, part, parts, range);
    for (int64_t r = range[0]; r < range[1]; r++)
        cpu->simd->add(a->out + r * a->cols, a->in, a->cols);
}

void rnnd__cpu_add_bias(struct rnnd_backend *be, int64_t rows, int64_t cols,
                        struct rnnd__buf y, struct rnnd__buf bias)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct rows a = {rows, cols, rnnd__floats(y), rnnd__floats(bias)};
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, rows * cols), add_bias_part, &a);
}

static void col_sum_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                         int parts)
{
    const struct rows *a = arg;
    int64_t range[2];
    rnnd__cpu_range(a->cols, part, parts, range);
    cpu->simd->sum_rows(a->out + range[0], a->in + range[0], a->cols, NULL, a->rows,
                        range[1] - range[0]);
}

void rnnd__cpu_col_sum(struct rnnd_backend *be, int64_t rows, int64_t cols,
                       struct rnnd__buf out, struct rnnd__buf x)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct rows a = {rows, cols, rnnd__floats(out), rnnd__floats(x)};
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, rows * cols), col_sum_part, &a);
}
