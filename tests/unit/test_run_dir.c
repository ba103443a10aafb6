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
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
