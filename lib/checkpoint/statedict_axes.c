/*
 * statedict_axes.c - names of features, tokens and classes in a file with a model.
 *
 * A checkpoint has them as arrays of strings, an exported file as JSON lists. The
 * tokens of a language model are its classes, and are stored as such.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "checkpoint/statedict.h"
#include "hdf/hdf.h"
#include "model/params.h"

/* Where an axis is stored: "/" and this in a checkpoint, "rnn_dist." and this in an
   exported file; NULL where a model of this task has no such axis. */
static const char *place_of(enum rnnd_axis axis, bool lm)
{
    if (axis == RNND_AXIS_FEATURE)
        return "features";
    if (axis == RNND_AXIS_TOKEN)
        return lm ? "classes" : "vocab";
    return lm ? NULL : "classes";
}

enum { PLACE = 32 };

static bool is_lm(const struct rnnd__statedict *sd)
{
    return sd->task && strcmp(sd->task, rnnd_task_name(RNND_LM)) == 0;
}

static const char *word_of(const struct rnnd__statedict *sd, enum rnnd_axis axis)
{
    return rnnd__names_word(is_lm(sd) && axis == RNND_AXIS_TOKEN ? RNND_AXIS_CLASS
                                                                 : axis);
}

/* ---- reading */

/* Names that cannot be used are ignored: arrays can, without them. */
static int take(struct rnnd__statedict *sd, enum rnnd_axis axis, char *const *text,
                int64_t count)
{
    int status = rnnd__names_set(&sd->names, axis, text, count);
    if (status != RNND_EDATA)
        return status;
    rnnd__log_warn("%s: %s: ignoring the names of its %s", sd->path,
                   rnnd_status_detail(), word_of(sd, axis));
    return 0;
}

static int read_strings(struct rnnd__statedict *sd, enum rnnd_axis axis,
                        const char *object)
{
    char **text = NULL;
    int64_t count = 0;
    if (!rnnd__hdf_has(sd->hdf, object))
        return 0;
    RNND_TRY(rnnd__hdf_read_strings(sd->hdf, object, &text, &count));
    int status = take(sd, axis, text, count);
    free(text);
    return status;
}

int rnnd__statedict_read_axes(struct rnnd__statedict *sd)
{
    for (int a = 0; a < RNND_AXES; a++) {
        const char *place = place_of((enum rnnd_axis)a, is_lm(sd));
        char object[PLACE];
        if (!place)
            continue;
        snprintf(object, sizeof object, "/%s", place);
        RNND_TRY(read_strings(sd, (enum rnnd_axis)a, object));
    }
    return 0;
}

static bool are_strings(const json_t *list)
{
    for (size_t k = 0; k < json_array_size(list); k++)
        if (!json_is_string(json_array_get(list, k)))
            return false;
    return json_is_array(list);
}

static int take_list(struct rnnd__statedict *sd, enum rnnd_axis axis, const char *json)
{
    json_t *list = json_loads(json, 0, NULL);
    char **text = NULL;
    int status = 0;
    if (!are_strings(list)) {
        rnnd__log_warn("%s: the names of its %s are not a JSON list of strings: "
                       "ignoring them",
                       sd->path, word_of(sd, axis));
        goto done;
    }
    int64_t count = (int64_t)json_array_size(list);
    RNND_TRY_GOTO(RNND_NEW(&text, count, "names"));
    for (int64_t k = 0; k < count; k++)
        text[k] = (char *)json_string_value(json_array_get(list, (size_t)k));
    status = take(sd, axis, text, count);
done:
    free(text);
    json_decref(list);
    return status;
}

int rnnd__statedict_take_axes(struct rnnd__statedict *sd,
                              int (*get)(void *context, const char *key, char **text),
                              void *context)
{
    for (int a = 0; a < RNND_AXES; a++) {
        const char *place = place_of((enum rnnd_axis)a, is_lm(sd));
        char key[PLACE], *text = NULL;
        if (!place)
            continue;
        snprintf(key, sizeof key, "rnn_dist.%s", place);
        int status = get(context, key, &text);
        if (status == 0 && text)
            status = take_list(sd, (enum rnnd_axis)a, text);
        free(text);
        RNND_TRY(status);
    }
    return 0;
}

int rnnd__statedict_name_model(const struct rnnd__statedict *sd,
                               struct rnnd_model *model)
{
    for (int a = 0; a < RNND_AXES; a++) {
        int64_t count;
        char *const *text = rnnd__names_texts(&sd->names, (enum rnnd_axis)a, &count);
        if (count == 0)
            continue;
        int status = rnnd_model_set_names(model, (enum rnnd_axis)a, text, count);
        if (status != RNND_EDATA)
            RNND_TRY(status);
        else
            rnnd__log_warn("%s: %s: ignoring the names", sd->path,
                           rnnd_status_detail());
    }
    return 0;
}

/* ---- writing */

int rnnd__statedict_write_axes(struct rnnd__hdf *file, const struct rnnd_model *model)
{
    bool lm = rnnd_model_spec(model)->task == RNND_LM;
    for (int a = 0; a < RNND_AXES; a++) {
        const char *place = place_of((enum rnnd_axis)a, lm);
        int64_t count;
        char *const *text =
            rnnd__names_texts(rnnd__model_names(model), (enum rnnd_axis)a, &count);
        char object[PLACE];
        if (!place || count == 0)
            continue;
        snprintf(object, sizeof object, "/%s", place);
        RNND_TRY(
            rnnd__hdf_write_strings(file, object, (const char *const *)text, count));
    }
    return 0;
}

/* A JSON list; NULL where there are no names, or names that are not UTF-8, which JSON
   cannot represent. malloc'ed. */
static int list_text(char *const *text, int64_t count, char **out)
{
    json_t *list = json_array();
    int bad = !list;
    for (int64_t k = 0; !bad && k < count; k++)
        bad = json_array_append_new(list, json_string(text[k]));
    bool some = !bad && json_array_size(list) > 0;
    char *all = some ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    if (some && !all)
        return rnnd__fail_memory(0, "names");
    *out = all;
    return 0;
}

int rnnd__statedict_describe_axes(const struct rnnd_model *model,
                                  int (*put)(void *context, const char *key,
                                             const char *text),
                                  void *context)
{
    bool lm = rnnd_model_spec(model)->task == RNND_LM;
    for (int a = 0; a < RNND_AXES; a++) {
        const char *place = place_of((enum rnnd_axis)a, lm);
        int64_t count;
        char *const *names =
            rnnd__names_texts(rnnd__model_names(model), (enum rnnd_axis)a, &count);
        char key[PLACE], *text;
        if (!place)
            continue;
        RNND_TRY(list_text(names, count, &text));
        if (!text && count > 0)
            rnnd__log_warn("names of %s that are not UTF-8 are left out of the file",
                           place);
        snprintf(key, sizeof key, "rnn_dist.%s", place);
        int status = text ? put(context, key, text) : 0;
        free(text);
        RNND_TRY(status);
    }
    return 0;
}
