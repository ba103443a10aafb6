/*
 * test_ctc.c - label strings: read and refused, those that do not fit or that a model
 * does not know, packed into batches; strings from scores, and their distance.
 */
#include <math.h>

#include "base/random.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/strings.h"
#include "evaluate/beam.h"
#include "evaluate/decode.h"
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

/* ---- decoding */

START_TEST(best_paths)
{
    /* blank 2 2 blank 2 1 (1 and 2 tie) nothing */
    static const float score[7][3] = {{3, 1, 2},      {0, 1, 2},    {0, 1, 2},
                                      {1, 0, 0},      {-3, -2, -1}, {0, 1, 1},
                                      {NAN, NAN, NAN}};
    const float *row[7];
    int32_t label[7];
    for (int t = 0; t < 7; t++)
        row[t] = score[t];
    ck_assert_int_eq(rnnd__decode_best(row, 7, 3, label), 3);
    ck_assert_mem_eq(label, ((int32_t[]){1, 1, 0}), 12);
    ck_assert_int_eq(rnnd__decode_best(row, 0, 3, label), 0);
}
END_TEST

/* The string of a path, as a number in base 4, each label plus 1. */
static int spell(const int *path, int T)
{
    int word = 0, before = 0;
    for (int t = 0; t < T; t++) {
        if (path[t] != 0 && path[t] != before)
            word = 4 * word + path[t];
        before = path[t];
    }
    return word;
}

/* The most probable string, by all paths. */
static int best_of_all(const float *const *row, int T)
{
    static double sum[1 << 12];
    int paths = 1, best = 0;
    memset(sum, 0, sizeof sum);
    for (int t = 0; t < T; t++)
        paths *= 3;
    for (int i = 0; i < paths; i++) {
        int path[6], rest = i;
        double log_p = 0;
        for (int t = 0; t < T; t++, rest /= 3) {
            path[t] = rest % 3;
            log_p += (double)row[t][path[t]];
        }
        sum[spell(path, T)] += exp(log_p);
    }
    for (int word = 0; word < 1 << 12; word++)
        best = sum[word] > sum[best] ? word : best;
    return best;
}

static int as_word(const int32_t *label, int64_t count)
{
    int word = 0;
    for (int64_t i = 0; i < count; i++)
        word = 4 * word + label[i] + 1;
    return word;
}

/* With room for every prefix the search finds what the sum over all paths says; often
   that is not the string of the best path. */
START_TEST(wide_beams_find_the_best_string)
{
    struct rnnd__beam *beam, *narrow;
    int other = 0;
    must(rnnd__beam_new(200, 3, &beam));
    must(rnnd__beam_new(1, 3, &narrow));
    for (int k = 0; k < 300; k++) {
        float score[6][3];
        const float *row[6];
        int32_t label[6];
        int64_t count;
        int T = k % 7;
        for (int t = 0; t < T; t++) {
            struct rnnd__random r = rnnd__philox(5, (uint32_t)k, (uint32_t)t, 0, 0);
            for (int i = 0; i < 3; i++)
                score[t][i] = (float)(2 * rnnd__uniform(r.word[i]));
            row[t] = score[t];
        }
        int best = best_of_all(row, T);
        must(rnnd__beam_search(beam, row, T, label, &count));
        ck_assert_int_eq(as_word(label, count), best);
        must(rnnd__beam_search(narrow, row, T, label, &count));
        ck_assert_int_le(count, T);
        count = rnnd__decode_best(row, T, 3, label);
        other += as_word(label, count) != best;
    }
    ck_assert_int_gt(other, 50);
    rnnd__beam_free(beam);
    rnnd__beam_free(narrow);
}
END_TEST

START_TEST(distances)
{
    static const int32_t a[] = {1, 2, 3, 4}, b[] = {1, 3, 4, 4, 5}, unknown = -1;
    int64_t work[6];
    ck_assert_int_eq(rnnd__decode_distance(a, 4, a, 4, work), 0);
    ck_assert_int_eq(rnnd__decode_distance(a, 4, b, 5, work), 3);
    ck_assert_int_eq(rnnd__decode_distance(b, 5, a, 4, work), 3);
    ck_assert_int_eq(rnnd__decode_distance(a, 4, b, 0, work), 4);
    ck_assert_int_eq(rnnd__decode_distance(a, 0, b, 5, work), 5);
    ck_assert_int_eq(rnnd__decode_distance(a, 1, &unknown, 1, work), 1);
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
    tcase_add_test(t, best_paths);
    tcase_add_test(t, wide_beams_find_the_best_string);
    tcase_add_test(t, distances);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
