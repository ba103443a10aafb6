/*
 * dataset_check.c - checks every offset, token id, label and value of a data file
 * before anything is computed.
 *
 * Arrays are read in blocks of a few MiB; a message names object and index.
 */
#include "data/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/range.h"
#include "base/signals.h"
#include "base/status.h"

/* ---- offsets */

/* What an array of offsets is about: its name, and the object and its rows. */
struct offsets {
    const char *name, *object;
    int64_t rows;
};

static const char *unit_of(const struct offsets *o)
{
    return strcmp(o->object, "/inputs") == 0 ? "steps" : "labels";
}

static int check_offsets(const struct rnnd_dataset *data, const struct offsets *o,
                         const int64_t *at)
{
    int64_t N = data->info.sequences;
    if (at[0] != 0)
        return rnnd__fail(RNND_EDATA, "%s: %s[0] = %lld, expected 0", data->path,
                          o->name, (long long)at[0]);
    for (int64_t i = 0; i < N; i++) {
        if (at[i + 1] < at[i])
            return rnnd__fail(
                RNND_EDATA, "%s: %s[%lld] = %lld: less than %s[%lld] = %lld",
                data->path, o->name, (long long)i + 1, (long long)at[i + 1], o->name,
                (long long)i, (long long)at[i]);
        if (at[i + 1] > o->rows)
            return rnnd__fail(RNND_EDATA, "%s: %s[%lld] = %lld: %s has only %lld %s",
                              data->path, o->name, (long long)i + 1,
                              (long long)at[i + 1], o->object, (long long)o->rows,
                              unit_of(o));
        if (at[i + 1] - at[i] > INT32_MAX)
            return rnnd__fail(RNND_EDATA,
                              "%s: %s: sequence %lld has more than 2^31-1 %s",
                              data->path, o->name, (long long)i, unit_of(o));
    }
    if (at[N] != o->rows)
        return rnnd__fail(RNND_EDATA,
                          "%s: %s[%lld] = %lld, expected %lld, the number of %s",
                          data->path, o->name, (long long)N, (long long)at[N],
                          (long long)o->rows, unit_of(o));
    return 0;
}

int rnnd__dataset_read_offsets(struct rnnd_dataset *data, const char *name,
                               const char *object, int64_t rows, int64_t **at)
{
    int64_t count = data->info.sequences + 1;
    struct offsets o = {name, object, rows};
    RNND_TRY(RNND_NEW(at, count, "offsets"));
    RNND_TRY(rnnd__dataset_read(data, name, 0, count, RNND_I64, *at));
    return check_offsets(data, &o, *at);
}

int rnnd__dataset_offsets(struct rnnd_dataset *data)
{
    struct rnnd_dataset_info *info = &data->info;
    struct rnnd__hdf_shape shape;
    RNND_TRY(rnnd__dataset_shape(data, "/offsets", &shape));
    if (shape.rank != 1)
        return rnnd__fail(RNND_EDATA, "%s: /offsets: %d dimensions, expected 1",
                          data->path, shape.rank);
    if (shape.dim[0] < 2)
        return rnnd__fail(RNND_EDATA,
                          "%s: /offsets: expected N+1 values for N sequences, at "
                          "least 2, found %lld",
                          data->path, (long long)shape.dim[0]);
    if (shape.dim[0] > INT32_MAX)
        return rnnd__fail(RNND_EDATA, "%s: /offsets: more than 2^31-2 sequences",
                          data->path);
    info->sequences = shape.dim[0] - 1;
    RNND_TRY(rnnd__dataset_read_offsets(data, "/offsets", "/inputs", info->steps,
                                        &data->offsets));
    for (int64_t i = 0; i < info->sequences; i++) {
        int64_t n = data->offsets[i + 1] - data->offsets[i];
        info->longest = n > info->longest ? n : info->longest;
        if (info->task == RNND_LM && n > 1)
            info->targets += n - 1;
    }
    return 0;
}

/* ---- values: each check takes rows first .. first+count-1, and counts targets */

/* The sequence that a step belongs to. */
static int64_t sequence_of(const struct rnnd_dataset *data, int64_t step)
{
    int64_t low = 0, high = data->info.sequences;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (data->offsets[middle] <= step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int check_tokens(struct rnnd_dataset *data, const void *rows, int64_t first,
                        int64_t count)
{
    const int32_t *id = rows;
    uint32_t V = (uint32_t)data->info.vocab;
    int64_t i = 0;
    for (; i < count && (uint32_t)id[i] < V; i++)
        ;
    for (int64_t k = 0; data->token_uses && k < i; k++)
        data->token_uses[id[k]]++;
    if (i == count)
        return 0;
    return rnnd__fail(
        RNND_EDATA, "%s: /inputs[%lld] = %d: token ids are 0 to %lld (vocab_size %lld)",
        data->path, (long long)(first + i), (int)id[i], (long long)data->info.vocab - 1,
        (long long)data->info.vocab);
}

static int check_labels(struct rnnd_dataset *data, const void *rows, int64_t first,
                        int64_t count)
{
    const int32_t *label = rows;
    int64_t targets = 0;
    for (int64_t i = 0; i < count; i++) {
        if (label[i] < -1 || label[i] >= data->classes)
            return rnnd__fail(
                RNND_EDATA,
                "%s: /targets[%lld] = %d: labels are 0 to %lld (num_classes %lld), or "
                "-1 = ignored",
                data->path, (long long)(first + i), (int)label[i],
                (long long)data->classes - 1, (long long)data->classes);
        if (label[i] < 0)
            continue;
        targets++;
        if (data->class_uses)
            data->class_uses[label[i]]++;
    }
    data->info.targets += targets;
    return 0;
}

/* Whether no float is a NaN or an infinity. A loop that compilers vectorise. */
static bool all_finite(const float *x, int64_t count)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return !found;
}

static bool is_allowed(struct rnnd_dataset *data, float x)
{
    bool missing = data->marks_missing && isnan(x);
    data->info.missing += missing;
    return missing || isfinite(x);
}

static int check_features(struct rnnd_dataset *data, const void *rows, int64_t first,
                          int64_t count)
{
    const float *x = rows;
    int64_t I = data->info.inputs, i = 0;
    if (all_finite(x, count * I))
        return 0;
    while (i < count * I && is_allowed(data, x[i]))
        i++;
    if (i == count * I)
        return 0;
    int64_t step = first + i / I, sequence = sequence_of(data, step);
    return rnnd__fail(
        RNND_EDATA,
        "%s: /inputs[%lld, %lld] = %g: features must be finite (sequence %lld, step "
        "%lld)",
        data->path, (long long)step, (long long)(i % I), (double)x[i],
        (long long)sequence, (long long)(step - data->offsets[sequence]));
}

static int fail_target(const struct rnnd_dataset *data, int64_t row, int64_t column,
                       float value, const char *rule)
{
    return rnnd__fail(
        RNND_EDATA, "%s: /targets[%lld, %lld] = %g: %s, or NaN = ignored row",
        data->path, (long long)row, (long long)column, (double)value, rule);
}

static int check_values(struct rnnd_dataset *data, const void *rows, int64_t first,
                        int64_t count)
{
    const float *x = rows;
    int64_t O = data->info.outputs;
    bool answers = data->info.task == RNND_MULTILABEL;
    for (int64_t r = 0; r < count; r++, x += O) {
        bool ignored = false;
        for (int64_t o = 0; o < O; o++) {
            ignored |= isnan(x[o]);
            if (isinf(x[o]))
                return fail_target(data, first + r, o, x[o], "targets must be finite");
            if (answers && (x[o] < 0 || x[o] > 1))
                return fail_target(data, first + r, o, x[o],
                                   "multilabel targets must be from 0 to 1");
        }
        data->info.targets += !ignored;
    }
    return 0;
}

/* ---- arrays, block by block */

typedef int check_rows(struct rnnd_dataset *data, const void *rows, int64_t first,
                       int64_t count);

struct array {
    const char *object;
    enum rnnd__hdf_type type;
    int64_t rows;
    /* bytes of a row */
    size_t row;
    check_rows *check;
};

/* The check of a task's targets. */
static check_rows *check_of(enum rnnd_task task)
{
    if (rnnd__task_has_strings(task))
        return rnnd__dataset_check_string;
    return rnnd__task_has_classes(task) ? check_labels : check_values;
}

/* Reads, checks and hashes an array. hash: NULL = is not hashed; kept: where to put all
   of it, NULL = nowhere. */
static int pass_array(struct rnnd_dataset *data, const struct array *a,
                      struct rnnd__hash *hash, void **kept)
{
    int64_t block = (1 << 22) / (int64_t)a->row + 1; /* rows */
    void *room = NULL;
    int status = 0;
    if (block > a->rows)
        block = a->rows;
    RNND_TRY(rnnd__new((size_t)(kept ? a->rows : block), a->row, a->object, &room));
    for (int64_t at = 0; at < a->rows && status == 0; at += block) {
        int64_t n = a->rows - at < block ? a->rows - at : block;
        if (at > 0)
            RNND_TRY_GOTO(rnnd__signals_check(data->path));
        void *rows = kept ? (char *)room + (size_t)at * a->row : room;
        RNND_TRY_GOTO(rnnd__dataset_read(data, a->object, at, n, a->type, rows));
        RNND_TRY_GOTO(a->check(data, rows, at, n));
        if (hash)
            rnnd__hash_add(hash, rows, (size_t)n * a->row);
    }
    if (kept) {
        *kept = room;
        room = NULL;
    }
done:
    free(room);
    return status;
}

/* Uses are counted where names may have to be matched. */
static int new_counts(struct rnnd_dataset *data)
{
    if (rnnd_dataset_token(data, 0))
        RNND_TRY(RNND_NEW(&data->token_uses, data->info.vocab, "counts of tokens"));
    if (data->classes && rnnd_dataset_class(data, 0))
        RNND_TRY(RNND_NEW(&data->class_uses, data->classes, "counts of classes"));
    return 0;
}

/* ---- what becomes of wider floats */

/* As they are in the file. */
static int add_to_ranges(struct rnnd_dataset *data, const void *rows, int64_t first,
                         int64_t count)
{
    const double *value = rows;
    int64_t I = data->info.inputs;
    (void)first;
    for (int64_t i = 0; i < count * I; i++)
        rnnd__range_add(&data->range[i % I], value[i]);
    return 0;
}

static void warn_of_column(const struct rnnd_dataset *data, int64_t k)
{
    const struct rnnd__range *range = &data->range[k];
    const char *name = rnnd_dataset_feature(data, k);
    char column[80], which[1200];
    snprintf(column, sizeof column, "/inputs, column %lld%s%.40s%s", (long long)k,
             name ? " (" : "", name ? name : "", name ? ")" : "");
    rnnd__range_warn(range, "%s: %s", data->path, column);
    if (!range->integers || range->rounded == 0)
        return;
    snprintf(which, sizeof which, "%s: %s: %.0f", data->path, column, range->rounded);
    rnnd__range_warn_rounded(which, (float)range->rounded);
}

/* Warns of columns whose values 32-bit floats hardly tell apart, or round. Only where
   the file has wider floats, or integers of more than 16 bits, are they read again. */
static int warn_of_lost_digits(struct rnnd_dataset *data)
{
    struct rnnd__hdf_shape shape;
    int64_t I = data->info.inputs;
    struct array inputs = {"/inputs", RNND_F64, data->info.steps,
                           (size_t)I * sizeof(double), add_to_ranges};
    RNND_TRY(rnnd__dataset_shape(data, "/inputs", &shape));
    int64_t exact = shape.kind == RNND_HDF_FLOAT ? 4 : 2; /* bytes that fit */
    if (data->info.vocab || shape.size <= exact)
        return 0;
    RNND_TRY(RNND_NEW(&data->range, I, "ranges of columns"));
    for (int64_t k = 0; k < I; k++)
        data->range[k] = rnnd__range_none;
    int status = pass_array(data, &inputs, NULL, NULL);
    for (int64_t k = 0; k < I && status == 0; k++)
        warn_of_column(data, k);
    free(data->range);
    data->range = NULL;
    return status;
}

int rnnd__dataset_values(struct rnnd_dataset *data, bool keep_inputs, bool keep_targets)
{
    struct rnnd_dataset_info *info = &data->info;
    struct rnnd__hash hash;
    int64_t head[] = {info->task,   info->sequences, info->steps,
                      info->inputs, info->vocab,     info->outputs};
    struct array inputs = {"/inputs", rnnd__input_type(info), info->steps,
                           rnnd__input_bytes(info),
                           info->vocab ? check_tokens : check_features};
    RNND_TRY(new_counts(data));
    rnnd__hash_start(&hash);
    rnnd__hash_add(&hash, head, sizeof head);
    rnnd__hash_add(&hash, data->offsets,
                   (size_t)(info->sequences + 1) * sizeof *data->offsets);
    RNND_TRY(pass_array(data, &inputs, &hash, keep_inputs ? &data->inputs : NULL));
    RNND_TRY(warn_of_lost_digits(data));
    if (data->has_targets) {
        struct array targets = {"/targets", rnnd__target_type(info), data->target_rows,
                                rnnd__target_bytes(info), check_of(info->task)};
        RNND_TRY(
            pass_array(data, &targets, &hash, keep_targets ? &data->targets : NULL));
    }
    if (data->string_offsets) {
        rnnd__hash_add(&hash, data->string_offsets,
                       (size_t)(info->sequences + 1) * sizeof *data->string_offsets);
        rnnd__dataset_count_strings(data);
    }
    info->fingerprint = rnnd__hash_end(&hash);
    return 0;
}
