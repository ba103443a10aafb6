/*
 * progress.h - progress of a training run on standard error: a bar on a terminal, lines
 * elsewhere.
 *
 * Rank 0 only. Every function accepts a NULL meter, as other ranks and --progress none
 * have.
 */
#ifndef RNND_PROGRESS_H
#define RNND_PROGRESS_H

#include "rnn_dist.h"

struct rnnd__meter;

/* Where a run is. */
struct rnnd__progress_point {
    /* updates done */
    int64_t update;
    /* current epoch, from 1; number of epochs */
    int64_t epoch, epochs;
    /* time steps done, out of work.steps */
    double steps;
    /* mean since the last train record */
    double loss;
    /* time steps of all ranks per second */
    double steps_per_s;
    double lr;
};

/* The work of a run: its limits in time steps and in updates (0 = none, or unknown),
   and how much was done before this start. The run ends at the limit that it reaches
   first. */
struct rnnd__progress_work {
    double steps, steps_done;
    int64_t updates, updates_done;
};

/* work is copied. *out is NULL for RNND_PROGRESS_NONE; freed by rnnd__progress_end. */
RNND_CHECKED int rnnd__progress_begin(enum rnnd_progress kind,
                                      const struct rnnd__progress_work *work,
                                      struct rnnd__meter **out);
/* To be called after each update. A bar is redrawn at most five times a second; a
   line is written where logged says that a train record was, but not within ten
   seconds of the last line. */
void rnnd__progress_update(struct rnnd__meter *meter,
                           const struct rnnd__progress_point *at, bool logged);
/* Writes a line for a validation within an epoch. */
void rnnd__progress_within(struct rnnd__meter *meter,
                           const struct rnnd__progress_point *at,
                           const struct rnnd_metrics *valid);
/* Writes a line for an epoch that has ended; loss and speed of the point are those of
   the epoch (NaN = none). valid: its validation; NULL = none. */
void rnnd__progress_epoch(struct rnnd__meter *meter,
                          const struct rnnd__progress_point *at,
                          const struct rnnd_metrics *valid);
/* Erases the bar and frees the meter. */
void rnnd__progress_end(struct rnnd__meter *meter);

#endif
