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

/* ---- loops on the device */

/* What a launch takes: a loop with its sizes and the direction of the first row of the
   grid, and the direction of the second, where there is one. */
template <class Loop> struct rnnd__both_directions {
    Loop loop;
    decltype(Loop::d) other;
};

/* The loop of this block's row of the grid. A copy: an index that is known at run time
   would cost a trip to memory at each use. */
template <class Loop>
__device__ __forceinline__ Loop own_direction(const rnnd__both_directions<Loop> &both)
{
    Loop p = both.loop;
    if (blockIdx.y == 1 && !PLANTED(16, "both directions of a layer are the first"))
        p.d = both.other;
    return p;
}

/* The i-th step of T, from the last one to the first where it falls. */
__device__ __forceinline__ int64_t nth_step(bool falls, int64_t i, int64_t T)
{
    return falls ? T - 1 - i : i;
}

/* The step whose states a direction reads at step t; -1 or T before its first. */
__device__ __forceinline__ int64_t step_before(bool reverse, int64_t t)
{
    return reverse ? t + 1 : t - 1;
}

/* ---- rnn_small.cu: few units, any precision asked for */

/* The most units that a block holds the weights of. */
int64_t rnnd__small_units(enum rnnd_cell cell);
/* The whole loop, the other direction's too, final states included; backward up to the
   gradients of the gates. */
void rnnd__small_forward(struct rnnd_backend *, const struct rnnd__rnn *);
void rnnd__small_backward(struct rnnd_backend *, const struct rnnd__rnn *);

/* ---- rnn_persistent.cu: bf16 and tf32, where the weights fit into shared memory */

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

/* For a pass of a layer of so many directions: in one launch if there is room for a
   group of each. */
rnnd__persistent_plan rnnd__persistent_plan_for(const struct rnnd__cuda *cuda,
                                                enum rnnd_cell cell, int64_t H,
                                                int64_t N, int directions, bool back);
/* Bytes. */
size_t rnnd__persistent_scratch(enum rnnd_cell cell, int64_t H, int64_t N);
/* The loop, the other direction's too, on running states that have begun. NULL, or the
   direction from which on it was not launched, since CUDA refused to. */
const struct rnnd__rnn *rnnd__persistent_forward(struct rnnd_backend *,
                                                 const struct rnnd__rnn *,
                                                 const rnnd__persistent_plan &);
const struct rnnd__rnn *rnnd__persistent_backward(struct rnnd_backend *,
                                                  const struct rnnd__rnn *,
                                                  const rnnd__persistent_plan &);

/* ---- rnn_plan.cu: which path a layer takes */

struct rnnd__loop_plan {
    enum rnnd_rnn_path path;
    rnnd__persistent_plan forward, backward;
    /* in words */
    char why[160];
};

/* For a layer of H units in so many directions, and batches of N sequences. */
rnnd__loop_plan rnnd__loop_plan_for(const struct rnnd__cuda *cuda, enum rnnd_cell cell,
                                    int64_t H, int64_t N, int directions);

#endif
