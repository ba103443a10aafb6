/*
 * spec.c - the model that options and data ask for, and the data that a model accepts.
 */
#include "base/status.h"
#include "base/task.h"

int rnnd_model_spec_from(const struct rnnd_options *opt,
                         const struct rnnd_dataset_info *data,
                         struct rnnd_model_spec *out)
{
    enum rnnd_task task = opt->task < 0 ? data->task : (enum rnnd_task)opt->task;
    if (task == RNND_NO_TASK)
        return rnnd__fail(RNND_EDATA,
                          "%s: attribute task is none: unlabelled data are for "
                          "prediction, not for training",
                          data->path);
    if (task != data->task)
        return rnnd__fail(RNND_EUSAGE, "--task %s: the targets of %s are for %s",
                          rnnd_task_name(task), data->path, rnnd_task_name(data->task));
    if (opt->normalize && !data->inputs)
        return rnnd__fail(RNND_EUSAGE,
                          "--normalize is for features, but the data are tokens");
    *out =
        (struct rnnd_model_spec){.task = task,
                                 .cell = opt->cell,
                                 .inputs = data->inputs,
                                 .vocab = data->vocab,
                                 .embed = data->inputs ? 0 : opt->embed,
                                 .hidden = opt->hidden,
                                 .layers = opt->layers,
                                 .bidirectional = opt->bidirectional,
                                 .pool = opt->pool,
                                 .outputs = data->outputs,
                                 .tie_weights = opt->tie_weights,
                                 .normalize = opt->normalize,
                                 .dropout = opt->layers > 1 ? opt->dropout : 0,
                                 .dropout_embed = data->inputs ? 0 : opt->dropout_embed,
                                 .dropout_head = opt->dropout_head,
                                 .dropout_kind = opt->dropout_kind};
    return 0;
}

static int accepts_inputs(const struct rnnd_model_spec *spec,
                          const struct rnnd_dataset_info *data)
{
    if ((spec->inputs == 0) != (data->inputs == 0))
        return rnnd__fail(RNND_EDATA, "%s: /inputs: %s, but the model reads %s",
                          data->path, data->inputs ? "features" : "tokens",
                          spec->inputs ? "features" : "tokens");
    if (spec->inputs != data->inputs)
        return rnnd__fail(RNND_EDATA,
                          "%s: /inputs: %lld features per step, but the model reads "
                          "%lld",
                          data->path, (long long)data->inputs, (long long)spec->inputs);
    if (data->missing && !spec->normalize)
        return rnnd__fail(RNND_EDATA,
                          "%s: /inputs: %lld values are missing: only a model trained "
                          "with --normalize reads them, as the mean of its training "
                          "data",
                          data->path, (long long)data->missing);
    if (spec->vocab != data->vocab)
        return rnnd__fail(RNND_EDATA,
                          "%s: attribute vocab_size = %lld, but the vocabulary of the "
                          "model has %lld tokens",
                          data->path, (long long)data->vocab, (long long)spec->vocab);
    return 0;
}

int rnnd_model_accepts(const struct rnnd_model_spec *spec,
                       const struct rnnd_dataset_info *data, bool targets)
{
    RNND_TRY(accepts_inputs(spec, data));
    if (!targets)
        return 0;
    if (data->task != spec->task)
        return rnnd__fail(
            RNND_EDATA, "%s: attribute task is %s, but the model was made for %s",
            data->path, rnnd_task_name(data->task), rnnd_task_name(spec->task));
    int64_t blanks = rnnd__task_blanks(spec->task);
    if (data->outputs != spec->outputs)
        return rnnd__fail(RNND_EDATA, "%s: /targets: %lld %s, but the model has %lld",
                          data->path, (long long)(data->outputs - blanks),
                          rnnd__task_has_classes(spec->task) ? "classes" : "columns",
                          (long long)(spec->outputs - blanks));
    if (data->targets == 0)
        return rnnd__fail(RNND_EDATA, "%s: contains no targets to train or evaluate on",
                          data->path);
    return 0;
}
