/*
 * test_ctc.c - label strings: read and refused, those that do not fit or that a model
 * does not know, packed into batches.
 */
#include "data/batch.h"
#include "data/dataset.h"
#include "data/strings.h"
#include "testing.h"

/* ---- a data set of five sequences */

static const int64_t offsets[] = {0, 3, 3, 6, 8, 8};
/* 0 0; nothing; 2 1 0; 1 1, which needs 3 of 2 steps; 1, which needs one of none */
static const int64_t string_offsets[] = {0, 2, 2, 5, 7, 8};
static const int32_t labels[] = {0, 0, 2, 1, 0, 1, 1, 1};

struct strings {
    const int64_t *offsets;
    int64_t offset_count;
    const int32_t *labels;
    int64_t label_count;
    int64_t classes;
};
static const struct strings good = {string_offsets, 6, labels, 8, 3};

static void make_set(const struct strings *s)
{
    static const char *const names[] = {"x", "y", "z"};
    struct rnnd__hdf *f;
    float x[8][2] = {{0}};
    int64_t count = 6, dim[] = {8, 2};
    must(rnnd__hdf_create(in_folder("d.h5"), &f));
    must(rnnd__hdf_set_string(f, "format", "rnn_dist-data"));
    must(rnnd__hdf_set_int(f, "version", 1));
    must(rnnd__hdf_set_string(f, "task", "ctc"));
    if (s->classes)
        must(rnnd__hdf_set_int(f, "num_classes", s->classes));
    for (int t = 0; t < 8; t++)
        x[t][0] = (float)t;
    must(rnnd__hdf_write(f, "/offsets", RNND_I64, 1, &count, false, offsets));
    must(rnnd__hdf_write(f, "/inputs", RNND_F32, 2, dim, false, x));
    if (s->labels)
        must(rnnd__hdf_write(f, "/targets", RNND_I32, 1, &s->label_count, false,
                             s->labels));
    if (s->offsets)
        must(rnnd__hdf_write(f, "/target_offsets", RNND_I64, 1, &s->offset_count, false,
                             s->offsets));
    if (s->classes == 3)
        must(rnnd__hdf_write_strings(f, "/classes", names, 3));
    must(rnnd__hdf_commit(f));
}

static struct rnnd_dataset *opened(const struct strings *s)
{
    struct rnnd_dataset *data;
    make_set(s);
    must(rnnd_dataset_open(in_folder("d.h5"), &data));
    return data;
}

static void refused(const struct strings *s, const char *why)
{
    struct rnnd_dataset *data = NULL;
    make_set(s);
    must_fail(RNND_EDATA, rnnd_dataset_open(in_folder("d.h5"), &data));
    ck_assert_str_eq(rest_of_detail(), why);
}

/* ---- reading */

/* Strings are in memory, wherever the inputs are. */
START_TEST(strings_are_read)
{
    static const int64_t keeps[] = {1 << 20, 0};
    static const enum rnnd__string_kind kinds[] = {
        RNND__STRING_TARGET, RNND__STRING_TARGET, RNND__STRING_TARGET,
        RNND__STRING_UNREACHABLE, RNND__STRING_UNREACHABLE};
    for (int k = 0; k < 2; k++) {
        rnnd__dataset_keep = keeps[k];
        struct rnnd_dataset *data = opened(&good);
        const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
        int32_t all[8];
        ck_assert(rnnd_dataset_in_memory(data) == (k == 0));
        ck_assert_int_eq(info->task, RNND_CTC);
        ck_assert_int_eq(info->outputs, 4);
        ck_assert_int_eq(info->targets, 3);
        ck_assert_int_eq(info->unreachable, 2);
        ck_assert_int_eq(info->longest_string, 3);
        ck_assert_mem_eq(rnnd_dataset_target_offsets(data), string_offsets,
                         sizeof string_offsets);
        must(rnnd_dataset_targets(data, 0, 8, all));
        ck_assert_mem_eq(all, labels, sizeof labels);
        ck_assert_str_eq(rnnd_dataset_class(data, 2), "z");
        for (int64_t i = 0; i < 5; i++) {
            int64_t count;
            const int32_t *label = rnnd__string_of(data, i, &count);
            ck_assert_int_eq(count, string_offsets[i + 1] - string_offsets[i]);
            ck_assert_mem_eq(label, labels + string_offsets[i], (size_t)count * 4);
            ck_assert_int_eq(rnnd__string_kind(data, i), kinds[i]);
        }
        rnnd_dataset_close(data);
    }
    rnnd__dataset_keep = keeps[0];
}
END_TEST

/* Another cut of the same labels is another data set. */
START_TEST(strings_are_in_the_fingerprint)
{
    static const int64_t other[] = {0, 2, 2, 5, 8, 8};
    struct strings s = good;
    struct rnnd_dataset *data = opened(&s);
    uint64_t print = rnnd_dataset_info(data)->fingerprint;
    rnnd_dataset_close(data);
    s.offsets = other;
    data = opened(&s);
    ck_assert(rnnd_dataset_info(data)->fingerprint != print);
    rnnd_dataset_close(data);
}
END_TEST

START_TEST(bad_strings)
{
    static const int64_t late[] = {1, 2, 2, 5, 7, 8}, back[] = {0, 2, 1, 5, 7, 8},
                         far[] = {0, 2, 2, 5, 9, 9}, few[] = {0, 2, 2, 5, 7, 7};
    static const int32_t high[] = {0, 0, 2, 1, 3, 1, 1, 1},
                         none[] = {0, 0, 2, 1, 0, 1, -1, 1};
    struct strings s = good;
    s.offsets = NULL;
    refused(&s,
            "d.h5: /target_offsets: missing, required by task ctc: where the labels "
            "of each sequence begin in /targets");
    s.offsets = string_offsets;
    s.offset_count = 5;
    refused(&s, "d.h5: /target_offsets: expected one dimension of 6 values, one more "
                "than sequences");
    s.offset_count = 6;
    s.offsets = late;
    refused(&s, "d.h5: /target_offsets[0] = 1, expected 0");
    s.offsets = back;
    refused(&s, "d.h5: /target_offsets[2] = 1: less than /target_offsets[1] = 2");
    s.offsets = far;
    refused(&s, "d.h5: /target_offsets[4] = 9: /targets has only 8 labels");
    s.offsets = few;
    refused(&s, "d.h5: /target_offsets[5] = 7, expected 8, the number of labels");
    s = good;
    s.labels = high;
    refused(&s,
            "d.h5: /targets[4] = 3: labels are 0 to 2 (num_classes 3); the blank is "
            "not among them");
    s.labels = none;
    refused(&s, "d.h5: /targets[6] = -1: labels are 0 to 2 (num_classes 3); the blank "
                "is not among them");
    s.labels = NULL;
    refused(&s, "d.h5: /targets: missing, required by task ctc (task none is for "
                "unlabelled data)");
}
END_TEST

START_TEST(strings_that_do_not_fit)
{
    struct rnnd_dataset *data = opened(&good);
    must(rnnd_dataset_check_strings(data, RNND_UNREACHABLE_SKIP));
    must_fail(RNND_EDATA, rnnd_dataset_check_strings(data, RNND_UNREACHABLE_STOP));
    ck_assert_str_eq(rest_of_detail(),
                     "d.h5: 2 of 5 label strings do not fit into their sequences; the "
                     "first, of sequence 3, has 2 labels and needs 3 steps, but there "
                     "are 2 (--on-unreachable stop)");
    rnnd_dataset_close(data);
}
END_TEST

/* ---- models */

static struct rnnd_model *model_of(struct rnnd_backend *be, char *const *names,
                                   int64_t classes)
{
    struct rnnd_model_spec spec = {.task = RNND_CTC,
                                   .cell = RNND_GRU,
                                   .inputs = 2,
                                   .hidden = 4,
                                   .layers = 1,
                                   .outputs = classes + 1};
    struct rnnd_model *model;
    must(rnnd_model_new(be, &spec, &model));
    must(rnnd_model_set_names(model, RNND_AXIS_CLASS, names, classes));
    return model;
}

static struct rnnd_backend *cpu(void)
{
    struct rnnd__backend_config config = {1, 0, RNND_FP32, 0};
    struct rnnd_backend *be;
    ck_assert_int_eq(rnnd__cpu_open(&config, &be, (char[256]){0}), 0);
    return be;
}

/* The model numbers the classes in another order and does not know x. */
START_TEST(names_number_labels)
{
    char *names[] = {"z", "y"};
    struct rnnd_backend *be = cpu();
    struct rnnd_model *model = model_of(be, names, 2);
    struct rnnd_dataset *data = opened(&good);
    must_fail(RNND_EDATA, rnnd_model_match(model, data, true, true));
    rnnd_dataset_close(data);
    data = opened(&good);
    must_fail(RNND_EDATA, rnnd_model_set_names(model, RNND_AXIS_CLASS, names, 1));
    must(rnnd_model_match(model, data, true, false));
    const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
    ck_assert_int_eq(info->outputs, 3);
    ck_assert_int_eq(info->targets, 1);
    ck_assert_int_eq(info->unknown_targets, 2);
    ck_assert_int_eq(info->unreachable, 2);
    int64_t count;
    const int32_t *label = rnnd__string_of(data, 2, &count);
    ck_assert_mem_eq(label, ((int32_t[]){0, 1, -1}), 12);
    rnnd_dataset_close(data);
    rnnd_model_free(model);
    rnnd_backend_close(be);
}
END_TEST

/* Sequences are packed by falling length; class k is output k+1. */
START_TEST(batches_hold_strings)
{
    struct rnnd_backend *be = cpu();
    struct rnnd_dataset *data = opened(&good);
    struct rnnd_batch *batch;
    must(rnnd_batch_new(be, data, true, NULL, NULL, &batch));
    must(rnnd_batch_load_sequences(batch, (int32_t[]){4, 1, 3, 2, 0}, 5));
    ck_assert_mem_eq(batch->sequence, ((int64_t[]){0, 2, 3, 1, 4}), 40);
    ck_assert_mem_eq(batch->count, ((int32_t[]){2, 3, -1, 0, -1}), 20);
    ck_assert_mem_eq(batch->label + batch->first[0], ((int32_t[]){1, 1}), 8);
    ck_assert_mem_eq(batch->label + batch->first[1], ((int32_t[]){3, 2, 1}), 12);
    ck_assert_int_eq(batch->strings.longest, 3);
    rnnd_batch_free(batch);
    rnnd_dataset_close(data);
    rnnd_backend_close(be);
}
END_TEST

/* An empty string in an empty sequence has the loss 0, and counts. */
START_TEST(nothing_is_a_target)
{
    struct rnnd_backend *be = cpu();
    struct rnnd_model *model = model_of(be, NULL, 3);
    struct rnnd_dataset *data = opened(&good);
    struct rnnd_batch *batch;
    struct rnnd_loss_sums *sums;
    struct rnnd_loss loss;
    static const struct rnnd_pass pass;
    must(rnnd_model_init(model, 1));
    must(rnnd_loss_sums_new(be, &sums));
    must(rnnd_batch_new(be, data, true, NULL, NULL, &batch));
    must(rnnd_batch_load_sequences(batch, (int32_t[]){1}, 1));
    must(rnnd_model_gradient(model, batch, &pass, sums));
    must(rnnd_model_evaluate(model, batch, &pass, sums));
    must(rnnd_loss_sums_take(sums, &loss));
    ck_assert(loss.loss == 0 && loss.targets == 2 && loss.weight == 2);
    rnnd_batch_free(batch);
    rnnd_loss_sums_free(sums);
    rnnd_dataset_close(data);
    rnnd_model_free(model);
    rnnd_backend_close(be);
}
END_TEST

START_TEST(strings_have_no_weights)
{
    struct rnnd_backend *be = cpu();
    struct rnnd_model *model = model_of(be, NULL, 3);
    must_fail(RNND_EUSAGE, rnnd_model_weigh(model, (float[]){1, 2, 3}, 0));
    ck_assert_str_eq(rnnd_status_detail(), "the loss of task ctc has no class weights");
    must_fail(RNND_EUSAGE, rnnd_model_weigh(model, NULL, 0.1));
    ck_assert_str_eq(rnnd_status_detail(),
                     "the loss of task ctc has no label smoothing");
    must(rnnd_model_weigh(model, NULL, 0));
    rnnd_model_free(model);
    rnnd_backend_close(be);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctc");
    TCase *t = tcase_create("ctc");
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, strings_are_read);
    tcase_add_test(t, strings_are_in_the_fingerprint);
    tcase_add_test(t, bad_strings);
    tcase_add_test(t, strings_that_do_not_fit);
    tcase_add_test(t, names_number_labels);
    tcase_add_test(t, batches_hold_strings);
    tcase_add_test(t, nothing_is_a_target);
    tcase_add_test(t, strings_have_no_weights);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
