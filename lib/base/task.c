/*
 * task.c - the table of tasks, and which of them run as a stream.
 */
#include "base/task.h"

#include <string.h>

static const struct rnnd__task_traits tasks[] = {
    [RNND_CLASSIFY] = {"classify", "accuracy", RNND__TARGET_CLASS, false},
    [RNND_TAG] = {"tag", "accuracy", RNND__TARGET_CLASS, true},
    [RNND_REGRESS] = {"regress", "rmse", RNND__TARGET_VALUES, false},
    [RNND_REGRESS_STEPS] = {"regress_steps", "rmse", RNND__TARGET_VALUES, true},
    [RNND_MULTILABEL] = {"multilabel", "nll", RNND__TARGET_ANSWERS, true},
    [RNND_LM] = {"lm", "perplexity", RNND__TARGET_TOKEN, true},
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
