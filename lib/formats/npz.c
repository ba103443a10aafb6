/*
 * npz.c - NumPy arrays in a ZIP file, as written by np.savez: inputs, offsets or
 * lengths, and optionally targets, or labels and label_offsets, num_classes and
 * vocab_size.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/range.h"
#include "base/task.h"
#include "formats/npy.h"

#ifdef HAVE_LIBZIP
#include <zip.h>

enum {
    INPUTS,
    OFFSETS,
    LENGTHS,
    TARGETS,
    LABELS,
    LABEL_OFFSETS,
    NUM_CLASSES,
    VOCAB_SIZE,
    ARRAYS
};
static const char *const array_name[] = {"inputs",      "offsets",   "lengths",
                                         "targets",     "labels",    "label_offsets",
                                         "num_classes", "vocab_size"};

struct npz {
    const char *path;
    struct rnnd__npy array[ARRAYS];
    struct rnnd__contents *out;
    /* in this file */
    int64_t sequences, steps;
    /* num_classes and vocab_size, 0 = not given */
    int64_t classes, vocab;
    /* step of `out` where this file starts */
    int64_t first;
};

/* ---- members */

static int read_member(const char *path, zip_t *zip, int which, struct rnnd__npy *out)
{
    char name[40], shown[600];
    struct zip_stat info;
    char *bytes = NULL;
    snprintf(name, sizeof name, "%s.npy", array_name[which]);
    snprintf(shown, sizeof shown, "%s: %s", path, array_name[which]);
    if (zip_stat(zip, name, 0, &info) != 0)
        return 0;
    /* Deflate compresses by a factor of 1032 at most; a larger one means damage. */
    if (info.size / 1100 > info.comp_size)
        return rnnd__fail(RNND_EDATA, "%s: cannot be decompressed", shown);
    RNND_TRY(RNND_NEW(&bytes, info.size, shown));
    zip_file_t *member = zip_fopen(zip, name, 0);
    zip_int64_t n = 0, got = 0;
    while (member && got < (zip_int64_t)info.size &&
           (n = zip_fread(member, bytes + got, info.size - (zip_uint64_t)got)) > 0)
        got += n;
    char more; /* reading past the end verifies the checksum */
    bool whole =
        member && got == (zip_int64_t)info.size && zip_fread(member, &more, 1) == 0;
    if (member && zip_fclose(member) != 0)
        whole = false;
    if (!whole) {
        free(bytes);
        return rnnd__fail(RNND_EDATA, "%s: cannot be decompressed", shown);
    }
    return rnnd__npy_parse(shown, bytes, (size_t)info.size, out);
}

static int read_members(struct npz *z)
{
    int code, status = 0;
    FILE *file = fopen(z->path, "rb"); /* gives the system's error text */
    if (!file)
        return rnnd__fail(RNND_EFILE, "%s: %m", z->path);
    fclose(file);
    zip_t *zip = zip_open(z->path, ZIP_RDONLY | ZIP_CHECKCONS, &code);
    if (!zip)
        return rnnd__fail(RNND_EDATA, "%s: not a valid .npz (ZIP) file", z->path);
    for (int i = 0; i < ARRAYS && status == 0; i++)
        status = read_member(z->path, zip, i, &z->array[i]);
    zip_discard(zip);
    return status;
}

/* ---- values */

static int fail_value(const struct npz *z, int which, int64_t i, const char *rule)
{
    const struct rnnd__npy *a = &z->array[which];
    int64_t row = a->rank == 2 ? i / a->dim[1] : i;
    char column[32] = "";
    if (a->rank == 2)
        snprintf(column, sizeof column, ", %lld", (long long)(i % a->dim[1]));
    return rnnd__fail(RNND_EDATA, "%s: %s[%lld%s] = %.9g: %s", z->path,
                      array_name[which], (long long)row, column, rnnd__npy_at(a, i),
                      rule);
}

static int check_rank(const struct npz *z, int which, int rank)
{
    if (z->array[which].rank != rank)
        return rnnd__fail(RNND_EDATA, "%s: %s has %d dimensions, expected %d", z->path,
                          array_name[which], z->array[which].rank, rank);
    return 0;
}

/* Appends all elements, which must be integers from low on. */
static int take_ids(const struct npz *z, int which, int64_t low, struct rnnd__list *out)
{
    const struct rnnd__npy *a = &z->array[which];
    for (int64_t i = 0; i < a->count; i++) {
        double v = rnnd__npy_at(a, i);
        if (!(v >= (double)low && v < INT32_MAX && v == floor(v)))
            return fail_value(z, which, i,
                              low < 0
                                  ? "labels must be integers from 0, or -1 = ignored"
                              : which == LABELS ? "labels must be integers from 0"
                                                : "token ids must be integers from 0");
        RNND_TRY(rnnd__list_add(out, &(int32_t){(int32_t)v}, 1));
    }
    return 0;
}

/* Whether an integer is another one as a 32-bit float. */
static bool is_rounded(const struct rnnd__npy *a, int64_t i, float value)
{
    double v = rnnd__npy_at(a, i);
    return fabs(v) > 0x1p24 && v == floor(v) && rnnd__npy_exact(a, i) != value;
}

/* Warns of columns whose values 32-bit floats hardly tell apart. */
static int warn_of_lost_digits(const struct npz *z)
{
    const struct rnnd__npy *a = &z->array[INPUTS];
    struct rnnd__range *range;
    RNND_TRY(RNND_NEW(&range, a->dim[1], "ranges of columns"));
    for (int64_t k = 0; k < a->dim[1]; k++)
        range[k] = rnnd__range_none;
    for (int64_t i = 0; i < a->count; i++)
        rnnd__range_add(&range[i % a->dim[1]], rnnd__npy_at(a, i));
    for (int64_t k = 0; k < a->dim[1]; k++)
        rnnd__range_warn(&range[k], "%s: inputs, column %lld", z->path, (long long)k);
    free(range);
    return 0;
}

/* Appends all elements as floats. */
static int take_floats(const struct npz *z, int which, struct rnnd__list *out)
{
    const struct rnnd__npy *a = &z->array[which];
    bool answers = which == TARGETS && z->out->task == RNND_MULTILABEL;
    int64_t before = out->count;
    RNND_TRY(rnnd__list_add(out, NULL, a->count));
    float *to = (float *)out->at + before;
    for (int64_t i = 0; i < a->count; i++) {
        double v = rnnd__npy_at(a, i);
        to[i] = (float)v;
        if (isinf(to[i]))
            return fail_value(z, which, i, "not a finite 32-bit float");
        if (which == INPUTS && isnan(to[i]))
            RNND_TRY(rnnd__contents_gap(z->out, "%s: inputs[%lld, %lld]", z->path,
                                        (long long)(i / a->dim[1]),
                                        (long long)(i % a->dim[1])));
        if (which == INPUTS && is_rounded(a, i, to[i]))
            rnnd__contents_rounded(z->out, to[i], "%s: inputs[%lld, %lld] = %.0Lf",
                                   z->path, (long long)(i / a->dim[1]),
                                   (long long)(i % a->dim[1]), rnnd__npy_exact(a, i));
        if (answers && (v < 0 || v > 1))
            return fail_value(z, which, i, "multilabel targets must be from 0 to 1");
    }
    return 0;
}

static int take_count(const struct npz *z, int which, int64_t *out)
{
    const struct rnnd__npy *a = &z->array[which];
    if (!a->bytes)
        return 0;
    double v = a->count == 1 ? rnnd__npy_at(a, 0) : NAN;
    if (!(v >= 1 && v <= INT32_MAX && v == floor(v)))
        return rnnd__fail(RNND_EDATA, "%s: %s must be one positive integer", z->path,
                          array_name[which]);
    *out = (int64_t)v;
    return 0;
}

/* ---- sequences */

/* Appends the ends of this file's sequences. */
static int take_ends(struct npz *z)
{
    int which = z->array[OFFSETS].bytes ? OFFSETS : LENGTHS;
    const struct rnnd__npy *a = &z->array[which];
    if (!a->bytes)
        return rnnd__fail(RNND_EDATA, "%s: has no array named offsets or lengths",
                          z->path);
    RNND_TRY(check_rank(z, which, 1));
    double end = 0;
    for (int64_t i = 0; i < a->count; i++) {
        double v = rnnd__npy_at(a, i), before = end;
        end = which == OFFSETS ? v : end + v;
        if (v != floor(v) || (which == OFFSETS && i == 0 && v != 0))
            return fail_value(
                z, which, i,
                "offsets and lengths must be integers, the first offset 0");
        if (end < before)
            return fail_value(z, which, i,
                              which == OFFSETS ? "offsets must not decrease"
                                               : "lengths must not be negative");
        if (!(end <= (double)z->steps))
            return fail_value(z, which, i,
                              "the sequence ends after the last step of inputs");
        int64_t at = z->first + (int64_t)end;
        if (which == LENGTHS || i > 0)
            RNND_TRY(rnnd__list_add(&z->out->offsets, &at, 1));
    }
    z->sequences = a->count - (which == OFFSETS && a->count > 0);
    if (end != (double)z->steps)
        return rnnd__fail(RNND_EDATA,
                          "%s: %s end at step %.0f, but inputs has %lld steps", z->path,
                          array_name[which], end, (long long)z->steps);
    return 0;
}

static int take_inputs(struct npz *z, bool is_first)
{
    const struct rnnd__npy *a = &z->array[INPUTS];
    struct rnnd__contents *out = z->out;
    if (!a->bytes)
        return rnnd__fail(RNND_EDATA, "%s: has no array named inputs", z->path);
    bool tokens = a->rank == 1 && a->kind != 'f';
    if (!tokens && (a->rank != 2 || a->dim[1] == 0))
        return rnnd__fail(RNND_EDATA,
                          "%s: inputs must be floats [steps, features] or integers "
                          "[steps], as token ids",
                          z->path);
    int64_t width = tokens ? 0 : a->dim[1];
    if (!is_first && width != out->inputs)
        return rnnd__fail(RNND_EDATA,
                          "%s: inputs has %lld columns, but in earlier files %lld",
                          z->path, (long long)width, (long long)out->inputs);
    z->first = rnnd__contents_steps(out);
    out->inputs = width;
    z->steps = a->dim[0];
    if (tokens)
        return take_ids(z, INPUTS, 0, &out->tokens);
    RNND_TRY(take_floats(z, INPUTS, &out->features));
    return warn_of_lost_digits(z);
}

/* ---- targets */

/* Whether each row of integers has a single 1 among zeros. */
static bool is_one_hot(const struct rnnd__npy *a)
{
    if (a->rank != 2 || a->kind == 'f' || a->kind == 'b' || a->dim[1] < 2)
        return false;
    for (int64_t i = 0; i < a->count; i += a->dim[1]) {
        int ones = 0;
        for (int64_t k = 0; k < a->dim[1]; k++) {
            double v = rnnd__npy_at(a, i + k);
            if (v != 0 && v != 1)
                return false;
            ones += v == 1;
        }
        if (ones != 1)
            return false;
    }
    return true;
}

/* Appends the class that each row of one-hot targets marks. */
static int take_one_hot(struct npz *z, struct rnnd__list *out)
{
    const struct rnnd__npy *a = &z->array[TARGETS];
    for (int64_t i = 0; i < a->count; i++)
        if (rnnd__npy_at(a, i) == 1)
            RNND_TRY(rnnd__list_add(out, &(int32_t){(int32_t)(i % a->dim[1])}, 1));
    if (z->classes < a->dim[1])
        z->classes = a->dim[1];
    rnnd__log_info(
        "%s: targets are one-hot: %lld classes; --task regress reads them as "
        "values",
        z->path, (long long)a->dim[1]);
    return 0;
}

/* Infers the task from the shape of targets, without --task. */
static int guess_task(const struct npz *z, int *task)
{
    const struct rnnd__npy *a = &z->array[TARGETS];
    bool strings = z->array[LABELS].bytes;
    if (strings && a->bytes)
        return rnnd__fail(RNND_EUSAGE,
                          "%s: has targets as well as labels; use --task to say which "
                          "to take",
                          z->path);
    if (!a->bytes) {
        *task = strings ? RNND_CTC : RNND_NO_TASK;
        return 0;
    }
    bool sequences = a->rank > 0 && a->dim[0] == z->sequences;
    bool steps = a->rank > 0 && a->dim[0] == z->steps;
    if (sequences == steps || a->rank > 2)
        return rnnd__fail(RNND_EUSAGE,
                          "%s: the shape of targets does not show the task; use --task",
                          z->path);
    bool one = a->rank == 2 && a->kind != 'f' && a->kind != 'b' && a->dim[1] == 1;
    if (a->rank == 1 || one || is_one_hot(a))
        *task = sequences ? RNND_CLASSIFY : RNND_TAG;
    else if (a->kind == 'b' && steps)
        *task = RNND_MULTILABEL;
    else
        *task = sequences ? RNND_REGRESS : RNND_REGRESS_STEPS;
    return 0;
}

/* Appends the ends of the strings of this file's sequences. */
static int take_string_ends(struct npz *z)
{
    const struct rnnd__npy *a = &z->array[LABEL_OFFSETS];
    double before = 0, labels = (double)z->array[LABELS].count;
    struct rnnd__list *out = &z->out->string_offsets;
    RNND_TRY(check_rank(z, LABEL_OFFSETS, 1));
    if (a->count != z->sequences + 1)
        return rnnd__fail(RNND_EDATA,
                          "%s: label_offsets has %lld values, expected %lld: one more "
                          "than sequences",
                          z->path, (long long)a->count, (long long)z->sequences + 1);
    int64_t first = out->count ? ((const int64_t *)out->at)[out->count - 1] : 0;
    for (int64_t i = 0; i < a->count; i++) {
        double v = rnnd__npy_at(a, i);
        if (!(v == floor(v)) || (i == 0 && v != 0) || v < before)
            return fail_value(z, LABEL_OFFSETS, i,
                              "offsets must be integers that do not decrease, the "
                              "first one 0");
        if (v > labels || (i == a->count - 1 && v != labels))
            return fail_value(z, LABEL_OFFSETS, i,
                              "the last offset must be the number of labels, and no "
                              "other may be larger");
        before = v;
        int64_t at = first + (int64_t)v;
        if (i > 0 || out->count == 0)
            RNND_TRY(rnnd__list_add(out, &at, 1));
    }
    return 0;
}

static int take_strings(struct npz *z)
{
    for (int which = LABELS; which <= LABEL_OFFSETS; which++)
        if (!z->array[which].bytes)
            return rnnd__fail(RNND_EDATA,
                              "%s: has no array named %s, which task %s needs", z->path,
                              array_name[which], rnnd_task_name(z->out->task));
    RNND_TRY(check_rank(z, LABELS, 1));
    RNND_TRY(take_string_ends(z));
    return take_ids(z, LABELS, 0, &z->out->labels);
}

static int take_targets(struct npz *z, bool is_first)
{
    const struct rnnd__npy *a = &z->array[TARGETS];
    struct rnnd__contents *out = z->out;
    bool wanted = rnnd__task_stores_targets(out->task);
    bool classes = rnnd__task_has_classes(out->task);
    if (rnnd__task_has_strings(out->task))
        return take_strings(z);
    if (!a->bytes && wanted)
        return rnnd__fail(RNND_EDATA,
                          "%s: has no array named targets, which task %s needs",
                          z->path, rnnd_task_name(out->task));
    if (!wanted)
        return 0;
    bool one_hot = classes && is_one_hot(a);
    bool column = classes && a->rank == 2 && a->dim[1] == 1;
    if (column)
        rnnd__log_info(
            "%s: targets has one column: classes; --task regress reads it as "
            "values",
            z->path);
    if (!one_hot && !column)
        RNND_TRY(check_rank(z, TARGETS, classes ? 1 : 2));
    int64_t rows = rnnd_task_is_stepwise(out->task) ? z->steps : z->sequences;
    if (a->dim[0] != rows)
        return rnnd__fail(
            RNND_EDATA, "%s: targets has %lld rows, but task %s needs %lld", z->path,
            (long long)a->dim[0], rnnd_task_name(out->task), (long long)rows);
    if (one_hot)
        return take_one_hot(z, &out->labels);
    if (classes)
        return take_ids(z, TARGETS, -1, &out->labels);
    if (a->dim[1] == 0)
        return rnnd__fail(RNND_EDATA, "%s: targets has no columns", z->path);
    if (!is_first && out->outputs != a->dim[1])
        return rnnd__fail(RNND_EDATA,
                          "%s: targets has %lld columns, but in earlier files %lld",
                          z->path, (long long)a->dim[1], (long long)out->outputs);
    out->outputs = a->dim[1];
    return take_floats(z, TARGETS, &out->values);
}

/* ---- the reader */

static int read_file(struct npz *z, const struct rnnd_options *opt, bool is_first)
{
    int task = opt->task;
    RNND_TRY(read_members(z));
    RNND_TRY(take_inputs(z, is_first));
    RNND_TRY(take_ends(z));
    RNND_TRY(take_count(z, NUM_CLASSES, &z->classes));
    RNND_TRY(take_count(z, VOCAB_SIZE, &z->vocab));
    if (is_first) {
        if (task < 0)
            RNND_TRY(guess_task(z, &task));
        z->out->task = (enum rnnd_task)task;
    }
    if (z->out->task == RNND_LM && z->out->inputs)
        return rnnd__fail(RNND_EDATA,
                          "%s: inputs are features, but task lm needs token ids",
                          z->path);
    return take_targets(z, is_first);
}

/* The number of ids: the one given in the files, or one more than the highest id. */
static int count_ids(const struct rnnd__list *ids, int64_t given, const char *what,
                     int64_t *out)
{
    const int32_t *id = ids->at;
    int64_t highest = 0;
    for (int64_t i = 0; i < ids->count; i++)
        highest = id[i] > highest ? id[i] : highest;
    if (given && highest >= given)
        return rnnd__fail(RNND_EDATA, "%s is %lld, but %lld occurs", what,
                          (long long)given, (long long)highest);
    if (!given)
        rnnd__log_info(
            "%s = %lld: the highest value plus 1; an array named %s can set it", what,
            (long long)highest + 1, what);
    *out = given ? given : highest + 1;
    return 0;
}

static int read_npz(const struct rnnd_options *opt, char *const *inputs, int count,
                    struct rnnd__contents *out)
{
    int64_t classes = 0, vocab = 0;
    int status = 0;
    for (int i = 0; i < count && status == 0; i++) {
        struct npz z = {.path = inputs[i], .out = out};
        status = read_file(&z, opt, i == 0);
        classes = z.classes > classes ? z.classes : classes;
        vocab = z.vocab > vocab ? z.vocab : vocab;
        for (int k = 0; k < ARRAYS; k++)
            rnnd__npy_clear(&z.array[k]);
    }
    RNND_TRY(status);
    if (!out->inputs)
        RNND_TRY(count_ids(&out->tokens, vocab, array_name[VOCAB_SIZE], &out->vocab));
    if (rnnd__task_has_classes(out->task))
        RNND_TRY(
            count_ids(&out->labels, classes, array_name[NUM_CLASSES], &out->classes));
    return 0;
}

#else

static int read_npz(const struct rnnd_options *opt, char *const *inputs, int count,
                    struct rnnd__contents *out)
{
    (void)opt, (void)inputs, (void)count, (void)out;
    return rnnd__fail(RNND_EUSAGE, "pack npz: this program was built without libzip");
}

#endif

static const char *const options[] = {"task",  "classes-from", "missing",
                                      "split", "seed",         NULL};
const struct rnnd__format rnnd__format_npz = {"npz", options, read_npz};
