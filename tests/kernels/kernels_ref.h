/*
 * kernels_ref.h - what the tests of kernels compare with, and how they talk to a back
 * end.
 *
 * References are naive, in double, a sequence at a time, written from the equations and
 * not from the kernels.
 */
#ifndef KERNELS_REF_H
#define KERNELS_REF_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"

/* ---- back ends to test */

/* The CPU's, and CUDA's by each path and precision. Tests run on those whose names
   begin with RNND_TEST_TARGETS ("cpu"); for CUDA RNND_CUDA_PLUGIN names the plug-in, or
   the emulated one is built. */
struct kernels_target {
    const char *name;
    /* RNND_CPU_ISA, NULL = the best */
    const char *isa;
    /* 0: CUDA */
    int threads;
    enum rnnd_rnn_path path;
    enum rnnd_precision precision;
    /* Of what depends on products, the norm of the difference over the norm: against
       the exact result, and against that of rounded factors. */
    double tolerance, rounded;
};

extern const struct kernels_target kernels_targets[];
extern const int kernels_targets_count;

enum { RIG_BUFFERS = 128 };

/* An open back end and the memory that a test took on it. */
struct rig {
    struct rnnd_backend *be;
    const struct rnnd__backend_ops *op;
    struct rnnd__buf taken[RIG_BUFFERS];
    int count;
};

/* false where this machine cannot run the target, or nobody asked for it. */
bool rig_open(struct rig *rig, int target);
/* Frees the memory, the back end stays open. */
void rig_clear(struct rig *rig);
void rig_close(struct rig *rig);
struct rnnd__buf rig_put(struct rig *rig, const void *src, int64_t bytes);
/* Device memory of that many floats, each a NaN, so that what is not written shows. */
struct rnnd__buf rig_nan(struct rig *rig, int64_t floats);
/* malloc'ed copy. */
float *rig_get(struct rig *rig, struct rnnd__buf buf, int64_t floats);

/* ---- numbers */

/* malloc'ed values in (-scale, scale), the same for the same seed. */
float *numbers(uint64_t seed, int64_t count, double scale);
double *to_double(const float *x, int64_t count);
/* To nearest: bf16 in ties to even, tf32 in ties away from zero; else x itself. */
double ref_rounded(enum rnnd_precision precision, double x);
/* ||a-b|| / ||b||; of a zero b: ||a||. NaN where either has one. */
double distance(const float *a, const double *b, int64_t count);

/* ---- packed batches */

/* Lengths, falling; zeros at the end. The batch is on the host and on the device. */
void packed_make(struct rnnd__packed *batch, struct rig *rig, const int32_t *len,
                 int64_t N);
void packed_free(struct rnnd__packed *batch);

/* ---- recurrent layer */

/* As struct rnnd__rnn, in double; y and dy have rows of H. Optional inputs may be
   NULL. The factors of products with recurrent weights and their gradients are rounded
   to `precision`, as tensor cores round them.

   Where a sum lies at the edge of two bf16 numbers, its order decides which of them
   the next product takes, a whole step of bf16 apart. So each product takes the numbers
   that the back end put in memory before it rounded them, `taken`, rounded here. They
   are outputs, and each is compared with what this reference computes in its place. */
struct ref_taken {
    /* [R,H], [R,G*H], [R,H]: y, the gates and keep after the backward pass; keep of a
       GRU only */
    const float *y, *gates, *keep;
};

struct ref_rnn {
    enum rnnd_cell cell;
    enum rnnd_precision precision;
    bool reverse;
    int64_t H;
    const struct rnnd__packed *batch;
    /* [R,G*H] products with the inputs */
    const double *x;
    const double *w_hh, *b_ih, *b_hh, *h0, *c0;
    const double *dy, *dhn, *dcn;
    /* of a back end, NULL = none */
    const struct ref_taken *taken;
    /* where a sum of rnn_relu is this near to 0, taken->y says the side */
    double near_zero;
    /* out */
    double *y, *hn, *cn;
    /* out, accumulates */
    double *dx, *dw_hh, *db_ih, *db_hh, *dh0, *dc0;
    /* out, [R,H]: GRU: gradient of W_hn h + b_hn */
    double *dq;
    /* w_hh as products take it */
    double *w;
};

/* Allocates the outputs, zeroed. */
void ref_rnn_alloc(struct ref_rnn *r);
void ref_rnn_free(struct ref_rnn *r);
void ref_rnn_forward(struct ref_rnn *r);
/* Both passes. */
void ref_rnn_backward(struct ref_rnn *r);
/* sum y dy + sum hn dhn + sum cn dcn after a forward pass: what backward derives. */
double ref_rnn_objective(const struct ref_rnn *r);

#endif
