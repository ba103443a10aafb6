/*
 * trainer.h - the parts of a training run, shared by the files that make one:
 *
 *   trainer_open.c    options, data, model, optimizer; start or resume
 *   trainer.c         epochs, updates, validation: the flow itself
 *   trainer_save.c    checkpoints, and the carried states of all ranks in them
 *   trainer_report.c  records, progress, messages
 *
 * All ranks run the same flow; what rank 0 alone does (the run folder) is marked so.
 */
#ifndef RNND_TRAINER_H
#define RNND_TRAINER_H

#include "checkpoint/run_dir.h"
#include "checkpoint/train_state.h"
#include "optim/optim.h"
#include "record/metrics.h"
#include "record/progress.h"
#include "record/tensorboard.h"
#include "train/step.h"

struct rnnd__trainer {
    /* in force */
    const struct rnnd_options *opt;
    /* stored options under the caller's, on resume */
    struct rnnd_options merged;
    struct rnnd_comm *comm;
    /* rank 0 */
    bool lead;

    /* training data, model and what feeds it */
    struct rnnd__setup setup;
    struct rnnd_dataset *valid;

    /* where the run stands, and what moves it on */
    struct rnnd__train_state at;
    struct rnnd__stepper step;

    /* rank 0 */
    struct rnnd__run_dir *dir;
    /* rank 0 */
    struct rnnd__metrics_log *log;
    /* rank 0, NULL = not wanted */
    struct rnnd__tensorboard *board;
    /* rank 0, NULL = none */
    struct rnnd__meter *meter;
    /* of the whole run, for the meter */
    double steps_done;
    /* first failure to write a record */
    int report_status;
    char report_why[1024];
    /* clock */
    double started, last_save;
    /* update of the newest checkpoint, -1 = none */
    int64_t saved_at;
    /* a signal reached some rank */
    bool stopping;
    /* a record could not be written */
    bool mute;
    /* in this call */
    bool validated;
    struct rnnd_metrics last_valid;
};

RNND_CHECKED int rnnd__trainer_open(struct rnnd__trainer *t,
                                    const struct rnnd_options *opt);
void rnnd__trainer_close(struct rnnd__trainer *t);

/* Writes the checkpoint of this update, unless it is there. Collective. */
RNND_CHECKED int rnnd__trainer_save(struct rnnd__trainer *t);
/* best.h5. Collective. */
RNND_CHECKED int rnnd__trainer_save_best(struct rnnd__trainer *t);
/* Rank 0's checkpoint into all ranks. Collective. path: rank 0 only. */
RNND_CHECKED int rnnd__trainer_restore(struct rnnd__trainer *t, const char *path);
/* Parameters of rank 0 to all ranks. Collective. */
RNND_CHECKED int rnnd__trainer_broadcast(struct rnnd__trainer *t);
/* ECOMM, with the ranks named, where parameters differ between ranks. Collective. */
RNND_CHECKED int rnnd__trainer_compare(struct rnnd__trainer *t);

/* Records on rank 0, nothing on others. A failure to write is kept in report_status and
   told to all ranks with the next update, which is the last. */
void rnnd__trainer_report_start(struct rnnd__trainer *t);
/* Moves the meter. */
void rnnd__trainer_report_update(struct rnnd__trainer *t, bool logged);
/* The record of the updates since the last one; final: only because the run ends here,
   so that the sums stay for a resumed run. */
void rnnd__trainer_report_train(struct rnnd__trainer *t, bool final);
void rnnd__trainer_report_valid(struct rnnd__trainer *t, const struct rnnd_metrics *m);
void rnnd__trainer_report_skip(struct rnnd__trainer *t, const char *reason);
void rnnd__trainer_report_save(struct rnnd__trainer *t, const char *path);
void rnnd__trainer_report_end(struct rnnd__trainer *t, int status);
/* The first failure to write, again; 0 = there was none. */
RNND_CHECKED int rnnd__trainer_report_lost(const struct rnnd__trainer *t);

#endif
