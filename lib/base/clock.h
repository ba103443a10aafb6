/*
 * clock.h - seconds that only ever grow. For reports; nothing that decides a sum's
 * order may look at them.
 */
#ifndef RNND_CLOCK_H
#define RNND_CLOCK_H

#include <time.h>

static inline double rnnd__clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
