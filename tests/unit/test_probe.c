/*
 * test_probe.c - a file is read by a child process first: how the child may end, what
 * is said of it, and that one verdict lasts as long as the file.
 */
#include "testing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/signals.h"
#include "hdf/hdf_room.h"

/* Bytes of the checksum at a file's end. */
enum { CHECKSUM = 32 };

static void write_file(const char *name, bool with_checksum)
{
    struct rnnd__hdf *file;
    struct stat info;
    const int64_t dim[] = {300, 4};
    float values[300 * 4] = {1};
    must(rnnd__hdf_create(in_folder(name), &file));
    must(rnnd__hdf_write(file, "group/x", RNND_F32, 2, dim, true, values));
    must(rnnd__hdf_write_strings(file, "names", (const char *[]){"a", "b"}, 2));
    must(rnnd__hdf_set_string(file, "format", "something"));
    must(rnnd__hdf_commit(file));
    if (with_checksum)
        return;
    ck_assert_int_eq(stat(in_folder(name), &info), 0);
    ck_assert_int_eq(truncate(in_folder(name), info.st_size - CHECKSUM), 0);
}

/* ---- children that end badly */

/* Whether a child lived, in memory that it shares with this process. */
static int lives[2];

static void start(struct rnnd__hdf_walk *walk)
{
    snprintf(walk->doing, sizeof walk->doing, "reading /x");
    ck_assert_int_eq(write(lives[1], "x", 1), 1);
}

static int children(void)
{
    char seen[64];
    ssize_t n = read(lives[0], seen, sizeof seen);
    return n < 0 ? 0 : (int)n;
}

static void crash(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    (void)file;
    start(walk);
    raise(SIGSEGV);
}

static void free_twice(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    (void)file;
    start(walk);
    abort();
}

static void leave(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    (void)file;
    start(walk);
    _exit(0);
}

static void loop(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    (void)file;
    start(walk);
    for (volatile unsigned i = 0;; i++)
        continue;
}

static void sleep_on(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    (void)file;
    start(walk);
    for (;;)
        pause();
}

static void be_killed(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    (void)file;
    start(walk);
    raise(SIGKILL);
}

/* Takes more than a small file may; fails as the walk does. */
static void take_memory(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    (void)file;
    start(walk);
    char *much = mmap(NULL, 200 << 20, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    walk->lacks_memory = much == MAP_FAILED;
    walk->done = true;
}

static void find_fault(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    (void)file;
    start(walk);
    snprintf(walk->fault, sizeof walk->fault, "/group: cannot be listed");
    walk->done = true;
}

static const struct ending {
    void (*walker)(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk);
    int status;
    const char *said;
} endings[] = {
    {crash, RNND_EDATA,
     "f.h5: damaged: HDF5 crashes while reading /x (Segmentation fault); write the "
     "file anew"},
    {free_twice, RNND_EDATA,
     "f.h5: damaged: HDF5 crashes while reading /x (Aborted); write the file anew"},
    {leave, RNND_EDATA,
     "f.h5: damaged: HDF5 crashes while reading /x (it exits); write the file anew"},
    {loop, RNND_EDATA,
     "f.h5: damaged: HDF5 computed for 2 s and did not finish reading /x; write the "
     "file anew"},
    {sleep_on, RNND_EFILE, "f.h5: HDF5 did not finish reading /x within 2 s"},
    {be_killed, RNND_EDEVICE,
     "f.h5: the process that reads it first was killed while reading /x, perhaps for "
     "lack of memory"},
    {take_memory, RNND_EDATA,
     "f.h5: damaged, or its chunks are too large: HDF5 takes more than 128 MiB of "
     "memory while reading /x; write the file anew"},
    {find_fault, RNND_EDATA, "/group: cannot be listed"},
};

static void set_up(void)
{
    make_folder();
    ck_assert_int_eq(pipe2(lives, O_NONBLOCK | O_CLOEXEC), 0);
}

static void tear_down(void)
{
    close(lives[0]);
    close(lives[1]);
    rnnd__hdf_walker = rnnd__hdf_walk;
    rnnd__hdf_patience = 30;
    signal(SIGCHLD, SIG_DFL);
    remove_folder();
}

START_TEST(child_that_ends)
{
    const struct ending *e = &endings[_i];
    struct rnnd__hdf *file = NULL;
    write_file("f.h5", false);
    rnnd__hdf_walker = e->walker;
    if (e->walker == sleep_on)
        rnnd__hdf_patience = 1;
    must_fail(e->status, rnnd__hdf_open(in_folder("f.h5"), &file));
    ck_assert_ptr_null(file);
    ck_assert_str_eq(rest_of_detail(), e->said);
    ck_assert_int_eq(children(), 1);
    /* What damage did is known; another failure may pass. */
    must_fail(e->status, rnnd__hdf_open(in_folder("f.h5"), &file));
    ck_assert_str_eq(rest_of_detail(), e->said);
    ck_assert_int_eq(children(), e->status == RNND_EDATA ? 0 : 1);
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0); /* none is left */
}
END_TEST

/* ---- verdicts */

static void count(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    start(walk);
    rnnd__hdf_walk(file, walk);
}

static int opened(const char *name)
{
    struct rnnd__hdf *file;
    must(rnnd__hdf_open(in_folder(name), &file));
    rnnd__hdf_close(file);
    return children();
}

START_TEST(once_a_file)
{
    const struct timespec other[2] = {{100, 0}, {200, 0}};
    rnnd__hdf_walker = count;
    write_file("own.h5", true);
    ck_assert_int_eq(opened("own.h5"), 0);
    must(rnnd__hdf_probe(in_folder("own.h5")));
    ck_assert_int_eq(children(), 0);
    write_file("f.h5", false);
    must(rnnd__hdf_probe(in_folder("f.h5")));
    ck_assert_int_eq(children(), 1);
    ck_assert_int_eq(opened("f.h5"), 0);
    ck_assert_int_eq(link(in_folder("f.h5"), in_folder("same.h5")), 0);
    ck_assert_int_eq(opened("same.h5"), 1); /* a link changes the file's status */
    ck_assert_int_eq(utimensat(AT_FDCWD, in_folder("f.h5"), other, 0), 0);
    ck_assert_int_eq(opened("f.h5"), 1);
}
END_TEST

/* Only files of HDF5 are probed, and no failure to open one is told here. */
START_TEST(other_files)
{
    FILE *text;
    rnnd__hdf_walker = count;
    must(rnnd__hdf_probe(in_folder("missing.h5")));
    must(rnnd__hdf_probe(test_folder));
    ck_assert_ptr_nonnull(text = fopen(in_folder("text"), "w"));
    ck_assert(fputs("Lorem ipsum\n", text) >= 0 && fclose(text) == 0);
    must(rnnd__hdf_probe(in_folder("text")));
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    must(rnnd__hdf_probe(in_folder("pipe")));
    ck_assert_int_eq(children(), 0);
}
END_TEST

/* A launcher may leave SIGCHLD ignored: the system then keeps no exit status. */
START_TEST(without_exit_status)
{
    signal(SIGCHLD, SIG_IGN);
    write_file("f.h5", false);
    rnnd__hdf_walker = count;
    ck_assert_int_eq(opened("f.h5"), 1);
    write_file("g.h5", false);
    rnnd__hdf_walker = crash;
    must_fail(RNND_EDATA, rnnd__hdf_probe(in_folder("g.h5")));
    ck_assert_str_eq(rest_of_detail(),
                     "g.h5: damaged: HDF5 crashes while reading /x (it exits); write "
                     "the file anew");
}
END_TEST

/* ---- real files */

/* They made HDF5 1.10.8 crash, loop, and take 3 GB. */
START_TEST(damaged_files)
{
    static const char *const names[] = {"crash.h5", "loop.h5", "memory.h5"};
    const char *srcdir = getenv("srcdir");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        struct rnnd_dataset *data;
        snprintf(path, sizeof path, "%s/tests/golden/damaged/%s", srcdir ? srcdir : ".",
                 names[i]);
        must_fail(RNND_EDATA, rnnd_dataset_open(path, &data));
        ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), names[i]));
    }
}
END_TEST

/* The last test: the signal is remembered. */
START_TEST(stopped_by_a_signal)
{
    write_file("f.h5", false);
    rnnd__hdf_walker = sleep_on;
    rnnd__signals_install();
    raise(SIGTERM);
    must_fail(RNND_STOPPED, rnnd__hdf_probe(in_folder("f.h5")));
    ck_assert_str_eq(rest_of_detail(), "f.h5: stopped by a signal while reading it");
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("probe");
    TCase *t = tcase_create("probe");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, child_that_ends, 0, (int)(sizeof endings / sizeof *endings));
    tcase_add_test(t, once_a_file);
    tcase_add_test(t, other_files);
    tcase_add_test(t, without_exit_status);
    tcase_add_test(t, damaged_files);
    tcase_add_test(t, stopped_by_a_signal);
    suite_add_tcase(s, t);
    return run_suite(s);
}
