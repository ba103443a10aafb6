/*
 * simd.h - the inner loops that are compiled once for each instruction set.
 *
 * simd.c is built several times with RNND_ISA naming the set; each build exports one table.
 * rnnd__simd_choose() picks the best one that this processor can run. The loops know rows and
 * pointers; threads, batches and losses' meaning are their callers' part.
 */
#ifndef RNND_CPU_SIMD_H
#define RNND_CPU_SIMD_H

#include "backend.h"

/* `rows` rows of one time step of one layer, for a cell. State arrays have rows of H elements
   unless a stride stands beside them. */
struct rnnd_step {
    int64_t rows, H;
    float *gates;                  /* [rows,G*H] */
    const float *b_ih, *b_hh;      /* [G*H] */
    float *y;                      /* [rows,ldy] hidden state */
    int64_t ldy;
    const float *h_prev;           /* [rows,ldh], NULL = zero */
    int64_t ldh;
    float *keep;                   /* [rows,H], as in struct rnnd_rnn */
    const float *c_prev;           /* [rows,H], NULL = zero */
    /* backward only */
    float *dh;                     /* gradient of y in; GRU: its part for h_prev out */
    float *dc;                     /* gradient of the cell state in, of c_prev out */
};

struct rnnd_simd {
    const char *name;
    /* Cells. Forward in: sums without biases (GRU: n without the recurrent part, which is in
       keep). Backward out: gradient of the sums in gates, GRU also that of keep. */
    void (*cell_forward)(enum rnnd_cell, const struct rnnd_step *);
    void (*cell_backward)(enum rnnd_cell, const struct rnnd_step *);
    /* out[c] += sum of x[index[r],c] over r, index NULL = r itself; in blocks, to keep the
       rounding error of long sums small. */
    void (*sum_rows)(float *out, const float *x, int64_t ld, const int32_t *index,
                     int64_t rows, int64_t cols);
    /* out += x */
    void (*add)(float *out, const float *x, int64_t n);
    double (*sum_sq)(const float *x, int64_t n);
    /* One row of a loss: scores are replaced by their gradient, the loss is returned. */
    double (*softmax_ce)(float *scores, int64_t cols, int32_t label, bool *correct);
    double (*mse)(float *scores, const float *target, int64_t cols);
    double (*bce)(float *scores, const float *target, int64_t cols);
    /* Mask of one row: sequence id, position step. */
    void (*dropout)(float *out, const float *in, const struct rnnd_dropout *, int64_t id,
                    int64_t step);
    void (*sgd)(const struct rnnd_sgd *, int64_t n, float *w, float *g, float *momentum);
    void (*adam)(const struct rnnd_adam *, int64_t n, float *const part[4]); /* w g m v */
};

/* The best table for this processor, or the one that RNND_CPU_ISA in the environment names
   (baseline, avx2, avx512); NULL where that one cannot run here. */
const struct rnnd_simd *rnnd__simd_choose(const char *name);

#endif
