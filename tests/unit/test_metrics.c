/*
 * test_metrics.c - metrics.jsonl: the form of each record, cutting back, the result.
 */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sys/ioctl.h>
#include <time.h>

#include "options/options.h"
#include "record/metrics.h"
#include "record/result.h"
#include "testing.h"

static struct rnnd_options opt;
static struct rnnd__metrics_log *metrics;

static void set_up(void)
{
    make_folder();
    must(rnnd_options_init(&opt));
    must(rnnd__metrics_open(test_folder, &metrics));
}

static void tear_down(void)
{
    rnnd__metrics_close(metrics);
    metrics = NULL;
    rnnd_options_clear(&opt);
    remove_folder();
}

static void must_hold(const char *want)
{
    ck_assert_str_eq(content("metrics.jsonl"), want);
}

/* ---- records: the exact text, keys in the order of the contract */

START_TEST(a_train_record)
{
    struct rnnd__train_record r = {.update = 7,
                                   .epoch = 1,
                                   .loss = 0.1,
                                   .targets = 3,
                                   .weight = 3,
                                   .steps_per_s = 1000,
                                   .lr = 0.001,
                                   .grad_norm = 2.5,
                                   .idle = 0.25,
                                   .straggler = 1};
    must(rnnd__metrics_train(metrics, &r));
    must_hold(
        "{\"event\": \"train\", \"update\": 7, \"epoch\": 1, "
        "\"loss\": 0.10000000000000001, \"targets\": 3, \"steps_per_s\": 1000.0, "
        "\"lr\": 0.001, \"grad_norm\": 2.5, \"idle\": 0.25, \"straggler\": 1.0}\n");
}
END_TEST

/* What divided the loss is told where it is not the number of targets. */
START_TEST(a_weighted_train_record)
{
    struct rnnd__train_record r = {.loss = 0.5, .targets = 3, .weight = 4.5};
    must(rnnd__metrics_train(metrics, &r));
    must_hold("{\"event\": \"train\", \"update\": 0, \"epoch\": 0, \"loss\": 0.5, "
              "\"targets\": 3, \"steps_per_s\": 0.0, \"lr\": 0.0, \"grad_norm\": 0.0, "
              "\"idle\": 0.0, \"straggler\": 0.0, \"weight\": 4.5}\n");
}
END_TEST

START_TEST(non_finite_numbers_are_null)
{
    struct rnnd__train_record r = {
        .loss = NAN, .grad_norm = INFINITY, .lr = -INFINITY, .partial = true};
    struct rnnd__valid_record v = {
        .result = {.loss = NAN, .figures = 1, .figure = {{"perplexity", INFINITY}}}};
    must(rnnd__metrics_train(metrics, &r));
    must(rnnd__metrics_valid(metrics, &v));
    must_hold(
        "{\"event\": \"train\", \"update\": 0, \"epoch\": 0, \"loss\": null, "
        "\"targets\": 0, \"steps_per_s\": 0.0, \"lr\": null, \"grad_norm\": null, "
        "\"idle\": 0.0, \"straggler\": 0.0, \"partial\": true}\n"
        "{\"event\": \"valid\", \"update\": 0, \"epoch\": 0, \"loss\": null, "
        "\"targets\": 0, \"perplexity\": null}\n");
}
END_TEST

START_TEST(the_other_records)
{
    struct rnnd__valid_record v = {
        9,
        2,
        {.loss = 0.5, .targets = 12, .figures = 1, .figure = {{"accuracy", 0.75}}}};
    must(rnnd__metrics_valid(metrics, &v));
    must(rnnd__metrics_save(metrics, 9, "ckpt-0000000009.h5"));
    must(rnnd__metrics_skip(metrics, 10, "no target"));
    must(rnnd__metrics_end(metrics, 75, 11, 1.5));
    must_hold(
        "{\"event\": \"valid\", \"update\": 9, \"epoch\": 2, \"loss\": 0.5, "
        "\"targets\": 12, \"accuracy\": 0.75}\n"
        "{\"event\": \"save\", \"update\": 9, \"file\": \"ckpt-0000000009.h5\"}\n"
        "{\"event\": \"skip\", \"update\": 10, \"reason\": \"no target\"}\n"
        "{\"event\": \"end\", \"status\": 75, \"updates\": 11, \"seconds\": 1.5}\n");
}
END_TEST

START_TEST(the_start_record)
{
    static const char *const devices[] = {"cpu, 2 threads", "cpu, 1 thread"};
    struct rnnd__start_record r = {&opt, 0, 2, devices, 1234};
    must(rnnd__options_set(&opt, "data", "odd \xff \"name\"", RNND_FROM_FILE));
    must(rnnd__options_set(&opt, "normalize", "yes", RNND_FROM_FILE));
    must(rnnd__metrics_start(metrics, &r));
    json_t *record = json_loads(content("metrics.jsonl"), 0, NULL);
    ck_assert_ptr_nonnull(record);
    const char *event, *version, *data, *cell, *device;
    int update, ranks, parameters, hidden, normalize;
    double lr;
    ck_assert_int_eq(
        json_unpack(record,
                    "{s:s, s:i, s:s, s:i, s:i, s:[s, s], s:{s:s, s:i, s:F, s:s, s:b}}",
                    "event", &event, "update", &update, "version", &version, "ranks",
                    &ranks, "parameters", &parameters, "devices", &device, &device,
                    "config", "data", &data, "hidden", &hidden, "lr", &lr, "cell",
                    &cell, "normalize", &normalize),
        0);
    ck_assert(update == 0 && ranks == 2 && parameters == 1234 && hidden == 128);
    ck_assert(lr == 0.001 && normalize);
    ck_assert_str_eq(device, "cpu, 1 thread");
    ck_assert_str_eq(data, "odd ? \"name\"");
    ck_assert_str_eq(cell, "lstm");
    ck_assert_int_eq(strncmp(content("metrics.jsonl"), "{\"event\": \"start\"", 17), 0);
    json_decref(record);
}
END_TEST

START_TEST(opening_again_appends)
{
    must(rnnd__metrics_save(metrics, 1, "a"));
    rnnd__metrics_close(metrics);
    must(rnnd__metrics_open(test_folder, &metrics));
    must(rnnd__metrics_save(metrics, 2, "b"));
    must_hold("{\"event\": \"save\", \"update\": 1, \"file\": \"a\"}\n"
              "{\"event\": \"save\", \"update\": 2, \"file\": \"b\"}\n");
}
END_TEST

START_TEST(a_full_disk_is_a_failure)
{
    struct rnnd__metrics_log *full;
    ck_assert_int_eq(symlink("/dev/full", in_folder("x")), 0);
    ck_assert_int_eq(rename(in_folder("x"), in_folder("metrics.jsonl")), 0);
    must(rnnd__metrics_open(test_folder, &full));
    must_fail(RNND_EFILE, rnnd__metrics_save(full, 1, "a"));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "No space left on device"));
    rnnd__metrics_close(full);
    must_fail(RNND_EFILE, rnnd__metrics_open(in_folder("none"), &full));
}
END_TEST

/* ---- cutting back */

static void put(const char *text)
{
    FILE *file = fopen(in_folder("metrics.jsonl"), "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

#define START_LINE "{\"event\": \"start\", \"update\": 50, \"ranks\": 1}\n"
#define TRAIN_20   "{\"event\": \"train\", \"update\": 20,   \"loss\": 0.1}\n"
#define TRAIN_40   "{\"event\": \"train\", \"update\": 40, \"loss\": 0.2}\n"
#define VALID_40   "{\"event\": \"valid\", \"update\": 40, \"loss\": 0.2}\n"
#define SAVE_40    "{\"event\": \"save\", \"update\": 40}\n"
#define SKIP_45    "{\"event\": \"skip\", \"update\": 45, \"reason\": \"x\"}\n"
#define TRAIN_50   "{\"event\": \"train\", \"update\": 50, \"partial\": true}\n"
#define END_50     "{\"event\": \"end\", \"status\": 75, \"updates\": 50}\n"
#define OTHER      "{\"event\": \"new kind\", \"x\": 1}\n"

START_TEST(records_after_the_update_go)
{
    put(START_LINE TRAIN_20 TRAIN_40 VALID_40 SAVE_40 SKIP_45 TRAIN_50 END_50);
    must(rnnd__metrics_cut(test_folder, 40, 40, NULL));
    must_hold(START_LINE TRAIN_20 TRAIN_40 VALID_40 SAVE_40);
    must(rnnd__metrics_cut(test_folder, 39, 39, NULL));
    must_hold(START_LINE TRAIN_20);
    must(rnnd__metrics_cut(test_folder, 0, 0, NULL));
    must_hold(START_LINE);
    ck_assert_int_eq(count_files("metrics"), 1); /* and no temporary file */
}
END_TEST

START_TEST(a_partial_record_goes_at_its_own_update)
{
    put(START_LINE TRAIN_40 SKIP_45 TRAIN_50 END_50 OTHER);
    must(rnnd__metrics_cut(test_folder, 50, 50, NULL));
    must_hold(START_LINE TRAIN_40 SKIP_45 END_50 OTHER);
}
END_TEST

/* A validation that the checkpoint of its own update does not know is made again. */
START_TEST(an_unknown_validation_goes)
{
    put(TRAIN_20 TRAIN_40 VALID_40 SAVE_40);
    must(rnnd__metrics_cut(test_folder, 40, 40, NULL));
    must_hold(TRAIN_20 TRAIN_40 VALID_40 SAVE_40);
    must(rnnd__metrics_cut(test_folder, 40, 20, NULL));
    must_hold(TRAIN_20 TRAIN_40 SAVE_40);
    put(VALID_40 TRAIN_40);
    must(rnnd__metrics_cut(test_folder, 40, -1, NULL));
    must_hold(TRAIN_40);
}
END_TEST

START_TEST(a_line_cut_short_by_a_crash_goes)
{
    put(START_LINE TRAIN_20 "{\"event\": \"train\", \"upd");
    must(rnnd__metrics_cut(test_folder, 50, 50, NULL));
    must_hold(START_LINE TRAIN_20);
    put(START_LINE "{\"event\": \"save\", \"update\": 40}");
    must(rnnd__metrics_cut(test_folder, 50, 50, NULL));
    must_hold(START_LINE SAVE_40);
}
END_TEST

START_TEST(no_file_needs_no_cut)
{
    unlink(in_folder("metrics.jsonl"));
    must(rnnd__metrics_cut(test_folder, 5, 5, NULL));
    ck_assert_int_eq(count_files("metrics"), 0);
}
END_TEST

START_TEST(a_failing_cut_leaves_the_file)
{
    put(START_LINE TRAIN_20 TRAIN_40);
    char temp[64];
    snprintf(temp, sizeof temp, "metrics.jsonl.tmp-%ld", (long)getpid());
    ck_assert_int_eq(mkdir(in_folder(temp), 0777), 0);
    must_fail(RNND_EFILE, rnnd__metrics_cut(test_folder, 20, 20, NULL));
    must_hold(START_LINE TRAIN_20 TRAIN_40);
}
END_TEST

/* ---- results */

START_TEST(the_result_is_the_end_with_the_last_valid)
{
    char *json;
    must_fail(RNND_EFILE, rnnd__metrics_result(test_folder, &json));
    put(START_LINE VALID_40 TRAIN_50 END_50
        "{\"event\": \"valid\", \"update\": 60, \"loss\": 0.1}\n"
        "{\"event\": \"end\", \"status\": 0, \"updates\": 60}\n");
    must(rnnd__metrics_result(test_folder, &json));
    ck_assert_str_eq(
        json, "{\"event\": \"end\", \"status\": 0, \"updates\": 60, \"valid\": "
              "{\"event\": \"valid\", \"update\": 60, \"loss\": 0.10000000000000001}}");
    free(json);
    put(START_LINE END_50);
    must(rnnd__metrics_result(test_folder, &json));
    ck_assert_str_eq(json, "{\"event\": \"end\", \"status\": 75, \"updates\": 50}");
    free(json);
}
END_TEST

/* Of two classes, of which one has a name. */
static struct rnnd_class_figures row[] = {
    {"caf\xc3\xa9", 3, 2, 2, 1, 0.75, 0.875, NAN, NAN},
    {NULL, 1, 2, 1, 0.5, 1, 0.625, 0.5, NAN}};
static int64_t confusion[] = {2, 1, 0, 1};

START_TEST(a_table_of_classes)
{
    struct rnnd_class_table table = {2, row, confusion};
    struct rnnd_metrics m = {.loss = 1, .targets = 4, .table = &table};
    char *text;
    must(rnnd__result_text(&m, false, &text));
    ck_assert_str_eq(text, "loss 1\ntargets 4\n\n"
                           "class    support  precision     recall         f1\n"
                           "caf\xc3\xa9           3     1.0000     0.7500     0.8750\n"
                           "1              1     0.5000     1.0000     0.6250\n\n"
                           "confusion: a row per class, a column per predicted class, "
                           "in this order\n"
                           "caf\xc3\xa9        2       1\n"
                           "1           0       1\n");
    free(text);
    must(rnnd__result_text(&m, true, &text));
    ck_assert_str_eq(
        text, "{\"loss\": 1.0, \"targets\": 4, \"classes\": ["
              "{\"class\": \"caf\xc3\xa9\", \"support\": 3, \"predicted\": 2, "
              "\"correct\": 2, \"precision\": 1.0, \"recall\": 0.75, \"f1\": 0.875}, "
              "{\"class\": 1, \"support\": 1, \"predicted\": 2, \"correct\": 1, "
              "\"precision\": 0.5, \"recall\": 1.0, \"f1\": 0.625}], "
              "\"confusion\": [[2, 1], [0, 1]]}\n");
    free(text);
    table.confusion = NULL; /* answers */
    must(rnnd__result_text(&m, false, &text));
    ck_assert_ptr_nonnull(strstr(text, "f1      auroc  average_precision\n"));
    ck_assert_ptr_nonnull(strstr(text, "     0.6250     0.5000          -\n"));
    free(text);
    must(rnnd__result_text(&m, true, &text));
    ck_assert_ptr_nonnull(
        strstr(text, "\"f1\": 0.625, \"auroc\": 0.5, \"average_precision\": null}]}"));
    free(text);
}
END_TEST

/* metrics.jsonl describes few classes one by one. */
START_TEST(a_record_of_many_classes_has_no_table)
{
    struct rnnd_class_figures many[RNND_RECORD_CLASSES + 1] = {{.support = 1}};
    struct rnnd_class_table table = {RNND_RECORD_CLASSES + 1, many, NULL};
    struct rnnd__valid_record r = {1, 1, {.loss = 1, .targets = 1, .table = &table}};
    must(rnnd__metrics_valid(metrics, &r));
    table.classes--;
    must(rnnd__metrics_valid(metrics, &r));
    const char *text = content("metrics.jsonl"), *second = strchr(text, '\n');
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_eq(strstr(text, "\"classes\""), strstr(second, "\"classes\""));
    ck_assert_ptr_nonnull(strstr(second, "\"classes\""));
}
END_TEST

START_TEST(a_result_as_text)
{
    struct rnnd_metrics m = {.loss = 0.1,
                             .targets = 12,
                             .figures = 2,
                             .figure = {{"rmse", sqrt(0.1)}, {"r2", NAN}}};
    struct rnnd_metrics none = {.loss = NAN};
    char *text;
    must(rnnd__result_text(&m, false, &text));
    ck_assert_str_eq(text, "loss 0.1\ntargets 12\nrmse 0.31622776601683794\nr2 nan\n");
    free(text);
    must(rnnd__result_text(&m, true, &text));
    ck_assert_str_eq(text, "{\"loss\": 0.10000000000000001, \"targets\": 12, "
                           "\"rmse\": 0.31622776601683794, \"r2\": null}\n");
    free(text);
    must(rnnd__result_text(&none, true, &text));
    ck_assert_str_eq(text, "{\"loss\": null, \"targets\": 0}\n");
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tests = tcase_create("metrics");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_train_record);
    tcase_add_test(tests, a_weighted_train_record);
    tcase_add_test(tests, non_finite_numbers_are_null);
    tcase_add_test(tests, the_other_records);
    tcase_add_test(tests, the_start_record);
    tcase_add_test(tests, opening_again_appends);
    tcase_add_test(tests, a_full_disk_is_a_failure);
    tcase_add_test(tests, records_after_the_update_go);
    tcase_add_test(tests, a_partial_record_goes_at_its_own_update);
    tcase_add_test(tests, an_unknown_validation_goes);
    tcase_add_test(tests, a_line_cut_short_by_a_crash_goes);
    tcase_add_test(tests, no_file_needs_no_cut);
    tcase_add_test(tests, a_failing_cut_leaves_the_file);
    tcase_add_test(tests, the_result_is_the_end_with_the_last_valid);
    tcase_add_test(tests, a_result_as_text);
    tcase_add_test(tests, a_table_of_classes);
    tcase_add_test(tests, a_record_of_many_classes_has_no_table);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
