/*
 * train_state.h - the position of a training run, and the hidden states it carries:
 * what train updates and a checkpoint stores.
 */
#ifndef RNND_TRAIN_STATE_H
#define RNND_TRAIN_STATE_H

#include "rnn_dist.h"

/* Hidden states carried from update to update: one row per lane, or per sequence of the
   current plan entry. All zero: nothing is carried. */
struct rnnd__carry {
    /* rows */
    int64_t count;
    /* floats per row: L*D*H */
    int64_t width;
    /* [count] owned; lane or sequence */
    int64_t *id;
    /* [count, L*D, H] owned; c is NULL unless LSTM */
    float *h, *c;
};

/* Position, schedules and sums of a run. Integers and reals start at 0 unless their
   comment says otherwise; each is stored as /state/NAME. */
struct rnnd__train_state {
    /* updates done, including skipped ones */
    int64_t update;
    /* updates that changed the parameters; for readers of the file */
    int64_t applied;
    /* epochs completed */
    int64_t epoch;
    /* plan entries of the current epoch that are complete */
    int64_t entry;
    /* updates done of the current entry; stored as "group" */
    int64_t entry_updates;
    /* update of the last validation, -1 = none yet */
    int64_t validated;

    /* the best validation by --best-by, and the one --patience compares with, as costs:
       the loss or figure, negated where more of it is better; infinity = none yet.
       Stored as "best_loss" and "patience_loss" */
    double best_cost, patience_cost;
    /* epochs since it improved */
    int64_t patience_count;
    /* the same for the plateau schedule */
    double plateau_loss;
    int64_t plateau_count;
    /* product of the learning rate reductions so far, starts at 1 */
    double plateau_factor;

    /* sums since the last train record: loss over targets, number of targets, and the
       weight that divides the loss */
    double log_loss, log_targets, log_weight;
    /* time steps of all ranks, seconds */
    double log_steps, log_seconds;
    /* seconds spent waiting for input or ranks; load imbalance of each update */
    double log_wait, log_straggler;
    int64_t log_updates;
    /* learning rate and gradient norm of the last update */
    double last_lr, last_norm;

    /* fingerprints of the training data and of the validation data, 0 = none */
    uint64_t fingerprint, valid_fingerprint;
    /* number of ranks and back end of the last start, as text */
    char launch[512];
    /* records that could not be written yet, one a line; NULL = none; owned */
    char *records;
    /* owned; empty unless an entry is in progress */
    struct rnnd__carry carry;
};

/* Frees the arrays and sets all to zero. */
void rnnd__carry_clear(struct rnnd__carry *carry);

#endif
