/*
 * device_times.c - hands the clock of a CUDA device to the timeline.
 *
 * Takes an open back end. The timeline does not know what a back end is.
 */
#include "device/device_times.h"

#include "base/status.h"
#include "base/timeline.h"
#include "cuda/plugin.h"

_Static_assert(RNND__TIMELINE_SUM == RNND_TIMES_SUM, "one tag for sums over ranks");

static int mark(void *device)
{
    struct rnnd_backend *be = device;
    return be->cuda->times_mark(be);
}

static void span(void *device, int begin, int end, uint64_t tag)
{
    struct rnnd_backend *be = device;
    be->cuda->times_span(be, begin, end, tag);
}

static bool take(void *device, bool wait, uint64_t *tag, double at[2])
{
    struct rnnd_backend *be = device;
    return be->cuda->times_take(be, wait, tag, at) == 1;
}

int rnnd__device_times(struct rnnd_backend *be)
{
    char error[256];
    if (!be || !be->cuda)
        return 0;
    int status = be->cuda->times_start(be, error);
    if (status < 0)
        return rnnd__fail(status, "%s", error);
    rnnd__timeline_device(&(struct rnnd__timeline_device){be, mark, span, take});
    return 0;
}
