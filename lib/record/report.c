/*
 * report.c - reads the records of runs and writes an HTML page: a table of results, a
 * chart per quantity with a curve per run, a table of options.
 *
 * Shows what metrics.jsonl says, and of the losses the last and the best.
 */
#include "record/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "base/task.h"
#include "options/options.h"
#include "record/chart.h"
#include "record/metrics.h"
#include "record/report_classes.h"

/* The records of one run. */
struct history {
    /* the folder, as given */
    const char *name;
    /* the last of each; end NULL = the run has not ended */
    json_t *start, *end;
    /* over all starts of the run that ended */
    double seconds;
    /* arrays of all */
    json_t *train, *valid, *skip;
};

/* ---- reading */

/* Keeps a record. A run that starts again, as resumed, has not ended. */
static void keep(void *context, json_t *record)
{
    struct history *h = context;
    if (rnnd__metrics_is(record, "start")) {
        json_decref(h->start);
        json_decref(h->end);
        h->start = json_incref(record);
        h->end = NULL;
    } else if (rnnd__metrics_is(record, "end")) {
        json_decref(h->end);
        h->end = json_incref(record);
        h->seconds += json_number_value(json_object_get(record, "seconds"));
    } else if (rnnd__metrics_is(record, "train")) {
        json_array_append(h->train, record);
    } else if (rnnd__metrics_is(record, "valid")) {
        json_array_append(h->valid, record);
    } else if (rnnd__metrics_is(record, "skip")) {
        json_array_append(h->skip, record);
    }
}

static void clear(struct history *h)
{
    json_decref(h->start);
    json_decref(h->end);
    json_decref(h->train);
    json_decref(h->valid);
    json_decref(h->skip);
}

static int read_history(const char *run, struct history *h)
{
    *h = (struct history){run, NULL, NULL, 0, json_array(), json_array(), json_array()};
    RNND_TRY(rnnd__metrics_each(run, keep, h));
    if (!h->start)
        return rnnd__fail(RNND_EDATA, "%s/metrics.jsonl: has no start record", run);
    return 0;
}

/* ---- values of records */

/* NaN where it is null or missing. */
static double number(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int64_t integer(const json_t *record, const char *key)
{
    return json_integer_value(json_object_get(record, key));
}

static const json_t *last_of(const json_t *records)
{
    size_t n = json_array_size(records);
    return n ? json_array_get(records, n - 1) : NULL;
}

/* The best validation of a run, by the loss or by its --best-by. */
static const json_t *best_of(const struct history *h)
{
    const json_t *best = NULL;
    for (size_t i = 0; i < json_array_size(h->valid); i++) {
        const json_t *r = json_array_get(h->valid, i);
        if (rnnd__metrics_better(r, best, rnnd__metrics_judge(h->start)))
            best = r;
    }
    return best;
}

/* ---- text */

static void put_cell(FILE *out, const char *text)
{
    fputs("<td>", out);
    rnnd__report_text(out, text);
    fputs("</td>", out);
}

static void put_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "<td class=n>%.6g</td>", value);
    else
        fputs("<td class=n>–</td>", out);
}

static void put_count(FILE *out, int64_t value)
{
    fprintf(out, "<td class=n>%" PRId64 "</td>", value);
}

static const char head[] =
    "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
    "<meta name=viewport content=\"width=device-width\">\n"
    "<meta name=generator content=\"rnn_dist %s\">\n<title>rnn_dist: %d run%s</title>\n"
    "<style>\n"
    ":root { color-scheme: light dark }\n"
    "body { font: 15px/1.5 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 "
    "1em }\n"
    "table { border-collapse: collapse; margin: 1em 0 }\n"
    "th, td { padding: .15em .8em .15em 0; text-align: left; vertical-align: top }\n"
    "tr + tr td { border-top: 1px solid #8884 }\n"
    ".n { text-align: right; font-variant-numeric: tabular-nums }\n"
    ".differs td { font-weight: bold }\n"
    ".wide { overflow-x: auto } .wide td { white-space: nowrap }\n"
    "figure { display: inline-block; width: 460px; max-width: 100%%; margin: .5em 1em "
    ".5em 0; vertical-align: top }\n"
    ".legend { font-size: 13px; margin-right: .8em; white-space: nowrap }\n"
    "svg { display: block; width: 100%% } svg text { font-size: 11px; fill: "
    "currentColor }\n"
    "summary { cursor: pointer; margin: 1em 0 }\n"
    ".grid { stroke: #8884 } .curve { fill: none; stroke-width: 1.5 }\n"
    ".thin { stroke-width: 1; opacity: .55 }\n"
    "</style>\n";

/* ---- results */

static void put_state(FILE *out, const struct history *h)
{
    static const char *const ended[] = {[-RNND_OK] = "done",
                                        [-RNND_EFILE] = "failed: files",
                                        [-RNND_EDEVICE] = "failed: device",
                                        [-RNND_ECOMM] = "failed: communication",
                                        [-RNND_ENONFINITE] =
                                            "failed: non-finite loss or gradient"};
    int64_t status = h->end ? integer(h->end, "status") : -1;
    if (status == -RNND_STOPPED)
        put_cell(out, "stopped, can be resumed");
    else if (status < 0)
        put_cell(out, "not finished");
    else if (status < (int)(sizeof ended / sizeof *ended) && ended[status])
        put_cell(out, ended[status]);
    else
        fprintf(out, "<td>status %" PRId64 "</td>", status);
}

static void put_result(FILE *out, const struct history *h, int number_of_run)
{
    const json_t *train = last_of(h->train), *best = best_of(h);
    const json_t *device = json_array_get(json_object_get(h->start, "devices"), 0);
    const char *judge = rnnd__metrics_judge(h->start)->figure;
    const char *metric = judge ? judge : rnnd__metrics_name(best);
    fprintf(out, "<tr><td style=\"color:%s\">&#9632;</td>",
            rnnd__chart_colour(number_of_run));
    put_cell(out, h->name);
    put_state(out, h);
    put_count(out, h->end ? integer(h->end, "updates") : integer(train, "update"));
    put_count(out, integer(train, "epoch"));
    put_number(out, h->seconds > 0 ? h->seconds : NAN);
    put_number(out, number(train, "loss"));
    put_number(out, number(best, "loss"));
    if (metric && isfinite(number(best, metric)))
        fprintf(out, "<td class=n>%s %.6g</td>", metric, number(best, metric));
    else
        fputs("<td class=n>–</td>", out);
    put_number(out, number(best, "update"));
    put_count(out, (int64_t)json_array_size(h->skip));
    put_count(out, integer(h->start, "ranks"));
    put_cell(out, json_is_string(device) ? json_string_value(device) : "");
    put_count(out, integer(h->start, "parameters"));
    fputs("</tr>\n", out);
}

static void put_results(FILE *out, const struct history *h, int count)
{
    fputs("<div class=wide><table>\n<tr><th></th><th>run</th><th>status</th>"
          "<th>updates</th>"
          "<th>epoch</th><th>seconds</th><th>training loss</th>"
          "<th>best validation loss</th><th>metric</th><th>at update</th>"
          "<th>skipped</th><th>ranks</th><th>device</th><th>parameters</th></tr>\n",
          out);
    for (int i = 0; i < count; i++)
        put_result(out, &h[i], i);
    fputs("</table></div>\n", out);
}

/* ---- curves */

/* The caption of a chart: its title, and of several runs which curve is whose. */
static void put_caption(FILE *out, const struct history *h, int count,
                        const struct rnnd__chart *chart, const char *title)
{
    fprintf(out, "<figure><figcaption>%s", title);
    for (int i = 0; count > 1 && i < count; i++) {
        if (!rnnd__chart_has(chart, 2 * i) && !rnnd__chart_has(chart, 2 * i + 1))
            continue;
        fprintf(out, "%s<span class=legend><span style=\"color:%s\">&#9632;</span> ",
                i ? "\n" : "<br>", rnnd__chart_colour(i));
        rnnd__report_text(out, h[i].name);
        fputs("</span>", out);
    }
    fputs("</figcaption>\n", out);
}

/* One quantity of all runs, of the validations or of the training records; both: the
   validations, and the training records as thin lines. What never changes is not
   drawn, but for losses and metrics. */
static int put_chart(FILE *out, const struct history *h, int count, const char *title,
                     const char *key, bool valid, bool both)
{
    struct rnnd__chart *chart;
    RNND_TRY(rnnd__chart_new(title, "update", &chart));
    int status = 0;
    for (int thin = both; thin >= 0; thin--)
        for (int i = 0; i < count && status == 0; i++) {
            const json_t *records = valid && !thin ? h[i].valid : h[i].train;
            for (size_t j = 0; j < json_array_size(records) && status == 0; j++) {
                const json_t *r = json_array_get(records, j);
                status = rnnd__chart_add(chart, 2 * i + thin, number(r, "update"),
                                         number(r, key));
            }
        }
    bool any = false;
    for (int i = 0; i < 2 * count; i++)
        any |= rnnd__chart_has(chart, i);
    if (status == 0 && any && (valid || !rnnd__chart_is_flat(chart))) {
        put_caption(out, h, count, chart, title);
        rnnd__chart_put(chart, out);
        fputs("</figure>\n", out);
    }
    rnnd__chart_free(chart);
    return status;
}

static int put_charts(FILE *out, const struct history *h, int count)
{
    RNND_TRY(put_chart(out, h, count, "Loss: validation, training (thin)", "loss", true,
                       true));
    const char *figure;
    for (int i = 0; (figure = rnnd__metrics_figure(i)); i++) {
        char title[64];
        snprintf(title, sizeof title, "Validation: %s", figure);
        RNND_TRY(put_chart(out, h, count, title, figure, true, false));
    }
    RNND_TRY(put_chart(out, h, count, "Learning rate", "lr", false, false));
    RNND_TRY(put_chart(out, h, count, "Gradient norm", "grad_norm", false, false));
    RNND_TRY(put_chart(out, h, count, "Steps per second", "steps_per_s", false, false));
    RNND_TRY(put_chart(out, h, count, "Idle time (fraction)", "idle", false, false));
    return put_chart(out, h, count, "Load imbalance (max/mean)", "straggler", false,
                     false);
}

/* ---- options */

static const json_t *option(const struct history *h, const char *name)
{
    return json_object_get(json_object_get(h->start, "config"), name);
}

static bool differs(const struct history *h, int count, const char *name)
{
    for (int i = 1; i < count; i++)
        if (!json_equal(option(&h[i], name), option(&h[0], name)) &&
            (option(&h[i], name) || option(&h[0], name)))
            return true;
    return false;
}

/* Whether a value is the default of that option. */
static bool is_preset(const json_t *value, const char *name)
{
    const char *preset = rnnd__options_preset(name);
    if (!preset)
        return false;
    if (json_is_boolean(value))
        return json_is_true(value) == (strcmp(preset, "yes") == 0);
    if (json_is_number(value)) {
        char *end;
        double number = strtod(preset, &end);
        return !*end && json_number_value(value) == number;
    }
    return json_is_string(value) && strcmp(json_string_value(value), preset) == 0;
}

/* Whether an option differs between these runs or from the default. */
static bool is_telling(const struct history *h, int count, const char *name)
{
    bool preset = true;
    for (int i = 0; i < count; i++)
        preset =
            preset && (!option(&h[i], name) || is_preset(option(&h[i], name), name));
    return !preset || differs(h, count, name);
}

static void put_option(FILE *out, const struct history *h, int count, const char *name)
{
    fputs(differs(h, count, name) ? "<tr class=differs>" : "<tr>", out);
    put_cell(out, name);
    for (int i = 0; i < count; i++) {
        const json_t *value = option(&h[i], name);
        if (json_is_boolean(value))
            put_cell(out, json_is_true(value) ? "yes" : "no");
        else if (json_is_string(value))
            put_cell(out, json_string_value(value));
        else if (json_is_number(value))
            put_number(out, json_number_value(value));
        else
            put_cell(out, "");
    }
    fputs("</tr>\n", out);
}

/* A table of the options that tell of these runs, or of the others: those of the first
   run in their order, then those that only later runs have. */
static void put_some_options(FILE *out, const struct history *h, int count,
                             bool telling)
{
    fputs("<div class=wide><table>\n<tr><th></th>", out);
    for (int i = 0; i < count; i++) {
        fputs("<th>", out);
        rnnd__report_text(out, h[i].name);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (int i = 0; i < count; i++) {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(h[i].start, "config"), name, value)
        {
            bool shown = false;
            for (int j = 0; j < i; j++)
                shown |= option(&h[j], name) != NULL;
            if (!shown && is_telling(h, count, name) == telling)
                put_option(out, h, count, name);
        }
    }
    fputs("</table></div>\n", out);
}

static void put_options(FILE *out, const struct history *h, int count)
{
    fputs("<h2>Options</h2>\n", out);
    put_some_options(out, h, count, true);
    fputs("<details><summary>Options that have their default</summary>\n", out);
    put_some_options(out, h, count, false);
    fputs("</details>\n", out);
}

/* ---- the page */

/* The best validation first, by what judged all of these runs, or else by the loss;
   runs without one last; otherwise in the order given. */
static void sort_runs(struct history *h, int count)
{
    const struct rnnd__measure *judge = rnnd__metrics_judge(h[0].start);
    for (int i = 1; i < count; i++)
        if (rnnd__metrics_judge(h[i].start) != judge)
            judge = rnnd__measure(RNND_BY_LOSS);
    for (int i = 1; i < count; i++) {
        struct history run = h[i];
        int at = i;
        while (at > 0 &&
               rnnd__metrics_better(best_of(&run), best_of(&h[at - 1]), judge)) {
            h[at] = h[at - 1];
            at--;
        }
        h[at] = run;
    }
}

static int put_page(FILE *out, const struct history *h, int count)
{
    fprintf(out, head, rnnd_version(), count, count == 1 ? "" : "s");
    fputs("<h1>Training runs of rnn_dist</h1>\n", out);
    put_results(out, h, count);
    RNND_TRY(put_charts(out, h, count));
    for (int i = 0; i < count; i++)
        rnnd__report_classes(out, h[i].name, best_of(&h[i]));
    put_options(out, h, count);
    return 0;
}

static const struct rnnd__kind kind = {"a report of rnn_dist",
                                       {"<!doctype html>\n"},
                                       "<h1>Training runs of rnn_dist</h1>"};

int rnnd__report(const char *const *run, int count, const char *out)
{
    struct history *h = NULL;
    struct rnnd__file file = {0};
    int read = 0, status = 0;
    RNND_TRY(RNND_NEW(&h, count, "the records of runs"));
    while (read < count && status == 0) {
        status = read_history(run[read], &h[read]);
        read++;
    }
    if (status == 0)
        sort_runs(h, count);
    if (status == 0)
        status = rnnd__file_create(out, &kind, &file);
    if (status == 0) {
        status = put_page(file.stream, h, count);
        if (status == 0)
            status = rnnd__file_commit(&file);
        else
            rnnd__file_drop(&file);
    }
    for (int i = 0; i < read; i++)
        clear(&h[i]);
    free(h);
    return status;
}
