/*
 * metrics.c - writes metrics.jsonl, removes records before a run resumes, and reads
 * them.
 *
 * Records that remain are copied byte for byte.
 */
#include "record/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "base/task.h"
#include "checkpoint/run_dir.h"
#include "options/options.h"
#include "record/result.h"

struct rnnd__metrics_log {
    int fd;
    char *path;
    /* lines that could not be written yet; owned, 0-terminated */
    char *pending;
    size_t size;
};

/* ---- values */

/* One option as a member of a JSON object. */
static int add_option(void *context, const char *name, enum rnnd__option_kind kind,
                      const char *value)
{
    json_t *member = kind == RNND_SWITCH ? json_boolean(strcmp(value, "yes") == 0)
                     : kind == RNND_INTEGER && strcmp(value, "auto") != 0
                         ? json_integer(strtoll(value, NULL, 10))
                     : kind == RNND_REAL ? rnnd__json_number(strtod(value, NULL))
                                         : rnnd__json_text(value);
    if (json_object_set_new(context, name, member) < 0)
        return rnnd__fail_memory(strlen(value), "a metrics record");
    return 0;
}

/* ---- the log */

int rnnd__metrics_open(const char *run_dir, struct rnnd__metrics_log **out)
{
    struct rnnd__metrics_log *log = NULL;
    RNND_TRY(RNND_NEW(&log, 1, "the metrics"));
    int status = rnnd__run_dir_file(run_dir, "metrics.jsonl", &log->path);
    if (status < 0) {
        free(log);
        return status;
    }
    /* O_NONBLOCK: do not wait for the reader of a pipe */
    log->fd =
        open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
    if (log->fd < 0) {
        status = rnnd__file_fail("open", log->path);
        free(log->path);
        free(log);
        return status;
    }
    *out = log;
    return 0;
}

void rnnd__metrics_close(struct rnnd__metrics_log *log)
{
    if (!log)
        return;
    close(log->fd);
    free(log->pending);
    free(log->path);
    free(log);
}

const char *rnnd__metrics_unwritten(const struct rnnd__metrics_log *log)
{
    return log->size ? log->pending : NULL;
}

/* Appends a record, after those that could not be written before, and releases it. */
static int append(struct rnnd__metrics_log *log, json_t *record)
{
    char *line = record ? json_dumps(record, RNND_JSON_STYLE) : NULL;
    json_decref(record);
    if (!line)
        return rnnd__fail_memory(0, "a metrics record");
    size_t length = strlen(line);
    int status = RNND_GROW(&log->pending, log->size + length + 2, "a metrics record");
    if (status == 0) {
        stpcpy(stpcpy(log->pending + log->size, line), "\n");
        log->size += length + 1;
        status = rnnd__file_append(log->fd, log->path, log->pending, log->size);
    }
    if (status == 0)
        log->size = 0;
    free(line);
    return status;
}

int rnnd__metrics_start(struct rnnd__metrics_log *log,
                        const struct rnnd__start_record *r)
{
    json_t *config = json_object(), *devices = json_array();
    int status = config && devices ? 0 : rnnd__fail_memory(0, "a metrics record");
    if (status == 0)
        status = rnnd__options_each(r->opt, add_option, config);
    for (int rank = 0; rank < r->ranks && status == 0; rank++)
        if (json_array_append_new(devices, rnnd__json_text(r->devices[rank])) < 0)
            status = rnnd__fail_memory(0, "a metrics record");
    if (status < 0) {
        json_decref(config);
        json_decref(devices);
        return status;
    }
    return append(log,
                  json_pack("{s:s, s:I, s:s, s:o, s:i, s:o, s:I}", "event", "start",
                            "update", (json_int_t)r->update, "version", rnnd_version(),
                            "config", config, "ranks", r->ranks, "devices", devices,
                            "parameters", (json_int_t)r->parameters));
}

int rnnd__metrics_train(struct rnnd__metrics_log *log,
                        const struct rnnd__train_record *r)
{
    json_t *record = json_pack(
        "{s:s, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "event", "train",
        "update", (json_int_t)r->update, "epoch", (json_int_t)r->epoch, "loss",
        rnnd__json_number(r->loss), "targets", (json_int_t)r->targets, "steps_per_s",
        rnnd__json_number(r->steps_per_s), "lr", rnnd__json_number(r->lr), "grad_norm",
        rnnd__json_number(r->grad_norm), "idle", rnnd__json_number(r->idle),
        "straggler", rnnd__json_number(r->straggler));
    bool weighted = r->weight != (double)r->targets;
    if (record &&
        ((weighted &&
          json_object_set_new(record, "weight", rnnd__json_number(r->weight)) < 0) ||
         (r->partial && json_object_set_new(record, "partial", json_true()) < 0))) {
        json_decref(record);
        record = NULL;
    }
    return append(log, record);
}

int rnnd__metrics_valid(struct rnnd__metrics_log *log,
                        const struct rnnd__valid_record *r)
{
    json_t *record = json_pack("{s:s, s:I, s:I}", "event", "valid", "update",
                               (json_int_t)r->update, "epoch", (json_int_t)r->epoch);
    int status = rnnd__result_add(record, &r->result, RNND_RECORD_CLASSES);
    if (status < 0) {
        json_decref(record);
        return status;
    }
    return append(log, record);
}

int rnnd__metrics_save(struct rnnd__metrics_log *log, int64_t update, const char *file)
{
    return append(log, json_pack("{s:s, s:I, s:o}", "event", "save", "update",
                                 (json_int_t)update, "file", rnnd__json_text(file)));
}

int rnnd__metrics_skip(struct rnnd__metrics_log *log, int64_t update,
                       const char *reason)
{
    return append(log,
                  json_pack("{s:s, s:I, s:o}", "event", "skip", "update",
                            (json_int_t)update, "reason", rnnd__json_text(reason)));
}

int rnnd__metrics_end(struct rnnd__metrics_log *log, int status, int64_t updates,
                      double seconds)
{
    return append(log, json_pack("{s:s, s:i, s:I, s:o}", "event", "end", "status",
                                 status, "updates", (json_int_t)updates, "seconds",
                                 rnnd__json_number(seconds)));
}

/* ---- removing records */

/* What a checkpoint includes of a run; records: those it keeps itself. */
struct known {
    int64_t update, validated;
    const char *records;
};

/* Whether a line stays. Incomplete lines, as after a crash, do not. */
static bool stays(const char *line, size_t length, const struct known *known)
{
    json_t *record = json_loadb(line, length, 0, NULL);
    if (!record)
        return false;
    bool end = rnnd__metrics_is(record, "end"),
         valid = rnnd__metrics_is(record, "valid");
    const json_t *at = json_object_get(record, end ? "updates" : "update");
    int64_t update = json_integer_value(at);
    bool keep = rnnd__metrics_is(record, "start") || !at || update <= known->update;
    if (rnnd__metrics_is(record, "train") &&
        json_is_true(json_object_get(record, "partial")))
        keep = false;
    if (valid && update > known->validated)
        keep = false;
    json_decref(record);
    return keep;
}

/* Write errors show when `to` is committed. */
static int copy_lines(FILE *from, FILE *to, const char *path, const struct known *known)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, from)) > 0) {
        if (!stays(line, (size_t)length, known))
            continue;
        fwrite(line, 1, (size_t)length, to);
        if (line[length - 1] != '\n')
            putc('\n', to);
    }
    free(line);
    return ferror(from) ? rnnd__file_fail("read", path) : 0;
}

/* Whether the file, which is read from its beginning, has this line. */
static bool has_line(FILE *file, const char *text, size_t length)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool found = false;
    rewind(file);
    while (!found && (n = getline(&line, &room, file)) > 0)
        found = (size_t)n == length && memcmp(line, text, length) == 0;
    free(line);
    return found;
}

static void add_kept(FILE *from, FILE *to, const struct known *known)
{
    for (const char *line = known->records; line && *line;) {
        size_t length = strcspn(line, "\n") + 1;
        if (stays(line, length, known) && !has_line(from, line, length))
            fwrite(line, 1, length, to);
        line += length;
    }
}

static int rewrite(FILE *from, const char *path, const struct known *known)
{
    struct rnnd__file to;
    RNND_TRY(rnnd__file_create(path, NULL, &to));
    int status = copy_lines(from, to.stream, path, known);
    add_kept(from, to.stream, known);
    if (status < 0) {
        rnnd__file_drop(&to);
        return status;
    }
    return rnnd__file_commit(&to);
}

int rnnd__metrics_cut(const char *run_dir, int64_t update, int64_t validated,
                      const char *records)
{
    struct known known = {update, validated, records};
    char *path;
    FILE *from = NULL;
    RNND_TRY(rnnd__run_dir_file(run_dir, "metrics.jsonl", &path));
    int status = rnnd__file_open(path, &from);
    if (status == 0 && from)
        status = rewrite(from, path, &known);
    if (from)
        fclose(from);
    free(path);
    return status;
}

/* ---- reading */

bool rnnd__metrics_is(const json_t *record, const char *event)
{
    const char *name = json_string_value(json_object_get(record, "event"));
    return name && strcmp(name, event) == 0;
}

int rnnd__metrics_each(const char *run_dir,
                       void (*visit)(void *context, json_t *record), void *context)
{
    char *path, *line = NULL;
    size_t room = 0;
    ssize_t length;
    FILE *file;
    RNND_TRY(rnnd__run_dir_file(run_dir, "metrics.jsonl", &path));
    int status = rnnd__file_open(path, &file);
    if (status == 0 && !file)
        status = rnnd__fail(RNND_EFILE, "%s: missing: not a run directory", path);
    while (status == 0 && (length = getline(&line, &room, file)) > 0) {
        json_t *record = json_loadb(line, (size_t)length, 0, NULL);
        if (record)
            visit(context, record);
        json_decref(record);
    }
    if (status == 0 && ferror(file))
        status = rnnd__file_fail("read", path);
    if (file)
        fclose(file);
    free(line);
    free(path);
    return status;
}

/* ---- results */

/* NaN where it is null or missing. */
static double real_of(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *rnnd__metrics_figure(int i)
{
    static const char *const names[] = {
        "accuracy", "perplexity",        "rmse", "nll", "balanced_accuracy", "macro_f1",
        "auroc",    "average_precision", "mae",  "r2",  "label_error_rate"};
    return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

const char *rnnd__metrics_name(const json_t *record)
{
    const char *name;
    for (int i = 0; (name = rnnd__metrics_figure(i)); i++)
        if (json_object_get(record, name))
            return name;
    return NULL;
}

const struct rnnd__measure *rnnd__metrics_judge(const json_t *start)
{
    const char *by =
        json_string_value(json_object_get(json_object_get(start, "config"), "best-by"));
    const struct rnnd__measure *judge = by ? rnnd__measure_find(by) : NULL;
    return judge ? judge : rnnd__measure(RNND_BY_LOSS);
}

bool rnnd__metrics_better(const json_t *record, const json_t *best,
                          const struct rnnd__measure *judge)
{
    const char *key = judge->figure ? judge->figure : "loss";
    double value = real_of(record, key), so_far = real_of(best, key);
    return !isnan(value) &&
           (!best || (judge->higher ? value > so_far : value < so_far));
}

bool rnnd__metrics_loss_of(const json_t *record, int64_t epoch, double *loss,
                           double *weight)
{
    if (!rnnd__metrics_is(record, "train") ||
        json_is_true(json_object_get(record, "partial")) ||
        json_integer_value(json_object_get(record, "epoch")) != epoch)
        return false;
    bool weighted = json_object_get(record, "weight") != NULL;
    *weight = real_of(record, weighted ? "weight" : "targets");
    *loss = *weight > 0 ? *weight * real_of(record, "loss") : 0;
    return true;
}

/* What decides the outcome of a run. */
struct deciding {
    json_t *start, *best;
    double train_loss;
};

static void replace(json_t **kept, json_t *record)
{
    json_decref(*kept);
    *kept = json_incref(record);
}

static void keep_deciding(void *context, json_t *record)
{
    struct deciding *run = context;
    if (rnnd__metrics_is(record, "start")) {
        if (rnnd__metrics_judge(record) != rnnd__metrics_judge(run->start))
            replace(&run->best, NULL);
        replace(&run->start, record);
    } else if (rnnd__metrics_is(record, "train")) {
        double loss = real_of(record, "loss");
        run->train_loss = isnan(loss) ? run->train_loss : loss;
    } else if (rnnd__metrics_is(record, "valid") &&
               rnnd__metrics_better(record, run->best,
                                    rnnd__metrics_judge(run->start))) {
        replace(&run->best, record);
    }
}

int rnnd__metrics_outcome(const char *run_dir, struct rnnd__outcome *out)
{
    struct deciding run = {NULL, NULL, NAN};
    int status = rnnd__metrics_each(run_dir, keep_deciding, &run);
    const char *judge = rnnd__metrics_judge(run.start)->figure;
    const char *name = judge ? judge : rnnd__metrics_name(run.best);
    if (status == 0) {
        *out = (struct rnnd__outcome){
            .train_loss = run.train_loss,
            .valid_loss = real_of(run.best, "loss"),
            .value = name ? real_of(run.best, name) : NAN,
            .epoch = json_integer_value(json_object_get(run.best, "epoch")),
            .by_metric = judge != NULL};
        snprintf(out->metric, sizeof out->metric, "%s", name ? name : "");
    }
    json_decref(run.start);
    json_decref(run.best);
    return status;
}

/* The last record of each event. */
struct last {
    json_t *end, *valid;
};

static void keep_last(void *context, json_t *record)
{
    struct last *last = context;
    json_t **kept = rnnd__metrics_is(record, "end")     ? &last->end
                    : rnnd__metrics_is(record, "valid") ? &last->valid
                                                        : NULL;
    if (!kept)
        return;
    json_decref(*kept);
    *kept = json_incref(record);
}

int rnnd__metrics_result(const char *run_dir, char **json)
{
    struct last last = {NULL, NULL};
    char *line = NULL;
    int status = rnnd__metrics_each(run_dir, keep_last, &last);
    if (status == 0 && !last.end)
        status = rnnd__fail(RNND_EFILE, "%s/metrics.jsonl: has no end record", run_dir);
    if (status == 0 && last.valid)
        json_object_set(last.end, "valid", last.valid);
    if (status == 0 && !(line = json_dumps(last.end, RNND_JSON_STYLE)))
        status = rnnd__fail_memory(0, "a metrics record");
    if (status == 0)
        *json = line;
    json_decref(last.end);
    json_decref(last.valid);
    return status;
}
