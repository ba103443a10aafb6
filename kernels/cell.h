/*
 * cell.h - the equations of each cell for one element, forward beside its derivative.
 *
 * PyTorch's definitions and gate orders. Plain functions for host and device; a kernel
 * that computes several elements at once defines RNND_REAL to its vector type and
 * RNND_CELL_MATH, and brings the four functions of the first section for it.
 */
#ifndef RNND_CELL_H
#define RNND_CELL_H

#include "base/random.h" /* RNND_HD */

#ifndef RNND_REAL
#define RNND_REAL float
#endif

/* ---- what a cell is made of */

#ifndef RNND_CELL_MATH
#include <math.h>

RNND_HD static inline RNND_REAL rnnd__sigmoid(RNND_REAL x)
{
    return 1.0f / (1.0f + expf(-x));
}

RNND_HD static inline RNND_REAL rnnd__tanh(RNND_REAL x)
{
    return tanhf(x);
}

/* NaN stays NaN. */
RNND_HD static inline RNND_REAL rnnd__relu(RNND_REAL x)
{
    return x < 0.0f ? 0.0f : x;
}

/* dh where the unit is active. */
RNND_HD static inline RNND_REAL rnnd__relu_gradient(RNND_REAL h, RNND_REAL dh)
{
    return h <= 0.0f ? 0.0f : dh;
}
#endif

/* ---- products with rounded factors */

/* With --precision bf16, ^ rounds a factor to bf16: to nearest, ties to even; a CPU
   takes denormals as zero. Every product of a model is one of these:

     layer     a = ^W_ih ^x + b_ih, q = ^W_hh ^h' + b_hh; the sum of a gate is a + q,
               of the GRU's n it is a + r q
     backward  dx = ^W_ih^T ^da, dh' = ^W_hh^T ^dq,
               dW_ih += ^da ^x^T, dW_hh += ^dq ^h'^T
     head      s = ^W ^h + b, dh = ^W^T ^ds, dW += ^ds ^h^T

   da and dq are the gradients of those sums; of the GRU's n, dq = r da. A product of
   two factors is exact in fp32. Sums, biases and their gradients, cells, c, the h' that
   a GRU passes on, losses, parameters and the optimizer stay in fp32. */

/* ---- RNN: h = f(W_ih x + b_ih + W_hh h' + b_hh) */

/* a is that sum; returns h. */
RNND_HD static inline RNND_REAL rnnd__rnn_tanh_forward(RNND_REAL a)
{
    return rnnd__tanh(a);
}

/* Returns da. */
RNND_HD static inline RNND_REAL rnnd__rnn_tanh_backward(RNND_REAL h, RNND_REAL dh)
{
    return dh * (1.0f - h * h);
}

RNND_HD static inline RNND_REAL rnnd__rnn_relu_forward(RNND_REAL a)
{
    return rnnd__relu(a);
}

RNND_HD static inline RNND_REAL rnnd__rnn_relu_backward(RNND_REAL h, RNND_REAL dh)
{
    return rnnd__relu_gradient(h, dh);
}

/* ---- LSTM: c = f c' + i g, h = o tanh(c) */

struct rnnd__lstm {
    RNND_REAL i, f, g, o;
};

/* In two parts, for a loop that does the first for several elements before the second
   (a processor overlaps elements better then); the whole follows. s: sums in, activated
   gates out. Returns c from that of the step before. */
RNND_HD static inline RNND_REAL rnnd__lstm_forward_c(struct rnnd__lstm *s,
                                                     RNND_REAL before)
{
    s->i = rnnd__sigmoid(s->i);
    s->f = rnnd__sigmoid(s->f);
    s->g = rnnd__tanh(s->g);
    s->o = rnnd__sigmoid(s->o);
    return s->f * before + s->i * s->g;
}

/* Returns h. */
RNND_HD static inline RNND_REAL rnnd__lstm_forward_h(RNND_REAL o, RNND_REAL c)
{
    return o * rnnd__tanh(c);
}

/* s: sums in, activated gates out. c: of the step before in, new out. Returns h. */
RNND_HD static inline RNND_REAL rnnd__lstm_forward(struct rnnd__lstm *s, RNND_REAL *c)
{
    *c = rnnd__lstm_forward_c(s, *c);
    return rnnd__lstm_forward_h(s->o, *c);
}

/* As below, of tc = tanh(c). */
RNND_HD static inline void rnnd__lstm_backward_tc(struct rnnd__lstm *s,
                                                  RNND_REAL before, RNND_REAL tc,
                                                  RNND_REAL dh, RNND_REAL *dc)
{
    RNND_REAL d = *dc + dh * s->o * (1.0f - tc * tc);
    *dc = d * s->f;
    s->o = dh * tc * s->o * (1.0f - s->o);
    s->f = d * before * s->f * (1.0f - s->f);
    RNND_REAL di = d * s->g * s->i * (1.0f - s->i);
    s->g = d * s->i * (1.0f - s->g * s->g);
    s->i = di;
}

/* s: activated gates in, gradient of the sums out. before, c: cell state of the step
   before and of this one. dc: what the next step asks of c in, gradient of `before`
   out. */
RNND_HD static inline void rnnd__lstm_backward(struct rnnd__lstm *s, RNND_REAL before,
                                               RNND_REAL c, RNND_REAL dh, RNND_REAL *dc)
{
    rnnd__lstm_backward_tc(s, before, rnnd__tanh(c), dh, dc);
}

/* ---- GRU: n = tanh(W_in x + b_in + r q), q = W_hn h' + b_hn, h = (1-z) n + z h' */

struct rnnd__gru {
    RNND_REAL r, z, n;
};

/* In two parts as well. s: sums in, of n the input's; out r and z activated, and the
   sum of n. */
RNND_HD static inline void rnnd__gru_forward_rz(struct rnnd__gru *s, RNND_REAL q)
{
    s->r = rnnd__sigmoid(s->r);
    s->z = rnnd__sigmoid(s->z);
    s->n = s->n + s->r * q;
}

/* s: that in, n activated out. Returns h. */
RNND_HD static inline RNND_REAL rnnd__gru_forward_h(struct rnnd__gru *s,
                                                    RNND_REAL before)
{
    s->n = rnnd__tanh(s->n);
    return s->n + s->z * (before - s->n);
}

/* s: sums in (n without r q), activated gates out. Returns h. */
RNND_HD static inline RNND_REAL rnnd__gru_forward(struct rnnd__gru *s, RNND_REAL q,
                                                  RNND_REAL before)
{
    rnnd__gru_forward_rz(s, q);
    return rnnd__gru_forward_h(s, before);
}

/* s: activated gates in, gradient of the sums out. q: in, gradient of q out. dh: in,
   its part that goes straight to the step before out. */
RNND_HD static inline void rnnd__gru_backward(struct rnnd__gru *s, RNND_REAL *q,
                                              RNND_REAL before, RNND_REAL *dh)
{
    RNND_REAL dn = *dh * (1.0f - s->z) * (1.0f - s->n * s->n);
    RNND_REAL dr = dn * *q * s->r * (1.0f - s->r);
    *q = dn * s->r;
    RNND_REAL dz = *dh * (before - s->n) * s->z * (1.0f - s->z);
    *dh = *dh * s->z;
    s->r = dr;
    s->z = dz;
    s->n = dn;
}

#endif
