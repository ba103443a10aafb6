/*
 * timeline.h - where a rank's time goes: spans of work, as sums for `bench` and one by
 * one for --trace.
 *
 * All rooms mark spans, when they end and from one thread only; no decision depends on
 * them. While the timeline is off, a mark costs one test.
 *
 * A device works through what it was given later than the host marks it. Its spans are
 * those of the host, between events on its stream, by its own clock; they are fetched
 * once they are past, and the sums are theirs.
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
    /* enum rnnd__span_of */
    uint8_t of;
};

/* Whose span it is. */
enum rnnd__span_of { RNND_SPAN_HOST, RNND_SPAN_DEVICE, RNND_SPAN_DEVICE_SUM };

/* A point in time, which may begin a span. */
struct rnnd__moment {
    /* seconds; 0 while the timeline is off */
    double at;
    /* of the device, or -1 */
    int mark;
};

/* The tag of the device's own spans in which it summed over ranks. */
#define RNND__TIMELINE_SUM UINT64_MAX

/* Times of a device, in seconds since it was handed to rnnd__timeline_device(). */
struct rnnd__timeline_device {
    void *device;
    /* Marks the end of what the device was given so far; -1: it cannot. */
    int (*mark)(void *device);
    /* Between two marks, which it takes back, lies a span of this tag. */
    void (*span)(void *device, int begin, int end, uint64_t tag);
    /* Takes the oldest span, or returns false if that is not past yet and need not be
       waited for, or there is none. */
    bool (*take)(void *device, bool wait, uint64_t *tag, double at[2]);
};

/* Discards all spans and turns the timeline on. keep: keep single spans, not only
   sums. */
void rnnd__timeline_start(bool keep);
/* Discards all spans and turns the timeline off; the sums can still be read. */
void rnnd__timeline_stop(void);
/* Spans are also this device's, from now until the timeline stops or starts again. */
void rnnd__timeline_device(const struct rnnd__timeline_device *device);
struct rnnd__moment rnnd__timeline_now(void);
/* Marks a span from `begin`, a result of rnnd__timeline_now(), until now. number: of
   the layer, or -1. */
void rnnd__timeline_mark(enum rnnd__work work, bool backward, int number,
                         struct rnnd__moment begin);
/* Seconds of this kind of work since the start, on the device if there is one, for
   which this waits. */
double rnnd__timeline_seconds(enum rnnd__work work);

/* The spans that were kept, of the host in the order in which they ended, valid until
   the next mark; returns their number. Waits for the device. */
int64_t rnnd__timeline_spans(const struct rnnd__span **out);

#endif
