/*
 * rnn_cells.cuh - one unit of one row of a step, forward beside backward: what the
 * loops that run over global memory do between two products.
 */
#ifndef RNND_RNN_CELLS_CUH
#define RNND_RNN_CELLS_CUH

#include "cell.h"
#include "cuda_backend.cuh"

__host__ __device__ constexpr int cell_gates(enum rnnd_cell cell)
{
    return cell == RNND_LSTM ? 4 : cell == RNND_GRU ? 3 : 1;
}

/* ---- forward */

/* The rows of one step. */
struct rnnd__cell_forward {
    int64_t rows, H, ldy;
    /* of the step */
    float *gates, *y, *keep;
    /* running states */
    float *h, *c;
    /* [rows,G*H] h W_hh^T, if it is in memory */
    const float *product;
    const float *b_ih, *b_hh;
};

/* What a unit's gates are made of besides the product, biases in it; of the GRU's n the
   two sides apart: inputs in 2, the bias of the product in 3. */
struct rnnd__unit_inputs {
    float gate[4];
};

/* Apart from the rest, so that a loop can load them while it waits for the product. */
template <enum rnnd_cell cell>
__device__ __forceinline__ rnnd__unit_inputs unit_inputs(const rnnd__cell_forward &s,
                                                         int64_t row, int64_t k)
{
    const int G = cell_gates(cell);
    rnnd__unit_inputs in = {};
    UNROLL
    for (int g = 0; g < G; g++) {
        float b = __ldg(s.b_hh + g * s.H + k);
        in.gate[g] = s.gates[(row * G + g) * s.H + k] + __ldg(s.b_ih + g * s.H + k);
        if (cell == RNND_GRU && g == 2)
            in.gate[3] = b;
        else
            in.gate[g] += b;
    }
    return in;
}

__device__ __forceinline__ float lstm_unit(const rnnd__cell_forward &s, int64_t row,
                                           int64_t k, const rnnd__unit_inputs &in,
                                           const float (&product)[4])
{
    int64_t at = row * s.H + k;
    float *gates = s.gates + row * 4 * s.H + k;
    rnnd__lstm cell = {in.gate[0] + product[0], in.gate[1] + product[1],
                       in.gate[2] + product[2], in.gate[3] + product[3]};
    float c = s.c[at], h = rnnd__lstm_forward(&cell, &c);
    gates[0] = cell.i;
    gates[s.H] = cell.f;
    gates[2 * s.H] = cell.g;
    gates[3 * s.H] = cell.o;
    s.c[at] = s.keep[at] = c;
    return h;
}

__device__ __forceinline__ float gru_unit(const rnnd__cell_forward &s, int64_t row,
                                          int64_t k, const rnnd__unit_inputs &in,
                                          const float (&product)[4])
{
    int64_t at = row * s.H + k;
    float *gates = s.gates + row * 3 * s.H + k;
    float q = product[2] + in.gate[3];
    rnnd__gru cell = {in.gate[0] + product[0], in.gate[1] + product[1], in.gate[2]};
    float h = rnnd__gru_forward(&cell, q, s.h[at]);
    gates[0] = cell.r;
    gates[s.H] = cell.z;
    gates[2 * s.H] = cell.n;
    s.keep[at] = q;
    return h;
}

/* From the products of a unit's gates to its new state, which is returned as well. */
template <enum rnnd_cell cell>
__device__ __forceinline__ float unit_forward(const rnnd__cell_forward &s, int64_t row,
                                              int64_t k, const rnnd__unit_inputs &in,
                                              const float (&product)[4])
{
    float h;
    if (cell == RNND_LSTM)
        h = lstm_unit(s, row, k, in, product);
    else if (cell == RNND_GRU)
        h = gru_unit(s, row, k, in, product);
    else if (cell == RNND_RNN_TANH)
        h = rnnd__rnn_tanh_forward(in.gate[0] + product[0]);
    else
        h = rnnd__rnn_relu_forward(in.gate[0] + product[0]);
    s.h[row * s.H + k] = h;
    s.y[row * s.ldy + k] = h;
    return h;
}

/* ---- backward */

/* The rows of one step; rows below `old` come from rows of another, the rest from the
   initial states, which may be none. */
struct rnnd__cell_backward {
    int64_t rows, H, ldy, old;
    /* of the step */
    float *gates, *keep;
    const float *y, *dy;
    /* running gradients */
    float *dh, *dc;
    /* [rows,3*H] GRU: gradient of h W_hh^T */
    float *product;
    const float *y_before, *keep_before, *h0, *c0;
};

__device__ __forceinline__ float before(const float *rows, int64_t ld,
                                        const float *initial,
                                        const rnnd__cell_backward &s, int64_t row,
                                        int64_t k)
{
    if (row < s.old)
        return rows[row * ld + k];
    return initial ? initial[row * s.H + k] : 0.0f;
}

__device__ __forceinline__ void lstm_unit_backward(const rnnd__cell_backward &s,
                                                   int64_t row, int64_t k, float dh,
                                                   float (&d)[4])
{
    int64_t at = row * s.H + k;
    float *gates = s.gates + row * 4 * s.H + k;
    rnnd__lstm cell = {gates[0], gates[s.H], gates[2 * s.H], gates[3 * s.H]};
    float dc = s.dc[at];
    rnnd__lstm_backward(&cell, before(s.keep_before, s.H, s.c0, s, row, k), s.keep[at],
                        dh, &dc);
    gates[0] = d[0] = cell.i;
    gates[s.H] = d[1] = cell.f;
    gates[2 * s.H] = d[2] = cell.g;
    gates[3 * s.H] = d[3] = cell.o;
    s.dc[at] = dc;
    s.dh[at] = 0;
}

__device__ __forceinline__ void gru_unit_backward(const rnnd__cell_backward &s,
                                                  int64_t row, int64_t k, float dh,
                                                  float (&d)[4])
{
    int64_t at = row * s.H + k;
    float *gates = s.gates + row * 3 * s.H + k;
    rnnd__gru cell = {gates[0], gates[s.H], gates[2 * s.H]};
    float q = s.keep[at];
    rnnd__gru_backward(&cell, &q, before(s.y_before, s.ldy, s.h0, s, row, k), &dh);
    gates[0] = d[0] = cell.r;
    gates[s.H] = d[1] = cell.z;
    gates[2 * s.H] = cell.n;
    s.keep[at] = d[2] = q;
    s.dh[at] = dh;
}

/* From the running gradient of a unit's state to those of its gates on the recurrent
   side, d; what goes straight to the state before (GRU) stays in dh, else 0. */
template <enum rnnd_cell cell>
__device__ __forceinline__ void unit_backward(const rnnd__cell_backward &s, int64_t row,
                                              int64_t k, float (&d)[4])
{
    int64_t at = row * s.H + k;
    float dh = s.dh[at] + (s.dy ? s.dy[row * s.ldy + k] : 0.0f);
    if (cell == RNND_LSTM) {
        lstm_unit_backward(s, row, k, dh, d);
    } else if (cell == RNND_GRU) {
        gru_unit_backward(s, row, k, dh, d);
    } else {
        float h = s.y[row * s.ldy + k];
        s.gates[at] = d[0] = cell == RNND_RNN_TANH ? rnnd__rnn_tanh_backward(h, dh)
                                                   : rnnd__rnn_relu_backward(h, dh);
        s.dh[at] = 0;
    }
}

#endif
