/*
 * rnn_small.cu - the time loop for few hidden units: the recurrent weights live in the
 * registers of one block for the whole loop.
 *
 * Sequences do not depend on each other, so each block takes some neighbouring
 * sequences and nothing is waited for but its own threads. Thread (q, k) holds the
 * weights of unit k in gate q: forward the row that makes its sum, backward the column
 * of the gate that its gradient goes back through. Always in fp32; a row's numbers do
 * not depend on the others.
 */
#include "rnn.cuh"

#include <stdio.h>

#include "cell.h"

enum { MOST_ROWS = 8, UNITS_STEP = 16, LSTM_UNITS = 96, MOST_UNITS = 128 };

/* Threads of a block for K units: beyond 96 there are at most three gates. A second
   block on a multiprocessor would cost registers, of which the weights take K. Up to 12
   warps have 168 each; the four gates of an LSTM of more units would be 13 to 16 warps
   of 128, which would keep part of the weights in local memory. */
constexpr int most_threads(int K)
{
    return K <= LSTM_UNITS ? 4 * K : 3 * K;
}

struct rnnd__small_direction {
    bool reverse;
    const float *w_hh, *b_ih, *b_hh, *h0, *c0, *dy, *dhn, *dcn;
    float *gates, *y, *keep, *hn, *cn, *dh0, *dc0;
};

struct rnnd__small {
    enum rnnd_cell cell;
    /* rows: sequences of a block */
    int G, rows;
    int64_t H, N, T, ldy;
    const int64_t *off;
    const int32_t *n, *len;
    rnnd__small_direction d;
};

/* The sequences of this block: first .. first+count-1, of which the first is the
   longest. */
struct rnnd__small_block {
    int64_t first, steps;
    int count;
};

__device__ __forceinline__ rnnd__small_block own_block(const rnnd__small &s)
{
    int64_t first = (int64_t)blockIdx.x * s.rows;
    int64_t left = s.N - first;
    return {first, s.len[first], (int)(left < s.rows ? left : s.rows)};
}

/* How many of them are alive at step t, and the packed row of the first. */
__device__ __forceinline__ int alive(const rnnd__small &s, const rnnd__small_block &k,
                                     int64_t t)
{
    int64_t n = __ldg(s.n + t) - k.first;
    return n < 0 ? 0 : n < k.count ? (int)n : k.count;
}

__device__ __forceinline__ int64_t row_at(const rnnd__small &s,
                                          const rnnd__small_block &k, int64_t t)
{
    return __ldg(s.off + t) + k.first;
}

/* A thread's weights, `next` apart, zeros from `count` on. */
template <int K>
__device__ __forceinline__ void load_weights(float (&w)[K], const float *from, int next,
                                             int count)
{
    UNROLL
    for (int i = 0; i < K; i++, from += next)
        w[i] = i < count ? __ldg(from) : 0;
}

/* sum of w[i] x[i], x in shared memory; four sums side by side, in one order. */
template <int K>
__device__ __forceinline__ float product(const float (&w)[K], const float *x)
{
    float4 sum = {0, 0, 0, 0};
    UNROLL
    for (int i = 0; i < K; i += 4) {
        float4 v = *reinterpret_cast<const float4 *>(x + i);
        sum.x = fmaf(w[i], v.x, sum.x);
        sum.y = fmaf(w[i + 1], v.y, sum.y);
        sum.z = fmaf(w[i + 2], v.z, sum.z);
        sum.w = fmaf(w[i + 3], v.w, sum.w);
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}

/* States of the block's sequences, or zeros, to rows of ld floats, which end in
   zeros. */
__device__ __forceinline__ void load_states(float *to, int ld, const float *from,
                                            const rnnd__small &s,
                                            const rnnd__small_block &b)
{
    for (int i = (int)threadIdx.x; i < b.count * ld; i += (int)blockDim.x) {
        int64_t j = b.first + i / ld, k = i % ld;
        to[i] = from && k < s.H ? from[j * s.H + k] : 0;
    }
}

__device__ __forceinline__ void store_states(float *to, const float *from, int ld,
                                             const rnnd__small &s,
                                             const rnnd__small_block &b)
{
    for (int i = (int)threadIdx.x; to && i < b.count * (int)s.H; i += (int)blockDim.x)
        to[b.first * s.H + i] = from[i / (int)s.H * ld + i % (int)s.H];
}

/* ---- forward */

/* Shared memory, rows of the block each: products with the inputs of this step and the
   next, sums, and the running states. */
struct rnnd__small_forward_memory {
    float *h, *x, *sum, *c;
};

/* The inputs of a step set out for shared memory; each thread fetches what it will
   use. */
__device__ __forceinline__ void fetch_inputs(const rnnd__small &s,
                                             const rnnd__small_block &b, float *x,
                                             int64_t t)
{
    int GH = s.G * (int)s.H, live = alive(s, b, t);
    const float *gates = s.d.gates + row_at(s, b, t) * GH;
    for (int j = 0; j < live && (int)threadIdx.x < GH; j++)
        copy_async<4>(x + j * GH + threadIdx.x, gates + (int64_t)j * GH + threadIdx.x);
    copy_commit();
}

/* One unit of one sequence, from its sums; returns h. */
__device__ __forceinline__ float small_unit(const rnnd__small &s, const float *sum,
                                            const float *x, float before, float *c,
                                            int64_t row, int k)
{
    int H = (int)s.H;
    float *gates = s.d.gates + row * s.G * H + k;
    int64_t at = row * H + k;
    if (s.cell == RNND_LSTM) {
        rnnd__lstm cell = {sum[k], sum[H + k], sum[2 * H + k], sum[3 * H + k]};
        if (PLANTED(7, "gates in another order than PyTorch's"))
            cell = {sum[k], sum[H + k], sum[3 * H + k], sum[2 * H + k]};
        float h = rnnd__lstm_forward(&cell, c);
        gates[0] = cell.i;
        gates[H] = cell.f;
        gates[2 * H] = cell.g;
        gates[3 * H] = cell.o;
        s.d.keep[at] = *c;
        return h;
    }
    if (s.cell == RNND_GRU) {
        rnnd__gru cell = {sum[k], sum[H + k],
                          x[2 * H + k] + __ldg(s.d.b_ih + 2 * H + k)};
        float h = rnnd__gru_forward(&cell, sum[2 * H + k], before);
        gates[0] = cell.r;
        gates[H] = cell.z;
        gates[2 * H] = cell.n;
        s.d.keep[at] = sum[2 * H + k];
        return h;
    }
    return s.cell == RNND_RNN_TANH ? rnnd__rnn_tanh_forward(sum[k])
                                   : rnnd__rnn_relu_forward(sum[k]);
}

/* Whether the inputs of this thread's gate are not added to its sum: the GRU's n, which
   takes them under r. */
__device__ __forceinline__ bool is_apart(const rnnd__small &s)
{
    return s.cell == RNND_GRU && (int)threadIdx.x >= 2 * (int)s.H;
}

/* The bias of this thread's gate. */
__device__ __forceinline__ float own_bias(const rnnd__small &s)
{
    int g = (int)threadIdx.x;
    if (g >= s.G * (int)s.H)
        return 0;
    return __ldg(s.d.b_hh + g) + (is_apart(s) ? 0 : __ldg(s.d.b_ih + g));
}

template <int K>
__device__ __forceinline__ void small_step(const rnnd__small &s,
                                           const rnnd__small_block &b,
                                           const rnnd__small_forward_memory &m,
                                           const float (&w)[K], float bias,
                                           const float *x, int64_t t)
{
    int H = (int)s.H, GH = s.G * H, live = alive(s, b, t), g = (int)threadIdx.x;
    int64_t row = row_at(s, b, t);
    bool apart = is_apart(s);
    for (int j = 0; j < live && g < GH; j++)
        m.sum[j * GH + g] =
            product(w, m.h + j * K) + bias + (apart ? 0 : x[j * GH + g]);
    if (!PLANTED(1, "sums are read without a barrier after they are written"))
        __syncthreads();
    for (int i = g; i < live * H; i += (int)blockDim.x) {
        int j = i / H, k = i % H;
        float h = small_unit(s, m.sum + j * GH, x + j * GH, m.h[j * K + k], m.c + i,
                             row + j, k);
        m.h[j * K + k] = h;
        s.d.y[(row + j) * s.ldy + k] = h;
    }
    __syncthreads();
}

template <int K>
__global__ void __launch_bounds__(most_threads(K), 1)
    small_forward(rnnd__both_directions<rnnd__small> both)
{
    SHARED_DYN(float, memory);
    const rnnd__small s = own_direction(both);
    int H = (int)s.H, GH = s.G * H, g = (int)threadIdx.x;
    rnnd__small_block b = own_block(s);
    rnnd__small_forward_memory m = {memory, memory + s.rows * K,
                                    memory + s.rows * (K + 2 * GH),
                                    memory + s.rows * (K + 3 * GH)};
    float w[K], bias = own_bias(s);
    load_weights(w, s.d.w_hh + (int64_t)g * H, 1, g < GH ? H : 0);
    load_states(m.h, K, s.d.h0, s, b);
    load_states(m.c, H, s.d.c0, s, b);
    if (b.steps > 0)
        fetch_inputs(s, b, m.x, nth_step(s.d.reverse, 0, b.steps));
    __syncthreads();
    for (int64_t i = 0; i < b.steps; i++) {
        int64_t t = nth_step(s.d.reverse, i, b.steps);
        float *x = m.x + (i % 2) * s.rows * GH,
              *next = m.x + ((i + 1) % 2) * s.rows * GH;
        if (!PLANTED(4, "copies that have not arrived are used"))
            copy_wait<0>();
        if (i + 1 < b.steps)
            fetch_inputs(s, b, next, nth_step(s.d.reverse, i + 1, b.steps));
        small_step<K>(s, b, m, w, bias, x, t);
    }
    const rnnd__small end = own_direction(both); /* again: no registers in the loop */
    store_states(end.d.hn, m.h, K, s, b);
    store_states(end.d.cn, m.c, H, s, b);
}

/* ---- backward */

/* Shared memory, rows of the block each: gate gradients [G*K], their products with the
   weights [G*H], and the running gradients of the states. */
struct rnnd__small_backward_memory {
    float *d, *part, *dh, *dc;
};

/* The states before a unit of a row: those of the step it comes from, or the initial
   one. */
__device__ __forceinline__ float state_before(const rnnd__small &s,
                                              const rnnd__small_block &b,
                                              const float *rows, int64_t ld,
                                              const float *initial, int64_t t, int j,
                                              int k)
{
    int64_t from = step_before(s.d.reverse, t);
    bool old = s.d.reverse ? from < s.T && b.first + j < __ldg(s.n + from) : from >= 0;
    if (old)
        return rows[(row_at(s, b, from) + j) * ld + k];
    return initial ? initial[(b.first + j) * s.H + k] : 0;
}

/* One unit of one sequence; d: where its gate gradients go, a gate every K. */
template <int K>
__device__ __forceinline__ void small_unit_backward(
    const rnnd__small &s, const rnnd__small_block &b,
    const rnnd__small_backward_memory &m, int64_t t, int j, int k)
{
    int H = (int)s.H;
    int64_t row = row_at(s, b, t) + j, at = row * H + k;
    float *gates = s.d.gates + row * s.G * H + k;
    float *d = m.d + j * s.G * K + k, *dh = m.dh + j * H + k;
    float own = *dh + (s.d.dy ? s.d.dy[row * s.ldy + k] : 0.0f);
    if (K <= LSTM_UNITS && s.cell == RNND_LSTM) {
        rnnd__lstm cell = {gates[0], gates[H], gates[2 * H], gates[3 * H]};
        rnnd__lstm_backward(&cell, state_before(s, b, s.d.keep, H, s.d.c0, t, j, k),
                            s.d.keep[at], own, m.dc + j * H + k);
        gates[0] = d[0] = cell.i;
        gates[H] = d[K] = cell.f;
        gates[2 * H] = d[2 * K] = cell.g;
        gates[3 * H] = d[3 * K] = cell.o;
        *dh = 0;
    } else if (s.cell == RNND_GRU) {
        rnnd__gru cell = {gates[0], gates[H], gates[2 * H]};
        float q = s.d.keep[at];
        rnnd__gru_backward(&cell, &q, state_before(s, b, s.d.y, s.ldy, s.d.h0, t, j, k),
                           &own);
        gates[0] = d[0] = cell.r;
        gates[H] = d[K] = cell.z;
        gates[2 * H] = cell.n;
        s.d.keep[at] = d[2 * K] = q;
        *dh = own; /* what goes straight to the step before */
    } else {
        float h = s.d.y[row * s.ldy + k];
        gates[0] = d[0] = s.cell == RNND_RNN_TANH ? rnnd__rnn_tanh_backward(h, own)
                                                  : rnnd__rnn_relu_backward(h, own);
        *dh = 0;
    }
}

/* A unit of a sequence has one thread in all steps, so that only products need
   barriers. */
template <int K>
__device__ __forceinline__ void small_step_backward(
    const rnnd__small &s, const rnnd__small_block &b,
    const rnnd__small_backward_memory &m, const float (&w)[K], int64_t t)
{
    int H = (int)s.H, GH = s.G * H, live = alive(s, b, t), g = (int)threadIdx.x,
        q = g / H;
    for (int i = g; i < live * H; i += (int)blockDim.x)
        small_unit_backward<K>(s, b, m, t, i / H, i % H);
    __syncthreads();
    for (int j = 0; j < live && g < GH; j++)
        m.part[j * GH + g] = product(w, m.d + (j * s.G + q) * K);
    __syncthreads();
    for (int i = g; i < live * H; i += (int)blockDim.x) {
        float dh = m.dh[i];
        for (int p = 0; p < s.G; p++)
            dh += m.part[i / H * GH + p * H + i % H];
        m.dh[i] = dh;
    }
}

template <int K>
__global__ void __launch_bounds__(most_threads(K), 1)
    small_backward(rnnd__both_directions<rnnd__small> both)
{
    SHARED_DYN(float, memory);
    const rnnd__small s = own_direction(both);
    int H = (int)s.H, GH = s.G * H, g = (int)threadIdx.x;
    rnnd__small_block b = own_block(s);
    rnnd__small_backward_memory m = {memory, memory + s.rows * s.G * K,
                                     memory + s.rows * (s.G * K + GH),
                                     memory + s.rows * (s.G * K + GH + H)};
    float w[K];
    load_weights(w, s.d.w_hh + (int64_t)(g / H) * H * H + g % H, H, g < GH ? H : 0);
    for (int i = g; i < s.rows * s.G * K; i += (int)blockDim.x)
        m.d[i] = 0; /* what pads the gates stays zero */
    load_states(m.dh, H, s.d.dhn, s, b);
    load_states(m.dc, H, s.d.dcn, s, b);
    __syncthreads();
    for (int64_t i = 0; i < b.steps; i++)
        small_step_backward<K>(s, b, m, w, nth_step(!s.d.reverse, i, b.steps));
    __syncthreads();
    const rnnd__small end = own_direction(both); /* again: no registers in the loop */
    store_states(end.d.dh0, m.dh, H, s, b);
    store_states(end.d.dc0, m.dc, H, s, b);
}

/* ---- launching */

typedef void small_kernel(rnnd__both_directions<rnnd__small>);

/* For up to 16, 32, … 128 units. */
static small_kernel *const forward_kernels[] = {
    small_forward<16>, small_forward<32>, small_forward<48>,  small_forward<64>,
    small_forward<80>, small_forward<96>, small_forward<112>, small_forward<128>};
static small_kernel *const backward_kernels[] = {
    small_backward<16>, small_backward<32>, small_backward<48>,  small_backward<64>,
    small_backward<80>, small_backward<96>, small_backward<112>, small_backward<128>};

int64_t rnnd__small_units(enum rnnd_cell cell)
{
    return cell == RNND_LSTM ? LSTM_UNITS : MOST_UNITS;
}

static rnnd__small_direction direction_of(const struct rnnd__rnn *r)
{
    return {r->reverse,
            rnnd__floats(r->w_hh),
            rnnd__floats(r->b_ih),
            rnnd__floats(r->b_hh),
            rnnd__floats(r->h0),
            rnnd__floats(r->c0),
            rnnd__floats(r->dy),
            rnnd__floats(r->dhn),
            rnnd__floats(r->dcn),
            rnnd__floats(r->gates),
            rnnd__floats(r->y),
            rnnd__floats(r->keep),
            rnnd__floats(r->hn),
            rnnd__floats(r->cn),
            rnnd__floats(r->dh0),
            rnnd__floats(r->dc0)};
}

static rnnd__both_directions<rnnd__small> both_of(const struct rnnd__rnn *r, int rows)
{
    const struct rnnd__packed *b = r->batch;
    rnnd__small s = {r->cell,
                     rnnd__cell_gates(r->cell),
                     rows,
                     r->H,
                     b->N,
                     b->T,
                     r->ldy,
                     rnnd__longs(b->d_off),
                     rnnd__ints(b->d_n),
                     rnnd__ints(b->d_len),
                     direction_of(r)};
    return {s, direction_of(r->other ? r->other : r)};
}

/* Sequences of a block: enough that all blocks run at once, as many as have room. */
static int rows_of_block(const struct rnnd__cuda *cuda, int64_t rows, size_t row_bytes)
{
    const size_t room = 48 << 10;
    int64_t most = rnnd__least(rnnd__ratio_up(rows, cuda->multiprocessors), MOST_ROWS);
    return (int)rnnd__most(1, rnnd__least(most, (int64_t)(room / row_bytes)));
}

/* Both directions of a layer, or its only one, in one launch. */
static void launch_small(struct rnnd_backend *be, const struct rnnd__rnn *r,
                         small_kernel *const *kernels, int64_t row_floats)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    int64_t N = r->batch->N, GH = rnnd__cell_gates(r->cell) * r->H;
    unsigned threads = (unsigned)rnnd__ratio_up(GH, 32) * 32,
             directions = r->other ? 2 : 1;
    size_t row_bytes = (size_t)row_floats * sizeof(float);
    int rows = rows_of_block(cuda, N * directions, row_bytes);
    if (N == 0 || !rnnd__cuda_sound(cuda))
        return;
    rnnd__cuda_ok(cuda,
                  launch(kernels[(r->H - 1) / UNITS_STEP],
                         dim3((unsigned)rnnd__ratio_up(N, rows), directions),
                         dim3(threads), (size_t)rows * row_bytes, cuda->stream,
                         both_of(r, rows)),
                  "a small recurrent layer");
}

/* The units that a kernel has room for. */
static int64_t padded(int64_t H)
{
    return rnnd__ratio_up(H, UNITS_STEP) * UNITS_STEP;
}

void rnnd__small_forward(struct rnnd_backend *be, const struct rnnd__rnn *r)
{
    int64_t G = rnnd__cell_gates(r->cell);
    launch_small(be, r, forward_kernels, padded(r->H) + (3 * G + 1) * r->H);
}

void rnnd__small_backward(struct rnnd_backend *be, const struct rnnd__rnn *r)
{
    int64_t G = rnnd__cell_gates(r->cell);
    launch_small(be, r, backward_kernels, G * padded(r->H) + (G + 2) * r->H);
}
