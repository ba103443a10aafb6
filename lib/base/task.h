/*
 * task.h - the properties of each task, in one table for all rooms: name, targets,
 * metric.
 */
#ifndef RNND_TASK_H
#define RNND_TASK_H

#include "rnn_dist.h"

/* The kind of a target, and how it is stored. */
enum rnnd__target_kind {
    RNND__NO_TARGET,
    /* one of O named classes: int32 */
    RNND__TARGET_CLASS,
    /* the next of the V tokens of the input: not stored */
    RNND__TARGET_TOKEN,
    /* O numbers: float */
    RNND__TARGET_VALUES,
    /* O yes/no answers: float 0 or 1 */
    RNND__TARGET_ANSWERS,
    /* a string of classes, one per sequence: int32; output 0 is the blank, and class k
       output k+1 */
    RNND__TARGET_STRING
};

struct rnnd__task_traits {
    const char *name;
    /* the metric of an evaluation, NULL = none */
    const char *metric;
    enum rnnd__target_kind target;
    /* there is an output per step rather than per sequence, and but for strings a
       target */
    bool stepwise;
};

/* The properties of a task; those of RNND_NO_TASK for a value outside the enum. */
const struct rnnd__task_traits *rnnd__task(enum rnnd_task task);

/* The task of this name; false if there is none. */
bool rnnd__task_find(const char *name, enum rnnd_task *out);

/* What a validation can be judged by. */
struct rnnd__measure {
    /* the figure, as in struct rnnd_metrics; NULL = the loss */
    const char *figure;
    /* more of it is better */
    bool higher;
};

const struct rnnd__measure *rnnd__measure(enum rnnd_best_by by);
/* The measure that has this figure; NULL = none. */
const struct rnnd__measure *rnnd__measure_find(const char *figure);
/* Whether the figures of a task with O outputs include it. */
bool rnnd__task_has_measure(enum rnnd_task task, int64_t outputs, enum rnnd_best_by by);

/* Whether a target is a string of classes. */
static inline bool rnnd__task_has_strings(enum rnnd_task task)
{
    return rnnd__task(task)->target == RNND__TARGET_STRING;
}

/* Whether targets are classes that the data set numbers from 0, or strings of them. */
static inline bool rnnd__task_has_classes(enum rnnd_task task)
{
    return rnnd__task(task)->target == RNND__TARGET_CLASS ||
           rnnd__task_has_strings(task);
}

/* Outputs that are no class: the blank. */
static inline int64_t rnnd__task_blanks(enum rnnd_task task)
{
    return rnnd__task_has_strings(task);
}

/* Whether there is a target for each step. */
static inline bool rnnd__task_targets_steps(enum rnnd_task task)
{
    return rnnd__task(task)->stepwise && !rnnd__task_has_strings(task);
}

/* Whether scores are those of a choice among the O outputs, of classes or tokens: their
   softmax are probabilities. */
static inline bool rnnd__task_is_categorical(enum rnnd_task task)
{
    return rnnd__task_has_classes(task) ||
           rnnd__task(task)->target == RNND__TARGET_TOKEN;
}

/* Whether data sets store targets for the task. */
static inline bool rnnd__task_stores_targets(enum rnnd_task task)
{
    enum rnnd__target_kind kind = rnnd__task(task)->target;
    return kind != RNND__NO_TARGET && kind != RNND__TARGET_TOKEN;
}

/* Numbers per target: `outputs` for values and answers, else 1. */
static inline int64_t rnnd__task_target_width(enum rnnd_task task, int64_t outputs)
{
    enum rnnd__target_kind kind = rnnd__task(task)->target;
    return kind == RNND__TARGET_VALUES || kind == RNND__TARGET_ANSWERS ? outputs : 1;
}

#endif
