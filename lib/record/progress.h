/*
 * progress.h - how far a training is, on standard error: a bar on a terminal, lines
 * elsewhere.
 *
 * Takes numbers, draws; rank 0 only. Every function accepts a NULL meter, which is that
 * of the other ranks and of "none".
 */
#ifndef RNND_PROGRESS_H
#define RNND_PROGRESS_H

#include "rnn_dist.h"

struct rnnd__meter;

struct rnnd__progress_point {
    /* updates done */
    int64_t update;
    /* under way, from 1; of how many */
    int64_t epoch, epochs;
    /* time steps done, of those given to begin */
    double steps;
    /* mean of late */
    double loss;
    /* of all ranks */
    double steps_per_s;
    double lr;
};

/* The work of a whole run, and what of it was done before this start. Time goes by
   steps; where the run is to end at a number of updates, by them, if that is sooner.
   0 = not known, no bound. */
struct rnnd__progress_work {
    double steps, steps_done;
    int64_t updates, updates_done;
};

/* *out is NULL for "none". */
RNND_CHECKED int rnnd__progress_begin(enum rnnd_progress kind,
                                      const struct rnnd__progress_work *work,
                                      struct rnnd__meter **out);
/* After each update; it draws a few times a second. logged: a train record was written,
   which is when lines appear. */
void rnnd__progress_update(struct rnnd__meter *meter,
                           const struct rnnd__progress_point *at, bool logged);
/* The result of a validation, one line. */
void rnnd__progress_valid(struct rnnd__meter *meter, int64_t update, int64_t epoch,
                          const struct rnnd_metrics *result);
/* Takes the bar away, and frees the meter. */
void rnnd__progress_end(struct rnnd__meter *meter);

#endif
