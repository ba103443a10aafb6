/*
 * timeline.c - the spans of a rank's time, as sums and, if kept, one by one.
 */
#include "base/timeline.h"

#include <stdlib.h>

#include "base/clock.h"

enum { MOST_SPANS = 1 << 20 };

static bool on, keeps;
static double seconds[RNND_WORKS];
static struct rnnd__span *spans;
static int64_t count, room;

void rnnd__timeline_start(bool keep)
{
    for (int w = 0; w < RNND_WORKS; w++)
        seconds[w] = 0;
    count = 0;
    keeps = keep;
    on = true;
}

void rnnd__timeline_stop(void)
{
    on = false;
    free(spans);
    spans = NULL;
    count = room = 0;
}

double rnnd__timeline_now(void)
{
    return on ? rnnd__clock() : 0;
}

/* Past the limit, or without memory, the span is dropped; it still counts in the
   sums. */
static void keep(struct rnnd__span span)
{
    if (count == room && room < MOST_SPANS) {
        int64_t more = room ? 2 * room : 1024;
        struct rnnd__span *p = realloc(spans, (size_t)more * sizeof *p);
        if (!p)
            return;
        spans = p;
        room = more;
    }
    if (count < room)
        spans[count++] = span;
}

void rnnd__timeline_mark(enum rnnd__work work, bool backward, int number, double begin)
{
    if (!on)
        return;
    double end = rnnd__clock();
    seconds[work] += end - begin;
    if (keeps)
        keep((struct rnnd__span){begin, end, number, (uint8_t)work, backward});
}

double rnnd__timeline_seconds(enum rnnd__work work)
{
    return seconds[work];
}

int64_t rnnd__timeline_spans(const struct rnnd__span **out)
{
    *out = spans;
    return count;
}
