/*
 * timeline.h - where a rank's time goes: spans of work, as sums for `bench` and one by
 * one for --trace.
 *
 * All rooms mark spans, when they end and from one thread only; no decision depends on
 * them. While the timeline is off, a mark costs one test.
 */
#ifndef RNND_TIMELINE_H
#define RNND_TIMELINE_H

#include "rnn_dist.h"

/* The kind of work of a span. */
enum rnnd__work {
    RNND_WORK_EMBEDDING,
    RNND_WORK_RECURRENT,
    RNND_WORK_HEAD,
    RNND_WORK_OPTIMIZER,
    RNND_WORK_LOAD,
    /* idle: waiting for ranks with more work */
    RNND_WORK_MEET,
    /* gradient sums, outside the backward pass */
    RNND_WORK_REDUCE,
    RNND_WORK_VALIDATE,
    RNND_WORK_SAVE,
    RNND_WORKS
};

struct rnnd__span {
    /* seconds of rnnd__clock() */
    double begin, end;
    /* of the layer, or -1 */
    int32_t number;
    /* enum rnnd__work */
    uint8_t work;
    uint8_t backward;
};

/* Discards all spans and turns the timeline on. keep: keep single spans, not only
   sums. */
void rnnd__timeline_start(bool keep);
/* Discards all spans and turns the timeline off; the sums can still be read. */
void rnnd__timeline_stop(void);
/* The time in seconds; 0 while the timeline is off. */
double rnnd__timeline_now(void);
/* Marks a span from `begin`, a result of rnnd__timeline_now(), until now. number: of
   the layer, or -1. */
void rnnd__timeline_mark(enum rnnd__work work, bool backward, int number, double begin);
/* Seconds of this kind of work since the start. */
double rnnd__timeline_seconds(enum rnnd__work work);

/* The spans that were kept, in the order in which they ended, valid until the next
   mark; returns their number. */
int64_t rnnd__timeline_spans(const struct rnnd__span **out);

#endif
