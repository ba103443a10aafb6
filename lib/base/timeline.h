/*
 * timeline.h - where a rank's time goes: spans of work, as sums for `bench` and one by
 * one for --trace.
 *
 * Rooms mark spans; nobody reads them to decide anything. While the timeline is off a
 * mark costs one test. One thread marks; a span is marked when it ends.
 */
#ifndef RNND_TIMELINE_H
#define RNND_TIMELINE_H

#include "rnn_dist.h"

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

/* One of them; seconds of rnnd__clock(). */
struct rnnd__span {
    double begin, end;
    /* of the layer, or -1 */
    int32_t number;
    /* enum rnnd__work */
    uint8_t work;
    uint8_t backward;
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

/* The spans that were kept, in the order in which they ended; borrowed until the next
   mark. Returns how many. */
int64_t rnnd__timeline_spans(const struct rnnd__span **out);

#endif
