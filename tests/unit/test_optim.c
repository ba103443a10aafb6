/*
 * test_optim.c - clipping, skipping and learning rates, against numbers worked out by
 * hand.
 *
 * The optimizers' own arithmetic is compared with PyTorch in test_golden.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "base/status.h"
#include "device/device.h"
#include "model/params.h"
#include "optim/optim.h"

static struct rnnd_backend *be;
static struct rnnd_model *model;
static struct rnnd_options opt;

static void open_all(void)
{
    struct rnnd__backend_config config = {.threads = 1, .precision = RNND_FP32};
    struct rnnd_model_spec spec = {.task = RNND_REGRESS,
                                   .cell = RNND_RNN_TANH,
                                   .inputs = 1,
                                   .hidden = 1,
                                   .layers = 1,
                                   .outputs = 1};
    char error[256];
    ck_assert_int_eq(rnnd__cpu_open(&config, &be, error), 0);
    ck_assert_int_eq(rnnd_model_new(be, &spec, &model), 0);
    ck_assert_int_eq(rnnd_options_init(&opt), 0);
    opt.optimizer = RNND_SGD;
    opt.lr = 1;
}

static void close_all(void)
{
    rnnd_options_clear(&opt);
    rnnd_model_free(model);
    rnnd_backend_close(be);
}

/* The elements of head.weight and head.bias are a gradient of two. */
static void set_gradient(float a, float b)
{
    const struct rnnd__params *p = rnnd__model_params(model);
    be->ops->upload(be, rnnd__at(p->grad, rnnd__params_find(p, "head.weight")->offset),
                    &a, 4);
    be->ops->upload(be, rnnd__at(p->grad, rnnd__params_find(p, "head.bias")->offset),
                    &b, 4);
}

static void values(float *a, float *b)
{
    ck_assert_int_eq(rnnd_model_get(model, "head.weight", a), 0);
    ck_assert_int_eq(rnnd_model_get(model, "head.bias", b), 0);
}

/* Case 30: gradients (3,0) and (0,4) of two targets: mean (1.5,2), norm 2.5, clipped to
   1 is (0.6,0.8). Clipping before the mean would give (0.5,0.5). */
START_TEST(clips_the_mean_of_all)
{
    struct rnnd_optim *o;
    struct rnnd_loss loss = {1, 2, 0, 2};
    double norm;
    float a, b;
    opt.clip_norm = 1;
    ck_assert_int_eq(rnnd_optim_new(model, &opt, &o), 0);
    set_gradient(3, 4);
    ck_assert_int_eq(rnnd_optim_step(o, &loss, 1, &norm), 0);
    values(&a, &b);
    ck_assert_double_eq_tol(norm, 2.5, 1e-12);
    ck_assert_double_eq_tol(a, -0.6, 1e-6);
    ck_assert_double_eq_tol(b, -0.8, 1e-6);
    rnnd_optim_free(o);
}
END_TEST

START_TEST(leaves_a_short_gradient_alone)
{
    struct rnnd_optim *o;
    struct rnnd_loss loss = {1, 2, 0, 2};
    double norm;
    float a, b;
    opt.clip_norm = 2.6;
    ck_assert_int_eq(rnnd_optim_new(model, &opt, &o), 0);
    set_gradient(3, 4);
    ck_assert_int_eq(rnnd_optim_step(o, &loss, 0.5, &norm), 0);
    values(&a, &b);
    ck_assert(a == -0.75f && b == -1);
    rnnd_optim_free(o);
}
END_TEST

/* Without a target nothing moves, not even by decay. */
START_TEST(no_targets_no_change)
{
    struct rnnd_optim *o;
    struct rnnd_loss none = {0, 0, 0, 0}, some = {1, 1, 0, 1};
    double norm = 7;
    float a, b;
    opt.weight_decay = 0.5;
    opt.momentum = 0.9;
    ck_assert_int_eq(rnnd_optim_new(model, &opt, &o), 0);
    ck_assert_int_eq(rnnd_model_set(model, "head.weight", &(float){2}), 0);
    set_gradient(0, 0);
    ck_assert_int_eq(rnnd_optim_step(o, &none, 1, &norm), 0);
    ck_assert(norm == 0);
    ck_assert_int_eq(rnnd__optim_step_count(o), 0);
    values(&a, &b);
    ck_assert(a == 2 && b == 0);
    ck_assert_int_eq(rnnd_optim_step(o, &some, 1, &norm), 0);
    values(&a, &b);
    ck_assert(a == 1); /* decay alone: 2 - 1 * 0.5 * 2 */
    rnnd_optim_free(o);
}
END_TEST

static const struct {
    float gradient;
    double loss;
    const char *what;
} bad[] = {{INFINITY, 1, "gradient"},
           {NAN, 1, "gradient"},
           {1, NAN, "loss"},
           {1, INFINITY, "loss"}};

/* Case 33: a number that is not finite changes no parameter and no moment. */
START_TEST(refuses_what_is_not_finite)
{
    struct rnnd_optim *o;
    struct rnnd_loss loss = {bad[_i].loss, 1, 0, 1}, good = {1, 1, 0, 1};
    double norm;
    float a, b;
    opt.momentum = 0.9;
    ck_assert_int_eq(rnnd_optim_new(model, &opt, &o), 0);
    set_gradient(bad[_i].gradient, 1);
    ck_assert_int_eq(rnnd_optim_step(o, &loss, 1, &norm), RNND_ENONFINITE);
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), bad[_i].what));
    values(&a, &b);
    ck_assert(a == 0 && b == 0);
    set_gradient(1, 1);
    ck_assert_int_eq(rnnd_optim_step(o, &good, 1, &norm), 0);
    values(&a, &b);
    ck_assert(a == -1 && b == -1);
    rnnd_optim_free(o);
}
END_TEST

/* ---- a sparse embedding */

enum { ROWS = 6, WIDTH = 5 };

/* Bits of the table and of its moments. */
struct table {
    float value[ROWS * WIDTH], moment[2][ROWS * WIDTH];
};

static void look_at_table(struct rnnd_model *m, const struct rnnd_optim *o,
                          struct table *t)
{
    int64_t at = rnnd__params_find(rnnd__model_params(m), "embed.weight")->offset;
    ck_assert_int_eq(rnnd_model_get(m, "embed.weight", t->value), 0);
    for (int i = 0; i < rnnd__optim_moments(o); i++)
        ck_assert_int_eq(be->ops->download(be, t->moment[i],
                                           rnnd__at(rnnd__optim_moment(o, i), at),
                                           sizeof t->moment[i]),
                         0);
}

/* Rows of gradient 0.5 each, as backward passes of two micro-batches list them. */
static void touch(struct rnnd_model *m, const int32_t *row, int count)
{
    const struct rnnd__params *p = rnnd__model_params(m);
    struct rnnd__touched *t = rnnd__model_touched(m);
    static const float half[WIDTH] = {.5f, .5f, .5f, .5f, .5f};
    rnnd_model_zero_gradient(m);
    for (int i = 0; i < count; i++) {
        int64_t at = t->begin + row[i] * t->cols;
        ck_assert_int_eq(rnnd__touched_add(t, &row[i], 1), 0);
        be->ops->upload(be, rnnd__at(p->grad, at), half, sizeof half);
    }
}

static bool same_row(const float *a, const float *b, int row)
{
    return memcmp(a + row * WIDTH, b + row * WIDTH, WIDTH * sizeof *a) == 0;
}

/* A row that an update does not touch keeps its bits, and those of its moments, though
   these are not zero from an update before; the gradient of an earlier update is gone.
   A row that is listed twice is updated once, and counts once in the norm. */
START_TEST(leaves_untouched_rows_alone)
{
    static const enum rnnd_optimizer kinds[] = {RNND_SGD, RNND_ADAM, RNND_ADAMW};
    struct rnnd_model_spec spec = {.task = RNND_TAG,
                                   .cell = RNND_LSTM,
                                   .vocab = ROWS,
                                   .embed = WIDTH,
                                   .hidden = 3,
                                   .layers = 1,
                                   .outputs = 2};
    struct rnnd_loss loss = {1, 1, 0, 1};
    struct rnnd_model *m;
    struct rnnd_optim *o;
    struct table before = {{0}, {{0}}}, after = {{0}, {{0}}};
    double norm;
    opt.optimizer = kinds[_i];
    opt.momentum = 0.9;
    ck_assert_int_eq(rnnd_model_new(be, &spec, &m), 0);
    ck_assert_int_eq(rnnd_model_init(m, 1), 0);
    rnnd__model_touch_rows(m);
    ck_assert_int_eq(rnnd_optim_new(m, &opt, &o), 0);
    touch(m, (const int32_t[]){1, 3, 4}, 3);
    ck_assert_int_eq(rnnd_optim_step(o, &loss, 0.1, &norm), 0);
    look_at_table(m, o, &before);
    touch(m, (const int32_t[]){4, 5, 4, 0}, 4);
    ck_assert_int_eq(rnnd_optim_step(o, &loss, 0.1, &norm), 0);
    ck_assert_double_eq_tol(norm, sqrt(0.25 * 3 * WIDTH), 1e-12);
    look_at_table(m, o, &after);
    for (int row = 0; row < ROWS; row++) {
        bool same = row >= 1 && row <= 3;
        ck_assert(same_row(before.value, after.value, row) == same);
        for (int i = 0; i < rnnd__optim_moments(o); i++)
            ck_assert(same_row(before.moment[i], after.moment[i], row) == same);
    }
    rnnd_optim_free(o);
    rnnd_model_free(m);
}
END_TEST

/* ---- learning rates */

static double rate_at(int64_t update, int64_t epoch, double part, double factor)
{
    struct rnnd__schedule_point at = {update, epoch, part, factor};
    return rnnd__learning_rate(&opt, &at);
}

START_TEST(step_schedule)
{
    opt.lr_schedule = RNND_STEP_LR;
    opt.lr_step = 3;
    opt.lr_decay = 0.1;
    ck_assert_double_eq_tol(rate_at(0, 0, 0, 1), 1, 1e-15);
    ck_assert_double_eq_tol(rate_at(9, 2, 0.9, 1), 1, 1e-15);
    ck_assert_double_eq_tol(rate_at(9, 3, 0, 1), 0.1, 1e-15);
    ck_assert_double_eq_tol(rate_at(9, 6, 0, 1), 0.01, 1e-15);
}
END_TEST

START_TEST(cosine_schedule)
{
    opt.lr_schedule = RNND_COSINE_LR;
    opt.epochs = 4;
    ck_assert_double_eq_tol(rate_at(0, 0, 0, 1), 1, 1e-15);
    ck_assert_double_eq_tol(rate_at(9, 1, 0, 1), (1 + sqrt(0.5)) / 2, 1e-15);
    ck_assert_double_eq_tol(rate_at(9, 1, 0.5, 1), (1 + cos(M_PI * 1.5 / 4)) / 2,
                            1e-15);
    opt.max_updates = 10;
    ck_assert_double_eq_tol(rate_at(5, 1, 0.5, 1), 0.5, 1e-15);
    ck_assert_double_eq_tol(rate_at(20, 1, 0.5, 1), 0, 1e-15);
}
END_TEST

START_TEST(warmup_multiplies)
{
    opt.warmup = 4;
    ck_assert_double_eq_tol(rate_at(0, 0, 0, 1), 0.25, 1e-15);
    ck_assert_double_eq_tol(rate_at(2, 0, 0, 1), 0.75, 1e-15);
    ck_assert_double_eq_tol(rate_at(3, 0, 0, 1), 1, 1e-15);
    ck_assert_double_eq_tol(rate_at(99, 0, 0, 1), 1, 1e-15);
    opt.lr_schedule = RNND_PLATEAU_LR;
    ck_assert_double_eq_tol(rate_at(0, 0, 0, 0.5), 0.125, 1e-15);
}
END_TEST

/* Patience 2: the first epoch is a gain; two epochs without one end it. */
START_TEST(watch_counts_epochs_without_gain)
{
    static const double loss[] = {5, 5, 4, 4.5, 4};
    static const bool ends[] = {false, false, false, false, true};
    struct rnnd__watch w = {INFINITY, 0};
    for (int e = 0; e < 5; e++)
        ck_assert_int_eq(rnnd__watch_epoch(&w, loss[e], 0, 2), ends[e]);
    ck_assert(w.best == 4);
}
END_TEST

/* The plateau wants a relative gain of 1e-4; patience takes any. NaN is no gain. */
START_TEST(watch_measures_gains)
{
    struct rnnd__watch plateau = {INFINITY, 0}, patience = {INFINITY, 0},
                       nan = {INFINITY, 0};
    rnnd__watch_epoch(&plateau, 1, 1e-4, 9);
    rnnd__watch_epoch(&plateau, 0.99995, 1e-4, 9);
    ck_assert_int_eq(plateau.count, 1);
    rnnd__watch_epoch(&plateau, 0.9998, 1e-4, 9);
    ck_assert_int_eq(plateau.count, 0);
    rnnd__watch_epoch(&patience, 1, 0, 9);
    rnnd__watch_epoch(&patience, 0.99995, 0, 9);
    ck_assert_int_eq(patience.count, 0);
    rnnd__watch_epoch(&nan, NAN, 0, 9);
    ck_assert_int_eq(nan.count, 1);
    rnnd__watch_epoch(&nan, 3, 0, 9);
    ck_assert_int_eq(nan.count, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("optim");
    TCase *t = tcase_create("step");
    tcase_add_checked_fixture(t, open_all, close_all);
    tcase_add_test(t, clips_the_mean_of_all);
    tcase_add_test(t, leaves_a_short_gradient_alone);
    tcase_add_test(t, no_targets_no_change);
    tcase_add_loop_test(t, refuses_what_is_not_finite, 0, sizeof bad / sizeof *bad);
    tcase_add_loop_test(t, leaves_untouched_rows_alone, 0, 3);
    suite_add_tcase(s, t);
    t = tcase_create("rate");
    tcase_add_checked_fixture(t, open_all, close_all);
    tcase_add_test(t, step_schedule);
    tcase_add_test(t, cosine_schedule);
    tcase_add_test(t, warmup_multiplies);
    tcase_add_test(t, watch_counts_epochs_without_gain);
    tcase_add_test(t, watch_measures_gains);
    suite_add_tcase(s, t);
    return run_suite(s);
}
