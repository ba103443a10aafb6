/*
 * backend.c - opening the CPU, its memory, and the table of its operations.
 *
 * Device memory is the host's own. All work is done when an operation returns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu.h"
#include "rnn_dist.h"

/* ---- choosing the inner loops */

extern const struct rnnd__simd rnnd__simd_baseline;
#if defined(__x86_64__)
extern const struct rnnd__simd rnnd__simd_avx2, rnnd__simd_avx512,
    rnnd__simd_avx512bf16;
#endif

/* Best first. */
static const struct rnnd__simd *const tables[] = {
#if defined(__x86_64__)
    &rnnd__simd_avx512bf16,
    &rnnd__simd_avx512,
    &rnnd__simd_avx2,
#endif
    &rnnd__simd_baseline,
};

static bool can_run(const struct rnnd__simd *simd)
{
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (simd == &rnnd__simd_avx2)
        return avx2;
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                  __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
    if (simd == &rnnd__simd_avx512)
        return avx512;
    if (simd == &rnnd__simd_avx512bf16)
        return avx512 && __builtin_cpu_supports("avx512bf16");
#endif
    (void)simd;
    return true;
}

const struct rnnd__simd *rnnd__simd_choose(const char *name, bool bf16)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        enum rnnd__bf16 has = tables[i]->bf16;
        bool chosen = name ? strcmp(name, tables[i]->name) == 0
                           : (has == RNND__BF16_HARDWARE) == bf16;
        if (chosen && (!bf16 || has != RNND__BF16_NONE) && can_run(tables[i]))
            return tables[i];
    }
    return NULL;
}

/* ---- failures and sums */

void rnnd__cpu_fail(const struct rnnd__cpu *cpu, const char *what)
{
    struct rnnd__cpu *self = (struct rnnd__cpu *)cpu;
    int none = 0;
    if (__atomic_compare_exchange_n(&self->base.status, &none, RNND_EDEVICE, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        snprintf(self->base.error, sizeof self->base.error, "cpu: %s", what);
}

void rnnd__cpu_add_sums(const struct rnnd__cpu *cpu, int parts, struct rnnd__buf sums)
{
    struct rnnd__sums *total = (struct rnnd__sums *)sums.dev;
    for (int part = 0; part < parts; part++) {
        struct rnnd__sums s;
        memcpy(&s, cpu->partial + part * RNND__CPU_LINE, sizeof s);
        total->loss += s.loss;
        total->targets += s.targets;
        total->correct += s.correct;
        total->weight += s.weight;
    }
}

/* ---- memory */

/* Large blocks start on a huge page, of which they ask to be made. */
static int cpu_alloc(struct rnnd_backend *be, struct rnnd__buf *out, size_t bytes)
{
    const size_t line = 64, huge = (size_t)2 << 20;
    size_t align = bytes >= 2 * huge ? huge : line;
    void *p;
    if (bytes > SIZE_MAX - huge || posix_memalign(&p, align, bytes ? bytes : 1) != 0) {
        snprintf(be->error, sizeof be->error, "out of memory: %zu bytes on the cpu",
                 bytes);
        return RNND_EDEVICE;
    }
#ifdef MADV_HUGEPAGE
    if (align == huge)
        madvise(p, bytes, MADV_HUGEPAGE); /* advice: a refusal changes nothing */
#endif
    out->dev = p;
    return 0;
}

static void cpu_free(struct rnnd_backend *be, struct rnnd__buf buf)
{
    (void)be;
    free(buf.dev);
}

static void cpu_upload(struct rnnd_backend *be, struct rnnd__buf dst, const void *src,
                       size_t bytes)
{
    (void)be;
    if (bytes > 0)
        memcpy(dst.dev, src, bytes);
}

static int cpu_sync(struct rnnd_backend *be)
{
    int status = be->status;
    be->status = 0;
    return status;
}

static int cpu_download(struct rnnd_backend *be, void *dst, struct rnnd__buf src,
                        size_t bytes)
{
    int status = cpu_sync(be);
    if (status == 0 && bytes > 0)
        memcpy(dst, src.dev, bytes);
    return status;
}

static void cpu_copy(struct rnnd_backend *be, struct rnnd__buf dst,
                     struct rnnd__buf src, size_t bytes)
{
    (void)be;
    if (bytes > 0)
        memmove(dst.dev, src.dev, bytes);
}

static void cpu_zero(struct rnnd_backend *be, struct rnnd__buf dst, size_t bytes)
{
    (void)be;
    if (bytes > 0)
        memset(dst.dev, 0, bytes);
}

static void *cpu_host(struct rnnd_backend *be, struct rnnd__buf buf)
{
    (void)be;
    return buf.dev;
}

/* ---- opening and closing */

static const char *cpu_describe(const struct rnnd_backend *be)
{
    return rnnd__cpu_of(be)->description;
}

static void cpu_close(struct rnnd_backend *be)
{
    if (!be)
        return;
    free(rnnd__cpu_of(be)->partial);
    free(rnnd__cpu_of(be)->work);
    free(be);
}

static void cpu_rnn_explain(struct rnnd_backend *be, enum rnnd_cell cell, int64_t H,
                            int64_t N, char *text)
{
    (void)be, (void)cell, (void)H, (void)N;
    snprintf(text, 160, "the CPU has one path: a product and a fused cell per step");
}

static const struct rnnd__backend_ops cpu_ops = {
    .name = "cpu",
    .describe = cpu_describe,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_upload,
    .download = cpu_download,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .sync = cpu_sync,
    .host = cpu_host,
    .matmul = rnnd__cpu_matmul,
    .add_bias = rnnd__cpu_add_bias,
    .col_sum = rnnd__cpu_col_sum,
    .rnn_scratch = rnnd__cpu_rnn_scratch,
    .rnn_forward = rnnd__cpu_rnn_forward,
    .rnn_backward = rnnd__cpu_rnn_backward,
    .rnn_explain = cpu_rnn_explain,
    .embed_gather = rnnd__cpu_embed_gather,
    .embed_scatter_add = rnnd__cpu_embed_scatter_add,
    .pool = rnnd__cpu_pool,
    .pool_backward = rnnd__cpu_pool_backward,
    .dropout = rnnd__cpu_dropout,
    .softmax_ce = rnnd__cpu_softmax_ce,
    .mse = rnnd__cpu_mse,
    .bce = rnnd__cpu_bce,
    .ctc_scratch = rnnd__cpu_ctc_scratch,
    .ctc = rnnd__cpu_ctc,
    .sum_sq = rnnd__cpu_sum_sq,
    .sgd = rnnd__cpu_sgd,
    .adam = rnnd__cpu_adam,
};

static int open_failed(char *error, int status, const char *text)
{
    snprintf(error, 256, "cpu: %s", text);
    return status;
}

static int refused(char *error, const char *text)
{
    snprintf(error, 256, "%s", text);
    return RNND_EUSAGE;
}

/* The inner loops for a precision. */
static int choose(int precision, const struct rnnd__simd **simd, char *error)
{
    const char *name = getenv("RNND_CPU_ISA");
    bool bf16 = precision == RNND_BF16;
    if (precision != RNND_FP32 && !bf16)
        return refused(error, "--precision tf32 is for GPUs: a CPU computes in fp32 or "
                              "bf16");
    *simd = rnnd__simd_choose(name, bf16);
    if (*simd)
        return 0;
    if (!name)
        return refused(error, "--precision bf16 needs a CPU with AVX512_BF16, which "
                              "this one lacks: use fp32");
    if (bf16 && rnnd__simd_choose(name, false))
        return refused(error, "--precision bf16: RNND_CPU_ISA must be avx512bf16, or "
                              "avx2 or avx512, which emulate it slowly");
    return refused(error, "the CPU cannot run what RNND_CPU_ISA asks for: baseline, "
                          "avx2, avx512 or avx512bf16, as far as it has it");
}

int rnnd__cpu_check(int precision, char *error)
{
    const struct rnnd__simd *simd;
    return choose(precision, &simd, error);
}

int rnnd__cpu_open(const struct rnnd__backend_config *config, struct rnnd_backend **out,
                   char *error)
{
    const struct rnnd__simd *simd;
    int status = choose(config->precision, &simd, error);
    if (status < 0)
        return status;
    int threads = config->threads > 0 ? config->threads : 1;
    struct rnnd__cpu *cpu = calloc(1, sizeof *cpu);
    double *partial = calloc((size_t)threads * RNND__CPU_LINE, sizeof *partial);
    float *work = aligned_alloc(64, (size_t)threads * RNND__OUTER_WORK * sizeof *work);
    if (!cpu || !partial || !work) {
        free(cpu);
        free(partial);
        free(work);
        return open_failed(error, RNND_EDEVICE, "out of memory");
    }
    cpu->base.ops = &cpu_ops;
    cpu->threads = threads;
    cpu->simd = simd;
    cpu->bf16 = config->precision == RNND_BF16;
    cpu->partial = partial;
    cpu->work = work;
    snprintf(cpu->description, sizeof cpu->description, "cpu, %d thread%s, %s, %s",
             threads, threads == 1 ? "" : "s", simd->name,
             cpu->bf16 ? "bf16" : rnnd__gemm_name());
    rnnd__gemm_init();
    *out = &cpu->base;
    return 0;
}
