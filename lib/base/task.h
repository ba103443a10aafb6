/*
 * task.h - what sets the tasks apart, in one table for all rooms that treat some of
 * them alike: names, targets, metrics.
 */
#ifndef RNND_TASK_H
#define RNND_TASK_H

#include "rnn_dist.h"

/* What one target is. */
enum rnnd__target_kind {
    RNND__NO_TARGET,
    /* one of O named classes: int32 */
    RNND__TARGET_CLASS,
    /* one of V tokens, the next of the input: not stored */
    RNND__TARGET_TOKEN,
    /* O numbers: float */
    RNND__TARGET_VALUES,
    /* O yes/no answers: float 0 or 1 */
    RNND__TARGET_ANSWERS
};

struct rnnd__task_traits {
    const char *name;
    /* of an evaluation, NULL = none */
    const char *metric;
    enum rnnd__target_kind target;
    /* targets belong to steps rather than sequences */
    bool stepwise;
};

/* Of RNND_NO_TASK where task is none of the enum. */
const struct rnnd__task_traits *rnnd__task(enum rnnd_task task);

/* The task of this name; false where there is none. */
bool rnnd__task_find(const char *name, enum rnnd_task *out);

/* Whether targets are classes that the data set numbers from 0. */
static inline bool rnnd__task_has_classes(enum rnnd_task task)
{
    return rnnd__task(task)->target == RNND__TARGET_CLASS;
}

/* Whether one of O outputs is right: a class or a token; softmax and cross-entropy. */
static inline bool rnnd__task_is_categorical(enum rnnd_task task)
{
    return rnnd__task_has_classes(task) ||
           rnnd__task(task)->target == RNND__TARGET_TOKEN;
}

/* Whether a data set stores targets for it. */
static inline bool rnnd__task_stores_targets(enum rnnd_task task)
{
    enum rnnd__target_kind kind = rnnd__task(task)->target;
    return kind != RNND__NO_TARGET && kind != RNND__TARGET_TOKEN;
}

/* Columns of a stored target: 1 where it is one number, else `outputs`. */
static inline int64_t rnnd__task_target_width(enum rnnd_task task, int64_t outputs)
{
    enum rnnd__target_kind kind = rnnd__task(task)->target;
    return kind == RNND__TARGET_VALUES || kind == RNND__TARGET_ANSWERS ? outputs : 1;
}

#endif
