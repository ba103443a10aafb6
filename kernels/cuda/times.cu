/*
 * times.cu - when the device's work ran: spans between events on its streams.
 *
 * Nothing waits for an event before its span is asked for with `wait`: spans are read
 * once the device is past them. CUDA tells times as 32-bit floats of milliseconds, so
 * they are taken from an anchor that follows.
 */
#include "cuda_backend.cuh"

#include <stdlib.h>
#include <string.h>

struct span {
    int begin, end;
    uint64_t tag;
};

struct rnnd__times {
    /* an event of the past, and its time */
    cudaEvent_t anchor;
    double anchor_at;
    /* a mark is an index */
    cudaEvent_t *event;
    int *spare;
    int marks, spares;
    /* from first to end, in the order in which they came */
    struct span *span;
    int first, end, room;
};

/* Seconds after which the anchor follows: floats then still tell 0.1 us. */
static const double follows_after = 1;

static bool grow_marks(struct rnnd__cuda *cuda)
{
    struct rnnd__times *t = cuda->times;
    size_t marks = (size_t)t->marks + 1;
    cudaEvent_t *event = (cudaEvent_t *)realloc(t->event, marks * sizeof *event);
    t->event = event ? event : t->event;
    int *spare = (int *)realloc(t->spare, marks * sizeof *spare);
    t->spare = spare ? spare : t->spare;
    if (!event || !spare ||
        !rnnd__cuda_ok(cuda, cudaEventCreate(&event[t->marks]), "an event"))
        return false;
    spare[t->spares++] = t->marks++;
    return true;
}

int rnnd__times_mark(struct rnnd__cuda *cuda, cudaStream_t stream)
{
    struct rnnd__times *t = cuda->times;
    if (!t || !rnnd__cuda_sound(cuda) || (t->spares == 0 && !grow_marks(cuda)))
        return -1;
    int mark = t->spare[--t->spares];
    return rnnd__cuda_ok(cuda, cudaEventRecord(t->event[mark], stream), "an event")
               ? mark
               : -1;
}

static void give_back(struct rnnd__times *t, int mark)
{
    if (mark >= 0)
        t->spare[t->spares++] = mark;
}

static bool grow_spans(struct rnnd__times *t)
{
    int count = t->end - t->first, room = t->room ? t->room : 256;
    if (count > 0)
        memmove(t->span, t->span + t->first, (size_t)count * sizeof *t->span);
    t->first = 0;
    t->end = count;
    room = count > room / 2 ? 2 * room : room;
    struct span *p = (struct span *)realloc(t->span, (size_t)room * sizeof *p);
    if (!p)
        return false;
    t->span = p;
    t->room = room;
    return true;
}

void rnnd__times_span(struct rnnd__cuda *cuda, int begin, int end, uint64_t tag)
{
    struct rnnd__times *t = cuda->times;
    if (!t)
        return;
    if (begin < 0 || end < 0 || (t->end == t->room && !grow_spans(t))) {
        give_back(t, begin);
        give_back(t, end);
        return;
    }
    t->span[t->end++] = {begin, end, tag};
}

/* The time of an event that is past; its mark is free then. */
static double take_mark(struct rnnd__cuda *cuda, int mark)
{
    struct rnnd__times *t = cuda->times;
    float ms = 0;
    rnnd__cuda_ok(cuda, cudaEventElapsedTime(&ms, t->anchor, t->event[mark]),
                  "the time of an event");
    double at = t->anchor_at + 1e-3 * (double)ms;
    if (at - t->anchor_at > follows_after) {
        cudaEvent_t past = t->anchor;
        t->anchor = t->event[mark];
        t->anchor_at = at;
        t->event[mark] = past;
    }
    give_back(t, mark);
    return at;
}

/* Its begin is past where its end is: both are on one stream. */
int rnnd__times_take(struct rnnd__cuda *cuda, bool wait, uint64_t *tag, double at[2])
{
    struct rnnd__times *t = cuda->times;
    if (!t || t->first == t->end || !rnnd__cuda_sound(cuda))
        return 0;
    struct span *s = &t->span[t->first];
    cudaError_t past = wait ? cudaEventSynchronize(t->event[s->end])
                            : cudaEventQuery(t->event[s->end]);
    if (past == cudaErrorNotReady || !rnnd__cuda_ok(cuda, past, "an event"))
        return 0;
    *tag = s->tag;
    at[0] = take_mark(cuda, s->begin);
    at[1] = take_mark(cuda, s->end);
    t->first++;
    return rnnd__cuda_sound(cuda);
}

void rnnd__times_close(struct rnnd__cuda *cuda)
{
    struct rnnd__times *t = cuda->times;
    if (!t)
        return;
    if (t->anchor)
        cudaEventDestroy(t->anchor);
    for (int i = 0; i < t->marks; i++)
        cudaEventDestroy(t->event[i]);
    free(t->event);
    free(t->spare);
    free(t->span);
    free(t);
    cuda->times = NULL;
}

bool rnnd__times_start(struct rnnd__cuda *cuda)
{
    rnnd__times_close(cuda);
    cuda->times = (struct rnnd__times *)calloc(1, sizeof *cuda->times);
    if (!cuda->times)
        return false;
    struct rnnd__times *t = cuda->times;
    return rnnd__cuda_ok(cuda, cudaEventCreate(&t->anchor), "an event") &&
           rnnd__cuda_ok(cuda, cudaEventRecord(t->anchor, cuda->stream), "an event") &&
           rnnd__cuda_ok(cuda, cudaEventSynchronize(t->anchor), "an event");
}
