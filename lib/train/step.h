/*
 * step.h - makes updates one after another, for training, verify and bench.
 *
 * An epoch of the plan consists of entries. An entry makes one update or, with
 * truncated BPTT, one for every few windows. An update is the gradient of this rank,
 * the sum over all ranks, and a step of the optimizer. The position and the sums for
 * records are kept in a train state, which checkpoints contain. Knows no run directory,
 * no validation, and not why a run ends.
 */
#ifndef RNND_STEP_H
#define RNND_STEP_H

#include "train/carried.h"
#include "train/setup.h"

struct rnnd__stepper {
    /* borrowed */
    struct rnnd__setup *setup;
    /* borrowed: the position, advanced by every update */
    struct rnnd__train_state *at;
    struct rnnd_loss_sums *loss;
    struct rnnd__carried carried;
    /* entries of epoch at->epoch, the updates they make, and how many of these are
       done */
    int64_t entries;
    int64_t epoch_updates, epoch_done;
    /* the current entry has been sharded */
    bool in_entry;
    /* a resumed run continues the current entry with the states in at->carry */
    bool resumes_entry;
    /* seconds of rnnd__clock(): start of the current update */
    double began;
    /* steps of the last update, over all ranks */
    double steps;
};

RNND_CHECKED int rnnd__stepper_open(struct rnnd__stepper *s, struct rnnd__setup *setup,
                                    struct rnnd__train_state *at);
void rnnd__stepper_close(struct rnnd__stepper *s);

/* Lays out epoch at->epoch and allocates for all its batches, so that updates allocate
   nothing. Not collective. EDATA: a stream has fewer tokens than lanes need. */
RNND_CHECKED int rnnd__stepper_begin_epoch(struct rnnd__stepper *s);
/* Whether all entries of the epoch are done. */
bool rnnd__stepper_epoch_is_done(const struct rnnd__stepper *s);

/* Adds this rank's gradient of the current update to the model's gradient sums, and its
   loss to s->loss. Not collective. */
RNND_CHECKED int rnnd__stepper_accumulate(struct rnnd__stepper *s);
/* The first half of an update: the same, starting from zero sums. *loss: the sums of
   this rank. Not collective. */
RNND_CHECKED int rnnd__stepper_gradient(struct rnnd__stepper *s,
                                        struct rnnd_loss *loss);
/* The second half of an update: sums over all ranks, step of the optimizer, next
   position. status, flags and loss: as rnnd_reducer_finish(). *skipped: why the
   parameters were not updated, NULL if they were. ENONFINITE, unless --on-nonfinite
   skip: parameters, states and position are those before the update. Collective. */
RNND_CHECKED int rnnd__stepper_finish(struct rnnd__stepper *s, int status,
                                      unsigned *flags, struct rnnd_loss *loss,
                                      const char **skipped);

/* Resets the sums since the last record. */
void rnnd__train_state_clear_sums(struct rnnd__train_state *at);

#endif
