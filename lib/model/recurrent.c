/*
 * recurrent.c - one recurrent layer over a packed batch: the products around the time
 * loop.
 *
 * The back end runs the loop itself (rnn_forward, rnn_backward), both directions in one
 * call; here are one product for the inputs of all rows before it, and one each for
 * dW_ih and dx after it.
 */
#include "model/layer.h"

static struct rnnd_rnn direction(const struct rnnd_recurrent *l,
                                 const struct rnnd_params *par,
                                 const struct rnnd_packed *batch,
                                 const struct rnnd_layer_state *s, int d)
{
    return (struct rnnd_rnn){
        .cell = l->cell,
        .reverse = d == 1,
        .H = l->H,
        .batch = batch,
        .w_hh = rnnd_at(par->value, l->w_hh[d]),
        .b_ih = rnnd_at(par->value, l->b_ih[d]),
        .b_hh = rnnd_at(par->value, l->b_hh[d]),
        .h0 = s->h0[d],
        .c0 = s->c0[d],
        .gates = l->gates[d],
        .y = rnnd_at(l->y, d * l->H),
        .ldy = l->D * l->H,
        .keep = l->keep[d],
        .hn = s->hn[d],
        .cn = s->cn[d],
        .dw_hh = rnnd_at(par->grad, l->w_hh[d]),
        .db_ih = rnnd_at(par->grad, l->b_ih[d]),
        .db_hh = rnnd_at(par->grad, l->b_hh[d]),
    };
}

void rnnd_recurrent_forward(const struct rnnd_recurrent *l,
                            const struct rnnd_params *par,
                            const struct rnnd_packed *batch, struct rnnd_buf x,
                            const struct rnnd_layer_state *state,
                            const struct rnnd_buf scratch[2])
{
    const struct rnnd_backend_ops *op = par->be->ops;
    int64_t GH = rnnd_cell_gates(l->cell) * l->H;
    struct rnnd_matmul project = {.tb = true,
                                  .m = batch->R,
                                  .n = GH,
                                  .k = l->in,
                                  .alpha = 1,
                                  .lda = l->in,
                                  .ldb = l->in,
                                  .ldc = GH};
    struct rnnd_rnn rnn[2];
    for (int d = 0; d < l->D; d++) {
        rnn[d] = direction(l, par, batch, state, d);
        rnn[d].scratch = scratch[d];
        op->matmul(par->be, &project, l->gates[d], x, rnnd_at(par->value, l->w_ih[d]));
    }
    if (l->D == 2)
        rnn[0].other = &rnn[1];
    op->rnn_forward(par->be, rnn);
}

void rnnd_recurrent_backward(const struct rnnd_recurrent *l,
                             const struct rnnd_params *par,
                             const struct rnnd_packed *batch, struct rnnd_buf dx,
                             struct rnnd_buf dy, struct rnnd_buf x,
                             const struct rnnd_layer_state *state,
                             const struct rnnd_buf scratch[2])
{
    const struct rnnd_backend_ops *op = par->be->ops;
    int64_t GH = rnnd_cell_gates(l->cell) * l->H;
    struct rnnd_matmul weights = {.ta = true,
                                  .m = GH,
                                  .n = l->in,
                                  .k = batch->R,
                                  .alpha = 1,
                                  .beta = 1,
                                  .lda = GH,
                                  .ldb = l->in,
                                  .ldc = l->in};
    struct rnnd_matmul inputs = {.m = batch->R, .n = l->in, .k = GH, .alpha = 1,
                                 .lda = GH, .ldb = l->in, .ldc = l->in};
    struct rnnd_rnn rnn[2];
    for (int d = 0; d < l->D; d++) {
        rnn[d] = direction(l, par, batch, state, d);
        rnn[d].hn = rnn[d].cn = (struct rnnd_buf){NULL};
        rnn[d].dy = rnnd_at(dy, d * l->H);
        rnn[d].scratch = scratch[d];
    }
    if (l->D == 2)
        rnn[0].other = &rnn[1];
    op->rnn_backward(par->be, rnn);
    for (int d = 0; d < l->D; d++) {
        op->matmul(par->be, &weights, rnnd_at(par->grad, l->w_ih[d]), l->gates[d], x);
        if (rnnd_buf_is_null(dx))
            continue;
        inputs.beta = d; /* the second direction adds to the first */
        op->matmul(par->be, &inputs, dx, l->gates[d], rnnd_at(par->value, l->w_ih[d]));
    }
}
