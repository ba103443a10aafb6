/*
 * dataset_names.c - numbers features, tokens and classes of a data set as a model does,
 * by their names.
 *
 * Where both sides have names, names decide; else numbers do, and the counts must be
 * equal, which rnnd_model_accepts() checks. Arrays in memory are changed once; rows
 * from disk as they are read.
 */
#include "data/dataset_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"

/* The tokens that `pack` adds to those of a text. */
static const char unknown_token[] = "<unk>", end_token[] = "<eos>";

const struct rnnd__names *rnnd__dataset_names(const struct rnnd_dataset *data)
{
    return &data->names;
}

/* ---- rows */

/* to[r][j] = from[r][column[j]]; in place, since rows do not become wider. */
static void pick(float *rows, int64_t count, const int64_t *column, int64_t width[2],
                 float *row)
{
    float *to = rows;
    for (int64_t r = 0; r < count; r++, rows += width[0], to += width[1]) {
        for (int64_t j = 0; j < width[1]; j++)
            row[j] = rows[column[j]];
        memcpy(to, row, (size_t)width[1] * sizeof *row);
    }
}

static void renumber(int32_t *number, int64_t count, const int32_t *of)
{
    for (int64_t i = 0; i < count; i++)
        number[i] = number[i] < 0 ? number[i] : of[number[i]];
}

void rnnd__dataset_map_inputs(const struct rnnd_dataset *data, void *rows,
                              int64_t count)
{
    const struct rnnd__dataset_match *m = &data->match;
    int64_t width[] = {m->file_inputs, data->info.inputs};
    if (m->feature)
        pick(rows, count, m->feature, width, m->row);
    if (m->token)
        renumber(rows, count, m->token);
}

void rnnd__dataset_map_targets(const struct rnnd_dataset *data, void *rows,
                               int64_t count)
{
    const struct rnnd__dataset_match *m = &data->match;
    int64_t width[] = {m->file_outputs, data->info.outputs};
    if (m->value)
        pick(rows, count, m->value, width, m->row);
    if (m->class)
        renumber(rows, count, m->class);
}

bool rnnd__dataset_renumbers_classes(const struct rnnd_dataset *data)
{
    return data->match.value || data->match.class;
}

void rnnd__dataset_match_clear(struct rnnd__dataset_match *m)
{
    free(m->feature);
    free(m->value);
    free(m->token);
    free(m->class);
    free(m->row);
    *m = (struct rnnd__dataset_match){0};
}

/* ---- messages */

/* Fails with both lists of names. what: "has no feature", ...; hint may be "". */
static int fail_names(const struct rnnd_dataset *data, const struct rnnd__names *names,
                      enum rnnd_axis axis, const char *problem, const char *hint)
{
    char own[RNND__NAMES_LIST], wanted[RNND__NAMES_LIST];
    rnnd__names_list(&data->names, axis, own);
    rnnd__names_list(names, axis, wanted);
    return rnnd__fail(RNND_EDATA, "%s: %s; its %s are %s; those of the model are %s%s",
                      data->path, problem, rnnd__names_word(axis), own, wanted, hint);
}

/* ---- columns of features and of targets */

static bool in_order(const int64_t *column, int64_t count, int64_t width)
{
    int64_t i = 0;
    while (i < count && column[i] == i)
        i++;
    return i == count && count == width;
}

static void warn_of_extra(const struct rnnd_dataset *data,
                          const struct rnnd__names *names, enum rnnd_axis axis)
{
    int64_t count;
    char *const *own = rnnd__names_texts(&data->names, axis, &count);
    for (int64_t i = 0; i < count; i++)
        if (rnnd__names_find(names, axis, own[i]) < 0)
            rnnd__log_warn(
                "%s: ignoring the %s \"%s\", which the model does not know", data->path,
                axis == RNND_AXIS_FEATURE ? "feature" : "target column", own[i]);
}

/* *out [count of the model]: the column of each name; NULL if nothing changes. */
static int match_columns(const struct rnnd_dataset *data,
                         const struct rnnd__names *names, enum rnnd_axis axis,
                         int64_t **out)
{
    int64_t count, width, *column;
    char *const *want = rnnd__names_texts(names, axis, &count);
    rnnd__names_texts(&data->names, axis, &width);
    if (count == 0 || width == 0)
        return 0;
    RNND_TRY(RNND_NEW(&column, count, "columns"));
    for (int64_t i = 0; i < count; i++) {
        char problem[160];
        column[i] = rnnd__names_find(&data->names, axis, want[i]);
        if (column[i] >= 0)
            continue;
        free(column);
        snprintf(problem, sizeof problem, "has no %s \"%.80s\"",
                 axis == RNND_AXIS_FEATURE ? "feature" : "target column", want[i]);
        return fail_names(data, names, axis, problem, "");
    }
    warn_of_extra(data, names, axis);
    if (in_order(column, count, width)) {
        free(column);
        return 0;
    }
    *out = column;
    return 0;
}

static int match_features(struct rnnd_dataset *data, const struct rnnd__names *names)
{
    struct rnnd__dataset_match *m = &data->match;
    RNND_TRY(match_columns(data, names, RNND_AXIS_FEATURE, &m->feature));
    m->file_inputs = data->info.inputs;
    if (m->feature)
        rnnd__names_texts(names, RNND_AXIS_FEATURE, &data->info.inputs);
    return 0;
}

static int match_values(struct rnnd_dataset *data, const struct rnnd__names *names)
{
    struct rnnd__dataset_match *m = &data->match;
    RNND_TRY(match_columns(data, names, RNND_AXIS_CLASS, &m->value));
    m->file_outputs = data->info.outputs;
    if (m->value)
        rnnd__names_texts(names, RNND_AXIS_CLASS, &data->info.outputs);
    return 0;
}

/* ---- numbers of tokens and of classes */

/* *out [names of the file]: the model's number of each, -1 = unknown; NULL if nothing
   changes. */
static int match_numbers(const struct rnnd_dataset *data,
                         const struct rnnd__names *names, enum rnnd_axis axis,
                         int32_t **out)
{
    int64_t count, known;
    int32_t *number;
    char *const *own = rnnd__names_texts(&data->names, axis, &count);
    rnnd__names_texts(names, axis, &known);
    if (count == 0 || known == 0 || rnnd__names_equal(&data->names, names, axis))
        return 0;
    RNND_TRY(RNND_NEW(&number, count, "names"));
    for (int64_t i = 0; i < count; i++)
        number[i] = (int32_t)rnnd__names_find(names, axis, own[i]);
    *out = number;
    return 0;
}

static bool is_of_text(const struct rnnd_dataset *data, int64_t token)
{
    const char *text = rnnd__names_text(&data->names, RNND_AXIS_TOKEN, token);
    return strcmp(text, unknown_token) != 0 && strcmp(text, end_token) != 0;
}

/* Unknown tokens become "<unk>", where the model has it and knows some others. */
static int settle_unknown_tokens(struct rnnd_dataset *data,
                                 const struct rnnd__names *names)
{
    struct rnnd__dataset_match *m = &data->match;
    int64_t unk = rnnd__names_find(names, RNND_AXIS_TOKEN, unknown_token);
    int64_t uses = 0, kinds = 0, known = 0, first = -1;
    for (int64_t v = 0; v < data->info.vocab; v++) {
        if (m->token[v] >= 0) {
            known += is_of_text(data, v) ? data->token_uses[v] : 0;
            continue;
        }
        m->token[v] = (int32_t)(unk < 0 ? 0 : unk);
        if (data->token_uses[v] && kinds++ == 0)
            first = v;
        uses += data->token_uses[v];
    }
    if (uses == 0)
        return 0;
    if (unk < 0 || known == 0) {
        char problem[160];
        snprintf(problem, sizeof problem,
                 "the model does not know %lld of its tokens, such as \"%.40s\"",
                 (long long)kinds,
                 rnnd__names_text(&data->names, RNND_AXIS_TOKEN, first));
        return fail_names(data, names, RNND_AXIS_TOKEN, problem,
                          "; pack the text with --vocab-from the training data");
    }
    rnnd__log_warn("%s: %.3g %% of the steps are tokens that the model does not know, "
                   "such as \"%.40s\": they become %s",
                   data->path, 100. * (double)uses / (double)data->info.steps,
                   rnnd__names_text(&data->names, RNND_AXIS_TOKEN, first),
                   unknown_token);
    return 0;
}

static int match_tokens(struct rnnd_dataset *data, const struct rnnd__names *names)
{
    struct rnnd_dataset_info *info = &data->info;
    int64_t known;
    RNND_TRY(match_numbers(data, names, RNND_AXIS_TOKEN, &data->match.token));
    if (!data->match.token)
        return 0;
    RNND_TRY(settle_unknown_tokens(data, names));
    rnnd__names_texts(names, RNND_AXIS_TOKEN, &known);
    info->vocab = known;
    if (info->task == RNND_LM)
        info->outputs = known;
    return 0;
}

/* A target of an unknown class is an error if strict, else it is ignored. */
static int settle_unknown_classes(struct rnnd_dataset *data,
                                  const struct rnnd__names *names, bool strict)
{
    struct rnnd_dataset_info *info = &data->info;
    for (int64_t k = 0; k < data->classes; k++) {
        int64_t uses = data->class_uses[k];
        const char *text = rnnd__names_text(&data->names, RNND_AXIS_CLASS, k);
        if (data->match.class[k] >= 0 || uses == 0)
            continue;
        if (strict || (!data->string_offsets && uses == info->targets)) {
            char problem[160];
            snprintf(problem, sizeof problem,
                     "%lld targets are of class \"%.60s\", which the model does not "
                     "know",
                     (long long)uses, text);
            return fail_names(data, names, RNND_AXIS_CLASS, problem, "");
        }
        rnnd__log_warn("%s: %lld targets are of class \"%s\", which the model does not "
                       "know: they count as wrong, and the loss leaves %s out",
                       data->path, (long long)uses, text,
                       data->string_offsets ? "their sequences" : "them");
        info->unknown_targets += uses;
        info->targets -= uses;
    }
    return 0;
}

static int match_classes(struct rnnd_dataset *data, const struct rnnd__names *names,
                         bool strict)
{
    RNND_TRY(match_numbers(data, names, RNND_AXIS_CLASS, &data->match.class));
    if (!data->match.class)
        return 0;
    rnnd__names_texts(names, RNND_AXIS_CLASS, &data->info.outputs);
    data->info.outputs += rnnd__task_blanks(data->info.task);
    return settle_unknown_classes(data, names, strict);
}

/* ---- all */

static int match_targets(struct rnnd_dataset *data, const struct rnnd__names *names,
                         bool strict)
{
    if (!data->has_targets)
        return 0;
    return rnnd__task_has_classes(data->info.task) ? match_classes(data, names, strict)
                                                   : match_values(data, names);
}

static void map_memory(struct rnnd_dataset *data)
{
    if (data->inputs)
        rnnd__dataset_map_inputs(data, data->inputs, data->info.steps);
    if (data->targets)
        rnnd__dataset_map_targets(data, data->targets, data->target_rows);
    if (data->string_offsets)
        rnnd__dataset_count_strings(data);
}

/* What is not matched keeps the names of the file. */
static int take_names(struct rnnd_dataset *data, const struct rnnd__names *names,
                      bool targets)
{
    for (int a = 0; a < RNND_AXES; a++) {
        int64_t count;
        char *const *text = rnnd__names_texts(names, (enum rnnd_axis)a, &count);
        if (count && (targets || a != RNND_AXIS_CLASS))
            RNND_TRY(rnnd__names_set(&data->names, (enum rnnd_axis)a, text, count));
    }
    return 0;
}

int rnnd__dataset_match(struct rnnd_dataset *data, const struct rnnd__names *names,
                        bool targets, bool strict)
{
    struct rnnd__dataset_match *m = &data->match;
    RNND_TRY(data->info.vocab ? match_tokens(data, names)
                              : match_features(data, names));
    if (targets)
        RNND_TRY(match_targets(data, names, strict));
    int64_t wide =
        data->info.inputs > data->info.outputs ? data->info.inputs : data->info.outputs;
    if (m->feature || m->value)
        RNND_TRY(RNND_NEW(&m->row, wide, "a row"));
    map_memory(data);
    return take_names(data, names, targets);
}
