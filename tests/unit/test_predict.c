/*
 * test_predict.c - predictions of a model whose scores are its bias: every sequence
 * once, in the order of the data, with its own length, after softmax or as they are.
 */
#include <math.h>

#include "../cases/data.h"
#include "hdf/hdf.h"
#include "options/options.h"
#include "testing.h"

enum { CLASSES = 3, SEQUENCES = 5, STEPS = 9 };

/* Of 5 sequences; scores are log 1, log 2, log 5, so that softmax gives 1/8, 2/8,
   5/8. */
static const double length[SEQUENCES] = {2, 0, 4, 1, 2};
static const float share[CLASSES] = {0.125f, 0.25f, 0.625f};

static struct rnnd_comm *comm;
static struct rnnd_backend *backend;
static struct rnnd_options opt;
static struct rnnd_dataset *data;
static struct rnnd_model *model;

static void open_task(const char *task)
{
    struct case_data d = {.task = task,
                          .length = length,
                          .sequences = SEQUENCES,
                          .features = 2,
                          .outputs = CLASSES,
                          .seed = 1};
    static const float bias[CLASSES] = {0, 0.6931472f, 1.609438f};
    static const float zero[CLASSES * 4];
    struct rnnd_model_spec spec;
    must(case_data_write(in_folder("data.h5"), &d));
    must(rnnd_dataset_open(in_folder("data.h5"), &data));
    must(rnnd_model_spec_from(&opt, rnnd_dataset_info(data), &spec));
    must(rnnd_model_new(backend, &spec, &model));
    must(rnnd_model_init(model, 1));
    must(rnnd_model_set(model, "head.weight", zero));
    must(rnnd_model_set(model, "head.bias", bias));
}

static void set_up(void)
{
    make_folder();
    must(rnnd_options_init(&opt));
    must(rnnd__options_set(&opt, "out", in_folder("p.h5"), RNND_FROM_COMMAND_LINE));
    must(rnnd__options_set(&opt, "csv", in_folder("p.csv"), RNND_FROM_COMMAND_LINE));
    opt.hidden = 4;
    opt.batch = 2;
    must(rnnd_comm_open(10, &comm));
    must(rnnd_backend_open(&opt, comm, &backend));
}

static void tear_down(void)
{
    rnnd_model_free(model);
    rnnd_dataset_close(data);
    rnnd_backend_close(backend);
    rnnd_comm_close(comm);
    rnnd_options_clear(&opt);
    remove_folder();
}

/* The shape of an object of p.h5, and its values. */
static int64_t read_out(const char *object, struct rnnd__hdf_shape *shape, float *out)
{
    struct rnnd__hdf *file;
    must(rnnd__hdf_open(in_folder("p.h5"), &file));
    must(rnnd__hdf_shape(file, object, shape));
    int64_t rows = shape->dim[0], count = 1;
    for (int d = 0; d < shape->rank; d++)
        count *= shape->dim[d];
    ck_assert_int_le(count, 256);
    must(rnnd__hdf_read(file, object, 0, rows, RNND_F32, out));
    rnnd__hdf_close(file);
    return count;
}

static void check_rows(const float *row, int64_t rows)
{
    for (int64_t i = 0; i < rows * CLASSES; i++)
        ck_assert_float_eq_tol(row[i], share[i % CLASSES], 1e-6);
}

START_TEST(one_row_a_sequence)
{
    struct rnnd__hdf_shape shape;
    float row[256];
    open_task("classify");
    must(rnnd_predict(model, data, comm, &opt));
    ck_assert_int_eq(read_out("/outputs", &shape, row), SEQUENCES * CLASSES);
    ck_assert_int_eq(shape.rank, 2);
    check_rows(row, SEQUENCES);
    const char *csv = content("p.csv");
    ck_assert_ptr_eq(strstr(csv, "sequence,prediction,target,0,1,2\n"), csv);
    for (int i = 0; i < SEQUENCES; i++) { /* class 2 wins, in the order of the data */
        char want[32];
        snprintf(want, sizeof want, "\n%d,2,", i);
        ck_assert_msg(strstr(csv, want) != NULL, "%s", csv);
    }
}
END_TEST

START_TEST(one_row_a_step)
{
    struct rnnd__hdf_shape shape;
    float row[256], offset[16];
    open_task("tag");
    must(rnnd_predict(model, data, comm, &opt));
    ck_assert_int_eq(read_out("/outputs", &shape, row), STEPS * CLASSES);
    check_rows(row, STEPS);
    ck_assert_int_eq(read_out("/offsets", &shape, offset), SEQUENCES + 1);
    for (int i = 0; i < SEQUENCES; i++)
        ck_assert(offset[i + 1] - offset[i] == (float)length[i]);
}
END_TEST

START_TEST(padded_to_one_length)
{
    struct rnnd__hdf_shape shape;
    float row[256];
    open_task("tag");
    opt.pad = 6;
    must(rnnd_predict(model, data, comm, &opt));
    ck_assert_int_eq(read_out("/outputs", &shape, row), SEQUENCES * 6 * CLASSES);
    ck_assert_int_eq(shape.rank, 3);
    for (int i = 0; i < SEQUENCES; i++) {
        int64_t own = (int64_t)length[i];
        const float *from = row + (int64_t)i * 6 * CLASSES;
        check_rows(from, own);
        for (int64_t k = own * CLASSES; k < 6 * CLASSES; k++)
            ck_assert(from[k] == 0);
    }
    opt.pad = 3; /* the longest has 4 */
    must_fail(RNND_EUSAGE, rnnd_predict(model, data, comm, &opt));
}
END_TEST

START_TEST(raw_scores)
{
    struct rnnd__hdf_shape shape;
    float row[256];
    open_task("classify");
    opt.raw = true;
    must(rnnd_predict(model, data, comm, &opt));
    read_out("/outputs", &shape, row);
    for (int i = 0; i < SEQUENCES * CLASSES; i++)
        ck_assert_float_eq_tol(row[i], logf(8 * share[i % CLASSES]), 1e-6);
}
END_TEST

/* States of an empty sequence are zero; [N,L*D,H]. */
START_TEST(final_states)
{
    struct rnnd__hdf_shape shape;
    float h[256];
    open_task("classify");
    opt.states = true;
    must(rnnd_predict(model, data, comm, &opt));
    ck_assert_int_eq(read_out("/states/h", &shape, h), SEQUENCES * 4);
    for (int i = 0; i < SEQUENCES; i++) {
        bool any = false;
        for (int k = 0; k < 4; k++)
            any = any || h[4 * i + k] != 0;
        ck_assert_msg(any == (length[i] > 0), "sequence %d", i);
    }
}
END_TEST

/* Row `row` of p.csv, from 0, the header line included; valid until the next call. */
static const char *csv_row(int row)
{
    static char line[512];
    const char *at = content("p.csv");
    for (; row > 0; row--)
        at = strchr(at, '\n') + 1;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

/* The table has each target beside its prediction, empty where there is none. */
START_TEST(targets_are_in_the_table)
{
    static const char *const task[] = {"classify", "tag", "regress", "multilabel"};
    int32_t label[STEPS];
    float value[STEPS * CLASSES];
    open_task(task[_i]);
    bool classes = _i < 2, steps = rnnd_task_is_stepwise(rnnd_dataset_info(data)->task);
    int rows = steps ? STEPS : SEQUENCES;
    opt.raw = true;
    must(rnnd_predict(model, data, comm, &opt));
    must(rnnd_dataset_targets(data, 0, rows, classes ? (void *)label : (void *)value));
    const char *header = classes ? steps ? "sequence,step,prediction,target,0,1,2"
                                         : "sequence,prediction,target,0,1,2"
                         : steps ? "sequence,step,target0,target1,target2,output0"
                                 : "sequence,target0,target1,target2,output0";
    ck_assert_msg(begins(csv_row(0), header), "%s", csv_row(0));
    for (int row = 0, sequence = 0, step = 0; row < rows; row++) {
        char want[160];
        int n;
        while (steps && step >= length[sequence]) {
            sequence++;
            step = 0;
        }
        n = steps ? snprintf(want, sizeof want, "%d,%d,", sequence, step++)
                  : snprintf(want, sizeof want, "%d,", row);
        const float *v = value + (size_t)row * CLASSES;
        if (classes && label[row] >= 0)
            snprintf(want + n, sizeof want - (size_t)n, "2,%d,", label[row]);
        else if (classes)
            snprintf(want + n, sizeof want - (size_t)n, "2,,");
        else if (!isnan(v[0] + v[1] + v[2]))
            snprintf(want + n, sizeof want - (size_t)n, "%.9g,%.9g,%.9g,", (double)v[0],
                     (double)v[1], (double)v[2]);
        ck_assert_msg(begins(csv_row(row + 1), want), "%s: %s", want, csv_row(row + 1));
    }
}
END_TEST

/* If one file cannot be written, none is left. */
START_TEST(nothing_is_left_of_a_failure)
{
    open_task("classify");
    must(rnnd__options_set(&opt, "csv", in_folder("none/p.csv"),
                           RNND_FROM_COMMAND_LINE));
    must_fail(RNND_EFILE, rnnd_predict(model, data, comm, &opt));
    ck_assert_int_eq(count_files("p."), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("predict");
    TCase *tests = tcase_create("predict");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, one_row_a_sequence);
    tcase_add_test(tests, one_row_a_step);
    tcase_add_test(tests, padded_to_one_length);
    tcase_add_test(tests, raw_scores);
    tcase_add_test(tests, final_states);
    tcase_add_loop_test(tests, targets_are_in_the_table, 0, 4);
    tcase_add_test(tests, nothing_is_left_of_a_failure);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
