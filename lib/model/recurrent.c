/*
 * recurrent.c - one recurrent layer over a packed batch: the matrix products around the
 * time loop.
 *
 * The back end runs the time loop (rnn_forward, rnn_backward), both directions in one
 * call. Here are the input product of all rows before the loop, and the products for
 * dW_ih and dx after it.
 */
#include "model/layer.h"

static const struct rnnd__buf none = {NULL};

/* A parameter of an arena, or what stands for one that the layer does not have. */
static struct rnnd__buf at_or(struct rnnd__buf arena, int64_t offset,
                              struct rnnd__buf absent)
{
    return offset < 0 ? absent : rnnd__at(arena, offset);
}

static struct rnnd__rnn direction(const struct rnnd__recurrent *l,
                                  const struct rnnd__params *par,
                                  const struct rnnd__packed *batch,
                                  const struct rnnd__layer_state *s, int d)
{
    return (struct rnnd__rnn){
        .cell = l->cell,
        .reverse = d == 1,
        .H = l->H,
        .batch = batch,
        .w_hh = rnnd__at(par->value, l->w_hh[d]),
        .b_ih = at_or(par->value, l->b_ih[d], l->zeros),
        .b_hh = at_or(par->value, l->b_hh[d], l->zeros),
        .h0 = s->h0[d],
        .c0 = s->c0[d],
        .gates = l->gates[d],
        .y = rnnd__at(l->y, d * l->H),
        .ldy = l->D * l->H,
        .keep = l->keep[d],
        .hn = s->hn[d],
        .cn = s->cn[d],
        .dw_hh = rnnd__at(par->grad, l->w_hh[d]),
        .db_ih = at_or(par->grad, l->b_ih[d], none),
        .db_hh = at_or(par->grad, l->b_hh[d], none),
    };
}

void rnnd__recurrent_forward(const struct rnnd__recurrent *l,
                             const struct rnnd__params *par,
                             const struct rnnd__packed *batch, struct rnnd__buf x,
                             const struct rnnd__layer_state *state,
                             const struct rnnd__buf scratch[2])
{
    const struct rnnd__backend_ops *op = par->be->ops;
    int64_t GH = rnnd__cell_gates(l->cell) * l->H;
    struct rnnd__matmul project = {.tb = true,
                                   .m = batch->R,
                                   .n = GH,
                                   .k = l->in,
                                   .alpha = 1,
                                   .lda = l->in,
                                   .ldb = l->in,
                                   .ldc = GH};
    struct rnnd__rnn rnn[2];
    for (int d = 0; d < l->D; d++) {
        rnn[d] = direction(l, par, batch, state, d);
        rnn[d].scratch = scratch[d];
        op->matmul(par->be, &project, l->gates[d], x, rnnd__at(par->value, l->w_ih[d]));
    }
    if (l->D == 2)
        rnn[0].other = &rnn[1];
    op->rnn_forward(par->be, rnn);
}

void rnnd__recurrent_backward(const struct rnnd__recurrent *l,
                              const struct rnnd__params *par,
                              const struct rnnd__packed *batch, struct rnnd__buf dy,
                              const struct rnnd__layer_state *state,
                              const struct rnnd__buf scratch[2])
{
    struct rnnd__rnn rnn[2];
    for (int d = 0; d < l->D; d++) {
        rnn[d] = direction(l, par, batch, state, d);
        rnn[d].hn = rnn[d].cn = (struct rnnd__buf){NULL};
        rnn[d].dy = rnnd__at(dy, d * l->H);
        rnn[d].scratch = scratch[d];
    }
    if (l->D == 2)
        rnn[0].other = &rnn[1];
    par->be->ops->rnn_backward(par->be, rnn);
}

void rnnd__recurrent_input(const struct rnnd__recurrent *l,
                           const struct rnnd__params *par,
                           const struct rnnd__packed *batch, struct rnnd__buf dx,
                           struct rnnd__buf x)
{
    const struct rnnd__backend_ops *op = par->be->ops;
    int64_t GH = rnnd__cell_gates(l->cell) * l->H;
    struct rnnd__matmul weights = {.ta = true,
                                   .m = GH,
                                   .n = l->in,
                                   .k = batch->R,
                                   .alpha = 1,
                                   .beta = 1,
                                   .lda = GH,
                                   .ldb = l->in,
                                   .ldc = l->in};
    struct rnnd__matmul inputs = {.m = batch->R,
                                  .n = l->in,
                                  .k = GH,
                                  .alpha = 1,
                                  .lda = GH,
                                  .ldb = l->in,
                                  .ldc = l->in};
    for (int d = 0; d < l->D; d++) {
        op->matmul(par->be, &weights, rnnd__at(par->grad, l->w_ih[d]), l->gates[d], x);
        if (rnnd__buf_is_null(dx))
            continue;
        inputs.beta = d; /* the second direction adds to the first */
        op->matmul(par->be, &inputs, dx, l->gates[d], rnnd__at(par->value, l->w_ih[d]));
    }
}
