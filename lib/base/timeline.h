/*
 * timeline.h - where a rank's time goes: spans in three lanes, as sums for `bench` and
 * as a Chrome trace for --trace.
 *
 * Rooms mark spans; nobody reads them to decide anything. While the timeline is off a
 * mark costs one test. One thread marks; a span is marked when it ends.
 */
#ifndef RNND_TIMELINE_H
#define RNND_TIMELINE_H

#include "rnn_dist.h"

enum rnnd__lane {
    RNND_LANE_COMPUTE,
    RNND_LANE_COMMUNICATION,
    RNND_LANE_INPUT,
    RNND_LANES
};

/* What a span was spent on. */
enum rnnd__work {
    RNND_WORK_EMBEDDING,
    RNND_WORK_RECURRENT,
    RNND_WORK_HEAD,
    RNND_WORK_OPTIMIZER,
    RNND_WORK_LOAD,
    /* waiting for ranks that have more to do */
    RNND_WORK_MEET,
    /* sums that nothing hides */
    RNND_WORK_REDUCE,
    RNND_WORK_VALIDATE,
    RNND_WORK_SAVE,
    RNND_WORKS
};

/* Forgets what was marked and starts; keep: single spans too, not only their sums. */
void rnnd__timeline_start(bool keep);
void rnnd__timeline_stop(void);
/* Now, or 0 while the timeline is off. */
double rnnd__timeline_now(void);
/* A span from `begin` (of rnnd__timeline_now) to now; number: of the layer, or -1. */
void rnnd__timeline_mark(enum rnnd__work work, bool backward, int number, double begin);
/* Seconds marked so far. */
double rnnd__timeline_seconds(enum rnnd__work work);

/* Writes the spans of all ranks as a Chrome trace: a process a rank, a thread a lane.
   Collective; rank 0 writes, atomically. */
RNND_CHECKED int rnnd__timeline_write(struct rnnd_comm *comm, const char *path);

#endif
