/*
 * strings.c - the label strings of a data set: read, checked and counted.
 */
#include "data/strings.h"

#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"

/* ---- reading */

int rnnd__dataset_string_offsets(struct rnnd_dataset *data, int64_t rows)
{
    static const char name[] = "/target_offsets";
    int64_t want = data->info.sequences + 1;
    struct rnnd__hdf_shape shape;
    if (!rnnd__hdf_has(data->file, name))
        return rnnd__fail(RNND_EDATA,
                          "%s: %s: missing, required by task %s: where the labels of "
                          "each sequence begin in /targets",
                          data->path, name, rnnd_task_name(data->info.task));
    RNND_TRY(rnnd__dataset_shape(data, name, &shape));
    if (shape.rank != 1 || shape.dim[0] != want)
        return rnnd__fail(RNND_EDATA,
                          "%s: %s: expected one dimension of %lld values, one more "
                          "than sequences",
                          data->path, name, (long long)want);
    return rnnd__dataset_read_offsets(data, name, "/targets", rows,
                                      &data->string_offsets);
}

int rnnd__dataset_check_string(struct rnnd_dataset *data, const void *rows,
                               int64_t first, int64_t count)
{
    const int32_t *label = rows;
    for (int64_t i = 0; i < count; i++) {
        if (label[i] < 0 || label[i] >= data->classes)
            return rnnd__fail(
                RNND_EDATA,
                "%s: /targets[%lld] = %d: labels are 0 to %lld (num_classes %lld); the "
                "blank is not among them",
                data->path, (long long)(first + i), (int)label[i],
                (long long)data->classes - 1, (long long)data->classes);
        if (data->class_uses)
            data->class_uses[label[i]]++;
    }
    return 0;
}

/* ---- targets */

const int32_t *rnnd__string_of(const struct rnnd_dataset *data, int64_t sequence,
                               int64_t *count)
{
    const int64_t *at = data->string_offsets + sequence;
    *count = at[1] - at[0];
    return (const int32_t *)data->targets + at[0];
}

/* The steps that a string needs. */
static int64_t steps_needed(const int32_t *label, int64_t count)
{
    int64_t steps = count;
    for (int64_t i = 1; i < count; i++)
        steps += label[i] == label[i - 1];
    return steps;
}

enum rnnd__string_kind rnnd__string_kind(const struct rnnd_dataset *data,
                                         int64_t sequence)
{
    int64_t count, steps = data->offsets[sequence + 1] - data->offsets[sequence];
    const int32_t *label = rnnd__string_of(data, sequence, &count);
    if (steps_needed(label, count) > steps)
        return RNND__STRING_UNREACHABLE;
    for (int64_t i = 0; i < count; i++)
        if (label[i] < 0)
            return RNND__STRING_UNKNOWN;
    return RNND__STRING_TARGET;
}

void rnnd__dataset_count_strings(struct rnnd_dataset *data)
{
    struct rnnd_dataset_info *info = &data->info;
    info->targets = info->unreachable = info->unknown_targets = 0;
    info->longest_string = 0;
    for (int64_t i = 0; i < info->sequences; i++) {
        enum rnnd__string_kind kind = rnnd__string_kind(data, i);
        int64_t count;
        rnnd__string_of(data, i, &count);
        info->targets += kind == RNND__STRING_TARGET;
        info->unreachable += kind == RNND__STRING_UNREACHABLE;
        info->unknown_targets += kind == RNND__STRING_UNKNOWN;
        if (kind == RNND__STRING_TARGET && count > info->longest_string)
            info->longest_string = count;
    }
}

int rnnd_dataset_check_strings(const struct rnnd_dataset *data,
                               enum rnnd_on_unreachable policy)
{
    int64_t i = 0, count;
    char text[320];
    if (data->info.unreachable == 0)
        return 0;
    while (rnnd__string_kind(data, i) != RNND__STRING_UNREACHABLE)
        i++;
    const int32_t *label = rnnd__string_of(data, i, &count);
    const char *name = rnnd_dataset_name(data, i);
    snprintf(text, sizeof text,
             "%lld of %lld label strings do not fit into their sequences; the first, "
             "of sequence %lld%s%.60s%s, has %lld labels and needs %lld steps, but "
             "there are %lld",
             (long long)data->info.unreachable, (long long)data->info.sequences,
             (long long)i, name ? " (\"" : "", name ? name : "", name ? "\")" : "",
             (long long)count, (long long)steps_needed(label, count),
             (long long)(data->offsets[i + 1] - data->offsets[i]));
    if (policy == RNND_UNREACHABLE_STOP)
        return rnnd__fail(RNND_EDATA, "%s: %s (--on-unreachable stop)", data->path,
                          text);
    rnnd__log_warn("%s: %s; these sequences are left out", data->path, text);
    return 0;
}
