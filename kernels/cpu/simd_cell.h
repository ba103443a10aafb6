/*
 * simd_cell.h - the time step of a layer: the recurrent product with the cell on each
 * tile.
 *
 * Part of simd.c. A tile of the product goes through the equations of kernels/cell.h as
 * soon as it is summed. m is how many units of a vector exist, VL but for the last.
 */
#define RNND_REAL vf
#define RNND_CELL_MATH
#include "cell.h"

INLINE vf vget_or_zero(const float *p, int64_t at, int m)
{
    return p ? vget(p + at, m) : vset(0);
}

/* The sum of both biases. */
INLINE vf biases(const struct rnnd__step *s, int64_t at, int m)
{
    return vget(s->b_ih + at, m) + vget(s->b_hh + at, m);
}

/* ---- forward: units from j of a tile's rows */

/* The sums of gate g of a row, as pack_forward() placed them. */
INLINE vf gate_sum(const struct tile *t, int row, int g, int m)
{
    const vf *sum = t->sum + row * t->nv;
    return m == VL ? sum[g] : vload_part((const float *)sum + g * m, m);
}

INLINE void rnn_forward(const struct rnnd__step *s, const struct tile *t, int v,
                        int64_t j, int m, bool relu)
{
    vf b = biases(s, j, m);
    for (int r = 0; r < t->rows; r++) {
        int64_t row = t->first + r;
        vf a = vget(s->gates + row * s->H + j, m) + b + t->sum[r * t->nv + v];
        vput(s->y + row * s->ldy + j,
             relu ? rnnd__rnn_relu_forward(a) : rnnd__rnn_tanh_forward(a), m);
    }
}

INLINE void lstm_forward(const struct rnnd__step *s, const struct tile *t, int64_t j,
                         int m)
{
    int64_t H = s->H;
    vf bi = biases(s, j, m), bf = biases(s, H + j, m);
    vf bg = biases(s, 2 * H + j, m), bo = biases(s, 3 * H + j, m);
    vf c[TILE_ROWS], o[TILE_ROWS];
    for (int r = 0; r < t->rows; r++) {
        int64_t row = t->first + r;
        float *a = s->gates + row * 4 * H + j;
        struct rnnd__lstm x = {
            .i = vget(a, m) + bi + gate_sum(t, r, 0, m),
            .f = vget(a + H, m) + bf + gate_sum(t, r, 1, m),
            .g = vget(a + 2 * H, m) + bg + gate_sum(t, r, 2, m),
            .o = vget(a + 3 * H, m) + bo + gate_sum(t, r, 3, m),
        };
        c[r] = rnnd__lstm_forward_c(&x, vget_or_zero(s->c_prev, row * H + j, m));
        o[r] = x.o;
        vput(s->keep + row * H + j, c[r], m);
        vput(a, x.i, m);
        vput(a + H, x.f, m);
        vput(a + 2 * H, x.g, m);
        vput(a + 3 * H, x.o, m);
    }
    for (int r = 0; r < t->rows; r++)
        vput(s->y + (t->first + r) * s->ldy + j, rnnd__lstm_forward_h(o[r], c[r]), m);
}

INLINE void gru_forward(const struct rnnd__step *s, const struct tile *t, int64_t j,
                        int m)
{
    int64_t H = s->H;
    vf br = biases(s, j, m), bz = biases(s, H + j, m);
    vf bn = vget(s->b_ih + 2 * H + j, m), bq = vget(s->b_hh + 2 * H + j, m);
    struct rnnd__gru x[TILE_ROWS];
    for (int r = 0; r < t->rows; r++) {
        int64_t row = t->first + r;
        float *a = s->gates + row * 3 * H + j;
        vf q = bq + gate_sum(t, r, 2, m);
        x[r].r = vget(a, m) + br + gate_sum(t, r, 0, m);
        x[r].z = vget(a + H, m) + bz + gate_sum(t, r, 1, m);
        x[r].n = vget(a + 2 * H, m) + bn;
        rnnd__gru_forward_rz(&x[r], q);
        vput(s->keep + row * H + j, q, m);
        vput(a, x[r].r, m);
        vput(a + H, x[r].z, m);
    }
    for (int r = 0; r < t->rows; r++) {
        int64_t row = t->first + r;
        vf h = rnnd__gru_forward_h(&x[r], vget_or_zero(s->h_prev, row * s->ldh + j, m));
        vput(s->y + row * s->ldy + j, h, m);
        vput(s->gates + row * 3 * H + 2 * H + j, x[r].n, m);
    }
}

/* One vector of units, v'th of the tile. */
INLINE void cell_forward(enum rnnd_cell cell, const struct rnnd__step *s,
                         const struct tile *t, int v, int64_t j, int m)
{
    switch (cell) {
    case RNND_RNN_TANH:
        rnn_forward(s, t, v, j, m, false);
        break;
    case RNND_RNN_RELU:
        rnn_forward(s, t, v, j, m, true);
        break;
    case RNND_LSTM:
        lstm_forward(s, t, j, m);
        break;
    case RNND_GRU:
        gru_forward(s, t, j, m);
        break;
    }
}

/* All vectors of units of a tile; full vectors separately from a partial last one. */
INLINE void tile_forward(enum rnnd_cell cell, const struct rnnd__step *s,
                         const struct tile *t, const int64_t from[2])
{
    for (int64_t u = from[0]; u < from[1]; u++) {
        int m = lanes_of(s->H, u), v = (int)(u - from[0]);
        if (m == VL)
            cell_forward(cell, s, t, v, u * VL, VL);
        else
            cell_forward(cell, s, t, v, u * VL, m);
    }
}

/* ---- forward: tiles */

/* Whether rows and weights are too large to stay in the nearest caches between
   steps. */
INLINE bool large_rows(const struct rnnd__step *s)
{
    return s->H >= 96;
}

INLINE bool large_weights(enum rnnd_cell cell, const struct rnnd__step *s)
{
    return depth_of(s->pairs, rnnd__cell_gates(cell) * s->H * s->H) > 3 << 17;
}

/* Prefetches what a tile's cells read and write, while the product is summed. */
INLINE void prefetch_rows(const float *p, int64_t ld, const struct tile *t, int vectors)
{
    for (int r = 0; r < t->rows; r++)
        for (int j = 0; j < vectors * VL; j += 16)
            __builtin_prefetch(p + (t->first + r) * ld + j, 1);
}

INLINE void prefetch_forward(enum rnnd_cell cell, const struct rnnd__step *s,
                             const struct tile *t, const int64_t from[2])
{
    int G = rnnd__cell_gates(cell), units = (int)(from[1] - from[0]);
    int64_t j = from[0] * VL;
    for (int g = 0; g < G; g++)
        prefetch_rows(s->gates + g * s->H + j, G * s->H, t, units);
    prefetch_rows(s->y + j, s->ldy, t, units);
    if (G > 1)
        prefetch_rows(s->keep + j, s->H, t, units);
    if (cell == RNND_LSTM && s->c_prev)
        prefetch_rows(s->c_prev + j, s->H, t, units);
}

/* One panel of a step's product: its index, the number of panels, its packed data, and
   the factor that it multiplies, NULL = zero. */
struct panel {
    /* from: vectors of units */
    int64_t i, count, from[2], K;
    int nv;
    const float *w;
    struct tile_factor a;
};

/* Tile i of count of a panel prefetches the next panel and the next step's rows. */
INLINE struct prefetch panel_prefetch(enum rnnd_cell cell, const struct rnnd__step *s,
                                      const struct panel *p, int64_t i, int64_t count)
{
    struct prefetch x = no_prefetch(p->w);
    int64_t floats = p->nv * VL * p->K;
    if (large_weights(cell, s) && p->i + 1 < p->count)
        prefetch_part(&x, 0, p->w + floats, floats, i, count, p->K);
    if (large_rows(s) && s->prefetch)
        prefetch_part(&x, 1, s->prefetch, s->prefetch_floats, p->i * count + i,
                      p->count * count, p->K);
    return x;
}

INLINE void panel_forward(enum rnnd_cell cell, const struct rnnd__step *s,
                          const struct panel *p)
{
    int64_t tiles = blocks_of(s->rows, tile_rows[p->nv]);
    for (int64_t i = 0; i < tiles; i++) {
        struct tile t;
        tile_place(&t, s->rows, i, tiles, p->nv);
        if (large_rows(s))
            prefetch_forward(cell, s, &t, p->from);
        if (p->a.p) {
            struct prefetch x = panel_prefetch(cell, s, p, i, tiles);
            tile_product(&t, false, &p->a, p->K, p->w, &x);
        } else {
            tile_zero(&t);
        }
        tile_forward(cell, s, &t, p->from);
    }
}

/* The states before: as they are, or as pairs. */
INLINE struct tile_factor factor_forward(const struct rnnd__step *s)
{
    int64_t ld = depth_of(true, s->H);
    if (!s->pairs || !s->h_prev)
        return (struct tile_factor){s->h_prev, s->ldh, false};
    for (int64_t r = 0; r < s->rows; r++)
        round_row(s->pairs + r * ld, s->h_prev + r * s->ldh, s->H);
    return (struct tile_factor){s->pairs, ld, true};
}

INLINE void step_forward_of(enum rnnd_cell cell, const struct rnnd__step *s)
{
    int G = rnnd__cell_gates(cell);
    struct panel p = {.count = panels_forward(cell, s->H),
                      .K = depth_of(s->pairs, s->H),
                      .a = factor_forward(s)};
    for (p.i = 0; p.i < p.count; p.i++) {
        units_forward(cell, s->H, p.i, p.from);
        p.nv = vectors_forward(cell, s->H, p.from);
        p.w = s->w + p.from[0] * VL * G * p.K;
        panel_forward(cell, s, &p);
    }
}

static void step_forward(enum rnnd_cell cell, const struct rnnd__step *s)
{
    switch (cell) {
    case RNND_RNN_TANH:
        step_forward_of(RNND_RNN_TANH, s);
        break;
    case RNND_RNN_RELU:
        step_forward_of(RNND_RNN_RELU, s);
        break;
    case RNND_LSTM:
        step_forward_of(RNND_LSTM, s);
        break;
    case RNND_GRU:
        step_forward_of(RNND_GRU, s);
        break;
    }
}

/* ---- backward: units from j of one row */

/* Sums over the rows of a tile, of the gradients of up to four gates and of the GRU's
   q. */
struct bias_sums {
    vf gate[4], q;
};

INLINE void rnn_backward(const struct rnnd__step *s, int64_t row, int64_t j, int m,
                         vf dh, bool relu, struct bias_sums *b)
{
    vf h = vget(s->y + row * s->ldy + j, m);
    vf d = relu ? rnnd__rnn_relu_backward(h, dh) : rnnd__rnn_tanh_backward(h, dh);
    vput(s->gates + row * s->H + j, d, m);
    b->gate[0] += d;
}

INLINE void lstm_backward(const struct rnnd__step *s, int64_t row, int64_t j, int m,
                          vf dh, vf tc, struct bias_sums *b)
{
    int64_t H = s->H, at = row * H + j;
    float *a = s->gates + row * 4 * H + j;
    struct rnnd__lstm x = {vget(a, m), vget(a + H, m), vget(a + 2 * H, m),
                           vget(a + 3 * H, m)};
    vf dc = vget(s->dc + at, m);
    rnnd__lstm_backward_tc(&x, vget_or_zero(s->c_prev, at, m), tc, dh, &dc);
    vput(s->dc + at, dc, m);
    vput(a, x.i, m);
    vput(a + H, x.f, m);
    vput(a + 2 * H, x.g, m);
    vput(a + 3 * H, x.o, m);
    b->gate[0] += x.i;
    b->gate[1] += x.f;
    b->gate[2] += x.g;
    b->gate[3] += x.o;
}

INLINE void gru_backward(const struct rnnd__step *s, int64_t row, int64_t j, int m,
                         vf dh, struct bias_sums *b)
{
    int64_t H = s->H, at = row * H + j;
    float *a = s->gates + row * 3 * H + j;
    struct rnnd__gru x = {vget(a, m), vget(a + H, m), vget(a + 2 * H, m)};
    vf q = vget(s->keep + at, m);
    rnnd__gru_backward(&x, &q, vget_or_zero(s->h_prev, row * s->ldh + j, m), &dh);
    vput(s->dh + at, dh, m);
    vput(s->keep + at, q, m);
    vput(a, x.r, m);
    vput(a + H, x.z, m);
    vput(a + 2 * H, x.n, m);
    b->gate[0] += x.r;
    b->gate[1] += x.z;
    b->gate[2] += x.n;
    b->q += q;
}

INLINE void add_double(double *out, vf x)
{
    typedef double vd __attribute__((vector_size(8 * VL), aligned(8), may_alias));
    *(vd *)out += __builtin_convertvector(x, vd);
}

/* The gradient of a vector of states: the product `sum`, and dh where it is carried. */
INLINE vf state_gradient(enum rnnd_cell cell, const struct rnnd__step *s, int64_t row,
                         int64_t j, int m, vf sum)
{
    if (!s->next || cell == RNND_GRU)
        sum += vget(s->dh + row * s->H + j, m);
    return sum;
}

INLINE void units_backward(enum rnnd_cell cell, const struct rnnd__step *s,
                           const struct tile *t, int v, int64_t j, int m)
{
    struct bias_sums b = {{vset(0), vset(0), vset(0), vset(0)}, vset(0)};
    vf tc[TILE_ROWS];
    for (int r = 0; cell == RNND_LSTM && r < t->rows; r++)
        tc[r] = rnnd__tanh(vget(s->keep + (t->first + r) * s->H + j, m));
    for (int r = 0; r < t->rows; r++) {
        int64_t row = t->first + r;
        vf dh = state_gradient(cell, s, row, j, m, t->sum[r * t->nv + v]);
        dh += vget_or_zero(s->dy, row * s->ldy + j, m);
        switch (cell) {
        case RNND_RNN_TANH:
            rnn_backward(s, row, j, m, dh, false, &b);
            break;
        case RNND_RNN_RELU:
            rnn_backward(s, row, j, m, dh, true, &b);
            break;
        case RNND_LSTM:
            lstm_backward(s, row, j, m, dh, tc[r], &b);
            break;
        case RNND_GRU:
            gru_backward(s, row, j, m, dh, &b);
            break;
        }
    }
    int64_t stride = rnnd__simd_padded(s->H);
    for (int g = 0; g < rnnd__cell_gates(cell); g++)
        add_double(s->db + g * stride + j, b.gate[g]);
    if (cell == RNND_GRU)
        add_double(s->db + 3 * stride + j, b.q);
}

/* dh, the gradient of the states before, where there is no cell before them. */
INLINE void units_state(enum rnnd_cell cell, const struct rnnd__step *s,
                        const struct tile *t, int v, int64_t j, int m)
{
    for (int r = 0; r < t->rows; r++) {
        int64_t row = t->first + r;
        vf dh = state_gradient(cell, s, row, j, m, t->sum[r * t->nv + v]);
        vput(s->dh + row * s->H + j, dh, m);
    }
}

INLINE void tile_backward(enum rnnd_cell cell, const struct rnnd__step *s,
                          const struct tile *t, const int64_t from[2], bool state)
{
    for (int64_t u = from[0]; u < from[1]; u++) {
        int m = lanes_of(s->H, u), v = (int)(u - from[0]);
        if (state)
            units_state(cell, s, t, v, u * VL, m);
        else if (m == VL)
            units_backward(cell, s, t, v, u * VL, VL);
        else
            units_backward(cell, s, t, v, u * VL, m);
    }
}

/* ---- backward: tiles */

INLINE void prefetch_backward(enum rnnd_cell cell, const struct rnnd__step *s,
                              const struct tile *t, const int64_t from[2])
{
    int G = rnnd__cell_gates(cell), units = (int)(from[1] - from[0]);
    int64_t j = from[0] * VL;
    for (int g = 0; g < G; g++)
        prefetch_rows(s->gates + g * s->H + j, G * s->H, t, units);
    if (s->dy)
        prefetch_rows(s->dy + j, s->ldy, t, units);
    if (G > 1)
        prefetch_rows(s->keep + j, s->H, t, units);
    else
        prefetch_rows(s->y + j, s->ldy, t, units);
    if (cell == RNND_LSTM && s->c_prev)
        prefetch_rows(s->c_prev + j, s->H, t, units);
    if (cell == RNND_GRU && s->h_prev)
        prefetch_rows(s->h_prev + j, s->ldh, t, units);
}

/* The gate gradients of the later step times W_hh. Those of q are in a separate array,
   but next to the others as pairs. */
INLINE void tile_backward_product(enum rnnd_cell cell, const struct rnnd__step *s,
                                  struct tile *t, const struct panel *p,
                                  const struct prefetch *x)
{
    int64_t H = s->H;
    if (!p->a.p) {
        tile_zero(t);
    } else if (cell == RNND_GRU && !p->a.bf16) {
        struct prefetch nothing = no_prefetch(p->w);
        struct tile_factor q = {s->next_q, H, false};
        tile_product(t, false, &p->a, 2 * H, p->w, x);
        tile_product(t, true, &q, H, p->w + 2 * H * p->nv * VL, &nothing);
    } else {
        tile_product(t, false, &p->a, p->K, p->w, x);
    }
}

INLINE void panel_backward(enum rnnd_cell cell, const struct rnnd__step *s,
                           const struct panel *p, bool state)
{
    int64_t tiles = blocks_of(s->rows, tile_rows[p->nv]);
    for (int64_t i = 0; i < tiles; i++) {
        struct tile t;
        tile_place(&t, s->rows, i, tiles, p->nv);
        struct prefetch x = panel_prefetch(cell, s, p, i, tiles);
        if (!state && large_rows(s))
            prefetch_backward(cell, s, &t, p->from);
        tile_backward_product(cell, s, &t, p, &x);
        tile_backward(cell, s, &t, p->from, state);
    }
}

/* The gate gradients of the later step. */
INLINE struct tile_factor factor_backward(enum rnnd_cell cell,
                                          const struct rnnd__step *s)
{
    int64_t H = s->H, GH = rnnd__cell_gates(cell) * H, ld = depth_of(true, GH);
    if (!s->pairs || !s->next)
        return (struct tile_factor){s->next, GH, false};
    for (int64_t r = 0; r < s->rows; r++) {
        round_row(s->pairs + r * ld, s->next + r * GH, cell == RNND_GRU ? 2 * H : GH);
        if (cell == RNND_GRU)
            round_row(s->pairs + r * ld + H, s->next_q + r * H, H);
    }
    return (struct tile_factor){s->pairs, ld, true};
}

INLINE void step_backward_of(enum rnnd_cell cell, const struct rnnd__step *s,
                             bool state)
{
    struct panel p = {.count = panels_backward(cell, s->H),
                      .K = depth_of(s->pairs, rnnd__cell_gates(cell) * s->H),
                      .a = factor_backward(cell, s)};
    for (p.i = 0; p.i < p.count; p.i++) {
        panel_vectors(s->H, p.i, p.from);
        p.nv = (int)(p.from[1] - p.from[0]);
        p.w = s->w + p.from[0] * VL * p.K;
        panel_backward(cell, s, &p, state);
    }
}

static void step_backward(enum rnnd_cell cell, const struct rnnd__step *s)
{
    switch (cell) {
    case RNND_RNN_TANH:
        step_backward_of(RNND_RNN_TANH, s, false);
        break;
    case RNND_RNN_RELU:
        step_backward_of(RNND_RNN_RELU, s, false);
        break;
    case RNND_LSTM:
        step_backward_of(RNND_LSTM, s, false);
        break;
    case RNND_GRU:
        step_backward_of(RNND_GRU, s, false);
        break;
    }
}

static void step_state(enum rnnd_cell cell, const struct rnnd__step *s)
{
    step_backward_of(cell, s, true);
}
