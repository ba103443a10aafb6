/*
 * trainer.h - the parts of a training run, shared by the files that make one:
 *
 *   trainer_open.c    options, data, model, optimizer; start or resume
 *   trainer.c         epochs, updates, validation: the flow itself
 *   trainer_save.c    checkpoints, and the carried states of all ranks in them
 *   trainer_report.c  records and progress
 *
 * All ranks run the same flow. Only rank 0 uses the run directory.
 */
#ifndef RNND_TRAINER_H
#define RNND_TRAINER_H

#include "base/status.h"
#include "checkpoint/run_dir.h"
#include "checkpoint/train_state.h"
#include "optim/optim.h"
#include "record/metrics.h"
#include "record/progress.h"
#include "record/tensorboard.h"
#include "train/step.h"
#include "train/writer.h"

struct rnnd__trainer {
    /* the options in effect: the caller's, borrowed, or `merged` on resume: the stored
       options, overridden by the caller's */
    const struct rnnd_options *opt;
    struct rnnd_options merged;
    /* the same with the weights of classes as numbers; its texts are borrowed */
    struct rnnd_options settled;
    /* --class-weight of the run that is resumed with another, owned; else NULL */
    char *weights_before;
    /* the run was resumed with another --best-by */
    bool judged_anew;
    /* borrowed */
    struct rnnd_comm *comm;
    /* this is rank 0 */
    bool lead;

    /* training data, model, optimizer; validation data or NULL */
    struct rnnd__setup setup;
    struct rnnd_dataset *valid;

    /* the position of the run, and the updates that advance it */
    struct rnnd__train_state at;
    struct rnnd__stepper step;

    /* rank 0 only, NULL elsewhere; board and meter also NULL if not wanted */
    struct rnnd__run_dir *dir;
    struct rnnd__writer *writer;
    struct rnnd__metrics_log *log;
    struct rnnd__tensorboard *board;
    struct rnnd__meter *meter;
    /* updates between train records, in this epoch */
    int64_t log_every;
    /* rank 0: sums of the train records of this epoch; of those before the run was
       resumed, only loss and weight */
    struct {
        double loss, weight, steps, seconds;
    } epoch;
    /* steps of the whole run, for the meter */
    double steps_done;
    /* rank 0: a record that could not be written */
    struct rnnd__failure lost;
    /* seconds of rnnd__clock() */
    double started, last_save;
    /* update of the newest checkpoint, written or on its way, -1 = none */
    int64_t saved_at;
    /* all ranks: a signal reached some rank; a record could not be written */
    bool stopping, record_lost;
    /* whether this call has validated, and its last validation */
    bool validated;
    struct rnnd_metrics last_valid;
};

/* Opens everything that a run needs, from the start or from a checkpoint. Close it also
   on failure. Collective. */
RNND_CHECKED int rnnd__trainer_open(struct rnnd__trainer *t,
                                    const struct rnnd_options *opt);
void rnnd__trainer_close(struct rnnd__trainer *t);

/* Begins to write the files of a set (RNND_WRITE_), but no second checkpoint of one
   update. First waits for the save before; fails with its failure. Collective. */
RNND_CHECKED int rnnd__trainer_save(struct rnnd__trainer *t, unsigned files);
/* Waits for the save on its way; fails if it failed. Collective. */
RNND_CHECKED int rnnd__trainer_settle(struct rnnd__trainer *t);
/* The same, for this rank alone. */
RNND_CHECKED int rnnd__trainer_finish_save(struct rnnd__trainer *t);
/* Without waiting: whether rank 0 could not write the save on its way. Records one that
   is written. */
bool rnnd__trainer_save_has_failed(struct rnnd__trainer *t);
/* Rank 0 loads the checkpoint at path and sends its contents to all ranks; path is used
   on rank 0 only. Collective. */
RNND_CHECKED int rnnd__trainer_restore(struct rnnd__trainer *t, const char *path);
/* Sends the parameters of rank 0 to all ranks. Collective. */
RNND_CHECKED int rnnd__trainer_broadcast(struct rnnd__trainer *t);
/* ECOMM if the parameters of any rank differ from rank 0's; the message names these
   ranks. Collective. */
RNND_CHECKED int rnnd__trainer_compare(struct rnnd__trainer *t);

/* ---- records */

/* Written on rank 0; on other ranks these functions do nothing.

   The first failure to write is kept in `lost` and shared with the next update, which
   becomes the last one: the model is saved before the failure ends the run. */

/* The start record, and the meter. Collective. */
void rnnd__trainer_report_start(struct rnnd__trainer *t);
/* Advances the meter. logged: a train record follows. */
void rnnd__trainer_report_update(struct rnnd__trainer *t, bool logged);
/* The train record: means over the updates since the last one. final: it is written
   early because the run ends here, so the sums are kept for a resumed run. */
void rnnd__trainer_report_train(struct rnnd__trainer *t, bool final);
void rnnd__trainer_report_valid(struct rnnd__trainer *t, const struct rnnd_metrics *m);
/* A line of progress for a validation within an epoch. */
void rnnd__trainer_report_within(struct rnnd__trainer *t);
/* A line of progress for the epoch that has just ended, which at.epoch counts. valid:
   its validation; NULL = none. */
void rnnd__trainer_report_epoch(struct rnnd__trainer *t,
                                const struct rnnd_metrics *valid);
void rnnd__trainer_report_skip(struct rnnd__trainer *t, const char *reason);
/* The checkpoint of an update, which is durable. */
void rnnd__trainer_report_save(struct rnnd__trainer *t, int64_t update);
void rnnd__trainer_report_end(struct rnnd__trainer *t, int status);

#endif
