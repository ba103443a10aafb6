/*
 * rnn.cu - the time loop of one recurrent layer in one direction, forward beside
 * backward: its stepwise path, which takes any cell, size and precision.
 *
 * A step is one product of cuBLAS over the rows alive and one kernel with the cells.
 * The host knows how many rows those are, so nothing waits inside the loop; loops of
 * one shape that come again are replayed as graphs.
 */
#include "rnn.cuh"
#include "rnn_cells.cuh"

#include <stdio.h>
#include <string.h>

/* ---- scratch */

static int64_t line_up(int64_t floats)
{
    return rnnd__ratio_up(floats, 64) * 64;
}

rnnd__rnn_scratch rnnd__scratch_of(const struct rnnd__rnn *r)
{
    int64_t states = line_up(r->batch->N * r->H);
    float *p = rnnd__floats(r->scratch);
    float *product = p + 2 * states;
    float *h_prev = product + line_up(r->batch->N * rnnd__cell_gates(r->cell) * r->H);
    return {p, p + states, product, h_prev,
            (uint32_t *)(h_prev + line_up(r->batch->R * r->H))};
}

size_t rnnd__cuda_rnn_scratch(struct rnnd_backend *be, enum rnnd_cell cell, int64_t H,
                              int64_t N, int64_t R)
{
    (void)be;
    return (size_t)(2 * line_up(N * H) + line_up(N * rnnd__cell_gates(cell) * H) +
                    line_up(R * H)) *
               sizeof(float) +
           rnnd__persistent_scratch(cell, H, N);
}

static void begin(struct rnnd_backend *be, float *to, struct rnnd__buf from,
                  int64_t floats)
{
    struct rnnd__buf dst = {(char *)to};
    if (rnnd__buf_is_null(from))
        rnnd__cuda_zero(be, dst, (size_t)floats * sizeof(float));
    else
        rnnd__cuda_copy(be, dst, from, (size_t)floats * sizeof(float));
}

/* The running states of a direction begin as given, or at zero. */
static void begin_states(struct rnnd_backend *be, const struct rnnd__rnn *r,
                         struct rnnd__buf h, struct rnnd__buf c)
{
    rnnd__rnn_scratch x = rnnd__scratch_of(r);
    begin(be, x.h, h, r->batch->N * r->H);
    if (r->cell == RNND_LSTM)
        begin(be, x.c, c, r->batch->N * r->H);
}

/* Those that end are wanted, or not. */
static void end_states(struct rnnd_backend *be, const struct rnnd__rnn *r,
                       struct rnnd__buf h, struct rnnd__buf c)
{
    rnnd__rnn_scratch x = rnnd__scratch_of(r);
    size_t bytes = (size_t)(r->batch->N * r->H) * sizeof(float);
    if (!rnnd__buf_is_null(h))
        rnnd__cuda_copy(be, h, {(char *)x.h}, bytes);
    if (r->cell == RNND_LSTM && !rnnd__buf_is_null(c))
        rnnd__cuda_copy(be, c, {(char *)x.c}, bytes);
}

/* ---- cells forward */

template <enum rnnd_cell cell>
__global__ void __launch_bounds__(RNND__BLOCK) cells_forward(rnnd__cell_forward s)
{
    const int G = cell_gates(cell);
    for (int64_t i = thread_index(); i < s.rows * s.H; i += thread_count()) {
        rnnd__place p = place_of(i, s.H);
        float product[4];
        for (int g = 0; g < G; g++)
            product[g] = s.product[(p.row * G + g) * s.H + p.col];
        (void)unit_forward<cell>(s, p.row, p.col, unit_inputs<cell>(s, p.row, p.col),
                                 product);
    }
}

typedef void forward_kernel(rnnd__cell_forward);

static forward_kernel *forward_of(enum rnnd_cell cell)
{
    switch (cell) {
    case RNND_LSTM:
        return cells_forward<RNND_LSTM>;
    case RNND_GRU:
        return cells_forward<RNND_GRU>;
    case RNND_RNN_RELU:
        return cells_forward<RNND_RNN_RELU>;
    default:
        return cells_forward<RNND_RNN_TANH>;
    }
}

/* ---- forward */

static void step_forward(struct rnnd_backend *be, const struct rnnd__rnn *r,
                         const rnnd__rnn_scratch &x, int64_t t)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H, row = r->batch->off[t];
    int64_t rows = r->batch->n[t];
    struct rnnd__matmul m = {.ta = false,
                             .tb = true,
                             .m = rows,
                             .n = GH,
                             .k = H,
                             .alpha = 1,
                             .beta = 0,
                             .lda = H,
                             .ldb = H,
                             .ldc = GH};
    rnnd__cell_forward s = {
        rows,
        H,
        r->ldy,
        rnnd__floats(r->gates) + row * GH,
        rnnd__floats(r->y) + row * r->ldy,
        rnnd__buf_is_null(r->keep) ? NULL : rnnd__floats(r->keep) + row * H,
        x.h,
        x.c,
        x.product,
        rnnd__floats(r->b_ih),
        rnnd__floats(r->b_hh)};
    rnnd__cuda_matmul(be, &m, {(char *)x.product}, {(char *)x.h}, r->w_hh);
    if (rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(forward_of(r->cell), rnnd__blocks(rows * H),
                             dim3(RNND__BLOCK), 0, cuda->stream, s),
                      "cells");
}

static void forward_steps(struct rnnd_backend *be, const void *arg)
{
    const struct rnnd__rnn *r = (const struct rnnd__rnn *)arg;
    rnnd__rnn_scratch x = rnnd__scratch_of(r);
    int64_t T = r->batch->T;
    for (int64_t s = 0; s < T; s++)
        step_forward(be, r, x, r->reverse ? T - 1 - s : s);
}

/* ---- cells backward */

template <enum rnnd_cell cell>
__global__ void __launch_bounds__(RNND__BLOCK) cells_backward(rnnd__cell_backward s)
{
    for (int64_t i = thread_index(); i < s.rows * s.H; i += thread_count()) {
        rnnd__place p = place_of(i, s.H);
        float d[4];
        unit_backward<cell>(s, p.row, p.col, d);
        for (int g = 0; g < 3 && cell == RNND_GRU; g++)
            s.product[(p.row * 3 + g) * s.H + p.col] = d[g];
    }
}

typedef void backward_kernel(rnnd__cell_backward);

static backward_kernel *backward_of(enum rnnd_cell cell)
{
    switch (cell) {
    case RNND_LSTM:
        return cells_backward<RNND_LSTM>;
    case RNND_GRU:
        return cells_backward<RNND_GRU>;
    case RNND_RNN_RELU:
        return cells_backward<RNND_RNN_RELU>;
    default:
        return cells_backward<RNND_RNN_TANH>;
    }
}

/* ---- backward */

static const float *or_null(struct rnnd__buf buf, int64_t at)
{
    return rnnd__buf_is_null(buf) ? NULL : rnnd__floats(buf) + at;
}

/* dh for the states before, from the gate gradients; GRU: added to what went
   straight. */
static void product_backward(struct rnnd_backend *be, const struct rnnd__rnn *r,
                             const rnnd__rnn_scratch &x, int64_t t)
{
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H;
    bool gru = r->cell == RNND_GRU;
    struct rnnd__buf gates = rnnd__at(r->gates, r->batch->off[t] * GH);
    struct rnnd__buf d = {(char *)x.product}, dh = {(char *)x.h};
    struct rnnd__matmul m = {.ta = false,
                             .tb = false,
                             .m = r->batch->n[t],
                             .n = H,
                             .k = GH,
                             .alpha = 1,
                             .beta = gru ? 1.0f : 0.0f,
                             .lda = GH,
                             .ldb = H,
                             .ldc = H};
    rnnd__cuda_matmul(be, &m, dh, gru ? d : gates, r->w_hh);
}

static void step_backward(struct rnnd_backend *be, const struct rnnd__rnn *r,
                          const rnnd__rnn_scratch &x, int64_t t)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H, row = r->batch->off[t];
    rnnd__before from = rnnd__before_step(r, t);
    rnnd__cell_backward s = {r->batch->n[t],
                             H,
                             r->ldy,
                             from.old,
                             rnnd__floats(r->gates) + row * GH,
                             (float *)or_null(r->keep, row * H),
                             rnnd__floats(r->y) + row * r->ldy,
                             or_null(r->dy, row * r->ldy),
                             x.h,
                             x.c,
                             x.product,
                             rnnd__floats(r->y) + from.row * r->ldy,
                             or_null(r->keep, from.row * H),
                             or_null(r->h0, 0),
                             or_null(r->c0, 0)};
    if (rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(backward_of(r->cell), rnnd__blocks(s.rows * H),
                             dim3(RNND__BLOCK), 0, cuda->stream, s),
                      "cells");
}

/* The states before all rows, in the order of rows. */
struct rnnd__states_before {
    int64_t R, T, H, ldy;
    bool reverse;
    const int64_t *off;
    const int32_t *n;
    const float *y, *h0;
};

__global__ void __launch_bounds__(RNND__BLOCK)
    gather_before(float *out, rnnd__states_before s)
{
    for (int64_t i = thread_index(); i < s.R * s.H; i += thread_count()) {
        rnnd__place p = place_of(i, s.H);
        int64_t t = step_of_row(s.off, s.T, p.row), j = p.row - __ldg(s.off + t);
        int64_t from = step_before(s.reverse, t);
        if (PLANTED(6, "weights' gradients take the states of the step itself"))
            from = t;
        bool old = s.reverse ? from < s.T && j < __ldg(s.n + from) : from >= 0;
        if (old)
            out[i] = s.y[(__ldg(s.off + from) + j) * s.ldy + p.col];
        else
            out[i] = s.h0 ? s.h0[j * s.H + p.col] : 0.0f;
    }
}

/* Parameter gradients of gates from .. to-1, whose gradients are g [R,ldg]. */
static void weight_gradients(struct rnnd_backend *be, const struct rnnd__rnn *r,
                             int64_t from, int64_t to, struct rnnd__buf g, int64_t ldg)
{
    int64_t H = r->H;
    struct rnnd__buf h_prev = {(char *)rnnd__scratch_of(r).h_prev};
    struct rnnd__matmul m = {.ta = true,
                             .tb = false,
                             .m = (to - from) * H,
                             .n = H,
                             .k = r->batch->R,
                             .alpha = 1,
                             .beta = 1,
                             .lda = ldg,
                             .ldb = H,
                             .ldc = H};
    rnnd__cuda_matmul(be, &m, rnnd__at(r->dw_hh, from * H * H), g, h_prev);
}

static void bias_gradients(struct rnnd__cuda *cuda, const struct rnnd__rnn *r)
{
    int64_t R = r->batch->R, H = r->H, GH = rnnd__cell_gates(r->cell) * H;
    int64_t shared = r->cell == RNND_GRU ? 2 * H : GH; /* n differs by r */
    const float *gates = rnnd__floats(r->gates), *keep = rnnd__floats(r->keep);
    rnnd__cuda_sum_rows(cuda, R, GH, GH, rnnd__floats(r->db_ih), gates);
    rnnd__cuda_sum_rows(cuda, R, shared, GH, rnnd__floats(r->db_hh), gates);
    if (shared < GH)
        rnnd__cuda_sum_rows(cuda, R, H, H, rnnd__floats(r->db_hh) + shared, keep);
}

/* All that comes from the gate gradients of all rows at once. */
static void parameter_gradients(struct rnnd_backend *be, const struct rnnd__rnn *r)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    const struct rnnd__packed *b = r->batch;
    int64_t H = r->H, G = rnnd__cell_gates(r->cell), GH = G * H;
    rnnd__states_before s = {b->R,
                             b->T,
                             H,
                             r->ldy,
                             r->reverse,
                             rnnd__longs(b->d_off),
                             rnnd__ints(b->d_n),
                             rnnd__floats(r->y),
                             or_null(r->h0, 0)};
    if (b->R == 0 || !rnnd__cuda_sound(cuda))
        return;
    rnnd__cuda_ok(cuda,
                  launch(gather_before, rnnd__blocks(b->R * H), dim3(RNND__BLOCK), 0,
                         cuda->stream, rnnd__scratch_of(r).h_prev, s),
                  "states");
    if (r->cell == RNND_GRU) { /* the recurrent side's view of n differs by r */
        weight_gradients(be, r, 0, 2, r->gates, GH);
        weight_gradients(be, r, 2, 3, r->keep, H);
    } else {
        weight_gradients(be, r, 0, G, r->gates, GH);
    }
    if (!rnnd__buf_is_null(r->db_ih))
        bias_gradients(cuda, r);
}

static void backward_steps(struct rnnd_backend *be, const void *arg)
{
    const struct rnnd__rnn *r = (const struct rnnd__rnn *)arg;
    rnnd__rnn_scratch x = rnnd__scratch_of(r);
    int64_t T = r->batch->T;
    bool wanted = !rnnd__buf_is_null(r->dh0);
    for (int64_t s = T - 1; s >= 0; s--) {
        int64_t t = r->reverse ? T - 1 - s : s;
        step_backward(be, r, x, t);
        if (s > 0 || wanted)
            product_backward(be, r, x, t);
    }
}

/* ---- as a graph */

/* A graph has two nodes a step; fewer steps are not worth it, more take much memory. */
enum { LEAST_GRAPH_STEPS = 4, MOST_GRAPH_STEPS = 2048 };

static int64_t word_of(struct rnnd__buf buf)
{
    return (int64_t)(intptr_t)buf.dev;
}

/* The steps of a direction. Where all steps have the same rows, as in windows of a
   text, the next batch is likely to be the same to the launches; ragged ones rarely
   come twice. */
static void stepwise(struct rnnd_backend *be, const struct rnnd__rnn *r, bool back)
{
    const struct rnnd__packed *b = r->batch;
    void (*steps)(struct rnnd_backend *, const void *) =
        back ? backward_steps : forward_steps;
    const int64_t key[RNND__GRAPH_KEY] = {back,
                                          r->cell,
                                          r->reverse,
                                          r->H,
                                          r->ldy,
                                          b->N,
                                          b->T,
                                          b->R,
                                          word_of(r->w_hh),
                                          word_of(r->b_ih),
                                          word_of(r->b_hh),
                                          word_of(r->gates),
                                          word_of(r->y),
                                          word_of(r->keep),
                                          word_of(r->scratch),
                                          back ? word_of(r->h0) : 0,
                                          back ? word_of(r->c0) : 0,
                                          back ? word_of(r->dy) : 0,
                                          back && !rnnd__buf_is_null(r->dh0)};
    if (b->T >= LEAST_GRAPH_STEPS && b->T <= MOST_GRAPH_STEPS && b->n[b->T - 1] == b->N)
        rnnd__graph_run(rnnd__cuda_of(be), key, steps, r);
    else
        steps(be, r);
}

/* ---- entries */

static rnnd__loop_plan plan_of(struct rnnd_backend *be, const struct rnnd__rnn *r)
{
    return rnnd__loop_plan_for(rnnd__cuda_of(be), r->cell, r->H, r->batch->N,
                               r->other ? 2 : 1);
}

void rnnd__cuda_rnn_forward(struct rnnd_backend *be, const struct rnnd__rnn *r)
{
    rnnd__loop_plan p = plan_of(be, r);
    if (p.path == RNND_PATH_SMALL) {
        rnnd__small_forward(be, r);
        return;
    }
    for (const struct rnnd__rnn *d = r; d; d = d->other)
        begin_states(be, d, d->h0, d->c0);
    const struct rnnd__rnn *rest = r;
    if (p.path == RNND_PATH_PERSISTENT)
        rest = rnnd__persistent_forward(be, r, p.forward);
    for (; rest; rest = rest->other)
        stepwise(be, rest, false);
    for (const struct rnnd__rnn *d = r; d; d = d->other)
        end_states(be, d, d->hn, d->cn);
}

static void states_backward(struct rnnd_backend *be, const struct rnnd__rnn *r,
                            const rnnd__loop_plan &p)
{
    for (const struct rnnd__rnn *d = r; d; d = d->other)
        begin_states(be, d, d->dhn, d->dcn);
    const struct rnnd__rnn *rest = r;
    if (p.path == RNND_PATH_PERSISTENT)
        rest = rnnd__persistent_backward(be, r, p.backward);
    for (; rest; rest = rest->other)
        stepwise(be, rest, true);
    for (const struct rnnd__rnn *d = r; d; d = d->other)
        end_states(be, d, d->dh0, d->dc0);
}

void rnnd__cuda_rnn_backward(struct rnnd_backend *be, const struct rnnd__rnn *r)
{
    rnnd__loop_plan p = plan_of(be, r);
    if (p.path == RNND_PATH_SMALL)
        rnnd__small_backward(be, r);
    else
        states_backward(be, r, p);
    for (const struct rnnd__rnn *d = r; d; d = d->other)
        parameter_gradients(be, d);
}
