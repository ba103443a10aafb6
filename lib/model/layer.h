/*
 * layer.h - the layers of the stack as the model sees them.
 *
 * Each layer has its forward and backward pass side by side, in recurrent.c and head.c.
 * A layer knows the offsets of its parameters in the arenas and the buffers of its
 * workspace, but no other layer. Gradients are accumulated as sums.
 */
#ifndef RNND_LAYER_H
#define RNND_LAYER_H

#include "backend.h"
#include "data/batch.h"
#include "model/params.h"

/* One recurrent layer, D directions. */
struct rnnd__recurrent {
    enum rnnd_cell cell;
    /* input width, hidden units, directions */
    int64_t in, H;
    int D;
    /* offsets in the arenas, by direction; of biases -1 without them */
    int64_t w_ih[2], w_hh[2], b_ih[2], b_hh[2];
    /* [G*H], what the time loop adds in place of absent biases */
    struct rnnd__buf zeros;
    /* by direction: gates [R,G*H], and what the backward pass needs besides, [R,H] */
    struct rnnd__buf gates[2], keep[2];
    /* the output, [R,D*H] */
    struct rnnd__buf y;
};

/* Initial and final states of a layer, by direction: [N,H] each, NULL = none. */
struct rnnd__layer_state {
    struct rnnd__buf h0[2], c0[2], hn[2], cn[2];
};

/* Computes y from x [R,in]. scratch: of the time loop, by direction. */
void rnnd__recurrent_forward(const struct rnnd__recurrent *layer,
                             const struct rnnd__params *par,
                             const struct rnnd__packed *batch, struct rnnd__buf x,
                             const struct rnnd__layer_state *state,
                             const struct rnnd__buf scratch[2]);
/* Adds the gradients of all parameters but w_ih that follow from dy [R,D*H]. state and
   scratch as in the forward pass. */
void rnnd__recurrent_backward(const struct rnnd__recurrent *layer,
                              const struct rnnd__params *par,
                              const struct rnnd__packed *batch, struct rnnd__buf dy,
                              const struct rnnd__layer_state *state,
                              const struct rnnd__buf scratch[2]);
/* Then: adds those of w_ih, and computes dx [R,in] unless it is NULL. x as in the
   forward pass. */
void rnnd__recurrent_input(const struct rnnd__recurrent *layer,
                           const struct rnnd__params *par,
                           const struct rnnd__packed *batch, struct rnnd__buf dx,
                           struct rnnd__buf x);

/* The linear layer and the loss, computed in chunks of rows to bound the scores. */
struct rnnd__head {
    enum rnnd_task task;
    int64_t in, outputs;
    /* offsets in the arenas */
    int64_t weight, bias;
    /* rows per chunk, and its scores [chunk,O] */
    int64_t chunk;
    struct rnnd__buf scores;
    /* of the loss in training: [O] weights of classes, NULL = 1; the share that all
       classes get, and the sum of the weights */
    struct rnnd__buf class_weight;
    double smoothing, weights;
    /* of losses over strings, whose chunk has all rows */
    struct rnnd__buf scratch;
    /* who sees the scores of evaluations, NULL = nobody */
    rnnd_scores_reader reader;
    void *reader_context;
    /* a copy for the reader where the host cannot reach scores: [host_rows,O], owned */
    float *host_scores;
    int64_t host_rows;
};

/* The rows per chunk, 1 .. max(rows, 1), for this many rows and outputs. */
int64_t rnnd__head_chunk(int64_t rows, int64_t outputs);
/* Adds the loss of x [rows,in], all rows of a batch, against its targets to sums
   (struct rnnd__sums), computes dx [rows,in] and adds the parameter gradients. */
void rnnd__head_gradient(const struct rnnd__head *head, const struct rnnd__params *par,
                         int64_t rows, struct rnnd__buf sums, struct rnnd__buf dx,
                         struct rnnd__buf x, const struct rnnd_batch *batch);
/* Adds the loss alone, and shows the scores to the reader. Fails as the reader does. */
RNND_CHECKED int rnnd__head_evaluate(struct rnnd__head *head,
                                     const struct rnnd__params *par, int64_t rows,
                                     struct rnnd__buf sums, struct rnnd__buf x,
                                     const struct rnnd_batch *batch);
/* Copies the scores of x [rows,in] to host memory, out [rows,O]; waits for the
   device. */
RNND_CHECKED int rnnd__head_scores(const struct rnnd__head *head,
                                   const struct rnnd__params *par, int64_t rows,
                                   float *out, struct rnnd__buf x);

#endif
