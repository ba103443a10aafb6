/*
 * inspect.c - describes a data set, checkpoint or run directory, and checks it for
 * damage.
 *
 * Facts are collected in one JSON object; the plain text is printed from the same
 * object, so that both agree. Opens files for reading only.
 */
#include "commands/inspect.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/plain.h"
#include "base/status.h"
#include "base/task.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_dir.h"
#include "hdf/hdf.h"

struct findings {
    json_t *facts;
    /* 0 or a negative status, with the message of the first fault */
    int verdict;
    char cause[1024];
};

/* Facts that were lost because memory was lacking: the description is then none. */
static int lost;

static void put(json_t *object, const char *key, json_t *value)
{
    lost += json_object_set_new(object, key, value) != 0;
}

static void add(json_t *array, json_t *value)
{
    lost += json_array_append_new(array, value) != 0;
}

/* Strings in files may not be valid UTF-8, which JSON requires. */
static json_t *text_fact(const char *text)
{
    errno = 0;
    json_t *value = json_string(text);
    lost += !value && errno == ENOMEM;
    return value ? value : json_string("(not UTF-8)");
}

/* Records the last failure as the fault of what is inspected. */
static void condemn(struct findings *f, int verdict)
{
    f->verdict = verdict;
    snprintf(f->cause, sizeof f->cause, "%s", rnnd_status_detail());
    put(f->facts, "intact", json_false());
    put(f->facts, "error", text_fact(f->cause));
}

/* ---- data sets */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int add_lengths(json_t *facts, const struct rnnd_dataset *data)
{
    const int64_t *at = rnnd_dataset_offsets(data);
    int64_t n = rnnd_dataset_info(data)->sequences, *length, empty = 0;
    RNND_TRY(RNND_NEW(&length, n, "lengths"));
    for (int64_t i = 0; i < n; i++) {
        length[i] = at[i + 1] - at[i];
        empty += length[i] == 0;
    }
    qsort(length, (size_t)n, sizeof *length, by_size);
    put(facts, "lengths",
        json_pack("{s:I, s:I, s:f, s:f, s:I}", "shortest", (json_int_t)length[0],
                  "longest", (json_int_t)length[n - 1], "median",
                  (double)(length[(n - 1) / 2] + length[n / 2]) / 2, "mean",
                  (double)at[n] / (double)n, "empty", (json_int_t)empty));
    free(length);
    return 0;
}

/* Adds the names that name_of returns, if there are any. */
static void add_names(json_t *facts, const char *key, const struct rnnd_dataset *data,
                      const char *(*name_of)(const struct rnnd_dataset *, int64_t))
{
    json_t *names = json_array();
    for (int64_t k = 0; name_of(data, k); k++)
        add(names, text_fact(name_of(data, k)));
    if (json_array_size(names))
        put(facts, key, json_incref(names));
    json_decref(names);
}

static int describe_data(json_t *facts, const struct rnnd_dataset *data)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
    bool classes = rnnd__task_has_classes(info->task);
    char print[24];
    snprintf(print, sizeof print, "%016" PRIx64, info->fingerprint);
    put(facts, "task", json_string(rnnd_task_name(info->task)));
    put(facts, "sequences", json_integer(info->sequences));
    put(facts, "steps", json_integer(info->steps));
    if (info->vocab)
        put(facts, "vocab_size", json_integer(info->vocab));
    else
        put(facts, "inputs", json_integer(info->inputs));
    if (info->missing)
        put(facts, "missing", json_integer(info->missing));
    if (info->outputs)
        put(facts, classes ? "num_classes" : "outputs", json_integer(info->outputs));
    put(facts, "targets", json_integer(info->targets));
    RNND_TRY(add_lengths(facts, data));
    add_names(facts, "features", data, rnnd_dataset_feature);
    add_names(facts, "classes", data, rnnd_dataset_class);
    put(facts, "names", json_boolean(rnnd_dataset_name(data, 0)));
    if (info->vocab)
        put(facts, "vocab", json_boolean(rnnd_dataset_token(data, 0)));
    put(facts, "fingerprint", json_string(print));
    put(facts, "whole_file_checksum", json_boolean(info->has_checksum));
    return 0;
}

static int inspect_data(const char *path, struct findings *f)
{
    struct rnnd_dataset *data;
    int status = rnnd_dataset_open(path, &data);
    if (status == RNND_EDATA || status == RNND_EFILE) {
        condemn(f, RNND_EDATA);
        return 0;
    }
    RNND_TRY(status);
    status = describe_data(f->facts, data);
    rnnd_dataset_close(data);
    return status;
}

/* ---- checkpoints */

struct arrays {
    struct rnnd__hdf *file;
    /* name and shape of each array of the model */
    json_t *list;
    /* names of arrays without a checksum */
    json_t *bare;
    /* head.weight is the same as embed.weight */
    bool tied;
    int64_t parameters;
};

static int add_model_array(void *context, const char *object)
{
    struct arrays *a = context;
    struct rnnd__hdf_shape shape;
    json_t *dims = json_array();
    int64_t values = 1;
    int status = rnnd__hdf_shape(a->file, object, &shape);
    for (int d = 0; status == 0 && d < shape.rank; d++) {
        add(dims, json_integer(shape.dim[d]));
        values *= shape.dim[d];
    }
    const char *name = object + strlen("/model/");
    if (strncmp(name, "input.", 6) != 0 &&
        !(a->tied && strcmp(name, "head.weight") == 0))
        a->parameters += values;
    add(a->list, json_pack("{s:s, s:o}", "name", name, "shape", dims));
    return status;
}

static int look_for_checksum(void *context, const char *object)
{
    struct arrays *a = context;
    bool has;
    RNND_TRY(rnnd__hdf_has_checksum(a->file, object, &has));
    if (!has)
        add(a->bare, text_fact(object));
    return 0;
}

static int list_arrays(const char *path, const char *config, json_t *facts)
{
    struct arrays a = {.list = json_array(), .bare = json_array()};
    a.tied = strstr(config, "\ntie-weights = yes") != NULL;
    int status = rnnd__hdf_open(path, &a.file);
    if (status == 0)
        status = rnnd__hdf_each(a.file, "/model", add_model_array, &a);
    if (status == 0)
        status = rnnd__hdf_each(a.file, "/", look_for_checksum, &a);
    if (status == 0) {
        put(facts, "parameters", json_integer(a.parameters));
        put(facts, "whole_file_checksum",
            json_boolean(rnnd__hdf_ends_with_checksum(a.file)));
        if (json_array_size(a.bare))
            put(facts, "without_checksum", json_incref(a.bare));
        put(facts, "model", json_incref(a.list));
    }
    json_decref(a.list);
    json_decref(a.bare);
    rnnd__hdf_close(a.file);
    return status;
}

/* Adds update and epoch of a checkpoint to facts and, if whole, its arrays and options.
   Fails if it is damaged. */
static int check_checkpoint(const char *path, json_t *facts, bool whole)
{
    struct rnnd_checkpoint_info info = {.config = NULL};
    RNND_TRY(rnnd__checkpoint_verify(path, !whole));
    RNND_TRY(rnnd__checkpoint_read_info(path, &info));
    put(facts, "update", json_integer(info.update));
    put(facts, "epoch", json_integer(info.epoch));
    const char *config = info.config ? info.config : "";
    int status = whole ? list_arrays(path, config, facts) : 0;
    if (whole)
        put(facts, "config", text_fact(config));
    free(info.config);
    return status;
}

static int inspect_checkpoint(const char *path, struct findings *f)
{
    int status = check_checkpoint(path, f->facts, true);
    if (status < 0 && status != RNND_EDEVICE)
        condemn(f, RNND_EFILE);
    return status == RNND_EDEVICE ? status : 0;
}

/* ---- run directories */

static int is_checkpoint_name(const struct dirent *entry)
{
    int64_t update;
    return rnnd__checkpoint_name(entry->d_name, &update);
}

/* The facts about one checkpoint of a run. */
static json_t *inspect_member(const char *folder, const char *name, bool *intact,
                              struct findings *f)
{
    char *path;
    json_t *facts = json_pack("{s:s}", "file", name);
    *intact = false;
    if (rnnd__run_dir_file(folder, name, &path) == 0) {
        int status = check_checkpoint(path, facts, false);
        *intact = status == 0;
        lost += status == RNND_EDEVICE;
        free(path);
    }
    put(facts, "intact", json_boolean(*intact));
    if (!*intact) {
        put(facts, "error", text_fact(rnnd_status_detail()));
        if (f->verdict == 0)
            condemn(f, RNND_FAULT);
    }
    return facts;
}

static int inspect_checkpoints(const char *folder, struct findings *f, int64_t *valid)
{
    struct dirent **entry;
    int n = scandir(folder, &entry, is_checkpoint_name, alphasort);
    if (n < 0)
        return rnnd__fail(RNND_EFILE, "%s: %s", folder, strerror(errno));
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        bool intact = false;
        if (rnnd__run_dir_has(folder, entry[i]->d_name)) /* not removed since */
            add(list, inspect_member(folder, entry[i]->d_name, &intact, f));
        *valid += intact;
        free(entry[i]);
    }
    free(entry);
    put(f->facts, "checkpoints", list);
    return 0;
}

static int add_records(const char *folder, json_t *facts)
{
    char *text;
    int64_t lines = 0;
    RNND_TRY(rnnd__run_dir_read(folder, "metrics.jsonl", &text));
    for (const char *c = text; c && *c; c++)
        lines += *c == '\n';
    free(text);
    put(facts, "metrics_records", json_integer(lines));
    RNND_TRY(rnnd__run_dir_read(folder, "config.ini", &text));
    if (text)
        put(facts, "config", text_fact(text));
    free(text);
    return 0;
}

static int inspect_run(const char *folder, struct findings *f)
{
    int64_t valid = 0;
    bool intact;
    char *best;
    struct stat info;
    RNND_TRY(inspect_checkpoints(folder, f, &valid));
    RNND_TRY(rnnd__run_dir_file(folder, "best.h5", &best));
    bool has_best = stat(best, &info) == 0;
    free(best);
    if (has_best) {
        put(f->facts, "best", inspect_member(folder, "best.h5", &intact, f));
        valid += intact;
    }
    RNND_TRY(add_records(folder, f->facts));
    if (valid)
        return 0;
    if (!f->verdict) {
        (void)!rnnd__fail(RNND_EFILE, "%s: the folder contains no checkpoint", folder);
        condemn(f, RNND_EFILE);
    }
    f->verdict = RNND_EFILE;
    return 0;
}

/* ---- what a path is */

enum kind { DATA, CHECKPOINT, RUN };

/* The kind that the file's format attribute names. */
static int kind_of_open(struct rnnd__hdf *file, enum kind *out)
{
    char *format;
    RNND_TRY(rnnd__hdf_get_string(file, "format", &format));
    int status = 0;
    if (strcmp(format, "rnn_dist-checkpoint") == 0)
        *out = CHECKPOINT;
    else if (strcmp(format, "rnn_dist-data") == 0)
        *out = DATA;
    else
        status = rnnd__fail(RNND_EDATA,
                            "%s: attribute format = \"%.40s\": this is neither a data "
                            "file nor a checkpoint",
                            rnnd__hdf_path(file), format);
    free(format);
    return status;
}

/* The kind of a path; that of a damaged file is guessed from its bytes. EDATA where it
   is no file of this program, EFILE where it cannot be opened. */
static int kind_of(const char *path, enum kind *out)
{
    struct stat info;
    struct rnnd__hdf *file = NULL;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        *out = RUN;
        return 0;
    }
    int status = rnnd__hdf_open(path, &file);
    bool opened = status == 0;
    if (opened)
        status = kind_of_open(file, out);
    rnnd__hdf_close(file);
    if (status != RNND_EFILE && (opened || status != RNND_EDATA))
        return status;
    if (rnnd__hdf_mentions(path, "rnn_dist-checkpoint"))
        *out = CHECKPOINT;
    else if (rnnd__hdf_mentions(path, "rnn_dist-data"))
        *out = DATA;
    else
        return status;
    return 0;
}

/* ---- the plain form */

static void print_value(FILE *out, const json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_string(value)) {
        rnnd__plain_put(out, json_string_value(value));
    } else if (json_is_array(value)) {
        fputs("[", out);
        json_array_foreach(value, i, member)
        {
            fputs(i ? ", " : "", out);
            print_value(out, member);
        }
        fputs("]", out);
    } else if (json_is_object(value)) {
        const char *between = "";
        json_object_foreach((json_t *)value, key, member)
        {
            fprintf(out, "%s%s ", between, key);
            print_value(out, member);
            between = ", ";
        }
    } else if (json_is_boolean(value)) {
        fputs(json_is_true(value) ? "yes" : "no", out);
    } else {
        char *number = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        lost += !number;
        fputs(number ? number : "?", out);
        free(number);
    }
}

/* Each line indented. */
static void print_lines(FILE *out, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = strndup(text, n);
        lost += !line;
        fputs("  ", out);
        rnnd__plain_put(out, line ? line : "?");
        fputs("\n", out);
        free(line);
        text += n + (text[n] == '\n');
    }
}

/* One fact per line; lists of objects and the options, which are lines themselves,
   follow below their name, indented. Nothing else can begin a line. */
static void print_facts(FILE *out, json_t *facts)
{
    const char *key;
    json_t *value, *member;
    size_t i;
    json_object_foreach(facts, key, value)
    {
        bool rows = json_is_array(value) && json_is_object(json_array_get(value, 0));
        bool lines = strcmp(key, "config") == 0;
        const char *text = lines ? json_string_value(value) : NULL;
        if (rows) {
            fprintf(out, "%s\n", key);
            json_array_foreach(value, i, member)
            {
                fputs("  ", out);
                print_value(out, member);
                fputs("\n", out);
            }
        } else if (text && strchr(text, '\n')) {
            fprintf(out, "%s\n", key);
            print_lines(out, text);
        } else {
            fprintf(out, "%-16s ", key);
            print_value(out, value);
            fputs("\n", out);
        }
    }
}

static int to_text(json_t *facts, bool json, char **text)
{
    char *all = NULL;
    size_t size;
    FILE *out = open_memstream(&all, &size);
    if (out) {
        if (json)
            lost += json_dumpf(facts, out, JSON_REAL_PRECISION(9)) != 0;
        else
            print_facts(out, facts);
        if (json)
            fputs("\n", out);
    }
    if (!out || fclose(out) != 0 || lost) {
        free(all);
        return rnnd__fail_memory(1, "the description");
    }
    *text = all;
    return 0;
}

int rnnd__inspect(const char *path, bool json, char **text, int *verdict)
{
    static const char *const names[] = {"data", "checkpoint", "run"};
    static int (*const inspect[])(const char *, struct findings *) = {
        inspect_data, inspect_checkpoint, inspect_run};
    enum kind kind = DATA;
    lost = 0;
    RNND_TRY(kind_of(path, &kind));
    struct findings f = {.facts =
                             json_pack("{s:s, s:b}", "kind", names[kind], "intact", 1)};
    if (!f.facts)
        return rnnd__fail_memory(1, "the description");
    put(f.facts, "file", text_fact(path));
    int status;
    RNND_TRY_GOTO(inspect[kind](path, &f));
    RNND_TRY_GOTO(to_text(f.facts, json, text));
    *verdict = f.verdict;
    if (f.verdict < 0)
        (void)!rnnd__fail((enum rnnd_status)f.verdict, "%s", f.cause);
done:
    json_decref(f.facts);
    return status;
}
