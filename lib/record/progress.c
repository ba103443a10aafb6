/*
 * progress.c - draws a progress bar, or writes lines.
 *
 * The bar is one line of the terminal, never longer than its width, redrawn a few
 * times a second. Other messages on standard error (log.c) erase it first; the next
 * update draws it again.
 */
#include "record/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "options/options.h"

struct rnnd__meter {
    /* a bar, else lines */
    bool bar;
    struct rnnd__progress_work work;
    /* rnnd__clock() of the start, of the last drawing (-1 = none), and of the last line
       (or the start) */
    double begun, drawn, written;
    /* the bar is on the terminal */
    bool shown;
};

enum { CELLS = 12 };             /* of the bar */
enum { WORDS = 5, DETAILS = 2 }; /* after the epoch, and the last of them */
enum { LINE_SECONDS = 10 };      /* between lines within an epoch, at least */

static struct rnnd__meter *on_terminal; /* the meter that draws a bar, or NULL */

static void erase(void)
{
    if (!on_terminal || !on_terminal->shown)
        return;
    fputs("\r\033[K", stderr);
    on_terminal->shown = false;
}

/* ---- formatting */

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

/* "1:05", "2:03:04"; "?" if unknown */
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

/* Work left over work done since the start; NaN if unknown. */
static double work_ratio(double total, double before, double at)
{
    if (total <= 0 || at <= before)
        return NAN;
    return (total > at ? total - at : 0) / (at - before);
}

/* Seconds until the first of the limits is reached; NaN if unknown. */
static double time_left(const struct rnnd__meter *m,
                        const struct rnnd__progress_point *at)
{
    const struct rnnd__progress_work *w = &m->work;
    double by_steps = work_ratio(w->steps, w->steps_done, at->steps);
    double by_updates =
        work_ratio((double)w->updates, (double)w->updates_done, (double)at->update);
    return fmin(by_steps, by_updates) *
           (rnnd__clock() - m->begun); /* fmin ignores NaN */
}

/* Fraction of the run that is done, 0 to 1; negative if unknown. */
static double fraction_done(const struct rnnd__meter *m,
                            const struct rnnd__progress_point *at)
{
    double fraction = m->work.steps > 0 ? at->steps / m->work.steps : -1;
    if (m->work.updates > 0)
        fraction = fmax(fraction, (double)at->update / (double)m->work.updates);
    return fmin(fraction, 1);
}

/* The words of a bar or line, without the last `fewer` of these: loss, speed, time
   left, update, learning rate. Returns their length. */
static int describe(const struct rnnd__meter *m, const struct rnnd__progress_point *at,
                    int fewer, char *text, size_t size)
{
    char speed[16], left[24];
    short_number(at->steps_per_s, speed);
    duration(time_left(m, at), left);
    char part[WORDS][40];
    if (isnan(at->loss)) /* no targets since the last line */
        strcpy(part[0], "  loss -");
    else
        snprintf(part[0], sizeof *part, "  loss %.4g", at->loss);
    snprintf(part[1], sizeof *part, "  %s steps/s", speed);
    snprintf(part[2], sizeof *part, "  ETA %s", left);
    snprintf(part[3], sizeof *part, "  update %" PRId64, at->update);
    snprintf(part[4], sizeof *part, "  lr %.3g", at->lr);
    int n = snprintf(text, size, "epoch %" PRId64 "/%" PRId64, at->epoch, at->epochs);
    for (int i = 0; i < WORDS - fewer; i++)
        n += snprintf(text + n, size - (size_t)n, "%s", part[i]);
    return n;
}

/* ---- the bar */

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

/* "[=====>    ]  42%  ", or nothing if the fraction is unknown. Returns its length. */
static int draw_cells(double fraction, char text[CELLS + 16])
{
    if (fraction < 0)
        return 0;
    int full = (int)(fraction * CELLS);
    char *to = text;
    *to++ = '[';
    for (int i = 0; i < CELLS; i++)
        *to++ = i < full ? '=' : i == full ? '>' : ' ';
    return (int)(to - text) + snprintf(to, 15, "] %3d%%  ", (int)(100 * fraction));
}

static void draw(struct rnnd__meter *m, const struct rnnd__progress_point *at)
{
    char cells[CELLS + 16] = "", words[256];
    int room = terminal_width() - 1; /* a full line would wrap */
    int n = draw_cells(fraction_done(m, at), cells);
    int used = describe(m, at, 0, words, sizeof words);
    /* Where it is too long, rate and update go first, then the bar itself, and the loss
       last. */
    for (int fewer = 1; n + used > room && fewer < WORDS; fewer++) {
        if (fewer == DETAILS + 1)
            n = 0;
        if (n + used > room)
            used = describe(m, at, fewer, words, sizeof words);
    }
    fprintf(stderr, "\r%.*s%.*s\033[K", n, cells, room, words);
    fflush(stderr);
    m->shown = true;
    m->drawn = rnnd__clock();
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
        double now = rnnd__clock();
        *m = (struct rnnd__meter){bar, *work, now, -1, now, false};
        on_terminal = bar ? m : NULL;
        rnnd__log_before(bar ? erase : NULL);
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
        if (rnnd__clock() - m->drawn >= 0.2)
            draw(m, at);
    } else if (logged && rnnd__clock() - m->written >= LINE_SECONDS) {
        char line[256];
        describe(m, at, 0, line, sizeof line);
        fprintf(stderr, "%s\n", line);
        m->written = rnnd__clock();
    }
}

/* The result of a validation, at the end of a line. */
static void put_valid(const struct rnnd_metrics *valid)
{
    if (!valid)
        return;
    fprintf(stderr, "  valid %.4g", valid->loss);
    if (valid->metric)
        fprintf(stderr, "  %s %.4g", valid->metric, valid->value);
}

void rnnd__progress_within(struct rnnd__meter *m, const struct rnnd__progress_point *at,
                           const struct rnnd_metrics *valid)
{
    if (!m)
        return;
    erase();
    fprintf(stderr, "epoch %" PRId64 "/%" PRId64 "  update %" PRId64, at->epoch,
            at->epochs, at->update);
    put_valid(valid);
    putc('\n', stderr);
    m->written = rnnd__clock();
}

void rnnd__progress_epoch(struct rnnd__meter *m, const struct rnnd__progress_point *at,
                          const struct rnnd_metrics *valid)
{
    if (!m)
        return;
    char speed[16], left[24];
    erase();
    fprintf(stderr, "epoch %" PRId64 "/%" PRId64, at->epoch, at->epochs);
    if (isfinite(at->loss))
        fprintf(stderr, "  train %.4g", at->loss);
    put_valid(valid);
    if (isfinite(at->steps_per_s)) {
        short_number(at->steps_per_s, speed);
        fprintf(stderr, "  %s steps/s", speed);
    }
    if (at->epoch < at->epochs) {
        duration(time_left(m, at), left);
        fprintf(stderr, "  ETA %s", left);
    }
    putc('\n', stderr);
    m->written = rnnd__clock();
}

void rnnd__progress_end(struct rnnd__meter *m)
{
    if (!m)
        return;
    erase();
    if (on_terminal == m) {
        on_terminal = NULL;
        rnnd__log_before(NULL);
    }
    free(m);
}
