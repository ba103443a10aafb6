/*
 * task.c - the table of tasks, and which of them run as a stream.
 */
#include "base/task.h"

#include <string.h>

/* ---- the table of tasks */

static const struct rnnd__task_traits tasks[] = {
    [RNND_CLASSIFY] = {"classify", "accuracy", RNND__TARGET_CLASS, false},
    [RNND_TAG] = {"tag", "accuracy", RNND__TARGET_CLASS, true},
    [RNND_REGRESS] = {"regress", "rmse", RNND__TARGET_VALUES, false},
    [RNND_REGRESS_STEPS] = {"regress_steps", "rmse", RNND__TARGET_VALUES, true},
    [RNND_MULTILABEL] = {"multilabel", "nll", RNND__TARGET_ANSWERS, true},
    [RNND_LM] = {"lm", "perplexity", RNND__TARGET_TOKEN, true},
    [RNND_CTC] = {"ctc", "label_error_rate", RNND__TARGET_STRING, true},
    [RNND_NO_TASK] = {"none", NULL, RNND__NO_TARGET, false},
};
enum { TASKS = sizeof tasks / sizeof *tasks };

const struct rnnd__task_traits *rnnd__task(enum rnnd_task task)
{
    return &tasks[(unsigned)task < TASKS ? task : RNND_NO_TASK];
}

const char *rnnd_task_name(enum rnnd_task task)
{
    return (unsigned)task < TASKS ? tasks[task].name : "unknown";
}

bool rnnd__task_find(const char *name, enum rnnd_task *out)
{
    for (int i = 0; i < TASKS; i++)
        if (strcmp(tasks[i].name, name) == 0) {
            *out = (enum rnnd_task)i;
            return true;
        }
    return false;
}

/* ---- measures */

/* Where a figure is among those of a task: sets of kinds of targets. */
enum {
    OF_CLASSES = 1u << RNND__TARGET_CLASS,
    OF_VALUES = 1u << RNND__TARGET_VALUES,
    OF_ANSWERS = 1u << RNND__TARGET_ANSWERS,
    OF_STRINGS = 1u << RNND__TARGET_STRING
};

static const struct measure {
    struct rnnd__measure measure;
    unsigned kinds;
    /* of classes, only where there are two */
    bool two;
} measures[] = {
    [RNND_BY_LOSS] = {{NULL, false}, ~0u, false},
    [RNND_BY_ACCURACY] = {{"accuracy", true}, OF_CLASSES, false},
    [RNND_BY_BALANCED_ACCURACY] = {{"balanced_accuracy", true}, OF_CLASSES, false},
    [RNND_BY_MACRO_F1] = {{"macro_f1", true}, OF_CLASSES | OF_ANSWERS, false},
    [RNND_BY_AUROC] = {{"auroc", true}, OF_CLASSES | OF_ANSWERS, true},
    [RNND_BY_AVERAGE_PRECISION] = {{"average_precision", true},
                                   OF_CLASSES | OF_ANSWERS,
                                   true},
    [RNND_BY_RMSE] = {{"rmse", false}, OF_VALUES, false},
    [RNND_BY_MAE] = {{"mae", false}, OF_VALUES, false},
    [RNND_BY_R2] = {{"r2", true}, OF_VALUES, false},
    [RNND_BY_LABEL_ERROR_RATE] = {{"label_error_rate", false}, OF_STRINGS, false},
};
enum { MEASURES = sizeof measures / sizeof *measures };

const struct rnnd__measure *rnnd__measure(enum rnnd_best_by by)
{
    return &measures[by].measure;
}

const struct rnnd__measure *rnnd__measure_find(const char *figure)
{
    for (int i = 0; i < MEASURES; i++)
        if (measures[i].measure.figure &&
            strcmp(measures[i].measure.figure, figure) == 0)
            return &measures[i].measure;
    return NULL;
}

bool rnnd__task_has_measure(enum rnnd_task task, int64_t outputs, enum rnnd_best_by by)
{
    enum rnnd__target_kind kind = rnnd__task(task)->target;
    bool scarce = measures[by].two && kind == RNND__TARGET_CLASS && outputs != 2;
    return (measures[by].kinds >> kind & 1) && !scarce;
}

/* ---- properties */

bool rnnd_task_is_stepwise(enum rnnd_task task)
{
    return rnnd__task(task)->stepwise;
}

bool rnnd_streams(const struct rnnd_options *opt, enum rnnd_task task)
{
    if (task != RNND_LM || opt->tbptt == 0 || opt->stream == RNND_STREAM_NO)
        return false;
    return opt->stream == RNND_STREAM_YES || opt->batch_tokens == 0;
}
