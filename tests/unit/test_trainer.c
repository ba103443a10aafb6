/*
 * test_trainer.c - a whole run in one process: what it records, what it saves, why it
 * ends, and that a stop and a resume change nothing.
 */
#include <glob.h>
#include <jansson.h>

#include "../cases/data.h"
#include "base/signals.h"
#include "hdf/hdf.h"
#include "options/options.h"
#include "testing.h"

enum { SEQUENCES = 12, BATCH = 4, UPDATES_AN_EPOCH = SEQUENCES / BATCH };

static struct rnnd_comm *comm;
static struct rnnd_options opt;

static void set(const char *name, const char *value)
{
    must(rnnd__options_set(&opt, name, value, RNND_FROM_COMMAND_LINE));
}

static void set_up(void)
{
    static const double length[SEQUENCES] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    struct case_data d = {.task = "classify",
                          .length = length,
                          .sequences = SEQUENCES,
                          .features = 2,
                          .outputs = 3,
                          .seed = 1};
    make_folder();
    must(case_data_write(in_folder("data.h5"), &d));
    must(rnnd_comm_open(10, &comm));
    must(rnnd_options_init(&opt));
    set("data", in_folder("data.h5"));
    set("run-dir", in_folder("run"));
    set("hidden", "5");
    set("batch", "4");
    set("epochs", "4");
    set("progress", "none");
    set("log-every", "1");
    set("keep", "0");
}

static void tear_down(void)
{
    rnnd_comm_close(comm);
    rnnd_options_clear(&opt);
    remove_folder();
}

static struct rnnd_train_result train(int want)
{
    struct rnnd_train_result result = {.updates = -1};
    must_fail(want, rnnd_train(&opt, comm, &result));
    return result;
}

/* How many records of metrics.jsonl have this event; *last: a field of the last. */
static int records(const char *event, const char *field, double *last)
{
    char line[1 << 14];
    int count = 0;
    FILE *file = fopen(in_folder("run/metrics.jsonl"), "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        json_t *record = json_loads(line, 0, NULL);
        ck_assert_msg(record != NULL, "%s", line);
        if (strcmp(json_string_value(json_object_get(record, "event")), event) == 0) {
            count++;
            if (field)
                *last = json_number_value(json_object_get(record, field));
        }
        json_decref(record);
    }
    fclose(file);
    return count;
}

static int checkpoints(void)
{
    glob_t found;
    int count = glob(in_folder("run/ckpt-*.h5"), 0, NULL, &found) == 0
                    ? (int)found.gl_pathc
                    : 0;
    globfree(&found);
    return count;
}

START_TEST(all_epochs_are_made)
{
    double update, epoch;
    ck_assert_int_eq(train(0).updates, 4 * UPDATES_AN_EPOCH);
    ck_assert_int_eq(records("train", "update", &update), 4 * UPDATES_AN_EPOCH);
    ck_assert(update == 4 * UPDATES_AN_EPOCH);
    records("train", "epoch", &epoch);
    ck_assert(epoch == 4);
    ck_assert_int_eq(records("start", NULL, NULL), 1);
    ck_assert_int_eq(records("end", "updates", &update), 1);
    ck_assert_int_eq(checkpoints(), 1);
}
END_TEST

START_TEST(max_updates_ends_it_within_an_epoch)
{
    set("max-updates", "4");
    ck_assert_int_eq(train(0).updates, 4);
    ck_assert_int_eq(checkpoints(), 1);
}
END_TEST

START_TEST(save_every_keeps_what_it_is_told)
{
    set("save-every", "2");
    train(0); /* at 2, 4, 6, 8, 10 and 12 */
    ck_assert_int_eq(checkpoints(), 6);
    ck_assert_int_eq(records("save", NULL, NULL), 6);
}
END_TEST

START_TEST(old_checkpoints_go)
{
    set("save-every", "2");
    set("keep", "2");
    train(0);
    ck_assert_int_eq(checkpoints(), 2);
}
END_TEST

START_TEST(each_epoch_is_validated)
{
    double loss, value;
    set("valid", in_folder("data.h5"));
    struct rnnd_train_result result = train(0);
    ck_assert(result.validated);
    ck_assert_str_eq(result.valid.metric, "accuracy");
    ck_assert_int_eq(records("valid", "loss", &loss), 4);
    records("valid", "value", &value);
    ck_assert(loss == result.valid.loss);
    ck_assert_int_eq(result.valid.targets, SEQUENCES);
    ck_assert_int_eq(access(in_folder("run/best.h5"), R_OK), 0);
}
END_TEST

/* With steps too small to be seen no epoch gains anything over the first. */
START_TEST(patience_ends_it)
{
    set("valid", in_folder("data.h5"));
    set("patience", "2");
    set("epochs", "10");
    set("optimizer", "sgd");
    set("lr", "1e-30");
    ck_assert_int_eq(train(0).updates, 3 * UPDATES_AN_EPOCH);
}
END_TEST

/* Steps that lower the loss and change no prediction: by the loss every epoch is better
   than the one before, by the accuracy none. A resumed run counts on. */
START_TEST(patience_follows_best_by)
{
    double accuracy, cost;
    struct rnnd__hdf *file;
    set("valid", in_folder("data.h5"));
    set("patience", "2");
    set("epochs", "6");
    set("optimizer", "sgd");
    set("lr", "1e-4");
    ck_assert_int_eq(train(0).updates, 6 * UPDATES_AN_EPOCH);
    ck_assert_int_eq(rename(in_folder("run"), in_folder("by_loss")), 0);
    set("best-by", "accuracy");
    set("max-updates", "4"); /* in the second epoch */
    ck_assert_int_eq(train(0).updates, 4);
    opt.resume = true;
    set("max-updates", "0");
    ck_assert_int_eq(train(0).updates, 3 * UPDATES_AN_EPOCH);
    records("valid", "accuracy", &accuracy);
    must(rnnd__hdf_open(in_folder("run/best.h5"), &file));
    must(rnnd__hdf_read(file, "/state/best_loss", 0, 1, RNND_F64, &cost));
    rnnd__hdf_close(file);
    ck_assert(accuracy > 0 && cost == -accuracy);
    /* by another measure all is open again */
    set("best-by", "loss");
    ck_assert_int_eq(train(0).updates, 6 * UPDATES_AN_EPOCH);
}
END_TEST

START_TEST(best_by_what_there_is)
{
    set("valid", in_folder("data.h5"));
    set("best-by", "rmse");
    train(RNND_EUSAGE);
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "loss, accuracy, "));
    set("best-by", "auroc"); /* three classes */
    train(RNND_EUSAGE);
    set("best-by", "macro_f1");
    train(0);
}
END_TEST

/* A resumed run has the records and the loss of one that was never stopped. */
START_TEST(resume_continues)
{
    double loss, whole_loss;
    train(0);
    records("train", "loss", &whole_loss);
    ck_assert_int_eq(rename(in_folder("run"), in_folder("whole")), 0);
    set("max-updates", "4");
    ck_assert_int_eq(train(0).updates, 4);
    opt.resume = true;
    set("max-updates", "0");
    ck_assert_int_eq(train(0).updates, 4 * UPDATES_AN_EPOCH);
    ck_assert_int_eq(records("train", "loss", &loss), 4 * UPDATES_AN_EPOCH);
    ck_assert(loss == whole_loss);
    ck_assert_int_eq(records("start", NULL, NULL), 2);
}
END_TEST

START_TEST(a_run_is_not_begun_twice)
{
    train(0);
    train(RNND_EUSAGE);
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "--resume"));
    ck_assert_int_eq(records("end", NULL, NULL), 1);
}
END_TEST

/* A resumed run may be longer, but no other model. */
START_TEST(what_may_change_on_resume)
{
    train(0);
    opt.resume = true;
    set("epochs", "5");
    ck_assert_int_eq(train(0).updates, 5 * UPDATES_AN_EPOCH);
    set("hidden", "6");
    train(RNND_EUSAGE);
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "--hidden"));
}
END_TEST

/* Infinite parameters after one update: skipped updates change nothing, or it stops. */
START_TEST(what_is_not_finite)
{
    set("optimizer", "sgd");
    set("lr", "3e38");
    set("on-nonfinite", _i ? "skip" : "stop");
    if (_i) {
        train(0);
        ck_assert_int_gt(records("skip", NULL, NULL), 0);
    } else {
        train(RNND_ENONFINITE);
        ck_assert_int_eq(checkpoints(), 1);
    }
}
END_TEST

/* A signal stops one call and not the next of the same process. */
START_TEST(a_signal_saves_and_stops)
{
    double update;
    rnnd__signals_install();
    raise(SIGUSR1);
    ck_assert_int_eq(train(RNND_STOPPED).updates, 1);
    ck_assert_int_eq(checkpoints(), 1);
    ck_assert_int_eq(records("end", "updates", &update), 1);
    ck_assert(update == 1);
    opt.resume = true;
    ck_assert_int_eq(train(0).updates, 4 * UPDATES_AN_EPOCH);
    set("epochs", "5");
    raise(SIGUSR1);
    raise(SIGTERM); /* launchers send several */
    ck_assert_int_eq(train(RNND_STOPPED).updates, 4 * UPDATES_AN_EPOCH + 1);
    ck_assert_int_eq(train(0).updates, 5 * UPDATES_AN_EPOCH);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trainer");
    TCase *tests = tcase_create("trainer");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, all_epochs_are_made);
    tcase_add_test(tests, max_updates_ends_it_within_an_epoch);
    tcase_add_test(tests, save_every_keeps_what_it_is_told);
    tcase_add_test(tests, old_checkpoints_go);
    tcase_add_test(tests, each_epoch_is_validated);
    tcase_add_test(tests, patience_ends_it);
    tcase_add_test(tests, patience_follows_best_by);
    tcase_add_test(tests, best_by_what_there_is);
    tcase_add_test(tests, resume_continues);
    tcase_add_test(tests, a_run_is_not_begun_twice);
    tcase_add_test(tests, what_may_change_on_resume);
    tcase_add_loop_test(tests, what_is_not_finite, 0, 2);
    tcase_add_test(tests, a_signal_saves_and_stops);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
