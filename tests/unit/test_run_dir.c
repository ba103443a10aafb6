/*
 * test_run_dir.c - the folder of a run: who may work in it, what it holds, what is its
 * own.
 */
#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checkpoint/run_dir.h"
#include "testing.h"

/* Stands before the C library's: the error of a file system without locks. */
static int lock_error;

int flock(int fd, int operation)
{
    if (lock_error) {
        errno = lock_error;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

START_TEST(it_is_made_with_its_parents)
{
    struct rnnd__run_dir *dir;
    struct stat info;
    must(rnnd__run_dir_open(in_folder("a/b/c"), false, &dir));
    ck_assert_int_eq(stat(in_folder("a/b/c"), &info), 0);
    ck_assert(S_ISDIR(info.st_mode));
    rnnd__run_dir_close(dir);
}
END_TEST

/* The lock goes with its holder, not with the file. */
START_TEST(one_run_at_a_time)
{
    struct rnnd__run_dir *first, *second = NULL;
    must(rnnd__run_dir_open(in_folder("run"), false, &first));
    must_fail(RNND_EFILE, rnnd__run_dir_open(in_folder("run"), false, &second));
    must_fail(RNND_EFILE, rnnd__run_dir_open(in_folder("run"), true, &second));
    ck_assert_ptr_null(second);
    rnnd__run_dir_close(first);
    must(rnnd__run_dir_open(in_folder("run"), true, &second));
    rnnd__run_dir_close(second);
}
END_TEST

/* NFS and Lustre as they are often mounted: a run goes on without a lock. */
static const int no_locks[] = {ENOLCK, ENOSYS, EOPNOTSUPP};

START_TEST(without_locks_it_is_used_all_the_same)
{
    struct rnnd__run_dir *dir = NULL;
    lock_error = no_locks[_i];
    int status = rnnd__run_dir_open(in_folder("run"), false, &dir);
    lock_error = 0;
    must(status);
    must(rnnd__run_dir_check(dir));
    rnnd__run_dir_close(dir);
}
END_TEST

/* Whoever made it anew owns it. */
START_TEST(a_folder_made_anew_is_another)
{
    struct rnnd__run_dir *first, *second;
    must(rnnd__run_dir_open(in_folder("run"), false, &first));
    must(rnnd__run_dir_check(first));
    ck_assert_int_eq(rename(in_folder("run"), in_folder("old")), 0);
    must_fail(RNND_EFILE, rnnd__run_dir_check(first));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "removed or renamed"));
    must(rnnd__run_dir_open(in_folder("run"), false, &second));
    must(rnnd__run_dir_check(second));
    must_fail(RNND_EFILE, rnnd__run_dir_check(first));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "made anew"));
    rnnd__run_dir_close(first);
    rnnd__run_dir_close(second);
}
END_TEST

/* Files that make a folder that of a run, and one that does not. */
static const struct {
    const char *name;
    bool of_a_run;
} held[] = {{"config.ini", true},
            {"metrics.jsonl", true},
            {"best.h5", true},
            {"ckpt-0000000007.h5", true},
            {"notes.txt", false}};

START_TEST(a_run_is_not_begun_over_another)
{
    struct rnnd__run_dir *dir = NULL;
    int want = held[_i].of_a_run ? RNND_EUSAGE : 0;
    must(rnnd__run_dir_unused(in_folder("run"))); /* there is no folder yet */
    must(rnnd__run_dir_open(in_folder("run"), false, &dir));
    rnnd__run_dir_close(dir);
    must(rnnd__run_dir_write(in_folder("run"), held[_i].name, "x\n"));
    must_fail(want, rnnd__run_dir_unused(in_folder("run")));
    if (want < 0)
        ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), held[_i].name));
    dir = NULL;
    must_fail(want, rnnd__run_dir_open(in_folder("run"), false, &dir));
    rnnd__run_dir_close(dir);
    must(rnnd__run_dir_open(in_folder("run"), true, &dir));
    rnnd__run_dir_close(dir);
}
END_TEST

/* Resuming makes no folder. */
START_TEST(a_missing_folder_is_no_run)
{
    struct rnnd__run_dir *dir = NULL;
    struct stat info;
    must(rnnd__run_dir_open_old(in_folder("none"), &dir));
    ck_assert_ptr_null(dir);
    ck_assert_int_ne(stat(in_folder("none"), &info), 0);
}
END_TEST

/* Whatever way leads to them. */
START_TEST(it_knows_its_own_files)
{
    struct rnnd__run_dir *dir;
    const char *run = in_folder("run");
    must(rnnd__run_dir_open(run, false, &dir));
    rnnd__run_dir_close(dir);
    ck_assert(rnnd__run_dir_keeps(run, in_folder("run/metrics.jsonl")));
    ck_assert(rnnd__run_dir_keeps(run, in_folder("run/../run/best.h5")));
    ck_assert(rnnd__run_dir_keeps(run, in_folder("run/.lock")));
    ck_assert(rnnd__run_dir_keeps(run, in_folder("run/tensorboard")));
    ck_assert(rnnd__run_dir_keeps(run, in_folder("run/paths")));
    ck_assert(!rnnd__run_dir_keeps(run, in_folder("run/trace.json")));
    ck_assert(!rnnd__run_dir_keeps(run, in_folder("metrics.jsonl")));
    ck_assert(!rnnd__run_dir_keeps(run, in_folder("none/metrics.jsonl")));
}
END_TEST

START_TEST(texts_are_whole)
{
    struct rnnd__run_dir *dir;
    char *text = NULL;
    const char *run = in_folder("run");
    must(rnnd__run_dir_open(run, false, &dir));
    must(rnnd__run_dir_read(run, "config.ini", &text));
    ck_assert_ptr_null(text);
    must(rnnd__run_dir_write(run, "config.ini", "hidden = 7\n"));
    must(rnnd__run_dir_write(run, "config.ini", "hidden = 8\nlayers = 2\n"));
    must(rnnd__run_dir_read(run, "config.ini", &text));
    ck_assert_str_eq(text, "hidden = 8\nlayers = 2\n");
    free(text);
    rnnd__run_dir_close(dir);
}
END_TEST

/* ---- paths of data */

static void touch(const char *name)
{
    FILE *file = fopen(in_folder(name), "w");
    ck_assert(file && fclose(file) == 0);
}

static void is_found(const char *run, const char *given, const char *want)
{
    char *found = NULL;
    struct stat a, b;
    must(rnnd__run_dir_find(in_folder(run), given, &found));
    ck_assert_int_eq(stat(found, &a), 0);
    ck_assert_int_eq(stat(want, &b), 0);
    ck_assert(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
    if (given == want)
        ck_assert_str_eq(found, given);
    free(found);
}

/* Beside the run, above it, in it, and under a name that begins as the run's does. */
static const char *const data_of[] = {"set.h5", "a/set.h5", "a/runs/r/set.h5",
                                      "a/runs/rest.h5", "b/c/set.h5"};

START_TEST(data_are_found_where_they_went)
{
    static const char *const folders[] = {"a", "a/runs", "a/runs/r", "b", "b/c"};
    const char *text = "../../../set.h5";
    char *all = NULL, *found = NULL, *given = strdup(in_folder(data_of[_i]));
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(mkdir(in_folder(folders[i]), 0777), 0);
    touch(data_of[_i]);
    const char *paths[] = {given, NULL};
    must(rnnd__run_dir_keep_paths(in_folder("a/runs/r"), paths, 2));
    is_found("a/runs/r", given, given);
    must(rnnd__run_dir_read(in_folder("a/runs/r"), "paths", &all));
    ck_assert(_i > 0 || strstr(all, text));
    free(all);
    /* all of it is moved, then the run alone, then the file is gone */
    ck_assert_int_eq(mkdir(in_folder("new"), 0777), 0);
    for (int i = 0; i < 2; i++) {
        static const char *const to[] = {"new/a", "new/b"};
        ck_assert_int_eq(rename(in_folder(i ? "b" : "a"), in_folder(to[i])), 0);
    }
    char moved[64];
    snprintf(moved, sizeof moved, "new/%s", data_of[_i]);
    if (_i == 0)
        ck_assert_int_eq(rename(in_folder("set.h5"), in_folder("new/set.h5")), 0);
    is_found("new/a/runs/r", given, in_folder(moved));
    ck_assert_int_eq(remove(in_folder(moved)), 0);
    must_fail(RNND_EFILE, rnnd__run_dir_find(in_folder("new/a/runs/r"), given, &found));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), ".h5: No such file"));
    free(given);
}
END_TEST

/* What was not noted is where it was given, or nowhere. */
START_TEST(data_without_a_note)
{
    struct rnnd__run_dir *dir;
    char *found = NULL;
    touch("set.h5");
    must(rnnd__run_dir_open(in_folder("run"), false, &dir));
    rnnd__run_dir_close(dir);
    const char *given = in_folder("set.h5");
    is_found("run", given, given);
    must_fail(RNND_EFILE, rnnd__run_dir_find(in_folder("run"), "none.h5", &found));
    ck_assert_str_eq(rnnd_status_detail(), "none.h5: No such file");
    /* a damaged note, and one of a name that has a line break */
    must(rnnd__run_dir_write(in_folder("run"), "paths", "none.h5\nset.h5"));
    must_fail(RNND_EFILE, rnnd__run_dir_find(in_folder("run"), "none.h5", &found));
    const char *broken[] = {"a\nb"};
    must(rnnd__run_dir_keep_paths(in_folder("run"), broken, 1));
    must_fail(RNND_EFILE, rnnd__run_dir_find(in_folder("run"), "a", &found));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run_dir");
    TCase *tests = tcase_create("run_dir");
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, it_is_made_with_its_parents);
    tcase_add_test(tests, one_run_at_a_time);
    tcase_add_loop_test(tests, without_locks_it_is_used_all_the_same, 0, 3);
    tcase_add_test(tests, a_folder_made_anew_is_another);
    tcase_add_loop_test(tests, a_run_is_not_begun_over_another, 0,
                        (int)(sizeof held / sizeof *held));
    tcase_add_test(tests, a_missing_folder_is_no_run);
    tcase_add_test(tests, it_knows_its_own_files);
    tcase_add_test(tests, texts_are_whole);
    tcase_add_loop_test(tests, data_are_found_where_they_went, 0,
                        (int)(sizeof data_of / sizeof *data_of));
    tcase_add_test(tests, data_without_a_note);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
