/*
 * test_output.c - what a new file replaces, and its temporary file: by links that
 * someone planted, under long names, after a killed process, at the end of this one.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "hdf/hdf.h"
#include "testing.h"

static const struct rnnd__kind note = {"a note", {"note 1", "note 2"}, "the end"};

static void put(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int write_note(const char *name)
{
    struct rnnd__file file;
    RNND_TRY(rnnd__file_create(in_folder(name), &note, &file));
    fputs("note 2, the end", file.stream);
    return rnnd__file_commit(&file);
}

/* ---- what is replaced */

START_TEST(only_its_own_kind)
{
    static const char *const good[] = {"", "note 1 of three; the end", "note 2the end"};
    static const char *const bad[] = {"n", "another", "note 1 without it",
                                      "not the end"};
    must(write_note("new"));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        put("note", good[i]);
        must(rnnd__output_check(in_folder("note"), &note));
        ck_assert_str_eq(content("note"), good[i]);
        must(write_note("note"));
        ck_assert_str_eq(content("note"), "note 2, the end");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("other", bad[i]);
        must_fail(RNND_EUSAGE, rnnd__output_check(in_folder("other"), &note));
        must_fail(RNND_EUSAGE, write_note("other"));
        ck_assert_str_eq(rest_of_detail(),
                         "other: exists and is not a note, and so is not replaced; "
                         "choose another output, or remove it first");
        ck_assert_str_eq(content("other"), bad[i]);
    }
    ck_assert_int_eq(symlink("other", in_folder("link")), 0);
    must_fail(RNND_EUSAGE, write_note("link"));
    ck_assert_int_eq(count_files(""), 2 + 4);
}
END_TEST

/* The end of a large file, but not its middle. */
START_TEST(marks_at_the_end)
{
    FILE *file = fopen(in_folder("large"), "w");
    fprintf(file, "note 1%*s%s%*s", 3 << 20, "", "the end", 2 << 20, "");
    ck_assert_int_eq(fclose(file), 0);
    must_fail(RNND_EUSAGE, write_note("large"));
    file = fopen(in_folder("large"), "a");
    fputs("the end", file);
    ck_assert_int_eq(fclose(file), 0);
    must(write_note("large"));
}
END_TEST

START_TEST(hdf_files)
{
    static const struct rnnd__kind one = {"a one", {RNND_HDF_START}, "format-one"};
    struct rnnd__hdf *file;
    put("f", "text");
    must_fail(RNND_EUSAGE, rnnd__hdf_create_as(in_folder("f"), &one, &file));
    ck_assert_str_eq(content("f"), "text");
    unlink(in_folder("f"));
    for (int again = 0; again < 2; again++) {
        must(rnnd__hdf_create_as(in_folder("f"), &one, &file));
        must(rnnd__hdf_set_string(file, "format", again ? "format-two" : "format-one"));
        must(rnnd__hdf_commit(file));
    }
    must_fail(RNND_EUSAGE, rnnd__hdf_create_as(in_folder("f"), &one, &file));
    must(rnnd__hdf_create(in_folder("f"), &file));
    rnnd__hdf_close(file);
}
END_TEST

/* One file under two names. */
START_TEST(not_twice)
{
    struct rnnd__file first, second;
    char other[600];
    snprintf(other, sizeof other, "%s/./a", test_folder);
    must(rnnd__file_create(in_folder("a"), NULL, &first));
    must_fail(RNND_EUSAGE, rnnd__file_create(in_folder("a"), NULL, &second));
    must_fail(RNND_EUSAGE, rnnd__file_create(other, NULL, &second));
    ck_assert_str_eq(rest_of_detail(),
                     "./a would be written twice; choose another output");
    must(rnnd__file_create(in_folder("b"), NULL, &second));
    must(rnnd__file_commit(&second));
    fputs("first", first.stream);
    must(rnnd__file_commit(&first));
    ck_assert_str_eq(content("a"), "first");
    must(rnnd__file_create(in_folder("a"), NULL, &first));
    rnnd__file_drop(&first);
}
END_TEST

/* ---- temporary files */

static const char *temp_of(const char *name, long pid)
{
    char temp[300];
    snprintf(temp, sizeof temp, "%s.tmp-%ld", name, pid);
    return in_folder(temp);
}

/* Process 1 always lives; this one has ended. */
static long ended(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return pid;
}

START_TEST(a_planted_link_is_not_followed)
{
    put("precious", "as it was");
    ck_assert_int_eq(symlink("precious", temp_of("note", (long)getpid())), 0);
    must(write_note("note"));
    ck_assert_str_eq(content("precious"), "as it was");
    ck_assert_str_eq(content("note"), "note 2, the end");
    ck_assert_int_eq(count_files(""), 2 + 2);
}
END_TEST

START_TEST(of_processes_that_have_ended)
{
    static const char *const kept[] = {"note.tmp-1", "note.tmp-", "note.tmp-9x",
                                       "note2.tmp-999999999", "note.tmp-0"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        put(kept[i], "");
    FILE *file = fopen(temp_of("note", ended()), "w");
    ck_assert_int_eq(fclose(file), 0);
    file = fopen(temp_of("note", (long)getpid()), "w"); /* the number was used again */
    ck_assert_int_eq(fclose(file), 0);
    must(write_note("note"));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        ck_assert_int_eq(count_files(kept[i]), i == 1 ? 4 : 1);
    ck_assert_int_eq(count_files("note"), 1 + 5);
}
END_TEST

/* Names up to the file system's limit, and two that only differ at their ends. */
START_TEST(long_names)
{
    char name[2][NAME_MAX + 1];
    struct rnnd__file file[2];
    for (int length = 235; length <= NAME_MAX; length++) {
        memset(name[0], 'n', sizeof name[0]);
        name[0][length] = 0;
        must(write_note(name[0]));
        unlink(in_folder(name[0]));
    }
    for (int k = 0; k < 2; k++) {
        memset(name[k], 'n', sizeof name[k]);
        memcpy(name[k] + 230, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 10);
        snprintf(name[k] + 240, 11, "%010d", k);
        must(rnnd__file_create(in_folder(name[k]), NULL, &file[k]));
    }
    for (int k = 0; k < 2; k++) {
        fprintf(file[k].stream, "%d", k);
        must(rnnd__file_commit(&file[k]));
    }
    ck_assert_str_eq(content(name[0]), "0");
    ck_assert_str_eq(content(name[1]), "1");
    ck_assert_int_eq(count_files(""), 2 + 2);
}
END_TEST

START_TEST(abandoned)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rnnd__file text, whole;
        struct rnnd__hdf *hdf;
        put("old", "old");
        bool made = write_note("whole") == 0 &&
                    rnnd__file_create(in_folder("old"), NULL, &text) == 0 &&
                    rnnd__hdf_create(in_folder("hdf"), &hdf) == 0 &&
                    rnnd__file_create(in_folder("whole"), &note, &whole) == 0;
        rnnd__output_abandon();
        _exit(made ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(count_files(""), 2 + 2);
    ck_assert_str_eq(content("old"), "old");
    ck_assert_str_eq(content("whole"), "note 2, the end");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("output");
    TCase *t = tcase_create("output");
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, only_its_own_kind);
    tcase_add_test(t, marks_at_the_end);
    tcase_add_test(t, hdf_files);
    tcase_add_test(t, not_twice);
    tcase_add_test(t, a_planted_link_is_not_followed);
    tcase_add_test(t, of_processes_that_have_ended);
    tcase_add_test(t, long_names);
    tcase_add_test(t, abandoned);
    suite_add_tcase(s, t);
    return run_suite(s);
}
