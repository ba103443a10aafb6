/*
 * layer.h - the layers of the stack as the model sees them.
 *
 * Each layer has its forward pass beside its backward pass, in recurrent.c and head.c.
 * A layer knows where its parameters lie in the arenas, and the buffers of its
 * workspace; it knows no other layer. Gradients are accumulated sums.
 */
#ifndef RNND_LAYER_H
#define RNND_LAYER_H

#include "backend.h"
#include "data/batch.h"
#include "model/params.h"

/* One recurrent layer, D directions. */
struct rnnd__recurrent {
    enum rnnd_cell cell;
    int64_t in, H;
    int D;
    /* offsets in the arenas */
    int64_t w_ih[2], w_hh[2], b_ih[2], b_hh[2];
    /* [R,G*H] a direction */
    struct rnnd__buf gates[2];
    /* [R,H] */
    struct rnnd__buf keep[2];
    /* [R,D*H] */
    struct rnnd__buf y;
};

/* Initial and final states of a layer's rows, a direction each: [N,H], NULL = none. */
struct rnnd__layer_state {
    struct rnnd__buf h0[2], c0[2], hn[2], cn[2];
};

/* y from x [R,in]; scratch of the time loop, a direction each. */
void rnnd__recurrent_forward(const struct rnnd__recurrent *layer,
                             const struct rnnd__params *par,
                             const struct rnnd__packed *batch, struct rnnd__buf x,
                             const struct rnnd__layer_state *state,
                             const struct rnnd__buf scratch[2]);
/* Parameter gradients from dy [R,D*H], and dx [R,in] unless NULL. */
void rnnd__recurrent_backward(const struct rnnd__recurrent *layer,
                              const struct rnnd__params *par,
                              const struct rnnd__packed *batch, struct rnnd__buf dx,
                              struct rnnd__buf dy, struct rnnd__buf x,
                              const struct rnnd__layer_state *state,
                              const struct rnnd__buf scratch[2]);

/* The linear layer and the loss over rows of x, taken in chunks that bound the
   scores. */
struct rnnd__head {
    enum rnnd_task task;
    int64_t in, outputs;
    /* offsets in the arenas */
    int64_t weight, bias;
    /* rows */
    int64_t chunk;
    /* [chunk,O] */
    struct rnnd__buf scores;
};

/* How many rows of scores fit the bound on their memory; at least 1. */
int64_t rnnd__head_chunk(int64_t rows, int64_t outputs);
/* Adds the loss of rows to sums; with gradient also dx [rows,in] and parameter
   gradients. */
void rnnd__head_loss(const struct rnnd__head *head, const struct rnnd__params *par,
                     int64_t rows, struct rnnd__buf sums, struct rnnd__buf dx,
                     struct rnnd__buf x, struct rnnd__buf target, bool gradient);
/* Scores of rows to the host [rows,O]; waits. */
RNND_CHECKED int rnnd__head_scores(const struct rnnd__head *head,
                                   const struct rnnd__params *par, int64_t rows,
                                   float *out, struct rnnd__buf x);

#endif
