/*
 * options_check.c - combinations of train options: which options have no effect, and
 * which combinations are invalid.
 *
 * Takes the options and, once it is known, the task of the data set; opens nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "options/options_table.h"

/* Whether the data are read as a stream. task: -1 = not known yet. */
static bool streams(const struct rnnd_options *opt, int task)
{
    return task >= 0 && rnnd_streams(opt, (enum rnnd_task)task);
}

/* ---- options without effect */

static const char *idle_in_order(const struct rnnd_options *opt, int task, int i)
{
    if (streams(opt, task))
        return "when the data are read as a stream";
    if (i == OPT_bucket && opt->shuffle == RNND_SHUFFLE_NONE)
        return "without shuffling";
    return NULL;
}

static const char *idle_in_optimizer(const struct rnnd_options *opt, int i)
{
    bool sgd = opt->optimizer == RNND_SGD;
    switch (i) {
    case OPT_momentum:
        return sgd ? NULL : "without --optimizer sgd";
    case OPT_lr_step:
        return opt->lr_schedule == RNND_STEP_LR ? NULL : "without --lr-schedule step";
    case OPT_lr_decay:
        return opt->lr_schedule == RNND_STEP_LR || opt->lr_schedule == RNND_PLATEAU_LR
                   ? NULL
                   : "without --lr-schedule step or plateau";
    case OPT_lr_patience:
        return opt->lr_schedule == RNND_PLATEAU_LR ? NULL
                                                   : "without --lr-schedule plateau";
    default: /* beta1, beta2, eps */
        return sgd ? "with --optimizer sgd" : NULL;
    }
}

static const char *idle_in_model(const struct rnnd_options *opt, int task, int i)
{
    switch (i) {
    case OPT_pool:
        return task >= 0 && rnnd_task_is_stepwise((enum rnnd_task)task)
                   ? "with one target per step"
                   : NULL;
    case OPT_dropout:
        return opt->layers == 1 ? "with one layer" : NULL;
    case OPT_embed:
    case OPT_dropout_embed:
    case OPT_sparse_embedding:
        return opt->of_features ? "on features" : NULL;
    default: /* dropout_kind */
        return (opt->dropout > 0 && opt->layers > 1) ||
                       (opt->dropout_embed > 0 && !opt->of_features) ||
                       opt->dropout_head > 0
                   ? NULL
                   : "without dropout";
    }
}

static bool is_unset(const struct rnnd_options *opt, int i)
{
    switch (i) {
    case OPT_valid:
        return !opt->valid;
    case OPT_init:
        return !opt->init;
    case OPT_class_weight:
        return !opt->class_weight;
    case OPT_data:
        return !opt->data;
    case OPT_task:
        return opt->task < 0;
    case OPT_batch_tokens:
        return opt->batch_tokens == 0;
    case OPT_threads:
        return opt->threads == 0;
    default:
        return false;
    }
}

const char *rnnd__option_idle(const struct rnnd_options *opt, int task, int i)
{
    if (is_unset(opt, i))
        return "because it is not set";
    switch (i) {
    case OPT_valid_every:
    case OPT_patience:
    case OPT_best_by:
        return opt->valid ? NULL : "without --valid";
    case OPT_shuffle:
    case OPT_bucket:
        return idle_in_order(opt, task, i);
    case OPT_batch:
        return opt->batch_tokens > 0 ? "with --batch-tokens" : NULL;
    case OPT_pool:
    case OPT_embed:
    case OPT_dropout:
    case OPT_dropout_embed:
    case OPT_dropout_kind:
    case OPT_sparse_embedding:
        return idle_in_model(opt, task, i);
    case OPT_on_unreachable:
        return task < 0 || task == RNND_CTC ? NULL : "without task ctc";
    case OPT_rnn_path:
        return opt->device == RNND_DEVICE_CPU ? "with --device cpu" : NULL;
    case OPT_windows:
    case OPT_stream:
        return opt->tbptt > 0 ? NULL : "without --tbptt";
    case OPT_momentum:
    case OPT_beta1:
    case OPT_beta2:
    case OPT_eps:
    case OPT_lr_step:
    case OPT_lr_decay:
    case OPT_lr_patience:
        return idle_in_optimizer(opt, i);
    default:
        return NULL;
    }
}

/* Warns of options that were given, differ from the default and have no effect. */
static int warn_of_idle(const struct rnnd_options *opt, int task)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct rnnd__option *option = &rnnd__options[i];
        const char *why = rnnd__option_idle(opt, task, i);
        if (!why || opt->given[i] == RNND_FROM_DEFAULT)
            continue;
        char *value;
        RNND_TRY(rnnd__option_get(opt, i, &value));
        if (strcmp(value, option->preset ? option->preset : "") != 0)
            rnnd__log_warn("--%s %s has no effect %s", option->name, value, why);
        free(value);
    }
    return 0;
}

/* ---- invalid combinations */

static int refuse(const char *reason)
{
    return rnnd__fail(RNND_EUSAGE, "%s", reason);
}

static int check_windows(const struct rnnd_options *opt)
{
    if (opt->tbptt > 0 && opt->bidirectional)
        return refuse(
            "--tbptt cannot be used with --bidirectional: the reverse direction "
            "starts at the end of a sequence, which a window does not contain");
    if (opt->stream != RNND_STREAM_YES)
        return 0;
    if (opt->tbptt == 0)
        return refuse("--stream yes needs --tbptt, which sets the window length");
    if (opt->batch_tokens > 0)
        return refuse(
            "--stream yes cannot be used with --batch-tokens: a stream has --batch "
            "lanes");
    if (opt->windows == 0)
        return refuse(
            "--stream yes cannot be used with --windows 0: a stream has no batches");
    return 0;
}

int rnnd__options_check_early(const struct rnnd_options *opt)
{
    if (opt->given[OPT_batch] && opt->batch_tokens > 0 &&
        opt->given[OPT_batch] == opt->given[OPT_batch_tokens])
        return refuse(
            "--batch cannot be used with --batch-tokens: a batch is a number of "
            "sequences or of steps");
    if (opt->lr_schedule == RNND_PLATEAU_LR && !opt->valid)
        return refuse(
            "--lr-schedule plateau needs --valid: it uses the validation loss");
    if (opt->patience > 0 && !opt->valid)
        return refuse("--patience needs --valid: it counts validations");
    return check_windows(opt);
}

static int check_tied(const struct rnnd_options *opt, enum rnnd_task task)
{
    if (!opt->tie_weights)
        return 0;
    if (task != RNND_LM)
        return rnnd__fail(RNND_EUSAGE, "--tie-weights is for task lm, not %s",
                          rnnd_task_name(task));
    if (opt->embed != opt->hidden)
        return rnnd__fail(
            RNND_EUSAGE,
            "--tie-weights needs --embed and --hidden to be equal, not %lld and %lld",
            (long long)opt->embed, (long long)opt->hidden);
    return 0;
}

static int check_sparse(const struct rnnd_options *opt)
{
    if (!opt->sparse_embedding || opt->of_features)
        return 0;
    if (opt->tie_weights)
        return refuse(
            "--sparse-embedding cannot be used with --tie-weights: the output layer "
            "uses every row of the matrix in every update");
    if (opt->weight_decay > 0)
        return refuse(
            "--sparse-embedding cannot be used with --weight-decay: rows would decay "
            "only as often as they are used");
    if (opt->device == RNND_DEVICE_CUDA)
        return refuse(
            "--sparse-embedding cannot be used with --device cuda: it runs on CPUs");
    return 0;
}

static int check_loss(const struct rnnd_options *opt, enum rnnd_task task)
{
    bool classes = task == RNND_CLASSIFY || task == RNND_TAG;
    if (opt->class_weight && !classes && task != RNND_MULTILABEL)
        return rnnd__fail(RNND_EUSAGE,
                          "--class-weight is for tasks classify, tag and multilabel, "
                          "not %s",
                          rnnd_task_name(task));
    if (opt->label_smoothing > 0 && !classes && task != RNND_LM)
        return rnnd__fail(RNND_EUSAGE,
                          "--label-smoothing is for tasks classify, tag and lm, not %s",
                          rnnd_task_name(task));
    return 0;
}

static int check_task(const struct rnnd_options *opt, enum rnnd_task task)
{
    const char *name = rnnd_task_name(task);
    if (task == RNND_LM && opt->bidirectional)
        return refuse(
            "--bidirectional cannot be used with task lm: the reverse direction would "
            "see the tokens to predict");
    if (opt->tbptt > 0 && !rnnd_task_is_stepwise(task))
        return rnnd__fail(
            RNND_EUSAGE,
            "--tbptt cannot be used with task %s, which has one target per sequence",
            name);
    if (opt->tbptt > 0 && task == RNND_CTC)
        return refuse(
            "--tbptt cannot be used with task ctc: a string of labels belongs to all "
            "steps of its sequence, not to a window");
    if (opt->stream == RNND_STREAM_YES && task != RNND_LM)
        return rnnd__fail(RNND_EUSAGE, "--stream yes is for task lm, not %s", name);
    if (streams(opt, task) && opt->windows == 0)
        return refuse(
            "--windows 0 cannot be used with a stream, which has no batches; use "
            "--stream no");
    return check_tied(opt, task);
}

int rnnd__options_check(const struct rnnd_options *opt, enum rnnd_task task)
{
    RNND_TRY(rnnd__options_check_early(opt));
    RNND_TRY(check_task(opt, task));
    RNND_TRY(check_loss(opt, task));
    RNND_TRY(check_sparse(opt));
    return warn_of_idle(opt, task);
}
