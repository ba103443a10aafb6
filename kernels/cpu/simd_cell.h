/*
 * simd_cell.h - the cells of kernels/cell.h over the rows of a time step.
 *
 * Part of simd.c. Each loop takes VL units of a row at once, the rest of the row as a partial
 * vector.
 */
#define RNND_REAL vf
#define RNND_CELL_MATH
#include "cell.h"

/* One row: where its parts lie. */
struct row {
    float *gates, *y, *keep, *dh, *dc;
    const float *h_prev, *c_prev;
};

INLINE vf vget_or_zero(const float *p, int64_t j, int m)
{
    return p ? vget(p + j, m) : vset(0);
}

static struct row row_of(const struct rnnd_step *s, int64_t r, int gates)
{
    int64_t H = s->H, at = r * H;
    return (struct row){
        .gates = s->gates + gates * at,
        .y = s->y + r * s->ldy,
        .keep = s->keep ? s->keep + at : NULL,
        .dh = s->dh ? s->dh + at : NULL,
        .dc = s->dc ? s->dc + at : NULL,
        .h_prev = s->h_prev ? s->h_prev + r * s->ldh : NULL,
        .c_prev = s->c_prev ? s->c_prev + at : NULL,
    };
}

/* ---- m units from unit j of a row --------------------------------------------------- */

INLINE vf biased(const struct rnnd_step *s, const struct row *p, int64_t at, int m)
{
    return vget(p->gates + at, m) + (vget(s->b_ih + at, m) + vget(s->b_hh + at, m));
}

INLINE void rnn_tanh_forward(const struct rnnd_step *s, const struct row *p, int64_t j, int m)
{
    vput(p->y + j, rnnd_rnn_tanh_forward(biased(s, p, j, m)), m);
}

INLINE void rnn_tanh_backward(const struct rnnd_step *s, const struct row *p, int64_t j, int m)
{
    (void)s;
    vput(p->gates + j, rnnd_rnn_tanh_backward(vget(p->y + j, m), vget(p->dh + j, m)), m);
}

INLINE void rnn_relu_forward(const struct rnnd_step *s, const struct row *p, int64_t j, int m)
{
    vput(p->y + j, rnnd_rnn_relu_forward(biased(s, p, j, m)), m);
}

INLINE void rnn_relu_backward(const struct rnnd_step *s, const struct row *p, int64_t j, int m)
{
    (void)s;
    vput(p->gates + j, rnnd_rnn_relu_backward(vget(p->y + j, m), vget(p->dh + j, m)), m);
}

INLINE void lstm_put(const struct rnnd_step *s, const struct row *p, int64_t j, int m,
                     const struct rnnd_lstm *x)
{
    vput(p->gates + j, x->i, m);
    vput(p->gates + j + s->H, x->f, m);
    vput(p->gates + j + 2 * s->H, x->g, m);
    vput(p->gates + j + 3 * s->H, x->o, m);
}

INLINE void lstm_forward(const struct rnnd_step *s, const struct row *p, int64_t j, int m)
{
    struct rnnd_lstm x = {
        .i = biased(s, p, j, m),
        .f = biased(s, p, j + s->H, m),
        .g = biased(s, p, j + 2 * s->H, m),
        .o = biased(s, p, j + 3 * s->H, m),
    };
    vf c = vget_or_zero(p->c_prev, j, m);
    vput(p->y + j, rnnd_lstm_forward(&x, &c), m);
    vput(p->keep + j, c, m);
    lstm_put(s, p, j, m, &x);
}

INLINE void lstm_backward(const struct rnnd_step *s, const struct row *p, int64_t j, int m)
{
    struct rnnd_lstm x = {
        .i = vget(p->gates + j, m),
        .f = vget(p->gates + j + s->H, m),
        .g = vget(p->gates + j + 2 * s->H, m),
        .o = vget(p->gates + j + 3 * s->H, m),
    };
    vf dc = vget(p->dc + j, m);
    rnnd_lstm_backward(&x, vget_or_zero(p->c_prev, j, m), vget(p->keep + j, m),
                       vget(p->dh + j, m), &dc);
    vput(p->dc + j, dc, m);
    lstm_put(s, p, j, m, &x);
}

INLINE void gru_put(const struct rnnd_step *s, const struct row *p, int64_t j, int m,
                    const struct rnnd_gru *x)
{
    vput(p->gates + j, x->r, m);
    vput(p->gates + j + s->H, x->z, m);
    vput(p->gates + j + 2 * s->H, x->n, m);
}

INLINE void gru_forward(const struct rnnd_step *s, const struct row *p, int64_t j, int m)
{
    int64_t n = j + 2 * s->H;
    struct rnnd_gru x = {
        .r = biased(s, p, j, m),
        .z = biased(s, p, j + s->H, m),
        .n = vget(p->gates + n, m) + vget(s->b_ih + n, m),
    };
    vf q = vget(p->keep + j, m) + vget(s->b_hh + n, m);
    vput(p->keep + j, q, m);
    vput(p->y + j, rnnd_gru_forward(&x, q, vget_or_zero(p->h_prev, j, m)), m);
    gru_put(s, p, j, m, &x);
}

INLINE void gru_backward(const struct rnnd_step *s, const struct row *p, int64_t j, int m)
{
    struct rnnd_gru x = {
        .r = vget(p->gates + j, m),
        .z = vget(p->gates + j + s->H, m),
        .n = vget(p->gates + j + 2 * s->H, m),
    };
    vf q = vget(p->keep + j, m), dh = vget(p->dh + j, m);
    rnnd_gru_backward(&x, &q, vget_or_zero(p->h_prev, j, m), &dh);
    vput(p->keep + j, q, m);
    vput(p->dh + j, dh, m);
    gru_put(s, p, j, m, &x);
}

/* ---- all rows ----------------------------------------------------------------------- */

#define ALL_ROWS(units, gates)                                              \
    static void units##_rows(const struct rnnd_step *s)                     \
    {                                                                       \
        for (int64_t r = 0; r < s->rows; r++) {                             \
            struct row p = row_of(s, r, gates);                             \
            int64_t j = 0;                                                  \
            for (; j + VL <= s->H; j += VL)                                 \
                units(s, &p, j, VL);                                        \
            if (j < s->H)                                                   \
                units(s, &p, j, (int)(s->H - j));                           \
        }                                                                   \
    }

ALL_ROWS(rnn_tanh_forward, 1)
ALL_ROWS(rnn_tanh_backward, 1)
ALL_ROWS(rnn_relu_forward, 1)
ALL_ROWS(rnn_relu_backward, 1)
ALL_ROWS(lstm_forward, 4)
ALL_ROWS(lstm_backward, 4)
ALL_ROWS(gru_forward, 3)
ALL_ROWS(gru_backward, 3)

static void cell_forward(enum rnnd_cell cell, const struct rnnd_step *s)
{
    switch (cell) {
    case RNND_RNN_TANH: rnn_tanh_forward_rows(s); break;
    case RNND_RNN_RELU: rnn_relu_forward_rows(s); break;
    case RNND_LSTM: lstm_forward_rows(s); break;
    case RNND_GRU: gru_forward_rows(s); break;
    }
}

static void cell_backward(enum rnnd_cell cell, const struct rnnd_step *s)
{
    switch (cell) {
    case RNND_RNN_TANH: rnn_tanh_backward_rows(s); break;
    case RNND_RNN_RELU: rnn_relu_backward_rows(s); break;
    case RNND_LSTM: lstm_backward_rows(s); break;
    case RNND_GRU: gru_backward_rows(s); break;
    }
}
