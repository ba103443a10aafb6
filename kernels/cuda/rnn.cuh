/*
 * rnn.cuh - what the ways to run a time loop share: its scratch, and a step's
 * arguments.
 *
 * All keep the running states in the scratch, a row per sequence: a sequence that has
 * ended, or has no step, leaves its final state there, and one that starts later
 * (reverse) finds its initial one. So forward and reverse differ in the order of steps
 * alone.
 */
#ifndef RNND_RNN_CUH
#define RNND_RNN_CUH

#include "cuda_backend.cuh"

/* In floats, each part on a line of its own. */
struct rnnd__rnn_scratch {
    /* [N,H] running states; backward: their gradients */
    float *h, *c;
    /* [N,G*H] forward: h W_hh^T. Backward, GRU: gradients of it */
    float *product;
    /* [R,H] states before every row, for dW_hh */
    float *h_prev;
    /* rnnd__persistent_scratch() */
    uint32_t *persistent;
};

rnnd__rnn_scratch rnnd__scratch_of(const struct rnnd__rnn *r);

/* The step before step t in the direction of a layer; rows below `old` have one. */
struct rnnd__before {
    /* its first packed row */
    int64_t row;
    int64_t old;
};

static inline rnnd__before rnnd__before_step(const struct rnnd__rnn *r, int64_t t)
{
    const struct rnnd__packed *b = r->batch;
    if (r->reverse)
        return t + 1 < b->T ? rnnd__before{b->off[t + 1], b->n[t + 1]}
                            : rnnd__before{0, 0};
    return t > 0 ? rnnd__before{b->off[t - 1], b->n[t]} : rnnd__before{0, 0};
}

/* ---- rnn_small.cu: few units, any precision asked for */

/* The most units that a block holds the weights of. */
int64_t rnnd__small_units(enum rnnd_cell cell);
/* The whole loop, the other direction's too, final states included; backward up to the
   gradients of the gates. */
void rnnd__small_forward(struct rnnd_backend *, const struct rnnd__rnn *);
void rnnd__small_backward(struct rnnd_backend *, const struct rnnd__rnn *);

/* ---- rnn_persistent.cu: bf16 and tf32, where the weights fit into shared memory -- */

enum { RNND__MOST_BLOCKS = 1024 };

struct rnnd__persistent_plan {
    /* blocks of a group; 0 groups: it cannot */
    int members, groups;
    /* of a launch */
    int directions;
    /* backward, a block takes one gate */
    bool apart;
    /* not */
    char why[128];
};

/* For a layer of so many directions: in one launch if there is room for a group of
   each. */
rnnd__persistent_plan rnnd__persistent_plan_for(const struct rnnd__cuda *cuda,
                                                enum rnnd_cell cell, int64_t H,
                                                int64_t N, int directions);
/* Bytes. */
size_t rnnd__persistent_scratch(enum rnnd_cell cell, int64_t H, int64_t N);
/* The loop, the other direction's too, on running states that have begun. */
void rnnd__persistent_forward(struct rnnd_backend *, const struct rnnd__rnn *,
                              const rnnd__persistent_plan &);
void rnnd__persistent_backward(struct rnnd_backend *, const struct rnnd__rnn *,
                               const rnnd__persistent_plan &);

#endif
