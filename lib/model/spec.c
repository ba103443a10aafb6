/*
 * spec.c - the model that options and data ask for, which sizes make one, and the data
 * that it accepts.
 */
#include "base/status.h"
#include "base/task.h"
#include "model/model.h"

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
                                 .no_bias = opt->no_bias,
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

int rnnd__spec_check(const struct rnnd_model_spec *s)
{
    static const double most = 0x1p40; /* parameters; 4 TiB */
    int64_t in = s->vocab ? s->embed : s->inputs;
    double width = (double)s->hidden * (s->bidirectional ? 2 : 1);
    double gates = rnnd__cell_gates(s->cell) * width;
    double count = (double)s->vocab * (double)s->embed + (double)s->outputs * width +
                   gates * ((double)in + (double)(s->layers - 1) * width +
                            (double)s->layers * (double)s->hidden);
    if (s->outputs < 1)
        return rnnd__fail(RNND_EUSAGE, "a model needs a task with at least one output");
    if (s->outputs <= rnnd__task_blanks(s->task))
        return rnnd__fail(RNND_EUSAGE,
                          "task %s needs at least two outputs, the first of which is "
                          "the blank",
                          rnnd_task_name(s->task));
    if (s->hidden < 1 || in < 1)
        return rnnd__fail(RNND_EDATA,
                          "a model with %lld inputs and %lld hidden units: there must "
                          "be at least one of each",
                          (long long)in, (long long)s->hidden);
    if (count > most)
        return rnnd__fail(RNND_EDATA,
                          "a model with %.3g parameters is too large; at most %.3g",
                          count, most);
    if (s->tie_weights && (s->vocab != s->outputs || (double)s->embed != width))
        return rnnd__fail(RNND_EDATA,
                          "a tied matrix cannot be [%lld, %lld] as embedding and "
                          "[%lld, %.0f] as output layer",
                          (long long)s->vocab, (long long)s->embed,
                          (long long)s->outputs, width);
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
