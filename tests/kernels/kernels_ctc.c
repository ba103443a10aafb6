/*
 * kernels_ctc.c - connectionist temporal classification: against PyTorch's float64
 * results in tests/golden/ctc.h5, and against a naive reference in the log domain,
 * which also computes strings that are too long for that file.
 */
#include "kernels_ctc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hdf/hdf.h"
#include "kernels_ref.h"

/* ---- a batch of strings on a back end */

struct strings {
    int64_t N, cols;
    /* [N] steps, falling, and labels; -1 = no target */
    const int32_t *length, *count;
    /* the labels of all, and the scores sequence by sequence */
    const int32_t *label;
    const float *score;
};

struct answer {
    struct rnnd__sums sums;
    /* the gradient, sequence by sequence */
    float *grad;
    int64_t floats;
};

static int64_t steps_of(const struct strings *s)
{
    int64_t steps = 0;
    for (int64_t j = 0; j < s->N; j++)
        steps += s->length[j];
    return steps;
}

/* Row of step t of each sequence: from the order of sequences to the packed one, or
   back. */
static void reorder(const struct strings *s, const struct rnnd__packed *batch,
                    float *to, const float *from, bool pack)
{
    size_t bytes = (size_t)s->cols * sizeof(float);
    int64_t row = 0;
    for (int64_t j = 0; j < s->N; j++)
        for (int64_t t = 0; t < s->length[j]; t++, row++) {
            int64_t place = batch->off[t] + j;
            memcpy(to + (pack ? place : row) * s->cols,
                   from + (pack ? row : place) * s->cols, bytes);
        }
}

static struct rnnd__strings put_strings(struct rig *rig, const struct strings *s)
{
    int32_t *first = malloc(sizeof *first * (size_t)s->N), at = 0;
    struct rnnd__strings out = {.longest = 0};
    for (int64_t j = 0; j < s->N; j++) {
        int32_t count = s->count[j] < 0 ? 0 : s->count[j];
        first[j] = at;
        at += count;
        out.longest = count > out.longest ? count : out.longest;
    }
    out.first = rig_put(rig, first, 4 * s->N);
    out.count = rig_put(rig, s->count, 4 * s->N);
    out.label = rig_put(rig, s->label, 4 * at);
    free(first);
    return out;
}

static struct answer run(struct rig *rig, const struct strings *s, bool gradient)
{
    struct rnnd__packed batch;
    struct answer a = {.floats = steps_of(s) * s->cols};
    size_t bytes = (size_t)(a.floats + 1) * sizeof(float);
    float *packed = malloc(bytes);
    packed_make(&batch, rig, s->length, s->N);
    reorder(s, &batch, packed, s->score, true);
    struct rnnd__strings strings = put_strings(rig, s);
    struct rnnd__buf X = rig_put(rig, packed, 4 * a.floats),
                     S = rig_put(rig, &a.sums, sizeof a.sums);
    size_t scratch = rig->op->ctc_scratch(rig->be, s->N, batch.T, strings.longest);
    struct rnnd__ctc ctc = {.batch = &batch,
                            .strings = &strings,
                            .cols = s->cols,
                            .gradient = gradient,
                            .scratch = rig_nan(rig, (int64_t)(scratch + 3) / 4)};
    rig->op->ctc(rig->be, &ctc, X, S);
    ck_assert_int_eq(rig->op->download(rig->be, &a.sums, S, sizeof a.sums), 0);
    ck_assert_double_eq(a.sums.weight, a.sums.targets);
    free(packed);
    packed = rig_get(rig, X, a.floats);
    a.grad = malloc(bytes);
    reorder(s, &batch, a.grad, packed, false);
    free(packed);
    packed_free(&batch);
    return a;
}

/* ---- PyTorch's results */

struct golden {
    int64_t batches;
    int32_t *batch, *length, *labels, *label;
    float *score, *grad;
    double *loss;
};

static void *table(struct rnnd__hdf *file, const char *name, enum rnnd__hdf_type type)
{
    struct rnnd__hdf_shape shape;
    ck_assert_int_eq(rnnd__hdf_shape(file, name, &shape), 0);
    int64_t width = shape.rank == 2 ? shape.dim[1] : 1;
    void *out = malloc((size_t)(shape.dim[0] * width) * rnnd__hdf_size_of(type));
    ck_assert_int_eq(rnnd__hdf_read(file, name, 0, shape.dim[0], type, out), 0);
    return out;
}

static struct golden golden_open(void)
{
    const char *source = getenv("srcdir");
    struct rnnd__hdf_shape shape;
    struct rnnd__hdf *file;
    char path[600];
    snprintf(path, sizeof path, "%s/tests/golden/ctc.h5", source ? source : ".");
    ck_assert_int_eq(rnnd__hdf_open(path, &file), 0);
    ck_assert_int_eq(rnnd__hdf_shape(file, "batch", &shape), 0);
    struct golden g = {.batches = shape.dim[0],
                       .batch = table(file, "batch", RNND_I32),
                       .length = table(file, "length", RNND_I32),
                       .labels = table(file, "labels", RNND_I32),
                       .label = table(file, "label", RNND_I32),
                       .score = table(file, "score", RNND_F32),
                       .grad = table(file, "grad", RNND_F32),
                       .loss = table(file, "loss", RNND_F64)};
    rnnd__hdf_close(file);
    return g;
}

static void golden_close(struct golden *g)
{
    free(g->batch);
    free(g->length);
    free(g->labels);
    free(g->label);
    free(g->score);
    free(g->grad);
    free(g->loss);
}

/* The labels of sequences that fit; those of the others are left out, as a batch of the
   library leaves them out. */
static int64_t keep_fitting(struct strings *s, const int32_t *all, const double *loss,
                            int32_t *count, int32_t *label)
{
    int64_t to = 0, from = 0, targets = 0;
    for (int64_t j = 0; j < s->N; from += s->count[j], j++) {
        bool fits = !isinf(loss[j]);
        count[j] = fits ? s->count[j] : -1;
        for (int32_t i = 0; fits && i < s->count[j]; i++)
            label[to++] = all[from + i];
        targets += fits;
    }
    s->count = count;
    s->label = label;
    return targets;
}

static void check_batch(struct rig *rig, const struct strings *given,
                        const double *loss, const float *grad)
{
    struct strings s = *given;
    int64_t all = 0;
    for (int64_t j = 0; j < s.N; j++)
        all += s.count[j];
    int32_t *count = malloc(sizeof *count * (size_t)s.N);
    int32_t *label = malloc(sizeof *label * (size_t)(all + 1));
    int64_t targets = keep_fitting(&s, given->label, loss, count, label);
    double expected = 0;
    for (int64_t j = 0; j < s.N; j++)
        if (count[j] >= 0)
            expected += loss[j] / (count[j] > 0 ? count[j] : 1);
    struct answer a = run(rig, &s, true), b = run(rig, &s, false);
    double *g = to_double(grad, a.floats);
    ck_assert_double_eq(a.sums.targets, (double)targets);
    ck_assert_double_eq_tol(a.sums.loss, expected, 1e-6 * expected + 1e-12);
    ck_assert_double_le(distance(a.grad, g, a.floats), 1e-6);
    ck_assert(a.sums.loss == b.sums.loss && a.sums.targets == b.sums.targets);
    free(a.grad);
    free(b.grad);
    free(g);
    free(count);
    free(label);
}

START_TEST(pytorch_agrees)
{
    struct golden g = golden_open();
    int64_t first = 0, label = 0, score = 0;
    for (int64_t b = 0; b < g.batches; b++) {
        struct rig rig;
        struct strings s = {.N = g.batch[2 * b],
                            .cols = g.batch[2 * b + 1],
                            .length = g.length + first,
                            .count = g.labels + first,
                            .label = g.label + label,
                            .score = g.score + score};
        if (rig_open(&rig, _i)) {
            check_batch(&rig, &s, g.loss + first, g.grad + score);
            rig_close(&rig);
        }
        for (int64_t j = 0; j < s.N; j++)
            label += s.count[j];
        score += steps_of(&s) * s.cols;
        first += s.N;
    }
    golden_close(&g);
}
END_TEST

/* ---- a naive reference */

static double log_sum(double a, double b)
{
    double top = a > b ? a : b;
    return isinf(top) ? top : top + log1p(exp(-fabs(a - b)));
}

/* Outputs by state of the lattice: blank, label, blank, label, ..., blank. */
static int32_t state_of(const struct strings *s, int64_t i)
{
    return i % 2 ? s->label[i / 2] : 0;
}

static bool may_skip(const struct strings *s, int64_t i)
{
    return i >= 2 && i % 2 && state_of(s, i) != state_of(s, i - 2);
}

/* [T,cols] log softmax of the scores of a single sequence. */
static double *log_softmax(const struct strings *s)
{
    int64_t T = s->length[0], C = s->cols;
    double *y = to_double(s->score, T * C);
    for (int64_t t = 0; t < T; t++) {
        double sum = -INFINITY;
        for (int64_t k = 0; k < C; k++)
            sum = log_sum(sum, y[t * C + k]);
        for (int64_t k = 0; k < C; k++)
            y[t * C + k] -= sum;
    }
    return y;
}

/* The log of the probability of all beginnings (end: of all rests) of paths that are in
   state i at step t, this step included: [T,S]. */
static double *lattice_of(const struct strings *s, const double *y, bool end)
{
    int64_t T = s->length[0], S = 2 * s->count[0] + 1;
    double *a = malloc(sizeof *a * (size_t)(T * S));
    for (int64_t n = 0; n < T; n++)
        for (int64_t k = 0; k < S; k++) {
            int64_t t = end ? T - 1 - n : n, i = end ? S - 1 - k : k;
            int64_t step = end ? 1 : -1, skip = end ? i + 2 : i;
            double sum = n == 0 && k < 2 ? 0 : -INFINITY;
            const double *before = a + (t + step) * S;
            if (n > 0) {
                sum = before[i];
                if (k > 0)
                    sum = log_sum(sum, before[i + step]);
                if (skip < S && may_skip(s, skip))
                    sum = log_sum(sum, before[i + 2 * step]);
            }
            a[t * S + i] = sum + y[t * s->cols + state_of(s, i)];
        }
    return a;
}

/* The loss of a single sequence, not divided, and its gradient, divided. */
static double reference(const struct strings *s, double *grad)
{
    int64_t T = s->length[0], L = s->count[0], S = 2 * L + 1, C = s->cols;
    double *y = log_softmax(s);
    double *alpha = lattice_of(s, y, false), *beta = lattice_of(s, y, true);
    double all = alpha[T * S - 1];
    if (S > 1)
        all = log_sum(all, alpha[T * S - 2]);
    for (int64_t t = 0; t < T; t++) {
        for (int64_t k = 0; k < C; k++)
            grad[t * C + k] = exp(y[t * C + k]);
        for (int64_t i = 0; i < S; i++) {
            int32_t k = state_of(s, i);
            grad[t * C + k] -=
                exp(alpha[t * S + i] + beta[t * S + i] - y[t * C + k] - all);
        }
        for (int64_t k = 0; k < C; k++)
            grad[t * C + k] /= (double)(L > 0 ? L : 1);
    }
    free(y);
    free(alpha);
    free(beta);
    return -all;
}

static void check_single(struct rig *rig, const struct strings *s)
{
    double *g = malloc(sizeof *g * (size_t)(s->length[0] * s->cols));
    int32_t labels = s->count[0] > 0 ? s->count[0] : 1;
    double expected = reference(s, g) / labels;
    struct answer a = run(rig, s, true);
    ck_assert_double_eq_tol(a.sums.loss, expected, 1e-6 * expected);
    ck_assert_double_le(distance(a.grad, g, a.floats), 1e-6);
    free(a.grad);
    free(g);
}

/* Random labels, every third the same as the one before. */
static int32_t *random_labels(int64_t count, int64_t cols)
{
    float *x = numbers(31, count, 1);
    int32_t *label = malloc(sizeof *label * (size_t)(count + 1));
    for (int64_t i = 0; i < count; i++)
        label[i] = i % 3 == 2 ? label[i - 1]
                              : 1 + (int32_t)(fabs((double)x[i]) * (double)(cols - 1));
    free(x);
    return label;
}

static void check_shape(int target, const int32_t shape[2], float scale)
{
    enum { COLS = 29 };
    struct rig rig;
    if (!rig_open(&rig, target))
        return;
    int32_t *label = random_labels(shape[1], COLS);
    float *x = numbers(17 + (uint64_t)shape[1], shape[0] * COLS, (double)scale);
    struct strings s = {1, COLS, &shape[0], &shape[1], label, x};
    check_single(&rig, &s);
    free(label);
    free(x);
    rig_close(&rig);
}

/* Steps and labels for which the lattice is one block, many, and just fits. */
START_TEST(long_strings_match)
{
    static const int32_t shapes[][2] = {{1, 1},    {1, 0},     {3000, 0},  {60, 28},
                                        {400, 30}, {700, 200}, {300, 195}, {2500, 60}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_shape(_i, shapes[i], 0.5f);
        check_shape(_i, shapes[i], 12);
    }
}
END_TEST

/* A blank that is nearly sure, in softmax and in posteriors: the gradient of the second
   step is small, but each of its elements has its digits. Rows of 2 and of 40
   scores. */
START_TEST(sure_steps_keep_their_digits)
{
    static const int32_t length = 2, count = 1, label = 1, widths[] = {2, 40};
    for (int w = 0; w < 2; w++) {
        int32_t cols = widths[w];
        float x[2 * 40] = {0};
        double g[2 * 40];
        struct strings s = {1, cols, &length, &count, &label, x};
        struct rig rig;
        if (!rig_open(&rig, _i))
            return;
        x[0] = 3.2f;
        x[cols] = 14;
        x[cols + 1] = 3.5f;
        reference(&s, g);
        struct answer a = run(&rig, &s, true);
        ck_assert_double_le(fabs(g[cols]), 2e-3);
        for (int32_t k = cols; k < cols + 2; k++)
            ck_assert_double_eq_tol((double)a.grad[k], g[k], 1e-6 * fabs(g[k]));
        free(a.grad);
        rig_close(&rig);
    }
}
END_TEST

/* The reference takes a gigabyte, and some seconds. */
START_TEST(very_long_strings_match)
{
    if (!getenv("LONG"))
        return;
    check_shape(_i, (const int32_t[]){65536, 40}, 0.5f);
    check_shape(_i, (const int32_t[]){5600, 4096}, 0.5f);
}
END_TEST

/* A path whose outputs are as good as impossible keeps its exact loss: 0, 1 and 2 are
   scores of -1e30, -1e30 and 1e30 everywhere, and the string is 1. */
START_TEST(hopeless_strings_have_a_loss)
{
    static const int32_t length = 3, count = 1, label = 1;
    static const float x[9] = {-1e30f, -1e30f, 1e30f,  -1e30f, -1e30f,
                               1e30f,  -1e30f, -1e30f, 1e30f};
    struct strings s = {1, 3, &length, &count, &label, x};
    struct rig rig;
    if (!rig_open(&rig, _i))
        return;
    struct answer a = run(&rig, &s, true);
    ck_assert_double_eq_tol(a.sums.loss, 6e30, 1e24);
    for (int t = 0; t < 3; t++)
        ck_assert_float_eq(a.grad[3 * t + 2], 1);
    free(a.grad);
    rig_close(&rig);
}
END_TEST

START_TEST(scores_that_are_no_numbers_show)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const int32_t length[] = {2, 2}, count[] = {1, 1}, label[] = {1, 1};
    for (int i = 0; i < 3; i++) {
        float x[12] = {0};
        x[8] = bad[i];
        struct strings s = {2, 3, length, count, label, x};
        struct rig rig;
        if (!rig_open(&rig, _i))
            return;
        struct answer a = run(&rig, &s, true);
        ck_assert(isnan(a.sums.loss));
        ck_assert(!isnan(a.grad[0]) && isnan(a.grad[8]));
        free(a.grad);
        rig_close(&rig);
    }
}
END_TEST

/* The string 1 1 needs three steps. */
START_TEST(strings_that_do_not_fit_have_an_infinite_loss)
{
    static const int32_t length = 2, count = 2, label[] = {1, 1};
    static const float x[6] = {0};
    struct strings s = {1, 3, &length, &count, label, x};
    struct rig rig;
    if (!rig_open(&rig, _i))
        return;
    struct answer a = run(&rig, &s, true);
    ck_assert(isinf(a.sums.loss));
    free(a.grad);
    rig_close(&rig);
}
END_TEST

START_TEST(other_threads_and_neighbours_change_no_bit)
{
    enum { N = 37, COLS = 12 };
    struct rig rig;
    if (!rig_open(&rig, _i))
        return;
    int32_t length[N], count[N], *label = random_labels(5 * N, COLS);
    for (int j = 0; j < N; j++) {
        length[j] = 400 - 9 * j;
        count[j] = j % 11 == 5 ? -1 : 5;
    }
    struct strings s = {N, COLS, length, count, label, NULL};
    float *x = numbers(3, steps_of(&s) * COLS, 2);
    s.score = x;
    struct answer a = run(&rig, &s, true);
    s.N = 1;
    struct answer b = run(&rig, &s, true);
    ck_assert_mem_eq(a.grad, b.grad, (size_t)b.floats * sizeof(float));
    s.N = N;
    int threads[] = {1, 5};
    for (int i = 0; i < 2 && kernels_targets[_i].threads && !kernels_targets[_i].isa;
         i++) {
        struct rnnd__backend_config config = {threads[i], 0, RNND_FP32, 0};
        struct rig other = {.count = 0};
        ck_assert_int_eq(rnnd__cpu_open(&config, &other.be, (char[256]){0}), 0);
        other.op = other.be->ops;
        struct answer c = run(&other, &s, true);
        ck_assert(a.sums.loss == c.sums.loss && a.sums.targets == c.sums.targets);
        ck_assert_mem_eq(a.grad, c.grad, (size_t)a.floats * sizeof(float));
        free(c.grad);
        rig_close(&other);
    }
    free(a.grad);
    free(b.grad);
    free(x);
    free(label);
    rig_close(&rig);
}
END_TEST

TCase *kernels_ctc_tests(void)
{
    TCase *t = tcase_create("ctc");
    int n = kernels_targets_count;
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, pytorch_agrees, 0, n);
    tcase_add_loop_test(t, long_strings_match, 0, n);
    tcase_add_loop_test(t, sure_steps_keep_their_digits, 0, n);
    tcase_add_loop_test(t, very_long_strings_match, 0, n);
    tcase_add_loop_test(t, hopeless_strings_have_a_loss, 0, n);
    tcase_add_loop_test(t, scores_that_are_no_numbers_show, 0, n);
    tcase_add_loop_test(t, strings_that_do_not_fit_have_an_infinite_loss, 0, n);
    tcase_add_loop_test(t, other_threads_and_neighbours_change_no_bit, 0, n);
    return t;
}
