/*
 * dataset.c - opens a data file, checks that it is one, and hands out its values.
 *
 * Small data sets are kept in memory; of large ones rows are read from disk, with
 * prefetch. Knows the file's objects and attributes, but no batch and no model.
 */
#include "data/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"

int64_t rnnd__dataset_keep = (int64_t)1 << 30;

/* ---- attributes and shapes */

/* A file that has opened and then cannot be read is bad data. */
static int as_data(int status)
{
    return status == RNND_EFILE ? RNND_EDATA : status;
}

int rnnd__dataset_shape(struct rnnd_dataset *data, const char *object,
                        struct rnnd__hdf_shape *out)
{
    return as_data(rnnd__hdf_shape(data->file, object, out));
}

int rnnd__dataset_read(struct rnnd_dataset *data, const char *object, int64_t first,
                       int64_t count, enum rnnd__hdf_type type, void *out)
{
    return as_data(rnnd__hdf_read(data->file, object, first, count, type, out));
}

static const char data_format[] = "rnn_dist-data";
enum { VERSION = 1 };

static int fail_task(const struct rnnd_dataset *data, const char *problem)
{
    char names[128] = "";
    int n = 0;
    for (int task = 0; task <= RNND_NO_TASK; task++)
        n += snprintf(names + n, sizeof names - (size_t)n, "%s%s",
                      task == 0              ? ""
                      : task == RNND_NO_TASK ? " or "
                                             : ", ",
                      rnnd_task_name((enum rnnd_task)task));
    return rnnd__fail(RNND_EDATA, "%s: attribute task%s; expected %s", data->path,
                      problem, names);
}

static int read_task(struct rnnd_dataset *data)
{
    char *name, problem[80];
    data->has_targets = rnnd__hdf_has(data->file, "/targets");
    if (!rnnd__hdf_has_attribute(data->file, "task")) {
        if (data->has_targets)
            return fail_task(data, ": missing, but there are /targets");
        data->info.task = RNND_NO_TASK;
        return 0;
    }
    RNND_TRY(as_data(rnnd__hdf_get_string(data->file, "task", &name)));
    enum rnnd_task task;
    bool known = rnnd__task_find(name, &task);
    snprintf(problem, sizeof problem, " = \"%.40s\"", name);
    free(name);
    if (!known)
        return fail_task(data, problem);
    data->info.task = task;
    bool wanted = rnnd__task_stores_targets(task);
    if (wanted && !data->has_targets)
        return rnnd__fail(
            RNND_EDATA,
            "%s: /targets: missing, required by task %s (task none is for unlabelled "
            "data)",
            data->path, rnnd_task_name(task));
    if (!wanted && data->has_targets)
        rnnd__log_warn("%s: /targets are ignored: the task is %s", data->path,
                       rnnd_task_name(task));
    data->has_targets = wanted;
    return 0;
}

/* Whether NaN among the features are values that are missing. */
static int read_missing(struct rnnd_dataset *data)
{
    char *policy;
    if (!rnnd__hdf_has_attribute(data->file, "missing"))
        return 0;
    RNND_TRY(as_data(rnnd__hdf_get_string(data->file, "missing", &policy)));
    data->marks_missing = strcmp(policy, "mean") == 0;
    int status =
        data->marks_missing
            ? 0
            : rnnd__fail(RNND_EDATA, "%s: attribute missing = \"%.40s\", expected mean",
                         data->path, policy);
    free(policy);
    return status;
}

/* An attribute from 1 to 2^31-1. */
static int read_count(struct rnnd_dataset *data, const char *name, int64_t *out)
{
    RNND_TRY(as_data(rnnd__hdf_get_int(data->file, name, out)));
    if (*out < 1 || *out > INT32_MAX)
        return rnnd__fail(RNND_EDATA, "%s: attribute %s = %lld, expected 1 to %d",
                          data->path, name, (long long)*out, INT32_MAX);
    return 0;
}

/* The shape of an array of numbers. */
static int shape_of_numbers(struct rnnd_dataset *data, const char *object,
                            struct rnnd__hdf_shape *out)
{
    RNND_TRY(rnnd__dataset_shape(data, object, out));
    if (out->kind != RNND_HDF_INT && out->kind != RNND_HDF_FLOAT)
        return rnnd__fail(RNND_EDATA, "%s: %s: expected numbers", data->path, object);
    return 0;
}

static int read_inputs_shape(struct rnnd_dataset *data)
{
    struct rnnd__hdf_shape shape;
    bool tokens = rnnd__hdf_has_attribute(data->file, "vocab_size");
    RNND_TRY(shape_of_numbers(data, "/inputs", &shape));
    if (tokens)
        RNND_TRY(read_count(data, "vocab_size", &data->info.vocab));
    else if (data->info.task == RNND_LM)
        return rnnd__fail(RNND_EDATA,
                          "%s: attribute vocab_size: missing, required by task lm",
                          data->path);
    if (shape.rank != (tokens ? 1 : 2))
        return rnnd__fail(RNND_EDATA, "%s: /inputs: %d dimension%s, expected %s",
                          data->path, shape.rank, shape.rank == 1 ? "" : "s",
                          tokens ? "1, [S], of token ids (vocab_size is set)"
                                 : "2, [S, I], of features (token ids need the "
                                   "attribute vocab_size)");
    if (!tokens && shape.dim[1] < 1)
        return rnnd__fail(RNND_EDATA, "%s: /inputs: no features (I = 0)", data->path);
    data->info.inputs = tokens ? 0 : shape.dim[1];
    data->info.steps = shape.dim[0];
    return 0;
}

static int read_targets_shape(struct rnnd_dataset *data)
{
    struct rnnd__hdf_shape shape;
    struct rnnd_dataset_info *info = &data->info;
    bool classes = rnnd__task_has_classes(info->task),
         strings = rnnd__task_has_strings(info->task),
         steps = rnnd__task_targets_steps(info->task);
    info->outputs = info->task == RNND_LM ? info->vocab : 0;
    if (!data->has_targets)
        return 0;
    if (classes)
        RNND_TRY(read_count(data, "num_classes", &data->classes));
    RNND_TRY(shape_of_numbers(data, "/targets", &shape));
    if (shape.rank != (classes ? 1 : 2))
        return rnnd__fail(RNND_EDATA,
                          "%s: /targets: %d dimension%s, expected %s for task %s",
                          data->path, shape.rank, shape.rank == 1 ? "" : "s",
                          strings   ? "1, the labels of all strings,"
                          : classes ? (steps ? "1, [S]," : "1, [N],")
                                    : (steps ? "2, [S, O]," : "2, [N, O],"),
                          rnnd_task_name(info->task));
    int64_t want = strings ? shape.dim[0] : steps ? info->steps : info->sequences;
    if (shape.dim[0] != want)
        return rnnd__fail(
            RNND_EDATA,
            "%s: /targets: %lld rows, expected %lld: task %s has one per %s",
            data->path, (long long)shape.dim[0], (long long)want,
            rnnd_task_name(info->task), steps ? "step" : "sequence");
    if (!classes && shape.dim[1] < 1)
        return rnnd__fail(RNND_EDATA, "%s: /targets: no columns (O = 0)", data->path);
    info->outputs =
        classes ? data->classes + rnnd__task_blanks(info->task) : shape.dim[1];
    data->target_rows = want;
    return strings ? rnnd__dataset_string_offsets(data, want) : 0;
}

/* `want` strings of an object, which may be absent. *out is one block, owned by the
   caller. */
static int read_texts(struct rnnd_dataset *data, const char *object, int64_t want,
                      char ***out)
{
    struct rnnd__hdf_shape shape;
    int64_t count;
    if (want == 0 || !rnnd__hdf_has(data->file, object))
        return 0;
    /* Counted first: they may not fit into memory. */
    RNND_TRY(rnnd__dataset_shape(data, object, &shape));
    if (shape.kind == RNND_HDF_STRING && shape.rank == 1 && shape.dim[0] != want)
        return rnnd__fail(RNND_EDATA, "%s: %s: expected %lld strings, found %lld",
                          data->path, object, (long long)want, (long long)shape.dim[0]);
    return as_data(rnnd__hdf_read_strings(data->file, object, out, &count));
}

/* The names of an axis, which may be absent. */
static int read_names(struct rnnd_dataset *data, const char *object,
                      enum rnnd_axis axis, int64_t want)
{
    char **text = NULL;
    RNND_TRY(read_texts(data, object, want, &text));
    int status = rnnd__names_set(&data->names, axis, text, want);
    free(text);
    return status < 0 ? rnnd__fail(status, "%s: %s: %s", data->path, object,
                                   rnnd_status_detail())
                      : 0;
}

static int read_all_names(struct rnnd_dataset *data)
{
    struct rnnd_dataset_info *info = &data->info;
    RNND_TRY(read_texts(data, "/names", info->sequences, &data->name));
    RNND_TRY(read_names(data, "/features", RNND_AXIS_FEATURE, info->inputs));
    RNND_TRY(read_names(data, "/vocab", RNND_AXIS_TOKEN, info->vocab));
    if (info->task != RNND_LM)
        RNND_TRY(read_names(data, "/classes", RNND_AXIS_CLASS,
                            info->outputs - rnnd__task_blanks(info->task)));
    info->names_fingerprint = rnnd__names_fingerprint(&data->names);
    return 0;
}

/* ---- open and close */

static struct rnnd__dataset_place place_of(struct rnnd_dataset *data,
                                           const char *object)
{
    struct rnnd__dataset_place at = {0, 0};
    if (!rnnd__hdf_place(data->file, object, &at.offset, &at.row))
        at.row = 0;
    return at;
}

/* A file cut exactly where HDF5's part ends opens, but is no longer protected. */
static int check_protection(struct rnnd_dataset *data)
{
    data->info.has_checksum = rnnd__hdf_ends_with_checksum(data->file);
    if (data->info.has_checksum || !rnnd__hdf_has_attribute(data->file, "checksum"))
        return 0;
    return rnnd__fail(RNND_EDATA,
                      "%s: its checksum is missing: cut short, or changed by another "
                      "program; where the change was meant, delete the attribute "
                      "checksum",
                      data->path);
}

static int read_contents(struct rnnd_dataset *data)
{
    struct rnnd_dataset_info *info = &data->info;
    RNND_TRY(as_data(rnnd__hdf_check_format(data->file, data_format, VERSION)));
    RNND_TRY(check_protection(data));
    RNND_TRY(read_task(data));
    RNND_TRY(read_missing(data));
    RNND_TRY(read_inputs_shape(data));
    RNND_TRY(rnnd__dataset_offsets(data));
    RNND_TRY(read_targets_shape(data));
    RNND_TRY(read_all_names(data));
    /* Sizes of arrays that exist: no overflow within 64 bits. */
    int64_t inputs = info->steps * (int64_t)rnnd__input_bytes(info);
    int64_t targets = data->target_rows * (int64_t)rnnd__target_bytes(info);
    bool keep = inputs <= rnnd__dataset_keep && targets <= rnnd__dataset_keep - inputs;
    bool keep_targets = keep || data->string_offsets || targets <= rnnd__dataset_keep;
    RNND_TRY(rnnd__dataset_values(data, keep, keep_targets));
    if (keep) {
        rnnd__hdf_close(data->file);
        data->file = NULL;
        return 0;
    }
    data->inputs_at = place_of(data, "/inputs");
    if (!keep_targets && rnnd__task_targets_steps(info->task))
        data->targets_at = place_of(data, "/targets");
    return 0;
}

int rnnd_dataset_open(const char *path, struct rnnd_dataset **out)
{
    struct rnnd_dataset *data;
    RNND_TRY(RNND_NEW(&data, 1, "a data set"));
    int status = 0;
    data->path = strdup(path);
    data->info.path = data->path;
    if (!data->path)
        RNND_TRY_GOTO(rnnd__fail_memory(strlen(path), "a file name"));
    status = rnnd__hdf_open(path, &data->file);
    /* A data file, but truncated or damaged: bad data. */
    if (status == RNND_EFILE && rnnd__hdf_mentions(path, data_format))
        status = RNND_EDATA;
    RNND_TRY_GOTO(status);
    RNND_TRY_GOTO(read_contents(data));
done:
    if (status < 0) {
        rnnd_dataset_close(data);
        return status;
    }
    *out = data;
    return 0;
}

void rnnd_dataset_close(struct rnnd_dataset *data)
{
    if (!data)
        return;
    rnnd__dataset_match_clear(&data->match);
    free(data->wide);
    free(data->token_uses);
    free(data->class_uses);
    rnnd__names_clear(&data->names);
    free(data->name);
    free(data->targets);
    free(data->inputs);
    free(data->offsets);
    free(data->string_offsets);
    rnnd__hdf_close(data->file);
    free(data->path);
    free(data);
}

/* ---- access */

const struct rnnd_dataset_info *rnnd_dataset_info(const struct rnnd_dataset *data)
{
    return &data->info;
}

const int64_t *rnnd_dataset_offsets(const struct rnnd_dataset *data)
{
    return data->offsets;
}

const int64_t *rnnd_dataset_target_offsets(const struct rnnd_dataset *data)
{
    return data->string_offsets;
}

/* Rows of `file_row` bytes in the file and `row` bytes in the model. */
struct rows {
    const char *object;
    enum rnnd__hdf_type type;
    size_t file_row, row;
    void (*map)(const struct rnnd_dataset *data, void *rows, int64_t count);
};

/* Reads rows from disk, through a buffer where the file's are wider. */
static int read_rows(struct rnnd_dataset *data, const struct rows *r, int64_t first,
                     int64_t count, void *out)
{
    void *place = out;
    if (r->file_row > r->row) {
        size_t need = (size_t)count * r->file_row;
        if (need > data->wide_room) {
            RNND_TRY(rnnd__grow(need, 1, "rows of a file", &data->wide));
            data->wide_room = need;
        }
        place = data->wide;
    }
    RNND_TRY(rnnd__dataset_read(data, r->object, first, count, r->type, place));
    r->map(data, place, count);
    if (place != out)
        memcpy(out, place, (size_t)count * r->row);
    return 0;
}

/* memory: all rows, mapped; NULL: they are on disk. */
static int copy_rows(struct rnnd_dataset *data, const struct rows *r,
                     const void *memory, const int64_t span[2], void *out)
{
    if (!memory)
        return read_rows(data, r, span[0], span[1], out);
    memcpy(out, (const char *)memory + (size_t)span[0] * r->row,
           (size_t)span[1] * r->row);
    return 0;
}

int rnnd_dataset_inputs(struct rnnd_dataset *data, int64_t first, int64_t count,
                        void *out)
{
    const struct rnnd_dataset_info *info = &data->info;
    const struct rnnd__dataset_match *m = &data->match;
    size_t row = rnnd__input_bytes(info);
    struct rows rows = {"/inputs", rnnd__input_type(info),
                        m->feature ? (size_t)m->file_inputs * RNND__ELEMENT : row, row,
                        rnnd__dataset_map_inputs};
    RNND_TRY(rnnd__hdf_check_rows(data->path, "/inputs", info->steps, first, count));
    return copy_rows(data, &rows, data->inputs, (int64_t[]){first, count}, out);
}

int rnnd_dataset_targets(struct rnnd_dataset *data, int64_t first, int64_t count,
                         void *out)
{
    const struct rnnd_dataset_info *info = &data->info;
    const struct rnnd__dataset_match *m = &data->match;
    size_t row = rnnd__target_bytes(info);
    struct rows rows = {"/targets", rnnd__target_type(info),
                        m->value ? (size_t)m->file_outputs * RNND__ELEMENT : row, row,
                        rnnd__dataset_map_targets};
    RNND_TRY(
        rnnd__hdf_check_rows(data->path, "/targets", data->target_rows, first, count));
    return copy_rows(data, &rows, data->targets, (int64_t[]){first, count}, out);
}

bool rnnd_dataset_in_memory(const struct rnnd_dataset *data)
{
    return data->file == NULL;
}

static void prefetch_rows(struct rnnd_dataset *data,
                          const struct rnnd__dataset_place *at, int64_t first,
                          int64_t count)
{
    if (at->row)
        rnnd__hdf_prefetch(data->file, at->offset + first * at->row, count * at->row);
}

void rnnd_dataset_prefetch(struct rnnd_dataset *data, int64_t first, int64_t count)
{
    if (!data->file || count <= 0)
        return;
    prefetch_rows(data, &data->inputs_at, first, count);
    prefetch_rows(data, &data->targets_at, first, count);
}

const char *rnnd_dataset_name(const struct rnnd_dataset *data, int64_t sequence)
{
    bool exists = data->name && sequence >= 0 && sequence < data->info.sequences;
    return exists ? data->name[sequence] : NULL;
}

const char *rnnd_dataset_feature(const struct rnnd_dataset *data, int64_t feature)
{
    return rnnd__names_text(&data->names, RNND_AXIS_FEATURE, feature);
}

const char *rnnd_dataset_token(const struct rnnd_dataset *data, int64_t token)
{
    return rnnd__names_text(&data->names, RNND_AXIS_TOKEN, token);
}

const char *rnnd_dataset_class(const struct rnnd_dataset *data, int64_t label)
{
    return rnnd__names_text(&data->names, RNND_AXIS_CLASS, label);
}
