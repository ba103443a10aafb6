/*
 * device_times.h - the device's own times, for the timeline.
 */
#ifndef RNND_DEVICE_TIMES_H
#define RNND_DEVICE_TIMES_H

#include "backend.h"
#include "rnn_dist.h"

/* From now on the spans of the timeline, which has just been started, are also those
   of the device. On a CPU, or without a back end, it does nothing: the work runs while
   the host marks it. Waits for the device. */
RNND_CHECKED int rnnd__device_times(struct rnnd_backend *be);

#endif
