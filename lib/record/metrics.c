/*
 * metrics.c - writes metrics.jsonl, cuts it back for a resumed run, and finds its
 * result.
 *
 * Lines that stay are copied as they are, so a cut changes no byte of them.
 */
#include "record/metrics.h"
#include "base/file.h"
#include "base/status.h"
#include "checkpoint/run_dir.h"
#include "options/options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rnnd__metrics_log {
    int fd;
    char *path;
};

enum { JSON_STYLE = JSON_REAL_PRECISION(17) };

/* ---- values */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A path may hold bytes that are no UTF-8, which JSON does not know. */
static json_t *text(const char *value)
{
    json_t *string = json_string(value);
    char *ascii = string ? NULL : strdup(value);
    if (!ascii)
        return string;
    for (char *c = ascii; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    string = json_string(ascii);
    free(ascii);
    return string;
}

/* One option as a member of a JSON object. */
static int add_option(void *context, const char *name, enum rnnd__option_kind kind,
                      const char *value)
{
    json_t *member = kind == RNND_SWITCH    ? json_boolean(!strcmp(value, "yes"))
                     : kind == RNND_INTEGER ? json_integer(strtoll(value, NULL, 10))
                     : kind == RNND_REAL    ? number(strtod(value, NULL))
                                            : text(value);
    if (json_object_set_new(context, name, member) < 0)
        return rnnd__fail_memory(strlen(value), "a record");
    return 0;
}

static int add_result(json_t *record, const struct rnnd_metrics *result)
{
    int fault = json_object_set_new(record, "loss", number(result->loss)) |
                json_object_set_new(record, "targets", json_integer(result->targets));
    if (result->metric)
        fault |= json_object_set_new(record, result->metric, number(result->value));
    return fault ? rnnd__fail_memory(0, "a record") : 0;
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
    /* not to wait for the reader of a pipe */
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
    free(log->path);
    free(log);
}

/* Appends a record, and takes it. */
static int append(struct rnnd__metrics_log *log, json_t *record)
{
    char *line = record ? json_dumps(record, JSON_STYLE) : NULL;
    json_decref(record);
    if (!line)
        return rnnd__fail_memory(0, "a record");
    size_t length = strlen(line);
    line[length] = '\n'; /* in the place of the end */
    int status = rnnd__file_append(log->fd, log->path, line, length + 1);
    free(line);
    return status;
}

int rnnd__metrics_start(struct rnnd__metrics_log *log,
                        const struct rnnd__start_record *r)
{
    json_t *config = json_object(), *devices = json_array();
    int status = config && devices ? 0 : rnnd__fail_memory(0, "a record");
    if (status == 0)
        status = rnnd__options_each(r->opt, add_option, config);
    for (int rank = 0; rank < r->ranks && status == 0; rank++)
        if (json_array_append_new(devices, text(r->devices[rank])) < 0)
            status = rnnd__fail_memory(0, "a record");
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
        number(r->loss), "targets", (json_int_t)r->targets, "steps_per_s",
        number(r->steps_per_s), "lr", number(r->lr), "grad_norm", number(r->grad_norm),
        "idle", number(r->idle), "straggler", number(r->straggler));
    if (record && r->partial &&
        json_object_set_new(record, "partial", json_true()) < 0) {
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
    int status = add_result(record, &r->result);
    if (status < 0) {
        json_decref(record);
        return status;
    }
    return append(log, record);
}

int rnnd__metrics_save(struct rnnd__metrics_log *log, int64_t update, const char *file)
{
    return append(log, json_pack("{s:s, s:I, s:o}", "event", "save", "update",
                                 (json_int_t)update, "file", text(file)));
}

int rnnd__metrics_skip(struct rnnd__metrics_log *log, int64_t update,
                       const char *reason)
{
    return append(log, json_pack("{s:s, s:I, s:o}", "event", "skip", "update",
                                 (json_int_t)update, "reason", text(reason)));
}

int rnnd__metrics_end(struct rnnd__metrics_log *log, int status, int64_t updates,
                      double seconds)
{
    return append(log, json_pack("{s:s, s:i, s:I, s:o}", "event", "end", "status",
                                 status, "updates", (json_int_t)updates, "seconds",
                                 number(seconds)));
}

/* ---- reading it */

static bool is_event(const json_t *record, const char *event)
{
    const char *name = json_string_value(json_object_get(record, "event"));
    return name && !strcmp(name, event);
}

/* What of a run a checkpoint knows. */
struct known {
    int64_t update, validated;
};

/* Whether a line belongs to that. A line cut short by a crash does not. */
static bool belongs(const char *line, size_t length, const struct known *known)
{
    json_t *record = json_loadb(line, length, 0, NULL);
    if (!record)
        return false;
    bool end = is_event(record, "end"), valid = is_event(record, "valid");
    const json_t *at = json_object_get(record, end ? "updates" : "update");
    int64_t update = json_integer_value(at);
    bool keep = is_event(record, "start") || !at || update <= known->update;
    if (is_event(record, "train") && json_is_true(json_object_get(record, "partial")))
        keep = false;
    if (valid && update > known->validated)
        keep = false;
    json_decref(record);
    return keep;
}

static int copy_lines(FILE *from, FILE *to, const char *to_path,
                      const struct known *known)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    bool whole = true;
    while (whole && (length = getline(&line, &room, from)) > 0) {
        if (!belongs(line, (size_t)length, known))
            continue;
        whole = fwrite(line, 1, (size_t)length, to) == (size_t)length;
        if (whole && line[length - 1] != '\n')
            whole = putc('\n', to) != EOF;
    }
    free(line);
    if (ferror(from))
        return rnnd__file_fail("read what goes to", to_path);
    whole = whole && fflush(to) == 0 && fsync(fileno(to)) == 0;
    return whole ? 0 : rnnd__file_fail("write", to_path);
}

/* A rename is safe once the folder is written. */
static int sync_folder(const char *run_dir)
{
    int fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return rnnd__file_fail("open", run_dir);
    int status = fsync(fd) < 0 ? rnnd__file_fail("write", run_dir) : 0;
    close(fd);
    return status;
}

static int rewrite(const char *run_dir, FILE *from, const char *path,
                   const struct known *known)
{
    char *temp;
    RNND_TRY(rnnd__run_dir_file(run_dir, "metrics.jsonl.tmp", &temp));
    FILE *to = fopen(temp, "w");
    int status = to ? copy_lines(from, to, temp, known) : rnnd__file_fail("open", temp);
    if (to && fclose(to) != 0 && status == 0)
        status = rnnd__file_fail("write", temp);
    if (status == 0 && rename(temp, path) < 0)
        status = rnnd__file_fail("replace", path);
    if (status < 0 && to)
        unlink(temp);
    free(temp);
    RNND_TRY(status);
    return sync_folder(run_dir);
}

int rnnd__metrics_cut(const char *run_dir, int64_t update, int64_t validated)
{
    struct known known = {update, validated};
    char *path;
    FILE *from = NULL;
    RNND_TRY(rnnd__run_dir_file(run_dir, "metrics.jsonl", &path));
    int status = rnnd__file_open(path, &from);
    if (status == 0 && from)
        status = rewrite(run_dir, from, path, &known);
    if (from)
        fclose(from);
    free(path);
    return status;
}

/* ---- results */

/* The last record of each of two events; NULL where there is none. */
static void find_last(FILE *from, const char *const event[2], json_t *last[2])
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    last[0] = last[1] = NULL;
    while ((length = getline(&line, &room, from)) > 0) {
        json_t *record = json_loadb(line, (size_t)length, 0, NULL);
        for (int i = 0; i < 2; i++)
            if (is_event(record, event[i])) {
                json_decref(last[i]);
                last[i] = json_incref(record);
            }
        json_decref(record);
    }
    free(line);
}

int rnnd__metrics_result(const char *run_dir, char **json)
{
    static const char *const events[2] = {"end", "valid"};
    char *path, *line = NULL;
    FILE *from = NULL;
    json_t *last[2] = {NULL, NULL};
    RNND_TRY(rnnd__run_dir_file(run_dir, "metrics.jsonl", &path));
    int status = rnnd__file_open(path, &from);
    if (status == 0 && from)
        find_last(from, events, last);
    if (status == 0 && !last[0])
        status = rnnd__fail(RNND_EFILE, "%s has no end record", path);
    if (status == 0 && last[1])
        json_object_set(last[0], "valid", last[1]);
    if (status == 0 && !(line = json_dumps(last[0], JSON_STYLE)))
        status = rnnd__fail_memory(0, "a record");
    if (status == 0)
        *json = line;
    json_decref(last[0]);
    json_decref(last[1]);
    if (from)
        fclose(from);
    free(path);
    return status;
}

static int text_of_object(const struct rnnd_metrics *result, char **out)
{
    json_t *object = json_object();
    int status = add_result(object, result);
    char *line = status == 0 ? json_dumps(object, JSON_STYLE) : NULL;
    json_decref(object);
    RNND_TRY(status);
    int n = line ? asprintf(out, "%s\n", line) : -1;
    free(line);
    return n < 0 ? rnnd__fail_memory(0, "a result") : 0;
}

int rnnd__metrics_text(const struct rnnd_metrics *result, bool json, char **out)
{
    char loss[32], value[32], *lines;
    if (json)
        return text_of_object(result, out);
    rnnd__real_text(result->loss, loss);
    rnnd__real_text(result->value, value);
    bool metric = result->metric;
    int n = asprintf(&lines, "loss %s\ntargets %" PRId64 "\n%s%s%s%s", loss,
                     result->targets, metric ? result->metric : "", metric ? " " : "",
                     metric ? value : "", metric ? "\n" : "");
    if (n < 0)
        return rnnd__fail_memory(0, "a result");
    *out = lines;
    return 0;
}
