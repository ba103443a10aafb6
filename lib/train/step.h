/*
 * step.h - updates, one after the other, as training, verify and bench make them.
 *
 * An epoch of the plan has entries; an entry makes one update or, with truncated BPTT,
 * one for every few windows. An update is this rank's gradient, the sums of all ranks,
 * and the optimizer. Position and sums for the records are kept in a train state, which
 * a checkpoint holds. Knows no run folder, no validation, and nothing of why a run
 * ends.
 */
#ifndef RNND_STEP_H
#define RNND_STEP_H

#include "train/carried.h"
#include "train/setup.h"

struct rnnd__stepper {
    /* borrowed */
    struct rnnd__setup *setup;
    /* borrowed: where training is; every update moves it on */
    struct rnnd__train_state *at;
    struct rnnd_loss_sums *loss;
    struct rnnd__carried carried;
    /* of the epoch that at->epoch says */
    int64_t entries;
    /* that those entries make, and how many of them are done */
    int64_t epoch_updates, epoch_done;
    /* the entry under way has been dealt out to ranks */
    bool in_entry;
    /* at->carry is where the entry under way continues, with a resumed run */
    bool resumes_entry;
    /* clock: when the update under way began */
    double began;
    /* steps of the last update, over all ranks */
    double steps;
};

RNND_CHECKED int rnnd__stepper_open(struct rnnd__stepper *s, struct rnnd__setup *setup,
                                    struct rnnd__train_state *at);
void rnnd__stepper_close(struct rnnd__stepper *s);

/* Lays out the epoch that at->epoch says, with room for all its batches, so that
   updates allocate nothing. This rank only. */
RNND_CHECKED int rnnd__stepper_begin_epoch(struct rnnd__stepper *s);
/* Whether all entries of the epoch are done. */
bool rnnd__stepper_epoch_is_done(const struct rnnd__stepper *s);

/* Adds this rank's gradient of the update at hand to the model's gradient sums, and its
   loss to s->loss. This rank only. */
RNND_CHECKED int rnnd__stepper_accumulate(struct rnnd__stepper *s);
/* The same from zero: the first half of an update. *loss: this rank's sums. */
RNND_CHECKED int rnnd__stepper_gradient(struct rnnd__stepper *s,
                                        struct rnnd_loss *loss);
/* The second half: sums over all ranks, optimizer, next position. status, flags, loss:
   as rnnd_reducer_finish. *skipped: why the parameters stay as they are, NULL = they
   were updated. ENONFINITE unless --on-nonfinite skip; the position then stays.
   Collective. */
RNND_CHECKED int rnnd__stepper_finish(struct rnnd__stepper *s, int status,
                                      unsigned *flags, struct rnnd_loss *loss,
                                      const char **skipped);

/* The sums since the last record start anew. */
void rnnd__train_state_clear_sums(struct rnnd__train_state *at);

#endif
