/*
 * cpu.h - what the files of the CPU back end have in common: its struct, its threads,
 * its product.
 *
 * Nothing outside kernels/cpu/ includes it.
 */
#ifndef RNND_CPU_H
#define RNND_CPU_H

#include "backend.h"
#include "simd.h"

struct rnnd__cpu {
    struct rnnd_backend base;
    int threads;
    const struct rnnd__simd *simd;
    /* --precision bf16: factors of products are rounded */
    bool bf16;
    /* [threads] of sums, a cache line each */
    double *partial;
    /* [threads] of RNND__OUTER_WORK floats */
    float *work;
    char description[96];
};

enum { RNND__CPU_LINE = 8 }; /* doubles in a cache line */

static inline const struct rnnd__cpu *rnnd__cpu_of(const struct rnnd_backend *be)
{
    return (const struct rnnd__cpu *)be;
}

static inline float *rnnd__floats(struct rnnd__buf buf)
{
    return (float *)buf.dev;
}

static inline const int32_t *rnnd__ints(struct rnnd__buf buf)
{
    return (const int32_t *)buf.dev;
}

/* ---- threads.c */

/* Part 0 .. parts-1 of an operation. */
typedef void rnnd__cpu_work(const struct rnnd__cpu *cpu, const void *arg, int part,
                            int parts);

/* Runs all parts, a thread each, with denormals flushed; returns when all are done.
   Library products inside run on that thread alone. */
void rnnd__cpu_parallel(const struct rnnd__cpu *cpu, int parts, rnnd__cpu_work *work,
                        const void *arg);
/* How many threads are worth their start for an operation on so many elements. */
int rnnd__cpu_parts(const struct rnnd__cpu *cpu, int64_t elements);
/* The range first .. last-1 of 0 .. n-1 that is a part's, cut at multiples of 16. */
void rnnd__cpu_range(int64_t n, int part, int parts, int64_t range[2]);

/* ---- backend.c */

/* Adds the sums that the parts left in cpu->partial to those on the device. */
void rnnd__cpu_add_sums(const struct rnnd__cpu *cpu, int parts, struct rnnd__buf sums);
/* Keeps the first failure in the back end; from any thread. */
void rnnd__cpu_fail(const struct rnnd__cpu *cpu, const char *what);

/* ---- gemm.c */

/* The matrix library's name. */
const char *rnnd__gemm_name(void);
/* Once at opening: makes the library's own threads stay away. */
void rnnd__gemm_init(void);
/* On the calling thread. */
void rnnd__gemm(const struct rnnd__cpu *cpu, const struct rnnd__matmul *s, float *C,
                const float *A, const float *B);

/* ---- the entries of the table, by file */

/* matrix.c */
void rnnd__cpu_matmul(struct rnnd_backend *, const struct rnnd__matmul *,
                      struct rnnd__buf C, struct rnnd__buf A, struct rnnd__buf B);
void rnnd__cpu_add_bias(struct rnnd_backend *, int64_t rows, int64_t cols,
                        struct rnnd__buf y, struct rnnd__buf bias);
void rnnd__cpu_col_sum(struct rnnd_backend *, int64_t rows, int64_t cols,
                       struct rnnd__buf out, struct rnnd__buf x);
/* rnn.c */
size_t rnnd__cpu_rnn_scratch(struct rnnd_backend *, enum rnnd_cell, int64_t H,
                             int64_t N, int64_t R);
void rnnd__cpu_rnn_forward(struct rnnd_backend *, const struct rnnd__rnn *);
void rnnd__cpu_rnn_backward(struct rnnd_backend *, const struct rnnd__rnn *);
/* embed.c */
void rnnd__cpu_embed_gather(struct rnnd_backend *, int64_t R, int64_t E,
                            struct rnnd__buf out, struct rnnd__buf table,
                            struct rnnd__buf token);
void rnnd__cpu_embed_scatter_add(struct rnnd_backend *, int64_t E,
                                 struct rnnd__buf dtable, struct rnnd__buf dx,
                                 const struct rnnd__segments *);
/* pool.c */
void rnnd__cpu_pool(struct rnnd_backend *, const struct rnnd__pooling *,
                    struct rnnd__buf out, struct rnnd__buf argmax, struct rnnd__buf y);
void rnnd__cpu_pool_backward(struct rnnd_backend *, const struct rnnd__pooling *,
                             struct rnnd__buf dy, struct rnnd__buf dout,
                             struct rnnd__buf argmax);
/* dropout.c */
void rnnd__cpu_dropout(struct rnnd_backend *, const struct rnnd__dropout *,
                       struct rnnd__buf out, struct rnnd__buf in);
/* loss.c */
void rnnd__cpu_softmax_ce(struct rnnd_backend *, const struct rnnd__loss *);
void rnnd__cpu_mse(struct rnnd_backend *, const struct rnnd__loss *);
void rnnd__cpu_bce(struct rnnd_backend *, const struct rnnd__loss *);
/* ctc.c */
size_t rnnd__cpu_ctc_scratch(struct rnnd_backend *, int64_t N, int64_t T,
                             int64_t longest);
void rnnd__cpu_ctc(struct rnnd_backend *, const struct rnnd__ctc *,
                   struct rnnd__buf scores, struct rnnd__buf sums);
/* vector.c */
int rnnd__cpu_sum_sq(struct rnnd_backend *, int64_t n, double *result,
                     struct rnnd__buf x);
void rnnd__cpu_sgd(struct rnnd_backend *, const struct rnnd__sgd *, struct rnnd__buf w,
                   struct rnnd__buf g, struct rnnd__buf momentum);
void rnnd__cpu_adam(struct rnnd_backend *, const struct rnnd__adam *,
                    struct rnnd__buf w, struct rnnd__buf g, struct rnnd__buf m,
                    struct rnnd__buf v);

#endif
