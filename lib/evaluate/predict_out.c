/*
 * predict_out.c - writes predictions to HDF5 and CSV.
 */
#include "evaluate/predict_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "base/task.h"
#include "evaluate/strings_out.h"
#include "hdf/hdf.h"

struct rnnd__predict_out {
    struct rnnd__predict_layout layout;
    struct rnnd_dataset *data;
    struct rnnd_model *model;
    const int64_t *offsets;
    int64_t sequences;
    enum rnnd__target_kind kind;
    /* Numbers per target in the table, 0 = the data have no targets for this model; and
       those of one sequence, int32 for classes and tokens, else float. */
    int64_t target_width;
    void *target;
    struct rnnd__hdf *file;
    /* ctc, else NULL */
    struct rnnd__strings_out *strings;
    /* [T,O] of one sequence */
    float *padded;
    struct rnnd__file csv;
};

int rnnd__predict_out_check(const struct rnnd__predict_layout *layout,
                            const struct rnnd_dataset_info *info)
{
    if (layout->pad && !layout->stepwise)
        return rnnd__fail(RNND_EUSAGE,
                          "--pad %lld: this model predicts one row per sequence; "
                          "there is nothing to pad",
                          (long long)layout->pad);
    if (layout->pad && layout->pad < info->longest)
        return rnnd__fail(RNND_EUSAGE,
                          "--pad %lld: the longest sequence of %s has %lld steps; "
                          "pad to at least that",
                          (long long)layout->pad, info->path, (long long)info->longest);
    return 0;
}

/* ---- HDF5 */

static int create_states(struct rnnd__predict_out *o)
{
    static const char *const name[] = {"/states/h", "/states/c"};
    int64_t dim[] = {o->sequences, o->layout.places, o->layout.hidden};
    for (int k = 0; k < o->layout.states; k++)
        RNND_TRY(rnnd__hdf_write(o->file, name[k], RNND_F32, 3, dim, false, NULL));
    return 0;
}

static const char file_format[] = "rnn_dist-predictions";
static const struct rnnd__kind file_kind = {
    "a file of predictions", {RNND_HDF_START}, file_format};

static int create_file(struct rnnd__predict_out *o, const char *path)
{
    const struct rnnd__predict_layout *l = &o->layout;
    int64_t count = o->sequences + 1;
    int64_t ragged[] = {l->stepwise ? o->offsets[o->sequences] : o->sequences,
                        l->outputs};
    int64_t padded[] = {o->sequences, l->pad, l->outputs};
    RNND_TRY(rnnd__hdf_create_as(path, &file_kind, &o->file));
    RNND_TRY(rnnd__hdf_set_string(o->file, "format", file_format));
    RNND_TRY(rnnd__hdf_set_int(o->file, "version", 1));
    RNND_TRY(rnnd__hdf_set_string(o->file, "task",
                                  rnnd_task_name(rnnd_model_spec(o->model)->task)));
    RNND_TRY(
        rnnd__hdf_write(o->file, "/offsets", RNND_I64, 1, &count, false, o->offsets));
    if (l->pad)
        RNND_TRY(
            rnnd__hdf_write(o->file, "/outputs", RNND_F32, 3, padded, false, NULL));
    else
        RNND_TRY(
            rnnd__hdf_write(o->file, "/outputs", RNND_F32, 2, ragged, false, NULL));
    if (o->strings)
        RNND_TRY(rnnd__strings_out_create(o->strings, o->file));
    return create_states(o);
}

static int write_padded(struct rnnd__predict_out *o, int64_t first, int64_t end,
                        const float *rows)
{
    size_t whole = (size_t)(o->layout.pad * o->layout.outputs) * sizeof(float);
    for (int64_t i = first; i < end; i++) {
        int64_t floats = (o->offsets[i + 1] - o->offsets[i]) * o->layout.outputs;
        memset(o->padded, 0, whole);
        memcpy(o->padded, rows, (size_t)floats * sizeof(float));
        RNND_TRY(rnnd__hdf_write_rows(o->file, "/outputs", i, 1, RNND_F32, o->padded));
        rows += floats;
    }
    return 0;
}

static int write_file(struct rnnd__predict_out *o,
                      const struct rnnd__predict_pool *pool)
{
    int64_t first = pool->first, end = pool->end;
    const float *rows = pool->rows;
    float *const *state = pool->state;
    int64_t at = o->layout.stepwise ? o->offsets[first] : first;
    int64_t to = o->layout.stepwise ? o->offsets[end] : end;
    if (o->layout.pad)
        RNND_TRY(write_padded(o, first, end, rows));
    else
        RNND_TRY(
            rnnd__hdf_write_rows(o->file, "/outputs", at, to - at, RNND_F32, rows));
    if (o->layout.states > 0)
        RNND_TRY(rnnd__hdf_write_rows(o->file, "/states/h", first, end - first,
                                      RNND_F32, state[0]));
    if (o->layout.states > 1)
        RNND_TRY(rnnd__hdf_write_rows(o->file, "/states/c", first, end - first,
                                      RNND_F32, state[1]));
    return o->strings ? rnnd__strings_out_keep(o->strings, o->file, pool) : 0;
}

/* ---- CSV */

static const struct rnnd__kind csv_kind = {
    "a table of predictions",
    {"sequence,prediction,", "sequence,prediction\n", "sequence,rank,prediction,",
     "sequence,step,prediction,", "sequence,output0", "sequence,step,output0",
     "sequence,target0", "sequence,step,target0"},
    NULL};

/* Spreadsheets take such a cell as a formula, which may run commands. */
static bool is_formula(const char *text)
{
    char *end;
    if (!*text || !strchr("=+-@\t\r\n", *text))
        return false;
    (void)strtod(text, &end);
    return *end || end == text; /* -1 is a number, -1+A1 is not */
}

void rnnd__predict_put_text(FILE *f, const char *text)
{
    const char *guard = is_formula(text) ? "'" : "";
    if (!strpbrk(text, ",\"\r\n")) {
        fprintf(f, "%s%s", guard, text);
        return;
    }
    fprintf(f, "\"%s", guard);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

static void put_class(struct rnnd__predict_out *o, int64_t k)
{
    const char *text = rnnd_model_class(o->model, k);
    if (text)
        rnnd__predict_put_text(o->csv.stream, text);
    else
        fprintf(o->csv.stream, "%lld", (long long)k);
}

/* sequence[,step][,prediction][,target...], then one column per output */
static void put_header(struct rnnd__predict_out *o)
{
    bool classes = rnnd__task_is_categorical(rnnd_model_spec(o->model)->task);
    if (o->strings) {
        rnnd__strings_out_header(o->strings, o->csv.stream, o->target_width > 0);
        return;
    }
    fputs("sequence", o->csv.stream);
    fputs(o->layout.stepwise ? ",step" : "", o->csv.stream);
    fputs(classes ? ",prediction" : "", o->csv.stream);
    for (int64_t k = 0; k < o->target_width; k++)
        if (classes)
            fputs(",target", o->csv.stream);
        else
            fprintf(o->csv.stream, ",target%lld", (long long)k);
    for (int64_t k = 0; k < o->layout.outputs; k++) {
        fputc(',', o->csv.stream);
        if (classes)
            put_class(o, k);
        else
            fprintf(o->csv.stream, "output%lld", (long long)k);
    }
    fputc('\n', o->csv.stream);
}

/* Row t of the sequence's targets; a target that there is not is empty. */
static void put_targets(struct rnnd__predict_out *o, int64_t t)
{
    for (int64_t k = 0; k < o->target_width; k++) {
        fputc(',', o->csv.stream);
        if (rnnd__task_is_categorical(rnnd_model_spec(o->model)->task)) {
            int32_t label = ((const int32_t *)o->target)[t];
            if (label >= 0)
                put_class(o, label);
        } else {
            float value = ((const float *)o->target)[t * o->target_width + k];
            if (!isnan(value))
                fprintf(o->csv.stream, "%.9g", (double)value);
        }
    }
}

void rnnd__predict_put_name(FILE *f, const struct rnnd_dataset *data, int64_t sequence)
{
    const char *name = rnnd_dataset_name(data, sequence);
    if (name)
        rnnd__predict_put_text(f, name);
    else
        fprintf(f, "%lld", (long long)sequence);
}

static void put_row(struct rnnd__predict_out *o, int64_t sequence, int64_t step,
                    const float *row)
{
    int64_t best = 0;
    rnnd__predict_put_name(o->csv.stream, o->data, sequence);
    if (o->layout.stepwise)
        fprintf(o->csv.stream, ",%lld", (long long)step);
    for (int64_t k = 1; k < o->layout.outputs; k++)
        best = row[k] > row[best] ? k : best;
    if (rnnd__task_is_categorical(rnnd_model_spec(o->model)->task)) {
        fputc(',', o->csv.stream);
        put_class(o, best);
    }
    put_targets(o, step);
    for (int64_t k = 0; k < o->layout.outputs; k++)
        fprintf(o->csv.stream, ",%.9g", (double)row[k]);
    fputc('\n', o->csv.stream);
}

/* Reads the targets of a sequence. That of a step of lm is the next token; the last
   step has none. */
static int read_targets(struct rnnd__predict_out *o, int64_t sequence)
{
    int64_t begin = o->offsets[sequence], steps = o->offsets[sequence + 1] - begin;
    if (o->target_width == 0)
        return 0;
    if (!o->layout.stepwise)
        return rnnd_dataset_targets(o->data, sequence, 1, o->target);
    if (steps == 0)
        return 0;
    if (o->kind != RNND__TARGET_TOKEN)
        return rnnd_dataset_targets(o->data, begin, steps, o->target);
    ((int32_t *)o->target)[steps - 1] = -1;
    return steps == 1 ? 0
                      : rnnd_dataset_inputs(o->data, begin + 1, steps - 1, o->target);
}

/* Errors of writing are found when the file is committed. */
static int write_csv(struct rnnd__predict_out *o, const struct rnnd__predict_pool *pool)
{
    const float *rows = pool->rows;
    if (o->strings)
        return rnnd__strings_out_lines(o->strings, o->csv.stream, pool);
    for (int64_t i = pool->first; i < pool->end; i++) {
        int64_t count = o->layout.stepwise ? o->offsets[i + 1] - o->offsets[i] : 1;
        RNND_TRY(read_targets(o, i));
        for (int64_t t = 0; t < count; t++, rows += o->layout.outputs)
            put_row(o, i, t, rows);
    }
    return 0;
}

/* Targets are shown where the data have those of the model's task. */
static int open_targets(struct rnnd__predict_out *o)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(o->data);
    const struct rnnd_model_spec *spec = rnnd_model_spec(o->model);
    o->kind = rnnd__task(spec->task)->target;
    if (info->task != spec->task || info->outputs != spec->outputs)
        return 0;
    o->target_width = rnnd__task_target_width(spec->task, spec->outputs);
    if (o->layout.strings)
        return 0;
    int64_t rows = o->layout.stepwise ? info->longest : 1;
    return rnnd__new((size_t)(rows * o->target_width), sizeof(float), "targets",
                     &o->target);
}

/* ---- both */

int rnnd__predict_out_open(const struct rnnd_options *opt, struct rnnd_dataset *data,
                           struct rnnd_model *model,
                           const struct rnnd__predict_layout *layout,
                           struct rnnd__predict_out **out)
{
    struct rnnd__predict_out *o = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&o, 1, "predictions"));
    o->layout = *layout;
    o->data = data;
    o->model = model;
    o->offsets = rnnd_dataset_offsets(data);
    o->sequences = rnnd_dataset_info(data)->sequences;
    if (layout->strings)
        RNND_TRY_GOTO(rnnd__strings_out_new(opt, data, model, &o->strings));
    RNND_TRY_GOTO(RNND_NEW(&o->padded, (layout->pad * layout->outputs), "padding"));
    if (opt->out)
        RNND_TRY_GOTO(create_file(o, opt->out));
    if (opt->csv) {
        RNND_TRY_GOTO(open_targets(o));
        RNND_TRY_GOTO(rnnd__file_create(opt->csv, &csv_kind, &o->csv));
        put_header(o);
    }
    *out = o;
    return 0;
done:
    rnnd__predict_out_close(o);
    return status;
}

int rnnd__predict_out_pool(struct rnnd__predict_out *o,
                           const struct rnnd__predict_pool *pool)
{
    if (o->file)
        RNND_TRY(write_file(o, pool));
    return o->csv.stream ? write_csv(o, pool) : 0;
}

int rnnd__predict_out_commit(struct rnnd__predict_out *o)
{
    if (o->file && o->strings)
        RNND_TRY(rnnd__strings_out_end(o->strings, o->file));
    if (o->file) {
        struct rnnd__hdf *file = o->file;
        o->file = NULL;
        RNND_TRY(rnnd__hdf_commit(file));
    }
    return o->csv.stream ? rnnd__file_commit(&o->csv) : 0;
}

void rnnd__predict_out_close(struct rnnd__predict_out *o)
{
    if (!o)
        return;
    rnnd__hdf_close(o->file);
    rnnd__file_drop(&o->csv);
    rnnd__strings_out_free(o->strings);
    free(o->padded);
    free(o->target);
    free(o);
}
