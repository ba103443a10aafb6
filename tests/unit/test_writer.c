/*
 * test_writer.c - saves that are written while the run goes on: what is in them, when
 * they are recorded, in which order they come, and what becomes of one that fails.
 *
 * The program's fsync() is replaced, so that the disk is as slow or full as a test
 * wants.
 */
#include "train/writer.h"

#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "../cases/data.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint_model.h"
#include "data/dataset.h"
#include "optim/optim.h"

/* ---- the disk */

static struct {
    /* syncs of files with these words in their names fail, or wait; "" = none */
    const char *full, *slow;
    /* what the metrics must hold before a slow sync ends; NULL: until `open` */
    const char *until;
    atomic_bool open;
    /* a slow sync has begun; waited too long */
    atomic_bool begun, stuck;
    /* checkpoints being synced now, at most at a time, in all */
    atomic_int now, most, all;
    /* a checkpoint was recorded, or had its name, before it was synced */
    atomic_bool early;
} disk;

static void nap(void)
{
    const struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
}

/* Whether a file of the folder has these words. */
static bool has(const char *name, const char *words)
{
    char line[1 << 14];
    bool found = false;
    FILE *file = fopen(in_folder(name), "r");
    while (file && fgets(line, sizeof line, file))
        found |= strstr(line, words) != NULL;
    if (file)
        fclose(file);
    return found;
}

static void wait_while_slow(void)
{
    char metrics[400];
    disk.begun = true;
    snprintf(metrics, sizeof metrics, "%s/run/metrics.jsonl", test_folder);
    for (int i = 0; i < 4000; i++, nap()) {
        char line[1 << 14];
        bool done = disk.open;
        FILE *file = disk.until ? fopen(metrics, "r") : NULL;
        while (file && fgets(line, sizeof line, file))
            done |= strstr(line, disk.until) != NULL;
        if (file)
            fclose(file);
        if (done)
            return;
    }
    disk.stuck = true;
}

/* /FOLDER/ckpt-0000000004.h5.tmp-1: neither this name nor a record may be there yet. */
static void note_early(const char *path)
{
    char name[512], metrics[400], line[1 << 14];
    snprintf(name, sizeof name, "%.*s", (int)(strstr(path, ".tmp-") - path), path);
    disk.early = disk.early || access(name, F_OK) == 0;
    snprintf(metrics, sizeof metrics, "%s/run/metrics.jsonl", test_folder);
    FILE *file = fopen(metrics, "r");
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, strrchr(name, '/') + 1))
            disk.early = true;
    if (file)
        fclose(file);
}

int fsync(int fd)
{
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    if (disk.full && strstr(path, disk.full)) {
        errno = ENOSPC;
        return -1;
    }
    bool checkpoint = strstr(path, "/ckpt-") && strstr(path, ".tmp-");
    if (checkpoint) {
        int now = ++disk.now;
        if (now > disk.most)
            disk.most = now;
        disk.all++;
        note_early(path);
    }
    if (disk.slow && strstr(path, disk.slow))
        wait_while_slow();
    if (checkpoint)
        disk.now--;
    return (int)syscall(SYS_fsync, fd);
}

/* ---- runs */

enum { SEQUENCES = 12, UPDATES = 12 };

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
    memset(&disk, 0, sizeof disk);
    make_folder();
    must(case_data_write(in_folder("data.h5"), &d));
    must(rnnd_comm_open(10, &comm));
    must(rnnd_options_init(&opt));
    set("data", in_folder("data.h5"));
    set("run-dir", in_folder("run"));
    set("hidden", "5");
    set("batch", "4");
    set("epochs", "4"); /* of 3 updates each */
    set("progress", "none");
    set("log-every", "1");
    set("save-every", "4");
    set("keep", "0");
}

static void tear_down(void)
{
    rnnd_comm_close(comm);
    rnnd_options_clear(&opt);
    remove_folder();
}

static void train(int want, int64_t updates)
{
    struct rnnd_train_result result = {.updates = -1};
    must_fail(want, rnnd_train(&opt, comm, &result));
    ck_assert_int_eq(result.updates, updates);
}

static int files(const char *pattern)
{
    glob_t found;
    int count =
        glob(in_folder(pattern), 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return count;
}

/* The line of the first record of an event and update, 0 = there is none. */
static int line_of(const char *event, int64_t update)
{
    char line[1 << 14];
    int n = 0, found = 0;
    FILE *file = fopen(in_folder("run/metrics.jsonl"), "r");
    ck_assert_ptr_nonnull(file);
    while (!found && fgets(line, sizeof line, file)) {
        json_t *record = json_loads(line, 0, NULL);
        n++;
        if (strcmp(json_string_value(json_object_get(record, "event")), event) == 0 &&
            json_integer_value(json_object_get(record, "update")) == update)
            found = n;
        json_decref(record);
    }
    fclose(file);
    return found;
}

/* The disk holds a save until the update after it, and the one after that, are made. */
START_TEST(updates_go_on)
{
    disk.slow = "ckpt-0000000004";
    disk.until = "\"train\", \"update\": 6,";
    train(0, UPDATES);
    ck_assert(disk.begun && !disk.stuck && !disk.early);
    ck_assert_int_lt(line_of("train", 6), line_of("save", 4));
    for (int64_t update = 4; update <= UPDATES; update += 4)
        ck_assert_int_gt(line_of("save", update), 0);
    ck_assert_int_eq(files("run/ckpt-*.h5"), 3);
}
END_TEST

/* Also where every update is saved, and the best as well; and where all updates read
   from their data file, through the library that writes. */
START_TEST(none_overtakes)
{
    int64_t kept = rnnd__dataset_keep;
    if (_i)
        rnnd__dataset_keep = 0;
    set("save-every", "1");
    set("valid", in_folder("data.h5"));
    set("valid-every", "1");
    train(0, UPDATES);
    ck_assert(!disk.early);
    ck_assert_int_eq(disk.most, 1);
    ck_assert_int_eq(disk.all, UPDATES);
    for (int64_t update = 2; update <= UPDATES; update++)
        ck_assert_int_lt(line_of("save", update - 1), line_of("save", update));
    must(rnnd__checkpoint_verify(in_folder("run/best.h5"), true));
    rnnd__dataset_keep = kept;
}
END_TEST

/* A save that fails ends the run, with its own message and nothing else written. */
START_TEST(a_full_disk_ends_it)
{
    struct rnnd_train_result result;
    disk.full = _i ? "ckpt-0000000004" : "best.h5";
    set("valid", in_folder("data.h5"));
    must_fail(RNND_EFILE, rnnd_train(&opt, comm, &result));
    ck_assert_int_lt(result.updates, UPDATES);
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), disk.full));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "No space left on device"));
    ck_assert_int_eq(files("run/ckpt-*.h5"), 0);
    ck_assert_int_eq(files("run/*.tmp-*"), 0);
    ck_assert_int_eq(line_of("save", 4), 0);
    ck_assert(has("run/metrics.jsonl", "\"end\", \"status\": 4"));
    /* it goes on once there is room */
    disk.full = NULL;
    set("resume", "yes");
    train(0, UPDATES);
    ck_assert_int_gt(line_of("save", UPDATES), 0);
}
END_TEST

/* The last save, after which nothing is left to do, fails as loudly. */
START_TEST(the_last_save_may_fail)
{
    disk.full = "ckpt-0000000012";
    train(RNND_EFILE, UPDATES);
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "ckpt-0000000012"));
    ck_assert_int_eq(files("run/ckpt-*.h5"), 2);
}
END_TEST

/* ---- the writer alone */

struct alone {
    struct rnnd_model *model;
    struct rnnd_optim *optim;
    struct rnnd__run_dir *dir;
    struct rnnd__writer *writer;
    struct rnnd__train_state at;
};

static void open_alone(struct alone *a)
{
    *a = (struct alone){.at = {.update = 7, .epoch = 2, .plateau_factor = 1}};
    open_backend();
    a->model = new_model(&specs[0], 3);
    must(rnnd_optim_new(a->model, &opt, &a->optim));
    must(rnnd__run_dir_open(in_folder("run"), false, &a->dir));
    must(rnnd__writer_new(&opt, a->dir, a->model, a->optim, &a->writer));
}

static void close_alone(struct alone *a)
{
    rnnd__writer_free(a->writer);
    rnnd__run_dir_close(a->dir);
    rnnd_optim_free(a->optim);
    rnnd_model_free(a->model);
    rnnd_backend_close(be);
}

static void same_files(const char *a, const char *b)
{
    FILE *x = fopen(in_folder(a), "r"), *y = fopen(in_folder(b), "r");
    int c;
    ck_assert(x && y);
    do {
        c = getc(x);
        ck_assert_int_eq(c, getc(y));
    } while (c != EOF);
    fclose(x);
    fclose(y);
}

/* What is written is the state at the start, whatever happens to it meanwhile. */
START_TEST(it_is_a_copy)
{
    struct alone a;
    int64_t update;
    open_alone(&a);
    must(rnnd__checkpoint_save(in_folder("now.h5"), a.model, a.optim, &opt, &a.at));
    must(rnnd__writer_wait(a.writer, &update));
    ck_assert_int_eq(update, -1);
    disk.slow = ".h5.tmp-";
    must(rnnd__writer_start(a.writer, RNND_WRITE_BEST | RNND_WRITE_NEWEST, &a.at));
    ck_assert_int_eq(rnnd__writer_state(a.writer), RNND_WRITING);
    a.at.update = 8;
    a.at.best_cost = 1;
    fill_arena(a.model, rnnd__model_params(a.model)->value, 4);
    fill_arena(a.model, rnnd__optim_moment(a.optim, 0), 5);
    rnnd__optim_set_step_count(a.optim, 99);
    while (!disk.begun)
        nap();
    ck_assert_int_eq(rnnd__writer_state(a.writer), RNND_WRITING);
    disk.open = true;
    must(rnnd__writer_wait(a.writer, &update));
    ck_assert_int_eq(update, 7);
    ck_assert_int_eq(rnnd__writer_state(a.writer), RNND_WRITING_NOTHING);
    same_files("run/ckpt-0000000007.h5", "now.h5");
    same_files("run/best.h5", "now.h5");
    close_alone(&a);
}
END_TEST

/* A failure is told once, and the next save is not hurt by it. */
START_TEST(a_failure_is_told_once)
{
    struct alone a;
    int64_t update;
    open_alone(&a);
    disk.full = "ckpt-";
    must(rnnd__writer_start(a.writer, RNND_WRITE_NEWEST, &a.at));
    while (rnnd__writer_state(a.writer) == RNND_WRITING)
        nap();
    ck_assert_int_eq(rnnd__writer_state(a.writer), RNND_NOT_WRITTEN);
    must_fail(RNND_EFILE, rnnd__writer_wait(a.writer, &update));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "No space left on device"));
    ck_assert_int_eq(update, -1);
    must(rnnd__writer_wait(a.writer, &update));
    disk.full = NULL;
    must(rnnd__writer_start(a.writer, RNND_WRITE_NEWEST, &a.at));
    must(rnnd__writer_wait(a.writer, &update));
    ck_assert_int_eq(update, 7);
    close_alone(&a);
}
END_TEST

/* Where the folder is removed and made anew, nothing is written to it. */
START_TEST(the_folder_of_another_is_left_alone)
{
    struct alone a;
    int64_t update;
    open_alone(&a);
    ck_assert_int_eq(rename(in_folder("run"), in_folder("moved")), 0);
    must(rnnd__writer_start(a.writer, RNND_WRITE_NEWEST, &a.at));
    must_fail(RNND_EFILE, rnnd__writer_wait(a.writer, &update));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "removed or renamed"));
    ck_assert_int_eq(files("moved/ckpt-*"), 0);
    close_alone(&a);
}
END_TEST

/* Whoever closes it waits. */
START_TEST(closing_waits)
{
    struct alone a;
    open_alone(&a);
    must(rnnd__writer_start(a.writer, RNND_WRITE_NEWEST, &a.at));
    close_alone(&a);
    must(rnnd__checkpoint_verify(in_folder("run/ckpt-0000000007.h5"), true));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("writer");
    TCase *tests = tcase_create("writer");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, updates_go_on);
    tcase_add_loop_test(tests, none_overtakes, 0, 2);
    tcase_add_loop_test(tests, a_full_disk_ends_it, 0, 2);
    tcase_add_test(tests, the_last_save_may_fail);
    tcase_add_test(tests, it_is_a_copy);
    tcase_add_test(tests, a_failure_is_told_once);
    tcase_add_test(tests, the_folder_of_another_is_left_alone);
    tcase_add_test(tests, closing_waits);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
