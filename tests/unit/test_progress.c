/*
 * test_progress.c - what progress shows: lines, nothing, or a bar on a terminal.
 * Without pseudo-terminals the bar is left out, and the program exits 77.
 */
#include <fcntl.h>
#include <math.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "record/progress.h"
#include "testing.h"

static int saved_stderr, master;

static void capture(int fd)
{
    fflush(stderr);
    saved_stderr = dup(2);
    ck_assert(dup2(fd, 2) == 2);
}

static void release(void)
{
    fflush(stderr);
    dup2(saved_stderr, 2);
    close(saved_stderr);
}

static const struct rnnd__progress_point point = {30,       1,     4,    600,
                                                  0.123456, 12345, 0.001};
static const struct rnnd__progress_work unknown = {0}, known = {.steps = 1200};
static const struct rnnd_metrics result = {
    .loss = 0.5, .targets = 7, .metric = "accuracy", .value = 0.25};

/* Two updates, a validation and the ends of two epochs, reported into the file err.
   Returns whether there is a meter. */
static bool report(enum rnnd_progress kind, const struct rnnd__progress_work *work)
{
    struct rnnd__meter *meter;
    FILE *file = fopen(in_folder("err"), "w+");
    capture(fileno(file));
    int status = rnnd__progress_begin(kind, work, &meter);
    rnnd__progress_update(meter, &point, false);
    rnnd__progress_update(meter, &point, true);
    rnnd__progress_within(meter, &point, &result);
    rnnd__progress_epoch(meter, &point, &result);
    struct rnnd__progress_point last = point;
    last.epoch = last.epochs;
    last.loss = last.steps_per_s = NAN;
    rnnd__progress_epoch(meter, &last, NULL);
    rnnd__progress_end(meter);
    release();
    fclose(file);
    must(status);
    return meter;
}

START_TEST(lines_where_there_is_no_terminal)
{
    ck_assert(report(RNND_PROGRESS_AUTO, &unknown));
    ck_assert_str_eq(
        content("err"),
        "epoch 1/4  update 30  valid 0.5  accuracy 0.25\n"
        "epoch 1/4  train 0.1235  valid 0.5  accuracy 0.25  12.3k steps/s  ETA ?\n"
        "epoch 4/4\n");
}
END_TEST

START_TEST(none_is_silent)
{
    ck_assert(!report(RNND_PROGRESS_NONE, &known));
    ck_assert_str_eq(content("err"), "");
}
END_TEST

/* A terminal of that width; what a program writes to it is read from master. */
static int open_terminal(unsigned short width)
{
    struct winsize size = {.ws_row = 24, .ws_col = width};
    master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    ck_assert(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
    return slave;
}

static const char *seen_on_terminal(int slave)
{
    static char text[4096];
    close(slave);
    size_t length = 0;
    ssize_t n;
    while ((n = read(master, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    close(master);
    return text;
}

START_TEST(a_bar_on_a_terminal)
{
    struct rnnd__meter *meter;
    int slave = open_terminal(200);
    capture(slave);
    int status = rnnd__progress_begin(RNND_PROGRESS_AUTO, &known, &meter);
    rnnd__progress_update(meter, &point, false);
    rnnd__progress_update(meter, &point, true); /* too soon to draw again */
    rnnd__log_info("news");
    rnnd__progress_end(meter);
    release();
    must(status);
    const char *seen = seen_on_terminal(slave);
    static const char bar[] = "\r[======>     ]  50%  epoch 1/4  loss 0.1235  ";
    ck_assert_msg(!strncmp(seen, bar, strlen(bar)), "%s", seen);
    ck_assert_ptr_nonnull(strstr(seen, "\033[K\r\033[Krnn_dist: news\r\n"));
    ck_assert_ptr_null(strstr(strstr(seen, "news"), "epoch")); /* it was gone by then */
}
END_TEST

START_TEST(the_bar_never_wraps)
{
    for (unsigned short width = 5; width < 140; width += 9) {
        struct rnnd__meter *meter;
        int slave = open_terminal(width);
        capture(slave);
        int status = rnnd__progress_begin(RNND_PROGRESS_BAR, &known, &meter);
        rnnd__progress_update(meter, &point, false);
        rnnd__progress_end(meter);
        release();
        must(status);
        const char *bar = seen_on_terminal(slave) + 1;
        size_t length = strcspn(bar, "\033");
        ck_assert_msg(length < width && length > 0, "%zu in %d: %s", length, width,
                      bar);
        /* the loss stays longest; the bar goes before it, but not at 80 columns */
        ck_assert_msg(width < 25 || strstr(bar, "loss 0.1235"), "%d: %s", width, bar);
        ck_assert_msg(*bar == '[' ? width > 50 : width < 80, "%d: %s", width, bar);
    }
}
END_TEST

/* Whether the line says so many seconds to go: ratio times those since the start, which
   are a tenth or, on a busy machine, any number more. ratio < 0: not known. */
static void check_seconds(const struct rnnd__progress_work *work,
                          const struct rnnd__progress_point *at, double ratio)
{
    struct rnnd__meter *meter;
    FILE *file = fopen(in_folder("err"), "w+");
    capture(fileno(file));
    double begun = rnnd__clock();
    int status = rnnd__progress_begin(RNND_PROGRESS_LINES, work, &meter);
    usleep(100000);
    rnnd__progress_epoch(meter, at, NULL);
    double most = rnnd__clock() - begun;
    rnnd__progress_end(meter);
    release();
    fclose(file);
    must(status);
    int part[3] = {0};
    const char *line = content("err");
    int n = sscanf(strstr(line, "ETA "), "ETA %d:%d:%d", &part[0], &part[1], &part[2]);
    ck_assert_msg((n >= 2) == (ratio >= 0), "%s", line);
    if (ratio < 0)
        return;
    int seconds =
        n == 2 ? 60 * part[0] + part[1] : 3600 * part[0] + 60 * part[1] + part[2];
    ck_assert_msg(seconds >= 0.1 * ratio - 1 && seconds <= most * ratio + 1,
                  "%g times %g: %s", ratio, most, line);
}

/* 1000 steps were done before, and 10 more now. */
START_TEST(time_goes_by_steps)
{
    struct rnnd__progress_work work = {.steps = 1e7, .steps_done = 1000};
    struct rnnd__progress_point at = point;
    at.steps = 1010;
    check_seconds(&work, &at, (1e7 - 1010) / 10);
}
END_TEST

/* The same, and 20 updates before, 10 now; the nearer end counts. */
START_TEST(time_goes_by_updates_to_a_bound)
{
    struct rnnd__progress_work work = {
        .steps = 1e12, .steps_done = 1000, .updates = 90030, .updates_done = 20};
    struct rnnd__progress_point at = point;
    at.steps = 1010;
    check_seconds(&work, &at, 9000);
    work.steps = 11010;
    check_seconds(&work, &at, 1000);
    work.steps = 0;
    check_seconds(&work, &at, 9000);
    at.update = 20; /* nothing done yet */
    check_seconds(&work, &at, -1);
}
END_TEST

START_TEST(a_bar_to_a_bound)
{
    struct rnnd__meter *meter;
    struct rnnd__progress_work work = {.steps = 1200, .updates = 40};
    int slave = open_terminal(200);
    capture(slave);
    int status = rnnd__progress_begin(RNND_PROGRESS_BAR, &work, &meter);
    rnnd__progress_update(meter, &point, false);
    rnnd__progress_end(meter);
    release();
    must(status);
    static const char bar[] = "\r[=========>  ]  75%  epoch 1/4  loss 0.1235  ";
    const char *seen = seen_on_terminal(slave);
    ck_assert_msg(!strncmp(seen, bar, strlen(bar)), "%s", seen);
}
END_TEST

static bool have_terminals(void)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    bool works = fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0 && ptsname(fd) &&
                 access(ptsname(fd), R_OK | W_OK) == 0;
    if (fd >= 0)
        close(fd);
    return works;
}

int main(void)
{
    bool terminals = have_terminals();
    Suite *suite = suite_create("progress");
    TCase *tests = tcase_create("progress");
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, lines_where_there_is_no_terminal);
    tcase_add_test(tests, none_is_silent);
    tcase_add_test(tests, time_goes_by_steps);
    tcase_add_test(tests, time_goes_by_updates_to_a_bound);
    if (terminals) {
        tcase_add_test(tests, a_bar_on_a_terminal);
        tcase_add_test(tests, the_bar_never_wraps);
        tcase_add_test(tests, a_bar_to_a_bound);
    }
    suite_add_tcase(suite, tests);
    int status = run_suite(suite);
    if (status != EXIT_SUCCESS || terminals)
        return status;
    puts("SKIP: the bar: there are no pseudo-terminals here; the rest holds");
    return 77;
}
