/*
 * metrics.h - metrics.jsonl, the record of a run: one JSON object per line
 * (rnn_dist-checkpoint(5)).
 *
 * Each record is one small struct, written as one line by one write. Numbers that are
 * not finite become null. Rank 0 only; knows no model and no communicator.
 */
#ifndef RNND_METRICS_H
#define RNND_METRICS_H

#include "rnn_dist.h"

struct json_t;

/* An open metrics.jsonl. */
struct rnnd__metrics_log;

/* Opens run_dir/metrics.jsonl for appending, and creates it if it is missing. EFILE
   where that fails. */
RNND_CHECKED int rnnd__metrics_open(const char *run_dir,
                                    struct rnnd__metrics_log **out);
/* Before a run resumes: removes the records that its checkpoint, of `update`, does
   not include, since they will be written again: those after `update`, `valid`
   records after the update `validated`, and `train` records that were written only
   because the run ended (partial). Adds the records that the checkpoint keeps because
   they could not be written, one a line, NULL = none, unless the file has them.
   Atomic; a missing file is accepted. EFILE on failure. */
RNND_CHECKED int rnnd__metrics_cut(const char *run_dir, int64_t update,
                                   int64_t validated, const char *records);
/* The records that could not be written so far, one a line; NULL = none. Each call that
   appends a record writes them first. Borrowed. */
const char *rnnd__metrics_unwritten(const struct rnnd__metrics_log *log);
/* NULL is accepted. */
void rnnd__metrics_close(struct rnnd__metrics_log *log);

struct rnnd__start_record {
    /* options in force */
    const struct rnnd_options *opt;
    /* the update that this start resumes from, 0 = a new run */
    int64_t update;
    int ranks;
    /* [ranks] name of each rank's device */
    const char *const *devices;
    int64_t parameters;
};

struct rnnd__train_record {
    /* epoch counts from 1, in all records */
    int64_t update, epoch;
    /* mean over the targets since the last record, their number, and the sum of their
       weights; recorded where it is another number */
    double loss;
    int64_t targets;
    double weight;
    /* time steps of all ranks per second */
    double steps_per_s;
    /* of the last update */
    double lr, grad_norm;
    /* fraction of the time spent waiting; load imbalance, max/mean over ranks */
    double idle, straggler;
    /* written only because the run ends: its sums stay in the checkpoint, and a resumed
       run writes the complete record */
    bool partial;
};

struct rnnd__valid_record {
    int64_t update, epoch;
    struct rnnd_metrics result;
};

/* Each appends one record. EFILE where it cannot be written. */
RNND_CHECKED int rnnd__metrics_start(struct rnnd__metrics_log *log,
                                     const struct rnnd__start_record *record);
RNND_CHECKED int rnnd__metrics_train(struct rnnd__metrics_log *log,
                                     const struct rnnd__train_record *record);
RNND_CHECKED int rnnd__metrics_valid(struct rnnd__metrics_log *log,
                                     const struct rnnd__valid_record *record);
/* file: name of the checkpoint, without its folder. */
RNND_CHECKED int rnnd__metrics_save(struct rnnd__metrics_log *log, int64_t update,
                                    const char *file);
RNND_CHECKED int rnnd__metrics_skip(struct rnnd__metrics_log *log, int64_t update,
                                    const char *reason);
/* status: exit status of the program; seconds: duration of this run or resumption. */
RNND_CHECKED int rnnd__metrics_end(struct rnnd__metrics_log *log, int status,
                                   int64_t updates, double seconds);

/* Calls visit for each record of a run, in order; lines that are not JSON, as after a
   crash, are skipped. record is borrowed. EFILE where the file is missing or cannot be
   read. */
RNND_CHECKED int rnnd__metrics_each(const char *run_dir,
                                    void (*visit)(void *context, struct json_t *record),
                                    void *context);
/* Whether a record, or NULL, is of this event. */
bool rnnd__metrics_is(const struct json_t *record, const char *event);
/* Whether a record is a `train` record of this epoch that stays when a run resumes; the
   sums of its loss and weights. */
bool rnnd__metrics_loss_of(const struct json_t *record, int64_t epoch, double *loss,
                           double *weight);

/* What a run has come to, as far as its records tell. */
struct rnnd__outcome {
    /* of the last `train` record; NaN = none */
    double train_loss;
    /* of the best `valid` record; NaN = none */
    double valid_loss, value;
    int64_t epoch;
    /* the name of value; "" = it has none */
    char metric[32];
    /* whether the value, not the loss, made it the best */
    bool by_metric;
};
RNND_CHECKED int rnnd__metrics_outcome(const char *run_dir, struct rnnd__outcome *out);
/* Figure i that a `valid` record may have besides the loss; those that only restate the
   loss are left out. NULL past the last. */
const char *rnnd__metrics_figure(int i);
/* The first of them that a record has: the metric of its task; NULL = none. */
const char *rnnd__metrics_name(const struct json_t *record);
/* What judges the validations of a run, from its `start` record. */
const struct rnnd__measure *rnnd__metrics_judge(const struct json_t *start);
/* Whether a `valid` record is better than the best so far, which may be NULL. */
bool rnnd__metrics_better(const struct json_t *record, const struct json_t *best,
                          const struct rnnd__measure *judge);
/* The last `end` record, with the last `valid` record as its member "valid": JSON on
   one line without a newline, malloc'ed and freed by the caller. EFILE where there is
   no end record. */
RNND_CHECKED int rnnd__metrics_result(const char *run_dir, char **json);

#endif
