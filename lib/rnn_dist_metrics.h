/*
 * rnn_dist_metrics.h - the results of evaluation and training. Part of rnn_dist.h,
 * which includes it.
 *
 * rnn_dist-eval(1) defines every figure. A figure that is not defined for the data,
 * such as the AUROC of a single class, is NaN.
 */
#ifndef RNN_DIST_METRICS_H
#define RNN_DIST_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "rnn_dist_enums.h"

/* Most figures of a task; most classes or outputs that a table describes. */
enum { RNND_FIGURES = 6, RNND_TABLE_CLASSES = 1000 };

struct rnnd_figure {
    /* the member of a record, such as "macro_f1" */
    const char *name;
    double value;
};

/* One class (classify, tag) or one yes/no answer (multilabel). */
struct rnnd_class_figures {
    /* NULL = it has none; of the data set or the model, borrowed */
    const char *name;
    /* targets, predictions, and predictions that are right */
    int64_t support, predicted, correct;
    double precision, recall, f1;
    /* multilabel only, else NaN */
    double auroc, average_precision;
};

/* What there is to say of each class. */
struct rnnd_class_table {
    int64_t classes;
    /* [classes] */
    struct rnnd_class_figures *row;
    /* [classes, classes] targets of a class (row) by predicted class (column); NULL for
       multilabel */
    int64_t *confusion;
};

/* The result of an evaluation. */
struct rnnd_metrics {
    /* mean over targets; NaN without targets */
    double loss;
    int64_t targets;
    /* the first figure: "accuracy", "perplexity", "rmse", "nll" or NULL; its value */
    const char *metric;
    double value;
    /* all figures of the task */
    int figures;
    struct rnnd_figure figure[RNND_FIGURES];
    /* owned; NULL for other tasks, and for more than RNND_TABLE_CLASSES classes */
    struct rnnd_class_table *table;
};

struct rnnd_train_result {
    /* of the whole run; of this call */
    int64_t updates, epochs;
    double seconds;
    /* after success: what ended the run, and its bound */
    enum rnnd_end end;
    int64_t bound;
    /* whether this call had no update to make; whether it validated, and its last
       validation, without its table */
    bool idle, validated;
    struct rnnd_metrics valid;
};

#endif
