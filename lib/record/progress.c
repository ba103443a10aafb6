/*
 * progress.c - draws the bar, or writes lines.
 *
 * The bar is one line of the terminal, never longer than its width, redrawn a few times
 * a second. What else goes to standard error through log.c takes it away first; it
 * comes back with the next update.
 */
#include "record/progress.h"
#include "base/log.h"
#include "base/status.h"
#include "options/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

struct rnnd__meter {
    /* else lines */
    bool bar;
    struct rnnd__progress_work work;
    /* clock */
    double begun, drawn;
    /* the bar stands on the terminal */
    bool shown;
};

enum { CELLS = 12 }; /* of the bar */

static struct rnnd__meter *on_terminal; /* the meter whose bar may stand there */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void take_away(void)
{
    if (!on_terminal || !on_terminal->shown)
        return;
    fputs("\r\033[K", stderr);
    on_terminal->shown = false;
}

/* ---- words */

/* "950", "12.3k", "4.56M" */
static void short_number(double value, char text[16])
{
    static const char unit[] = " kMGT";
    int i = 0;
    for (; fabs(value) >= 1000 && unit[i + 1]; i++)
        value /= 1000;
    int digits = i == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
    snprintf(text, 16, "%.*f%.*s", digits, value, i > 0, unit + i);
}

/* "1:05", "2:03:04"; "?" where it is not known */
static void duration(double seconds, char text[24])
{
    if (!(seconds >= 0 && seconds < 1e8)) {
        strcpy(text, "?");
        return;
    }
    long s = lround(seconds);
    if (s < 3600)
        snprintf(text, 24, "%ld:%02ld", s / 60, s % 60);
    else
        snprintf(text, 24, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
}

/* Work left over work done since the start; NaN where not known. */
static double left_over_fresh(double total, double before, double at)
{
    if (total <= 0 || at <= before)
        return NAN;
    return (total > at ? total - at : 0) / (at - before);
}

/* Seconds to go, to the nearer of the ends; NaN where not known. */
static double time_left(const struct rnnd__meter *m,
                        const struct rnnd__progress_point *at)
{
    const struct rnnd__progress_work *w = &m->work;
    double by_steps = left_over_fresh(w->steps, w->steps_done, at->steps);
    double by_updates = left_over_fresh((double)w->updates, (double)w->updates_done,
                                        (double)at->update);
    return fmin(by_steps, by_updates) * (now() - m->begun); /* fmin passes NaN over */
}

/* How much of the run is done, 0 to 1; negative where not known. */
static double share_done(const struct rnnd__meter *m,
                         const struct rnnd__progress_point *at)
{
    double share = m->work.steps > 0 ? at->steps / m->work.steps : -1;
    if (m->work.updates > 0)
        share = fmax(share, (double)at->update / (double)m->work.updates);
    return fmin(share, 1);
}

static void describe(const struct rnnd__meter *m, const struct rnnd__progress_point *at,
                     char *text, size_t size)
{
    char speed[16], left[24], lr[32];
    short_number(at->steps_per_s, speed);
    duration(time_left(m, at), left);
    snprintf(lr, sizeof lr, "%.3g", at->lr);
    snprintf(text, size,
             "epoch %" PRId64 "/%" PRId64 "  update %" PRId64
             "  loss %.4g  %s steps/s  ETA %s  lr %s",
             at->epoch, at->epochs, at->update, at->loss, speed, left, lr);
}

/* ---- the bar */

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

/* "[=====>    ]  42% ": nothing where the share is not known. */
static int draw_cells(double share, char text[CELLS + 16])
{
    if (share < 0)
        return 0;
    int full = (int)(share * CELLS);
    char *to = text;
    *to++ = '[';
    for (int i = 0; i < CELLS; i++)
        *to++ = i < full ? '=' : i == full ? '>' : ' ';
    return (int)(to - text) + snprintf(to, 15, "] %3d%%  ", (int)(100 * share));
}

static void draw(struct rnnd__meter *m, const struct rnnd__progress_point *at)
{
    char line[512], words[256];
    int n = draw_cells(share_done(m, at), line);
    describe(m, at, words, sizeof words);
    snprintf(line + n, sizeof line - (size_t)n, "%s", words);
    /* one column stays free: a full line would wrap */
    fprintf(stderr, "\r%.*s\033[K", terminal_width() - 1, line);
    fflush(stderr);
    m->shown = true;
    m->drawn = now();
}

/* ---- the meter */

int rnnd__progress_begin(enum rnnd_progress kind,
                         const struct rnnd__progress_work *work,
                         struct rnnd__meter **out)
{
    struct rnnd__meter *m = NULL;
    bool bar = kind == RNND_PROGRESS_BAR ||
               (kind == RNND_PROGRESS_AUTO && isatty(STDERR_FILENO));
    if (kind != RNND_PROGRESS_NONE) {
        RNND_TRY(RNND_NEW(&m, 1, "progress"));
        *m = (struct rnnd__meter){bar, *work, now(), -1, false};
        on_terminal = bar ? m : NULL;
        rnnd__log_before(bar ? take_away : NULL);
    }
    *out = m;
    return 0;
}

void rnnd__progress_update(struct rnnd__meter *m, const struct rnnd__progress_point *at,
                           bool logged)
{
    if (!m)
        return;
    if (m->bar) {
        if (now() - m->drawn >= 0.2)
            draw(m, at);
    } else if (logged) {
        char line[256];
        describe(m, at, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
}

void rnnd__progress_valid(struct rnnd__meter *m, int64_t update, int64_t epoch,
                          const struct rnnd_metrics *result)
{
    if (!m)
        return;
    take_away();
    fprintf(stderr, "epoch %" PRId64 "  update %" PRId64 "  validation loss %.6g",
            epoch, update, result->loss);
    if (result->metric)
        fprintf(stderr, "  %s %.6g", result->metric, result->value);
    putc('\n', stderr);
}

void rnnd__progress_end(struct rnnd__meter *m)
{
    if (!m)
        return;
    take_away();
    if (on_terminal == m) {
        on_terminal = NULL;
        rnnd__log_before(NULL);
    }
    free(m);
}
