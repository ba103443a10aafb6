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
/* none: take is NULL */
static struct rnnd__timeline_device device;
/* rnnd__clock() when the device's was 0 */
static double device_zero;

void rnnd__timeline_start(bool keep)
{
    for (int w = 0; w < RNND_WORKS; w++)
        seconds[w] = 0;
    count = 0;
    keeps = keep;
    device = (struct rnnd__timeline_device){NULL, NULL, NULL, NULL};
    on = true;
}

void rnnd__timeline_stop(void)
{
    on = false;
    device = (struct rnnd__timeline_device){NULL, NULL, NULL, NULL};
    free(spans);
    spans = NULL;
    count = room = 0;
}

void rnnd__timeline_device(const struct rnnd__timeline_device *given)
{
    if (!on)
        return;
    device = *given;
    device_zero = rnnd__clock();
}

struct rnnd__moment rnnd__timeline_now(void)
{
    if (!on)
        return (struct rnnd__moment){0, -1};
    return (struct rnnd__moment){rnnd__clock(),
                                 device.take ? device.mark(device.device) : -1};
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

/* A span as the device hands it back. */
static uint64_t tag_of(enum rnnd__work work, bool backward, int number)
{
    return (uint64_t)work | (uint64_t)backward << 8 | (uint64_t)(number + 1) << 16;
}

static void add_of_device(uint64_t tag, const double at[2])
{
    bool sum = tag == RNND__TIMELINE_SUM;
    struct rnnd__span span = {.begin = device_zero + at[0],
                              .end = device_zero + at[1],
                              .number = sum ? -1 : (int32_t)(tag >> 16) - 1,
                              .work = sum ? RNND_WORK_REDUCE : (uint8_t)tag,
                              .backward = !sum && (tag >> 8 & 1),
                              .of = sum ? RNND_SPAN_DEVICE_SUM : RNND_SPAN_DEVICE};
    if (!sum)
        seconds[span.work] += at[1] - at[0];
    if (keeps)
        keep(span);
}

static void fetch(bool wait)
{
    uint64_t tag;
    double at[2];
    while (device.take && device.take(device.device, wait, &tag, at))
        add_of_device(tag, at);
}

void rnnd__timeline_mark(enum rnnd__work work, bool backward, int number,
                         struct rnnd__moment begin)
{
    if (!on)
        return;
    double end = rnnd__clock();
    if (keeps)
        keep((struct rnnd__span){begin.at, end, number, (uint8_t)work, backward,
                                 RNND_SPAN_HOST});
    if (!device.take) {
        seconds[work] += end - begin.at;
        return;
    }
    device.span(device.device, begin.mark, device.mark(device.device),
                tag_of(work, backward, number));
    fetch(false);
}

double rnnd__timeline_seconds(enum rnnd__work work)
{
    fetch(true);
    return seconds[work];
}

int64_t rnnd__timeline_spans(const struct rnnd__span **out)
{
    fetch(true);
    *out = spans;
    return count;
}
