/*
 * clock.h - monotonic time in seconds. For reports and timeouts only: it must not
 * influence the order of a sum.
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
