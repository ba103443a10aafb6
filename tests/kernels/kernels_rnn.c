/*
 * kernels_rnn.c - tests of the time loop, on every back end of the list.
 */
#include "kernels_rnn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels_ref.h"

static const enum rnnd_cell cells[] = {RNND_RNN_TANH, RNND_RNN_RELU, RNND_LSTM,
                                       RNND_GRU};
static const char *const cell_names[] = {"rnn_tanh", "rnn_relu", "lstm", "gru"};

/* What a case gives to the layer. */
enum { H0 = 1, DY = 2, DN = 4, WIDE = 8 }; /* WIDE: rows of y wider than H */

struct setup {
    enum rnnd_cell cell;
    bool reverse;
    int64_t H;
    const int32_t *len;
    int64_t N;
    int with;
    /* of the weights */
    double scale;
    /* of kernels_targets */
    int target;
};

/* The same inputs for the reference and for a back end. */
struct inputs {
    float *x, *w_hh, *b_ih, *b_hh, *h0, *c0, *dy, *dhn, *dcn;
    double *d[9];
};

static void inputs_make(struct inputs *in, const struct setup *s,
                        const struct rnnd__packed *b)
{
    int64_t H = s->H, GH = rnnd__cell_gates(s->cell) * H;
    int64_t size[9] = {b->R * GH, GH * H,   GH,       GH,      b->N * H,
                       b->N * H,  b->R * H, b->N * H, b->N * H};
    float **f[9] = {&in->x,  &in->w_hh, &in->b_ih, &in->b_hh, &in->h0,
                    &in->c0, &in->dy,   &in->dhn,  &in->dcn};
    for (int i = 0; i < 9; i++) {
        *f[i] = numbers((uint64_t)(1000 + 23 * i + H), size[i], i == 1 ? s->scale : 1);
        in->d[i] = to_double(*f[i], size[i]);
    }
}

static void inputs_free(struct inputs *in)
{
    float *f[9] = {in->x,  in->w_hh, in->b_ih, in->b_hh, in->h0,
                   in->c0, in->dy,   in->dhn,  in->dcn};
    for (int i = 0; i < 9; i++) {
        free(f[i]);
        free(in->d[i]);
    }
}

static struct ref_rnn reference(const struct setup *s, const struct rnnd__packed *b,
                                const struct inputs *in, enum rnnd_precision precision)
{
    bool lstm = s->cell == RNND_LSTM;
    struct ref_rnn r = {
        .cell = s->cell,
        .precision = precision,
        .reverse = s->reverse,
        .H = s->H,
        .batch = b,
        .x = in->d[0],
        .w_hh = in->d[1],
        .b_ih = in->d[2],
        .b_hh = in->d[3],
        .h0 = s->with & H0 ? in->d[4] : NULL,
        .c0 = s->with & H0 && lstm ? in->d[5] : NULL,
        .dy = s->with & DY ? in->d[6] : NULL,
        .dhn = s->with & DN ? in->d[7] : NULL,
        .dcn = s->with & DN && lstm ? in->d[8] : NULL,
    };
    ref_rnn_alloc(&r);
    return r;
}

/* Rows of H floats into rows of ld, the rest a NaN that must not matter. */
static struct rnnd__buf put_rows(struct rig *rig, const float *x, int64_t rows,
                                 int64_t H, int64_t ld)
{
    float *wide = malloc(sizeof(float) * (size_t)(rows * ld + 1));
    for (int64_t i = 0; i < rows * ld; i++)
        wide[i] = i % ld < H ? x[i / ld * H + i % ld] : NAN;
    struct rnnd__buf buf = rig_put(rig, wide, rows * ld * 4);
    free(wide);
    return buf;
}

/* What a back end gave. */
struct outputs {
    float *y, *hn, *cn, *dx, *dw_hh, *db_ih, *db_hh, *dh0, *dc0, *dq;
};

static void outputs_free(struct outputs *o)
{
    float *f[10] = {o->y,     o->hn,    o->cn,  o->dx,  o->dw_hh,
                    o->db_ih, o->db_hh, o->dh0, o->dc0, o->dq};
    for (int i = 0; i < 10; i++)
        free(f[i]);
}

static struct rnnd__buf none(void)
{
    return (struct rnnd__buf){NULL};
}

/* The layer's description with inputs on the device, and room for its outputs. */
static struct rnnd__rnn layer(struct rig *rig, const struct setup *s,
                              const struct rnnd__packed *b, const struct inputs *in)
{
    int64_t H = s->H, GH = rnnd__cell_gates(s->cell) * H, NH = b->N * H;
    int64_t ld = s->with & WIDE ? 2 * H + 3 : H;
    bool lstm = s->cell == RNND_LSTM;
    float *zero = calloc((size_t)(GH * H + GH), sizeof *zero);
    struct rnnd__rnn r = {
        .cell = s->cell,
        .reverse = s->reverse,
        .H = H,
        .batch = b,
        .ldy = ld,
        .w_hh = rig_put(rig, in->w_hh, GH * H * 4),
        .b_ih = rig_put(rig, in->b_ih, GH * 4),
        .b_hh = rig_put(rig, in->b_hh, GH * 4),
        .gates = rig_put(rig, in->x, b->R * GH * 4),
        .y = rig_nan(rig, b->R * ld),
        .keep = rig_nan(rig, b->R * H),
        .h0 = s->with & H0 ? rig_put(rig, in->h0, NH * 4) : none(),
        .c0 = s->with & H0 && lstm ? rig_put(rig, in->c0, NH * 4) : none(),
        .hn = rig_nan(rig, NH),
        .cn = lstm ? rig_nan(rig, NH) : none(),
        .dhn = s->with & DN ? rig_put(rig, in->dhn, NH * 4) : none(),
        .dcn = s->with & DN && lstm ? rig_put(rig, in->dcn, NH * 4) : none(),
        .dh0 = rig_nan(rig, NH),
        .dc0 = lstm ? rig_nan(rig, NH) : none(),
        .dw_hh = rig_put(rig, zero, GH * H * 4),
        .db_ih = rig_put(rig, zero, GH * 4),
        .db_hh = rig_put(rig, zero, GH * 4),
    };
    float *dy = s->with & DY ? in->dy : calloc((size_t)(b->R * H + 1), sizeof *dy);
    r.dy = put_rows(rig, dy, b->R, H, ld);
    size_t bytes = rig->op->rnn_scratch(rig->be, s->cell, H, b->N, b->R);
    r.scratch = rig_nan(rig, (int64_t)(bytes + 3) / 4);
    if (dy != in->dy)
        free(dy);
    free(zero);
    return r;
}

/* The rest of the last row is not read: it may be past the end of the buffer. */
static float *get_rows(struct rig *rig, struct rnnd__buf buf, int64_t rows, int64_t H,
                       int64_t ld)
{
    float *wide = rig_get(rig, buf, rows > 0 ? (rows - 1) * ld + H : 0);
    float *x = malloc(sizeof *x * (size_t)(rows * H + 1));
    for (int64_t i = 0; i < rows * H; i++)
        x[i] = wide[i / H * ld + i % H];
    free(wide);
    return x;
}

static void get_forward(struct outputs *o, struct rig *rig, const struct rnnd__rnn *r)
{
    int64_t NH = r->batch->N * r->H;
    o->y = get_rows(rig, r->y, r->batch->R, r->H, r->ldy);
    o->hn = rig_get(rig, r->hn, NH);
    o->cn = r->cell == RNND_LSTM ? rig_get(rig, r->cn, NH) : NULL;
}

static void get_backward(struct outputs *o, struct rig *rig, const struct rnnd__rnn *r)
{
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H, NH = r->batch->N * H;
    o->dx = rig_get(rig, r->gates, r->batch->R * GH);
    o->dw_hh = rig_get(rig, r->dw_hh, GH * H);
    o->db_ih = rig_get(rig, r->db_ih, GH);
    o->db_hh = rig_get(rig, r->db_hh, GH);
    o->dh0 = rig_get(rig, r->dh0, NH);
    o->dc0 = r->cell == RNND_LSTM ? rig_get(rig, r->dc0, NH) : NULL;
    o->dq = r->cell == RNND_GRU ? rig_get(rig, r->keep, r->batch->R * H) : NULL;
}

static struct outputs run(struct rig *rig, const struct rnnd__rnn *r)
{
    struct outputs o = {0};
    rig->op->rnn_forward(rig->be, r);
    get_forward(&o, rig, r);
    rig->op->rnn_backward(rig->be, r);
    get_backward(&o, rig, r);
    return o;
}

/* r[0] and its other direction r[1] in one call. */
static void run_both(struct rig *rig, const struct rnnd__rnn *r, struct outputs *o)
{
    rig->op->rnn_forward(rig->be, r);
    get_forward(&o[0], rig, &r[0]);
    get_forward(&o[1], rig, &r[1]);
    rig->op->rnn_backward(rig->be, r);
    get_backward(&o[0], rig, &r[0]);
    get_backward(&o[1], rig, &r[1]);
}

static void check_close(const char *what, const struct setup *s, const float *a,
                        const double *b, int64_t count, double bound)
{
    const struct kernels_target *t = &kernels_targets[s->target];
    double d = distance(a, b, count);
    ck_assert_msg(d <= bound, "%s of %s%s, H %ld, N %ld, with %d, on %s: off by %g",
                  what, cell_names[s->cell], s->reverse ? " reverse" : "", (long)s->H,
                  (long)s->N, s->with, t->name, d);
}

static void check_states(const struct setup *s, const struct outputs *o,
                         const struct ref_rnn *r, double bound)
{
    int64_t NH = s->N * s->H;
    check_close("y", s, o->y, r->y, r->batch->R * s->H, bound);
    check_close("hn", s, o->hn, r->hn, NH, bound);
    if (s->cell == RNND_LSTM)
        check_close("cn", s, o->cn, r->cn, NH, bound);
}

static void check_gradients(const struct setup *s, const struct outputs *o,
                            const struct ref_rnn *r, double bound)
{
    int64_t H = s->H, GH = rnnd__cell_gates(s->cell) * H, N = s->N;
    check_close("gates", s, o->dx, r->dx, r->batch->R * GH, bound);
    if (s->cell == RNND_GRU)
        check_close("keep", s, o->dq, r->dq, r->batch->R * H, bound);
    check_close("dw_hh", s, o->dw_hh, r->dw_hh, GH * H, bound);
    check_close("db_ih", s, o->db_ih, r->db_ih, GH, bound);
    check_close("db_hh", s, o->db_hh, r->db_hh, GH, bound);
    check_close("dh0", s, o->dh0, r->dh0, N * H, bound);
    if (s->cell == RNND_LSTM)
        check_close("dc0", s, o->dc0, r->dc0, N * H, bound);
}

/* With the factors of products rounded as the target rounds them, from the same
   numbers, only the order of sums differs: all tensors of all cells keep the bound of
   fp32, over any number of steps. */
static void check_as_rounded(const struct setup *s, const struct inputs *in,
                             const struct rnnd__packed *b, const struct outputs *o)
{
    const struct kernels_target *t = &kernels_targets[s->target];
    const struct ref_taken taken = {o->y, o->dx, o->dq};
    struct ref_rnn r = reference(s, b, in, t->precision);
    r.taken = &taken;
    /* The side of 0 that a sum fell to decides a gradient. */
    r.near_zero = t->rounded;
    ref_rnn_backward(&r);
    check_states(s, o, &r, t->rounded);
    check_gradients(s, o, &r, t->rounded);
    ref_rnn_free(&r);
}

/* Without rounding, as the CPU computes. A gradient of a few units is a product of a
   few rounded numbers, each off by up to 2^-9 (bf16): nothing averages that out. */
static void check_as_exact(const struct setup *s, const struct ref_rnn *r,
                           const struct outputs *o)
{
    double bound = kernels_targets[s->target].tolerance;
    check_states(s, o, r, bound);
    if (s->H >= 16 && (s->cell == RNND_LSTM || s->cell == RNND_GRU))
        check_gradients(s, o, r, bound);
}

/* All back ends that are asked for and can run here. */
struct rigs {
    struct rig *rig;
    bool *open;
};

static struct rigs rigs_open(void)
{
    struct rigs all = {calloc((size_t)kernels_targets_count, sizeof *all.rig),
                       calloc((size_t)kernels_targets_count, sizeof *all.open)};
    for (int i = 0; i < kernels_targets_count; i++)
        all.open[i] = rig_open(&all.rig[i], i);
    return all;
}

static void rigs_close(struct rigs *all)
{
    for (int i = 0; i < kernels_targets_count; i++)
        if (all->open[i])
            rig_close(&all->rig[i]);
    free(all->rig);
    free(all->open);
}

static void check_target(const struct setup *s, const struct inputs *in,
                         const struct ref_rnn *exact, struct rig *rig)
{
    struct rnnd__packed batch;
    enum rnnd_precision precision = kernels_targets[s->target].precision;
    packed_make(&batch, rig, s->len, s->N);
    struct rnnd__rnn r = layer(rig, s, &batch, in);
    struct outputs o = run(rig, &r);
    if (precision == RNND_FP32 && s->cell != RNND_RNN_RELU) {
        check_states(s, &o, exact, kernels_targets[s->target].tolerance);
        check_gradients(s, &o, exact, kernels_targets[s->target].tolerance);
    } else {
        check_as_rounded(s, in, &batch, &o);
        check_as_exact(s, exact, &o);
    }
    outputs_free(&o);
    packed_free(&batch);
    rig_clear(rig);
}

/* Every back end against one reference. */
static void check_setup(struct setup *s, struct rigs *rigs)
{
    struct rnnd__packed batch;
    struct inputs in;
    packed_make(&batch, NULL, s->len, s->N);
    inputs_make(&in, s, &batch);
    struct ref_rnn exact = reference(s, &batch, &in, RNND_FP32);
    ref_rnn_backward(&exact);
    for (s->target = 0; s->target < kernels_targets_count; s->target++)
        if (rigs->open[s->target])
            check_target(s, &in, &exact, &rigs->rig[s->target]);
    ref_rnn_free(&exact);
    inputs_free(&in);
    packed_free(&batch);
}

/* RNND_TEST_BRIEF: a few of the cases, such as for looking for planted faults. */
static bool brief(void)
{
    return getenv("RNND_TEST_BRIEF") != NULL;
}

static void check_all(const int32_t *len, int64_t N, const int64_t *H, int sizes)
{
    static const int with[] = {H0 | DY | DN | WIDE, DY, DN, DY | DN, H0 | DN};
    int variants = brief() ? 1 : sizeof with / sizeof *with;
    struct rigs rigs = rigs_open();
    for (size_t c = 0; c < 4; c++)
        for (int reverse = 0; reverse < 2; reverse++)
            for (int h = 0; h < sizes; h++)
                for (int w = 0; w < variants; w++) {
                    struct setup s = {cells[c],
                                      reverse,
                                      H[h],
                                      len,
                                      N,
                                      with[w],
                                      1 / sqrt((double)H[h]),
                                      0};
                    check_setup(&s, &rigs);
                }
    rigs_close(&rigs);
}

/* ---- the tests */

/* The oracle itself: its gradients against finite differences of its forward pass. */
static double difference(struct ref_rnn *r, double *at)
{
    const double eps = 1e-5;
    double x = *at, up, down;
    *at = x + eps;
    ref_rnn_forward(r);
    up = ref_rnn_objective(r);
    *at = x - eps;
    ref_rnn_forward(r);
    down = ref_rnn_objective(r);
    *at = x;
    return (up - down) / (2 * eps);
}

START_TEST(reference_gradients_are_finite_differences)
{
    static const int32_t len[] = {5, 3, 3, 1, 0};
    for (int c = 0; c < 8; c++) {
        struct setup s = {cells[c / 2], c % 2, 3, len, 5, H0 | DY | DN, 0.7, 0};
        struct rnnd__packed batch;
        struct inputs in;
        packed_make(&batch, NULL, len, 5);
        inputs_make(&in, &s, &batch);
        struct ref_rnn r = reference(&s, &batch, &in, RNND_FP32);
        ref_rnn_backward(&r);
        int64_t GH = rnnd__cell_gates(s.cell) * 3, lstm = s.cell == RNND_LSTM;
        struct {
            double *at, *grad;
            int64_t count;
        } p[] = {
            {in.d[0], r.dx, batch.R * GH}, {in.d[1], r.dw_hh, GH * 3},
            {in.d[2], r.db_ih, GH},        {in.d[3], r.db_hh, GH},
            {in.d[4], r.dh0, 15},          {in.d[5], r.dc0, lstm ? 15 : 0},
        };
        for (int k = 0; k < 6; k++)
            for (int64_t i = 0; i < p[k].count; i++)
                ck_assert_double_eq_tol(difference(&r, p[k].at + i), p[k].grad[i],
                                        1e-7);
        ref_rnn_free(&r);
        inputs_free(&in);
        packed_free(&batch);
    }
}
END_TEST

START_TEST(ragged_batches_match)
{
    static const int32_t len[] = {9, 9, 7, 4, 4, 4, 1, 1, 0, 0};
    static const int64_t H[] = {3, 50, 65, 1, 16};
    check_all(len, 10, H, brief() ? 3 : 5);
}
END_TEST

START_TEST(wide_batches_match)
{
    static const int64_t H[] = {20, 128};
    /* Of a persistent layer several groups of rows, and several tiles. */
    int32_t len[37];
    for (int j = 0; j < 37; j++)
        len[j] = 30 - (j * j) / 48;
    check_all(len, 37, H, brief() ? 1 : 2);
}
END_TEST

/* The persistent path with a gate for each block of a squad. */
START_TEST(gates_apart_match)
{
    static const int64_t H[] = {20, 50, 100};
    int32_t len[19];
    for (int j = 0; j < 19; j++)
        len[j] = 8 - (j * j) / 48;
    setenv("RNND_CUDA_GATES", "apart", 1);
    struct rigs rigs = rigs_open();
    unsetenv("RNND_CUDA_GATES");
    for (int c = 0; c < 8; c++)
        for (int h = 0; h < (brief() ? 2 : 3); h++) {
            struct setup s = {
                cells[c / 2],           c % 2, H[h], len, 19, H0 | DY | DN,
                1 / sqrt((double)H[h]), 0};
            check_setup(&s, &rigs);
        }
    rigs_close(&rigs);
}
END_TEST

/* The groups of blocks that a target gives to the rows of a layer; 0: it has none. */
static int groups_of(struct rig *rig, enum rnnd_cell cell, int64_t H, int64_t N)
{
    char text[160];
    int groups = 0;
    rig->op->rnn_explain(rig->be, cell, H, N, text);
    const char *at = strstr(text, " units, ");
    if (strncmp(text, "persistent", 10) == 0 && at)
        sscanf(at, " units, %d group", &groups);
    return groups;
}

/* Layers of usual sizes, on targets where a group of blocks has several tiles of 8
   rows: which those are depends on the multiprocessors that the emulated GPU has. */
START_TEST(groups_with_several_tiles_match)
{
    enum { N = 29 };
    static const int64_t H[] = {256, 512, 704, 1024};
    int32_t len[N];
    for (int j = 0; j < N; j++)
        len[j] = j < 3 ? 3 : j < 27 ? 2 : 1;
    struct rigs rigs = rigs_open();
    int met = 0;
    for (int c = 2; c < 4; c++)
        for (int h = 0; h < 4; h++)
            for (int i = 0; i < kernels_targets_count; i++) {
                bool open = rigs.open[i];
                int groups = open ? groups_of(&rigs.rig[i], cells[c], H[h], N) : 0;
                if (groups == 0 || groups >= (N + 7) / 8 || (brief() && met))
                    continue;
                bool *alone = calloc((size_t)kernels_targets_count, sizeof *alone);
                struct rigs one = {rigs.rig, alone};
                alone[i] = true;
                struct setup s = {
                    cells[c], h % 2, H[h], len, N, H0 | DY | DN, 1 / sqrt((double)H[h]),
                    0};
                check_setup(&s, &one);
                free(alone);
                met++;
            }
    printf("groups with several tiles: %d layers\n", met);
    rigs_close(&rigs);
}
END_TEST

START_TEST(small_batches_match)
{
    static const int32_t one[] = {6}, single[] = {1}, empty[] = {0, 0, 0};
    static const int64_t H[] = {1, 5, 33};
    check_all(one, 1, H, 3);
    check_all(single, 1, H, 3);
    check_all(empty, 3, H, 3);
    check_all(empty, 0, H, 3);
}
END_TEST

/* What the back end says of a layer: the path that was asked for, or another and
   why. */
static void check_explanation(struct rig *rig, const struct kernels_target *t,
                              enum rnnd_cell cell, int64_t H)
{
    static const char *const names[] = {"", "stepwise", "small", "persistent"};
    char text[160] = "", why[16] = "";
    rig->op->rnn_explain(rig->be, cell, H, 3, text);
    bool asked = strncmp(text, names[t->path], strlen(names[t->path])) == 0;
    bool reason_given =
        sscanf(text, "stepwise: %15s", why) == 1 && strcmp(why, "as") != 0;
    ck_assert_msg(asked || reason_given, "%s with %ld units on %s: %s",
                  cell_names[cell], (long)H, t->name, text);
}

START_TEST(all_sizes_match)
{
    static const int64_t H[] = {3, 96, 100, 128, 1, 17, 1000};
    static const int32_t len[] = {3, 2, 2};
    struct rigs rigs = rigs_open();
    for (int h = 0; h < (brief() ? 2 : 7); h++)
        for (int c = brief() ? 2 : 0; c < 4; c++) {
            struct setup s = {
                cells[c], c % 2, H[h], len, 3, H0 | DY | DN, 1 / sqrt((double)H[h]), 0};
            check_setup(&s, &rigs);
            for (int i = 0; i < kernels_targets_count; i++)
                if (rigs.open[i] && kernels_targets[i].threads == 0)
                    check_explanation(&rigs.rig[i], &kernels_targets[i], cells[c],
                                      H[h]);
        }
    rigs_close(&rigs);
}
END_TEST

/* The layer's backward pass with its rows far away. The batch has steps but says that
   it has no rows: what goes over all rows at once would begin at the first of those
   that are not there. Not on the CPU, which does not begin without rows. */
static void backward_far(struct rig *rig, const struct rnnd__rnn *f,
                         struct rnnd__packed *away, int64_t far)
{
    struct rnnd__rnn g = *f;
    away->R = 0;
    g.batch = away;
    g.gates = rnnd__at(f->gates, -far * rnnd__cell_gates(f->cell) * f->H);
    g.y = rnnd__at(f->y, -far * f->ldy);
    g.dy = rnnd__at(f->dy, -far * f->ldy);
    g.keep = rnnd__at(f->keep, -far * f->H);
    rig->op->rnn_backward(rig->be, &g);
}

/* Rows at the end of 2^27 that are not there: of 80 gates and 160 columns each, so that
   places pass 2^32 elements. A place that is cut to 32 bits is no memory, or
   another's. */
START_TEST(places_pass_32_bits)
{
    const int64_t far = (int64_t)1 << 27;
    static const int32_t len[] = {5, 5, 4, 1};
    for (int c = 0; c < 8; c++) {
        struct rig rig;
        if (!rig_open(&rig, _i))
            return;
        struct setup s = {cells[c / 2],        c % 2, 20, len, 4,
                          H0 | WIDE | DY | DN, 0.2,   _i};
        struct rnnd__packed near, away;
        struct inputs in;
        packed_make(&near, &rig, len, 4);
        packed_make(&away, &rig, len, 4);
        inputs_make(&in, &s, &near);
        struct rnnd__rnn r = layer(&rig, &s, &near, &in),
                         f = layer(&rig, &s, &near, &in);
        int64_t GH = rnnd__cell_gates(s.cell) * s.H, *off = (int64_t *)away.off;
        for (int64_t t = 0; t <= away.T; t++)
            off[t] += far;
        rig.op->upload(rig.be, away.d_off, off, (size_t)(away.T + 1) * sizeof *off);
        struct outputs a = {0}, b = {0};
        rig.op->rnn_forward(rig.be, &r);
        get_forward(&a, &rig, &r);
        struct rnnd__rnn g = f;
        g.batch = &away;
        g.gates = rnnd__at(f.gates, -far * GH);
        g.y = rnnd__at(f.y, -far * f.ldy);
        g.keep = rnnd__at(f.keep, -far * s.H);
        rig.op->rnn_forward(rig.be, &g);
        get_forward(&b, &rig, &f);
        ck_assert_mem_eq(a.y, b.y, (size_t)(near.R * s.H) * 4);
        ck_assert_mem_eq(a.hn, b.hn, (size_t)(4 * s.H) * 4);
        if (kernels_targets[_i].threads == 0) {
            rig.op->rnn_backward(rig.be, &r);
            get_backward(&a, &rig, &r);
            backward_far(&rig, &f, &away, far);
            get_backward(&b, &rig, &f);
            ck_assert_mem_eq(a.dx, b.dx, (size_t)(near.R * GH) * 4);
            ck_assert_mem_eq(a.dh0, b.dh0, (size_t)(4 * s.H) * 4);
        }
        outputs_free(&a);
        outputs_free(&b);
        inputs_free(&in);
        packed_free(&near);
        packed_free(&away);
        rig_close(&rig);
    }
}
END_TEST

/* Lengths beyond the 16 bits that have stopped others. */
START_TEST(long_sequences_match)
{
    static const int32_t lengths[] = {65535, 65536, 70000};
    struct rigs rigs = rigs_open();
    for (int i = 0; i < 3 && !brief(); i++) {
        const int32_t len[] = {lengths[i], 70};
        struct setup s = {
            i == 1 ? RNND_GRU : RNND_LSTM, i == 1, 8, len, 2, DY | DN, 0.3, 0};
        check_setup(&s, &rigs);
    }
    rigs_close(&rigs);
}
END_TEST

static void check_same(const struct setup *s, const struct outputs *a,
                       const struct outputs *b, int64_t R)
{
    int64_t H = s->H, GH = rnnd__cell_gates(s->cell) * H, NH = s->N * H;
    struct {
        const char *name;
        const float *a, *b;
        int64_t count;
    } t[] = {
        {"y", a->y, b->y, R * H},
        {"hn", a->hn, b->hn, NH},
        {"cn", a->cn, b->cn, NH},
        {"gates", a->dx, b->dx, R * GH},
        {"dw_hh", a->dw_hh, b->dw_hh, GH * H},
        {"db_ih", a->db_ih, b->db_ih, GH},
        {"db_hh", a->db_hh, b->db_hh, GH},
        {"dh0", a->dh0, b->dh0, NH},
        {"dc0", a->dc0, b->dc0, NH},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        ck_assert_msg(!t[i].a || memcmp(t[i].a, t[i].b, (size_t)t[i].count * 4) == 0,
                      "%s of %s%s, H %ld, on %s differs", t[i].name,
                      cell_names[s->cell], s->reverse ? " reverse" : "", (long)H,
                      kernels_targets[s->target].name);
}

/* Both directions in one call, into the two halves of y, against each alone: bit by
   bit. */
static void check_both(struct rig *rig, struct setup s)
{
    struct rnnd__packed batch;
    struct inputs in[2];
    struct rnnd__rnn r[2], alone[2];
    struct outputs o[2];
    packed_make(&batch, rig, s.len, s.N);
    for (int d = 0; d < 2; d++) {
        s.reverse = d == 1;
        inputs_make(&in[d], &s, &batch);
        alone[d] = layer(rig, &s, &batch, &in[d]);
        r[d] = layer(rig, &s, &batch, &in[d]);
    }
    r[0].other = &r[1];
    r[0].ldy = r[1].ldy = 2 * s.H;
    r[0].y = rig_nan(rig, batch.R * 2 * s.H);
    r[1].y = rnnd__at(r[0].y, s.H);
    for (int d = 0; d < 2; d++)
        r[d].dy = put_rows(rig, in[d].dy, batch.R, s.H, 2 * s.H);
    run_both(rig, r, o);
    for (int d = 0; d < 2; d++) {
        struct outputs one = run(rig, &alone[d]);
        s.reverse = d == 1;
        check_same(&s, &o[d], &one, batch.R);
        outputs_free(&one);
        outputs_free(&o[d]);
        inputs_free(&in[d]);
    }
    packed_free(&batch);
}

/* On the emulated GPU with RNND_SIMT_SMS=6 two persistent loops of 20 units have room
   side by side, and of 50 units they have not. */
START_TEST(both_directions_are_those_alone)
{
    static const int64_t H[] = {20, 50};
    int32_t len[19];
    for (int j = 0; j < 19; j++)
        len[j] = j < 18 ? 12 - (j * j) / 30 : 0;
    for (int c = 0; c < 8; c++) {
        struct rig rig;
        /* Whatever the room. */
        setenv("RNND_CUDA_GATES", c % 2 ? "apart" : "together", 1);
        bool open = rig_open(&rig, _i);
        unsetenv("RNND_CUDA_GATES");
        if (!open)
            return;
        struct setup s = {cells[c / 2],
                          false,
                          H[c % 2],
                          len,
                          19,
                          H0 | DY | DN,
                          1 / sqrt((double)H[c % 2]),
                          _i};
        check_both(&rig, s);
        rig_close(&rig);
    }
}
END_TEST

/* The layer once more in its own buffers, from the inputs given. */
static struct outputs run_again(struct rig *rig, const struct rnnd__rnn *r,
                                const float *x)
{
    enum { MOST = 4 * 18 * 18 };
    static const float zero[MOST];
    int64_t GH = rnnd__cell_gates(r->cell) * r->H;
    ck_assert(GH * r->H <= MOST);
    rig->op->upload(rig->be, r->gates, x, (size_t)(r->batch->R * GH) * 4);
    rig->op->upload(rig->be, r->dw_hh, zero, (size_t)(GH * r->H) * 4);
    rig->op->upload(rig->be, r->db_ih, zero, (size_t)GH * 4);
    rig->op->upload(rig->be, r->db_hh, zero, (size_t)GH * 4);
    return run(rig, r);
}

/* The same buffers again and again with other inputs, as windows of a text come: what
   is replayed (CUDA graphs) computes anew. Against layers in buffers of their own, bit
   by bit. */
START_TEST(loops_that_come_again_compute_anew)
{
    static const int32_t len[] = {6, 6, 6};
    for (int c = 0; c < 8; c++) {
        struct rig rig;
        if (!rig_open(&rig, _i))
            return;
        struct setup s = {cells[c / 2], c % 2, 18, len, 3, H0 | DY | DN, 0.3, _i};
        struct rnnd__packed batch;
        struct inputs in;
        packed_make(&batch, &rig, s.len, s.N);
        inputs_make(&in, &s, &batch);
        struct rnnd__rnn again = layer(&rig, &s, &batch, &in);
        int64_t floats = batch.R * rnnd__cell_gates(s.cell) * s.H;
        for (int times = 0; times < 4; times++) {
            for (int64_t i = 0; i < floats; i++)
                in.x[i] *= 0.9f;
            struct rnnd__rnn fresh = layer(&rig, &s, &batch, &in);
            struct outputs o = run_again(&rig, &again, in.x), one = run(&rig, &fresh);
            check_same(&s, &o, &one, batch.R);
            outputs_free(&o);
            outputs_free(&one);
        }
        inputs_free(&in);
        packed_free(&batch);
        rig_close(&rig);
    }
}
END_TEST

/* More shapes in turn than are kept (64 graphs, two each), each three times in a
   row. */
START_TEST(many_shapes_take_turns)
{
    enum { SHAPES = 40, N = 2 };
    int32_t len[N] = {SHAPES + 4, SHAPES + 4};
    struct rig rig;
    /* One launch: no graphs, and slow. */
    if (kernels_targets[_i].path == RNND_PATH_PERSISTENT)
        return;
    if (!rig_open(&rig, _i))
        return;
    struct setup s = {RNND_GRU, true, 5, len, N, DY | DN, 0.4, _i};
    struct rnnd__packed batch;
    struct inputs in;
    packed_make(&batch, &rig, len, N);
    inputs_make(&in, &s, &batch);
    struct rnnd__packed whole = batch;
    struct rnnd__rnn r = layer(&rig, &s, &batch, &in);
    for (int shape = 0; shape < SHAPES; shape++) {
        batch.T = 4 + shape;
        batch.R = N * batch.T;
        int32_t own[N] = {4 + shape, 4 + shape};
        batch.len = own;
        rig.op->upload(rig.be, batch.d_len, own, sizeof own);
        struct outputs first = run_again(&rig, &r, in.x);
        for (int times = 0; times < 2; times++) {
            struct outputs o = run_again(&rig, &r, in.x);
            check_same(&s, &o, &first, batch.R);
            outputs_free(&o);
        }
        outputs_free(&first);
    }
    inputs_free(&in);
    packed_free(&whole);
    rig_close(&rig);
}
END_TEST

/* A sequence gives the same numbers alone as beside others: the same bits on paths
   whose products do not depend on the rows beside. */
START_TEST(neighbours_do_not_matter)
{
    static const int32_t len[] = {40, 6, 6, 2};
    struct rig rig;
    if (!rig_open(&rig, _i))
        return;
    const struct kernels_target *target = &kernels_targets[_i];
    bool alike =
        target->path == RNND_PATH_SMALL || target->path == RNND_PATH_PERSISTENT;
    float slack = alike ? 0 : (float)(target->tolerance / 1e-5);
    for (int c = 0; c < 8; c++) {
        struct setup s = {cells[c / 2], c % 2, 20, len, 4, H0 | DY | DN, 0.2, 0};
        struct setup alone = s;
        struct rnnd__packed batch, own;
        struct inputs in, in1;
        packed_make(&batch, &rig, len, 4);
        inputs_make(&in, &s, &batch);
        alone.len = len + 1;
        alone.N = 1;
        packed_make(&own, &rig, len + 1, 1);
        inputs_make(&in1, &alone, &own);
        int64_t H = 20, GH = rnnd__cell_gates(s.cell) * H;
        for (int64_t t = 0; t < 6; t++) { /* sequence 1 of the batch */
            memcpy(in1.x + t * GH, in.x + (batch.off[t] + 1) * GH, (size_t)GH * 4);
            memcpy(in1.dy + t * H, in.dy + (batch.off[t] + 1) * H, (size_t)H * 4);
        }
        memcpy(in1.h0, in.h0 + H, (size_t)H * 4);
        memcpy(in1.c0, in.c0 + H, (size_t)H * 4);
        memcpy(in1.dhn, in.dhn + H, (size_t)H * 4);
        memcpy(in1.dcn, in.dcn + H, (size_t)H * 4);
        struct rnnd__rnn r = layer(&rig, &s, &batch, &in),
                         r1 = layer(&rig, &alone, &own, &in1);
        struct outputs o = run(&rig, &r), o1 = run(&rig, &r1);
        for (int64_t k = 0; k < H; k++) {
            ck_assert(fabsf(o.hn[H + k] - o1.hn[k]) <= 1e-6f * slack);
            ck_assert(fabsf(o.dh0[H + k] - o1.dh0[k]) <= 1e-5f * slack);
        }
        for (int64_t t = 0; t < 6; t++)
            for (int64_t k = 0; k < GH; k++)
                ck_assert(fabsf(o.dx[(batch.off[t] + 1) * GH + k] -
                                o1.dx[t * GH + k]) <= 1e-5f * slack);
        outputs_free(&o);
        outputs_free(&o1);
        inputs_free(&in);
        inputs_free(&in1);
        packed_free(&batch);
        packed_free(&own);
        rig_close(&rig);
        rig_open(&rig, _i);
    }
    rig_close(&rig);
}
END_TEST

START_TEST(final_state_of_an_empty_sequence_is_its_initial_state)
{
    static const int32_t len[] = {2, 0, 0};
    struct rig rig;
    if (!rig_open(&rig, _i))
        return;
    struct setup s = {RNND_LSTM, false, 4, len, 3, H0 | DN, 0.5, 0};
    struct rnnd__packed batch;
    struct inputs in;
    packed_make(&batch, &rig, len, 3);
    inputs_make(&in, &s, &batch);
    struct rnnd__rnn r = layer(&rig, &s, &batch, &in);
    struct outputs o = run(&rig, &r);
    ck_assert_mem_eq(o.hn + 4, in.h0 + 4, 8 * sizeof(float));
    ck_assert_mem_eq(o.cn + 4, in.c0 + 4, 8 * sizeof(float));
    ck_assert_mem_eq(o.dh0 + 4, in.dhn + 4, 8 * sizeof(float));
    ck_assert_mem_eq(o.dc0 + 4, in.dcn + 4, 8 * sizeof(float));
    outputs_free(&o);
    inputs_free(&in);
    packed_free(&batch);
    rig_close(&rig);
}
END_TEST

/* All weights 0, b_hn = 1: h = 0.5 tanh(0.5) if the reset gate is applied after the
   product, 0.3808 if it is applied before. */
START_TEST(gru_resets_after_the_product)
{
    static const int32_t len[] = {1};
    static const float zero[12], b_hh[3] = {0, 0, 1};
    struct rig rig;
    if (!rig_open(&rig, _i))
        return;
    struct rnnd__packed batch;
    packed_make(&batch, &rig, len, 1);
    struct rnnd__rnn r = {
        .cell = RNND_GRU,
        .H = 1,
        .batch = &batch,
        .w_hh = rig_put(&rig, zero, 12),
        .b_ih = rig_put(&rig, zero, 12),
        .b_hh = rig_put(&rig, b_hh, 12),
        .gates = rig_put(&rig, zero, 12),
        .y = rig_nan(&rig, 1),
        .ldy = 1,
        .keep = rig_nan(&rig, 1),
        .hn = rig_nan(&rig, 1),
        .scratch =
            rig_nan(&rig, (int64_t)rig.op->rnn_scratch(rig.be, RNND_GRU, 1, 1, 1)),
    };
    rig.op->rnn_forward(rig.be, &r);
    float *hn = rig_get(&rig, r.hn, 1);
    ck_assert_float_eq_tol(*hn, 0.2310585786f, 1e-7f);
    free(hn);
    packed_free(&batch);
    rig_close(&rig);
}
END_TEST

/* Gradients are added to what is there. */
START_TEST(parameter_gradients_accumulate)
{
    static const int32_t len[] = {5, 2};
    struct rig rig;
    if (!rig_open(&rig, _i))
        return;
    struct setup s = {RNND_GRU, false, 6, len, 2, DY, 0.4, 0};
    struct rnnd__packed batch;
    struct inputs in;
    packed_make(&batch, &rig, len, 2);
    inputs_make(&in, &s, &batch);
    struct rnnd__rnn r = layer(&rig, &s, &batch, &in);
    struct outputs once = run(&rig, &r);
    rig.op->upload(rig.be, r.gates, in.x, (size_t)(batch.R * 18) * 4);
    struct outputs twice = run(&rig, &r);
    for (int i = 0; i < 18 * 6; i++)
        ck_assert_float_eq_tol(twice.dw_hh[i], 2 * once.dw_hh[i], 1e-5f);
    for (int i = 0; i < 18; i++) {
        ck_assert_float_eq_tol(twice.db_ih[i], 2 * once.db_ih[i], 1e-5f);
        ck_assert_float_eq_tol(twice.db_hh[i], 2 * once.db_hh[i], 1e-5f);
    }
    outputs_free(&once);
    outputs_free(&twice);
    inputs_free(&in);
    packed_free(&batch);
    rig_close(&rig);
}
END_TEST

/* With recurrent weights of 0, gates and states show the functions themselves. */
START_TEST(sigmoid_and_tanh_are_accurate)
{
    enum { COUNT = 512 };
    static const int32_t len[] = {1};
    struct rig rig;
    if (!rig_open(&rig, _i))
        return;
    struct setup s = {RNND_LSTM, false, COUNT, len, 1, 0, 0, _i};
    struct rnnd__packed batch;
    struct inputs in = {.x = calloc(4 * COUNT, 4),
                        .b_ih = calloc(4 * COUNT, 4),
                        .w_hh = calloc((size_t)4 * COUNT * COUNT, 4)};
    in.b_hh = in.b_ih;
    for (int k = 0; k < COUNT; k++) { /* 1e-7 .. 80, both signs */
        float x = (float)(pow(10, -7 + 8.9 * (k / 2) / (COUNT / 2)) * (k % 2 ? -1 : 1));
        in.x[k] = in.x[2 * COUNT + k] = x;
    }
    packed_make(&batch, &rig, len, 1);
    struct rnnd__rnn r = layer(&rig, &s, &batch, &in);
    rig.op->rnn_forward(rig.be, &r);
    float *gates = rig_get(&rig, r.gates, 4 * COUNT);
    for (int k = 0; k < COUNT; k++) {
        double x = in.x[k], sigmoid = 1 / (1 + exp(-x));
        ck_assert_double_eq_tol(gates[k] / sigmoid, 1, 3e-7);
        ck_assert_double_eq_tol(gates[2 * COUNT + k] / tanh(x), 1, 3e-7);
    }
    free(gates);
    free(in.x);
    free(in.b_ih);
    free(in.w_hh);
    packed_free(&batch);
    rig_close(&rig);
}
END_TEST

/* A NaN in one sequence stays a NaN there and in the weights' gradient, and leaves the
   other sequences alone; an infinite weight must not crash. */
START_TEST(nan_survives)
{
    static const int32_t len[] = {7, 5};
    for (int c = 0; c < 8; c++) {
        struct rig rig;
        if (!rig_open(&rig, _i))
            return;
        struct setup s = {cells[c / 2], c % 2, 18, len, 2, DY | DN, 0.3, 0};
        struct rnnd__packed batch;
        struct inputs in;
        int64_t GH = rnnd__cell_gates(s.cell) * 18;
        packed_make(&batch, &rig, len, 2);
        inputs_make(&in, &s, &batch);
        for (int64_t g = 0; g < GH; g++)
            in.x[(batch.off[3] + 1) * GH + g] = NAN;
        struct rnnd__rnn r = layer(&rig, &s, &batch, &in);
        struct outputs o = run(&rig, &r);
        for (int k = 0; k < 18; k++) {
            ck_assert(!isnan(o.hn[k]));
            ck_assert(isnan(o.hn[18 + k]));
            ck_assert(isnan(o.dw_hh[k]));
        }
        outputs_free(&o);
        in.w_hh[5] = INFINITY;
        struct rnnd__rnn again = layer(&rig, &s, &batch, &in);
        o = run(&rig, &again);
        outputs_free(&o);
        inputs_free(&in);
        packed_free(&batch);
        rig_close(&rig);
    }
}
END_TEST

/* The same run gives the same bits; another number of threads the same to rounding. */
START_TEST(runs_repeat_bit_for_bit)
{
    int32_t len[33];
    for (int j = 0; j < 33; j++)
        len[j] = 60 - j;
    for (int c = 0; c < 4; c++) {
        struct rig rig;
        if (!rig_open(&rig, _i))
            return;
        struct setup s = {cells[c], c % 2, 48, len, 33, DY | DN, 0.14, 0};
        struct rnnd__packed batch;
        struct inputs in;
        int64_t GH = rnnd__cell_gates(s.cell) * 48;
        packed_make(&batch, &rig, len, 33);
        inputs_make(&in, &s, &batch);
        struct rnnd__rnn r = layer(&rig, &s, &batch, &in),
                         r2 = layer(&rig, &s, &batch, &in);
        struct outputs a = run(&rig, &r), b = run(&rig, &r2);
        ck_assert_mem_eq(a.y, b.y, (size_t)(batch.R * 48) * 4);
        ck_assert_mem_eq(a.dx, b.dx, (size_t)(batch.R * GH) * 4);
        ck_assert_mem_eq(a.dw_hh, b.dw_hh, (size_t)(GH * 48) * 4);
        ck_assert_mem_eq(a.db_hh, b.db_hh, (size_t)GH * 4);
        outputs_free(&a);
        outputs_free(&b);
        inputs_free(&in);
        packed_free(&batch);
        rig_close(&rig);
    }
}
END_TEST

TCase *kernels_tiles_tests(void)
{
    TCase *t = tcase_create("tiles");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, groups_with_several_tiles_match);
    return t;
}

TCase *kernels_rnn_tests(void)
{
    TCase *t = tcase_create("rnn");
    int n = kernels_targets_count;
    tcase_set_timeout(t, 240);
    tcase_add_test(t, reference_gradients_are_finite_differences);
    tcase_add_test(t, ragged_batches_match);
    tcase_add_test(t, wide_batches_match);
    tcase_add_test(t, gates_apart_match);
    tcase_add_test(t, small_batches_match);
    tcase_add_test(t, all_sizes_match);
    tcase_add_test(t, long_sequences_match);
    tcase_add_loop_test(t, places_pass_32_bits, 0, n);
    tcase_add_loop_test(t, both_directions_are_those_alone, 0, n);
    tcase_add_loop_test(t, loops_that_come_again_compute_anew, 0, n);
    tcase_add_loop_test(t, many_shapes_take_turns, 0, n);
    tcase_add_loop_test(t, neighbours_do_not_matter, 0, n);
    tcase_add_loop_test(t, final_state_of_an_empty_sequence_is_its_initial_state, 0, n);
    tcase_add_loop_test(t, gru_resets_after_the_product, 0, n);
    tcase_add_loop_test(t, parameter_gradients_accumulate, 0, n);
    tcase_add_loop_test(t, sigmoid_and_tanh_are_accurate, 0, n);
    tcase_add_loop_test(t, nan_survives, 0, n);
    tcase_add_loop_test(t, runs_repeat_bit_for_bit, 0, n);
    return t;
}
