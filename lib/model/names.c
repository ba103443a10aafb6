/*
 * names.c - the names that are stored with a model, and data sets that are numbered by
 * them.
 */
#include "base/status.h"
#include "base/task.h"
#include "data/dataset_names.h"
#include "model/model.h"

const struct rnnd__names *rnnd__model_names(const struct rnnd_model *m)
{
    return &m->names;
}

const char *rnnd_model_feature(const struct rnnd_model *m, int64_t feature)
{
    return rnnd__names_text(&m->names, RNND_AXIS_FEATURE, feature);
}

const char *rnnd_model_token(const struct rnnd_model *m, int64_t token)
{
    return rnnd__names_text(&m->names, RNND_AXIS_TOKEN, token);
}

/* The axis of the outputs. */
static enum rnnd_axis output_axis(const struct rnnd_model *m)
{
    return m->spec.task == RNND_LM ? RNND_AXIS_TOKEN : RNND_AXIS_CLASS;
}

const char *rnnd_model_class(const struct rnnd_model *m, int64_t k)
{
    return rnnd__names_text(&m->names, output_axis(m), k);
}

/* Elements of an axis. */
static int64_t extent(const struct rnnd_model *m, enum rnnd_axis axis)
{
    return axis == RNND_AXIS_FEATURE ? m->spec.inputs
           : axis == RNND_AXIS_TOKEN
               ? m->spec.vocab
               : m->spec.outputs - rnnd__task_blanks(m->spec.task);
}

int rnnd_model_set_names(struct rnnd_model *m, enum rnnd_axis axis, char *const *text,
                         int64_t count)
{
    if (axis == RNND_AXIS_CLASS)
        axis = output_axis(m);
    if (text && count != extent(m, axis))
        return rnnd__fail(RNND_EDATA, "%lld names for %lld %s", (long long)count,
                          (long long)extent(m, axis), rnnd__names_word(axis));
    return rnnd__names_set(&m->names, axis, text, count);
}

int rnnd_model_take_names(struct rnnd_model *m, const struct rnnd_dataset *data,
                          enum rnnd_axis axis)
{
    int64_t count;
    axis = axis == RNND_AXIS_CLASS ? output_axis(m) : axis;
    char *const *text = rnnd__names_texts(rnnd__dataset_names(data), axis, &count);
    if (count && count != extent(m, axis))
        return rnnd__fail(RNND_EDATA, "%s: has %lld %s, but the model has %lld",
                          rnnd_dataset_info(data)->path, (long long)count,
                          rnnd__names_word(axis), (long long)extent(m, axis));
    return rnnd__names_set(&m->names, axis, text, count);
}

int rnnd_model_match(const struct rnnd_model *m, struct rnnd_dataset *data,
                     bool targets, bool strict)
{
    bool same_task = rnnd_dataset_info(data)->task == m->spec.task;
    RNND_TRY(rnnd__dataset_match(data, &m->names, targets && same_task, strict));
    return rnnd_model_accepts(&m->spec, rnnd_dataset_info(data), targets);
}
