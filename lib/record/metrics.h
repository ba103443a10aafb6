/*
 * metrics.h - metrics.jsonl, the record of a run: one JSON object a line.
 *
 * Takes small structs from the trainer, writes each as one line by one write.
 * Non-finite numbers are null. Used on rank 0 only; knows no model and no communicator.
 */
#ifndef RNND_METRICS_H
#define RNND_METRICS_H

#include "rnn_dist.h"

struct rnnd__metrics_log;

/* Opens run_dir/metrics.jsonl for appending, made if it is not there. */
RNND_CHECKED int rnnd__metrics_open(const char *run_dir,
                                    struct rnnd__metrics_log **out);
/* Before opening it on resume: drops what the checkpoint of `update` does not know:
   records after it, `valid` records after `validated` (a validation that was made after
   it is made again), and `train` records that were written only because the run ended
   there (partial). Atomic. A file that is not there is no failure. */
RNND_CHECKED int rnnd__metrics_cut(const char *run_dir, int64_t update,
                                   int64_t validated);
void rnnd__metrics_close(struct rnnd__metrics_log *log);

struct rnnd__start_record {
    /* written as an object of the options in force */
    const struct rnnd_options *opt;
    /* where this start goes on; 0 = from the beginning */
    int64_t update;
    int ranks;
    /* [ranks] */
    const char *const *devices;
    int64_t parameters;
};

struct rnnd__train_record {
    /* epoch counts from 1, in all records */
    int64_t update, epoch;
    /* mean over the targets since the last record */
    double loss;
    int64_t targets;
    /* of all ranks */
    double steps_per_s;
    /* of the last update */
    double lr, grad_norm;
    double idle, straggler;
    /* written only because the run ends here: a resumed run writes it whole; its sums
       stay in the checkpoint */
    bool partial;
};

struct rnnd__valid_record {
    int64_t update, epoch;
    struct rnnd_metrics result;
};

/* Each appends one line; EFILE where that fails. */
RNND_CHECKED int rnnd__metrics_start(struct rnnd__metrics_log *log,
                                     const struct rnnd__start_record *record);
RNND_CHECKED int rnnd__metrics_train(struct rnnd__metrics_log *log,
                                     const struct rnnd__train_record *record);
RNND_CHECKED int rnnd__metrics_valid(struct rnnd__metrics_log *log,
                                     const struct rnnd__valid_record *record);
/* file: the checkpoint's name, its folder left out. */
RNND_CHECKED int rnnd__metrics_save(struct rnnd__metrics_log *log, int64_t update,
                                    const char *file);
RNND_CHECKED int rnnd__metrics_skip(struct rnnd__metrics_log *log, int64_t update,
                                    const char *reason);
/* status: what the program exits with, 0 or positive; seconds: of the whole run. */
RNND_CHECKED int rnnd__metrics_end(struct rnnd__metrics_log *log, int status,
                                   int64_t updates, double seconds);

/* The last `end` record, with the last `valid` one in it as "valid", as one line of
   JSON without its newline; malloc'ed, taken. */
RNND_CHECKED int rnnd__metrics_result(const char *run_dir, char **json);
/* The result of an evaluation: loss, targets and the metric, as "name value" lines or
   as one JSON object; malloc'ed, taken. */
RNND_CHECKED int rnnd__metrics_text(const struct rnnd_metrics *result, bool json,
                                    char **text);

#endif
