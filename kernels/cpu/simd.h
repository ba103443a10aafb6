/*
 * simd.h - the inner loops that are compiled once for each instruction set.
 *
 * simd.c is built several times with RNND_ISA naming the set; each build exports one
 * table. rnnd__simd_choose() picks the best one that this processor can run. The loops
 * work on rows and pointers; callers handle threads and batches.
 */
#ifndef RNND_CPU_SIMD_H
#define RNND_CPU_SIMD_H

#include "backend.h"
#include "ctc.h"

/* Units padded to whole vectors of any instruction set. */
static inline int64_t rnnd__simd_padded(int64_t H)
{
    return (H + 15) / 16 * 16;
}

/* The weight of class k. */
static inline double rnnd__loss_weight(const struct rnnd__loss *l, int64_t k)
{
    return l->weight.dev ? (double)((const float *)l->weight.dev)[k] : 1;
}

/* `rows` rows of one time step of one layer. State arrays have rows of H elements
   unless a stride follows them. */
struct rnnd__step {
    int64_t rows, H;
    /* W_hh as packed for this pass */
    const float *w;
    /* [rows,G*H], as in struct rnnd__rnn */
    float *gates;
    /* [G*H] */
    const float *b_ih, *b_hh;
    /* [rows,ldy] hidden state */
    float *y;
    int64_t ldy;
    /* [rows,ldh], NULL = zero */
    const float *h_prev;
    int64_t ldh;
    /* [rows,H], as in struct rnnd__rnn */
    float *keep;
    /* [rows,H], NULL = zero */
    const float *c_prev;
    /* what the next step reads first, to prefetch; NULL = nothing */
    const float *prefetch;
    int64_t prefetch_floats;
    /* Factors in bf16: space for those of these rows, [rows,G*H] two to a float, an odd
       row rounded up; NULL = in fp32. */
    float *pairs;
    /* backward only */

    /* [rows,ldy], NULL = zero */
    const float *dy;
    /* Gate gradients of the step that took these rows' states as input [rows,G*H], GRU
       also of q [rows,H]; NULL = none. */
    const float *next, *next_q;
    /* In, where next is NULL: the gradient of the final state. GRU, in and out: also
       the part passed directly to the step before. */
    float *dh;
    /* in: gradient of the cell state; out: of c_prev */
    float *dc;
    /* Sums over rows of the gates' gradients, and of the GRU's q, [G+1] of H padded;
       accumulates. */
    double *db;
};

/* C [m,n] += A^T B. */
enum { RNND__OUTER_WORK = 3 << 15 };
struct rnnd__outer {
    int64_t m, n, k;
    /* [m,ldc] */
    float *c;
    int64_t ldc;
    /* [k,lda] */
    const float *a;
    int64_t lda;
    /* [k,ldb] */
    const float *b;
    int64_t ldb;
    /* [k] the rows of B instead, each NULL = zeros */
    const float *const *rows;
    /* RNND__OUTER_WORK floats from a 64-byte boundary */
    float *work;
    /* factors are rounded to bf16 */
    bool bf16;
};

/* W_hh of a layer, packed for one pass. */
struct rnnd__packing {
    enum rnnd_cell cell;
    int64_t H;
    /* factors are rounded to bf16 */
    bool bf16;
};

/* How a table multiplies factors in bf16: by the processor's instruction, or with the
   same bits without it. */
enum rnnd__bf16 { RNND__BF16_NONE, RNND__BF16_EMULATED, RNND__BF16_HARDWARE };

/* One sequence of a batch and its string, as in struct rnnd__ctc. */
struct rnnd__ctc_path {
    int64_t T, cols;
    /* [R,cols] of the batch; step t is row off[t] + place */
    float *scores;
    const int64_t *off;
    int64_t place;
    /* [labels] */
    const int32_t *label;
    int64_t labels;
    bool gradient;
    /* rnnd__ctc_work() doubles */
    double *work;
};

struct rnnd__simd {
    const char *name;
    enum rnnd__bf16 bf16;
    /* Packs W_hh panel by panel, for one pass: at most G*H times H padded floats, from
       a 64-byte boundary. */
    int64_t (*panels_forward)(enum rnnd_cell, int64_t H);
    int64_t (*panels_backward)(enum rnnd_cell, int64_t H);
    void (*pack_forward)(const struct rnnd__packing *, int64_t panel, float *out,
                         const float *w);
    void (*pack_backward)(const struct rnnd__packing *, int64_t panel, float *out,
                          const float *w);
    /* One step: product and cell. Forward in: gates without biases and product.
       Backward out: gradient of the sums in gates, GRU also of q in keep. */
    void (*step_forward)(enum rnnd_cell, const struct rnnd__step *);
    void (*step_backward)(enum rnnd_cell, const struct rnnd__step *);
    /* dh of the states before the step `next`, where no step comes before it. */
    void (*step_state)(enum rnnd_cell, const struct rnnd__step *);
    void (*outer)(const struct rnnd__outer *);
    /* A product with factors in bf16; work: RNND__OUTER_WORK floats from a 64-byte
       boundary. */
    void (*gemm_bf16)(const struct rnnd__matmul *, float *C, const float *A,
                      const float *B, float *work);
    /* out[c] += sum of x[index[r],c] over r, index NULL = r itself; in blocks, to keep
       the rounding error of long sums small. */
    void (*sum_rows)(float *out, const float *x, int64_t ld, const int32_t *index,
                     int64_t rows, int64_t cols);
    /* out += x */
    void (*add)(float *out, const float *x, int64_t n);
    double (*sum_sq)(const float *x, int64_t n);
    /* One row of a loss: replaces the scores by their gradient, returns the loss. */
    double (*softmax_ce)(float *scores, int64_t cols, int32_t label, bool *correct);
    double (*mse)(float *scores, const float *target, int64_t cols);
    double (*bce)(float *scores, const float *target, int64_t cols);
    /* The same with weights or smoothing. */
    double (*weighted_ce)(float *scores, const struct rnnd__loss *, int32_t label,
                          bool *correct);
    double (*weighted_bce)(float *scores, const float *target,
                           const struct rnnd__loss *);
    /* The loss of one sequence, not divided; replaces the scores by its gradient,
       divided by the labels. */
    double (*ctc)(const struct rnnd__ctc_path *);
    /* Mask of one row: sequence id, position step. */
    void (*dropout)(float *out, const float *in, const struct rnnd__dropout *,
                    int64_t id, int64_t step);
    void (*sgd)(const struct rnnd__sgd *, int64_t n, float *w, const float *g,
                float *momentum);
    /* part: w, g, m, v */
    void (*adam)(const struct rnnd__adam *, int64_t n, float *const part[4]);
};

/* The best table for this processor, or the one that RNND_CPU_ISA in the environment
   names (baseline, avx2, avx512, avx512bf16); NULL where the processor cannot run it.
   For products in bf16 one that has them; emulated only where named. */
const struct rnnd__simd *rnnd__simd_choose(const char *name, bool bf16);

#endif
