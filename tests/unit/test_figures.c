/*
 * test_figures.c - figures of evaluations against scikit-learn's (figures.h5), for rows
 * in any order and in any parts; and those it does not know, by hand.
 */
#include "evaluate/figures.h"

#include <math.h>

#include "evaluate/ranking.h"
#include "hdf/hdf.h"
#include "testing.h"

enum { MOST = 2048 };

static struct rnnd_comm *comm;
static struct rnnd_metrics out;

/* One case of figures.h5. */
static struct {
    enum rnnd_task task;
    int64_t rows, outputs;
    float score[MOST];
    float value[MOST];
    int32_t label[MOST];
    double figure[RNND_FIGURES], table[64], confusion[64];
    int64_t figures, columns;
} c;

static int64_t read_array(struct rnnd__hdf *file, const char *name, const char *array,
                          enum rnnd__hdf_type type, void *to, int64_t *columns)
{
    struct rnnd__hdf_shape shape;
    char object[64];
    snprintf(object, sizeof object, "/%s/%s", name, array);
    *columns = 0;
    if (!rnnd__hdf_has(file, object))
        return 0;
    must(rnnd__hdf_shape(file, object, &shape));
    *columns = shape.rank > 1 ? shape.dim[1] : 1;
    ck_assert_int_le(shape.dim[0] * *columns, MOST);
    must(rnnd__hdf_read(file, object, 0, shape.dim[0], type, to));
    return shape.dim[0];
}

static void read_case(const char *name, enum rnnd_task task)
{
    struct rnnd__hdf *file;
    char path[512];
    int64_t width;
    bool classes = task == RNND_CLASSIFY;
    snprintf(path, sizeof path, "%s/tests/golden/figures.h5", getenv("srcdir"));
    must(rnnd__hdf_open(path, &file));
    c.task = task;
    c.rows = read_array(file, name, "scores", RNND_F32, c.score, &c.outputs);
    ck_assert_int_gt(c.rows, 0);
    read_array(file, name, "targets", classes ? RNND_I32 : RNND_F32,
               classes ? (void *)c.label : c.value, &width);
    c.figures = read_array(file, name, "figures", RNND_F64, c.figure, &width);
    read_array(file, name, "table", RNND_F64, c.table, &c.columns);
    read_array(file, name, "confusion", RNND_F64, c.confusion, &width);
    rnnd__hdf_close(file);
}

/* ---- a run over the rows */

/* The loss and counts that a back end would have summed. */
static struct rnnd_loss loss_of_rows(void)
{
    struct rnnd_loss sum = {0, 0, 0, 0};
    for (int64_t r = 0; r < c.rows; r++) {
        const float *s = c.score + r * c.outputs, *v = c.value + r * c.outputs;
        int64_t best = 0;
        bool target = true;
        double loss = 0;
        for (int64_t k = 0; k < c.outputs; k++) {
            best = s[k] > s[best] ? k : best;
            target = target && (c.task == RNND_CLASSIFY || !isnan(v[k]));
            loss += fmax(s[k], 0) - (double)s[k] * v[k] + log1p(exp(-fabs(s[k])));
        }
        if (c.task == RNND_CLASSIFY)
            target = c.label[r] >= 0;
        if (!target)
            continue;
        sum.targets++;
        sum.loss += c.task == RNND_MULTILABEL ? loss : 0;
        sum.correct += c.task == RNND_CLASSIFY && best == c.label[r];
    }
    return sum;
}

static void add_rows(struct rnnd__figures *f, int64_t first, int64_t end, double *part)
{
    const void *target = c.task == RNND_CLASSIFY ? (const void *)(c.label + first)
                                                 : c.value + first * c.outputs;
    must(rnnd__figures_add(f, end - first, c.score + first * c.outputs, target, part));
}

/* The parts are computed from the last to the first, and added in order. */
static void run_in_parts(int64_t parts)
{
    struct rnnd__figures *f;
    struct rnnd_loss sum = loss_of_rows();
    double *part;
    rnnd_metrics_clear(&out);
    must(rnnd__figures_new(c.task, c.outputs, c.rows, &f));
    int64_t width = rnnd__figures_width(f);
    must(RNND_NEW(&part, parts * width, "parts"));
    for (int64_t k = parts - 1; k >= 0; k--)
        add_rows(f, c.rows * k / parts, c.rows * (k + 1) / parts, part + k * width);
    for (int64_t k = 0; k < parts; k++)
        rnnd__figures_add_part(f, part + k * width);
    must(rnnd__figures_finish(f, comm, &sum, 0, &out));
    rnnd__figures_free(f);
    free(part);
}

static void check(const char *name, double got, double want)
{
    if (isnan(want))
        ck_assert_msg(isnan(got), "%s: %.17g, not NaN", name, got);
    else
        ck_assert_msg(fabs(got - want) <= 1e-9 * fmax(1, fabs(want)), "%s: %.17g %.17g",
                      name, got, want);
}

static void check_table(void)
{
    const struct rnnd_class_table *t = out.table;
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->classes, c.outputs);
    for (int64_t k = 0; k < c.outputs; k++) {
        const struct rnnd_class_figures *row = &t->row[k];
        const double *want = c.table + k * c.columns;
        ck_assert(row->support == want[0]);
        check("precision", row->precision, want[1]);
        check("recall", row->recall, want[2]);
        check("f1", row->f1, want[3]);
        check("auroc", row->auroc, c.columns > 4 ? want[4] : NAN);
        check("average precision", row->average_precision,
              c.columns > 4 ? want[5] : NAN);
        for (int64_t j = 0; j < c.outputs && t->confusion; j++)
            ck_assert(t->confusion[k * c.outputs + j] ==
                      c.confusion[k * c.outputs + j]);
    }
    ck_assert(!t->confusion == (c.task == RNND_MULTILABEL));
}

static void check_case(const char *name, enum rnnd_task task, int figures)
{
    read_case(name, task);
    ck_assert_int_eq(c.figures, figures);
    for (int64_t parts = 1; parts <= 7; parts += 3) {
        run_in_parts(parts);
        ck_assert_int_eq(out.figures, figures);
        for (int k = 0; k < figures; k++)
            check(out.figure[k].name, out.figure[k].value, c.figure[k]);
        ck_assert_str_eq(out.metric, out.figure[0].name);
        ck_assert(out.value == out.figure[0].value ||
                  (isnan(out.value) && isnan(out.figure[0].value)));
        if (task != RNND_REGRESS)
            check_table();
        else
            ck_assert_ptr_null(out.table);
    }
}

START_TEST(as_scikit_learn)
{
    check_case("binary", RNND_CLASSIFY, 5);
    check_case("one_class", RNND_CLASSIFY, 5);
    check_case("classes", RNND_CLASSIFY, 3);
    check_case("answers", RNND_MULTILABEL, 4);
    check_case("values", RNND_REGRESS, 3);
    check_case("constant", RNND_REGRESS, 3);
}
END_TEST

/* Pairs and counts come in the order of ranks, which must not show. */
START_TEST(rows_in_any_order_are_the_same_bits)
{
    static const char *const name[] = {"binary", "answers"};
    for (int i = 0; i < 2; i++) {
        struct rnnd_metrics forth;
        read_case(name[i], i == 0 ? RNND_CLASSIFY : RNND_MULTILABEL);
        run_in_parts(1);
        forth = out;
        for (int64_t r = 0; r < c.rows / 2; r++) {
            int64_t other = c.rows - 1 - r;
            int32_t label = c.label[r];
            c.label[r] = c.label[other];
            c.label[other] = label;
            for (int64_t k = 0; k < c.outputs; k++) {
                float *a = c.score + r * c.outputs + k,
                      *b = c.score + other * c.outputs + k;
                float swap = *a;
                *a = *b;
                *b = swap;
                a = c.value + r * c.outputs + k;
                b = c.value + other * c.outputs + k;
                swap = *a;
                *a = *b;
                *b = swap;
            }
        }
        out.table = NULL;
        run_in_parts(3);
        for (int k = 1; k < out.figures; k++)
            ck_assert_msg(out.figure[k].value == forth.figure[k].value, "%s: %.17g",
                          out.figure[k].name, out.figure[k].value);
        rnnd_metrics_clear(&forth);
    }
}
END_TEST

START_TEST(perplexity_is_in_nats_and_bits)
{
    struct rnnd__figures *f;
    struct rnnd_loss sum = {8 * log(4), 8, 0, 8};
    must(rnnd__figures_new(RNND_LM, 100, 8, &f));
    ck_assert(!rnnd__figures_need_scores(f));
    must(rnnd__figures_finish(f, comm, &sum, 0, &out));
    rnnd__figures_free(f);
    ck_assert_int_eq(out.figures, 3);
    ck_assert_str_eq(out.metric, "perplexity");
    check("perplexity", out.value, 4);
    ck_assert_str_eq(out.figure[1].name, "nats");
    check("nats", out.figure[1].value, log(4));
    ck_assert_str_eq(out.figure[2].name, "bits");
    check("bits", out.figure[2].value, 2);
}
END_TEST

/* Of equal scores the first class wins, as in the loss; a row without a number is
   predicted as nothing. */
START_TEST(ties_and_nan)
{
    static const float score[] = {1, 1, 0, NAN, NAN, NAN, 0, 2, NAN};
    static const int32_t label[] = {0, 1, 1};
    struct rnnd__figures *f;
    struct rnnd_loss sum = {1, 3, 2, 3};
    must(rnnd__figures_new(RNND_TAG, 3, 3, &f));
    must(rnnd__figures_add(f, 3, score, label, NULL));
    must(rnnd__figures_finish(f, comm, &sum, 0, &out));
    rnnd__figures_free(f);
    static const int64_t confusion[] = {1, 0, 0, 0, 1, 0, 0, 0, 0};
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(out.table->confusion[i], confusion[i]);
    ck_assert_int_eq(out.table->row[1].support, 2);
    check("recall", out.table->row[1].recall, 0.5);
}
END_TEST

START_TEST(scores_that_are_no_numbers_have_no_ranking)
{
    static const float score[] = {1, NAN, 0};
    static const unsigned char answer[] = {1, 0, 0};
    struct rnnd__ranking r;
    must(rnnd__ranking_of(score, answer, 3, 1, &r));
    ck_assert(isnan(r.auroc) && isnan(r.average_precision));
    must(rnnd__ranking_of(score, answer, 1, 1, &r));
    ck_assert(isnan(r.auroc) && r.average_precision == 1);
    must(rnnd__ranking_of(score, answer, 2, 2, &r));
    ck_assert(r.auroc == 1 && r.average_precision == 1);
}
END_TEST

/* More scores than are kept: no ranking, and all else as ever. */
START_TEST(rankings_have_a_limit)
{
    read_case("answers", RNND_MULTILABEL);
    rnnd__figures_most_ranked = c.rows * c.outputs - 1;
    run_in_parts(2);
    ck_assert_int_eq(out.figures, 2);
    ck_assert(isnan(out.table->row[0].auroc));
    rnnd__figures_most_ranked++;
    run_in_parts(2);
    ck_assert_int_eq(out.figures, 4);
}
END_TEST

static void set_up(void)
{
    must(rnnd_comm_open(10, &comm));
}

static void tear_down(void)
{
    rnnd_metrics_clear(&out);
    rnnd_comm_close(comm);
    rnnd__figures_most_ranked = (int64_t)1 << 27;
}

int main(void)
{
    Suite *suite = suite_create("figures");
    TCase *tests = tcase_create("figures");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, as_scikit_learn);
    tcase_add_test(tests, rows_in_any_order_are_the_same_bits);
    tcase_add_test(tests, perplexity_is_in_nats_and_bits);
    tcase_add_test(tests, ties_and_nan);
    tcase_add_test(tests, scores_that_are_no_numbers_have_no_ranking);
    tcase_add_test(tests, rankings_have_a_limit);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
