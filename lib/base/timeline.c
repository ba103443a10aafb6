/*
 * timeline.c - spans of a rank's time, and the Chrome trace of all ranks.
 *
 * The format is the JSON array of the trace event format: complete events ("ph":"X") in
 * microseconds, and metadata events that name processes and threads. Ranks agree on a
 * zero by a barrier when the timeline is written, so clocks of different hosts need not
 * agree.
 */
#include "base/timeline.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "comm/comm.h"

enum { MOST_SPANS = 1 << 20 };

struct span {
    double begin, end;
    int32_t number;
    uint8_t work, backward;
};

static bool on, keeps;
static double seconds[RNND_WORKS];
static struct span *spans;
static int64_t count, room;

static const struct {
    const char *name;
    enum rnnd__lane lane;
} works[RNND_WORKS] = {
    [RNND_WORK_EMBEDDING] = {"embedding", RNND_LANE_COMPUTE},
    [RNND_WORK_RECURRENT] = {"layer", RNND_LANE_COMPUTE},
    [RNND_WORK_HEAD] = {"head and loss", RNND_LANE_COMPUTE},
    [RNND_WORK_OPTIMIZER] = {"optimizer", RNND_LANE_COMPUTE},
    [RNND_WORK_LOAD] = {"load and pack", RNND_LANE_INPUT},
    [RNND_WORK_MEET] = {"wait for ranks", RNND_LANE_COMMUNICATION},
    [RNND_WORK_REDUCE] = {"reduce", RNND_LANE_COMMUNICATION},
    [RNND_WORK_VALIDATE] = {"validation", RNND_LANE_COMPUTE},
    [RNND_WORK_SAVE] = {"checkpoint", RNND_LANE_COMPUTE},
};

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

/* Past the bound, or without memory, spans are left out; their sums are not. */
static void keep(struct span span)
{
    if (count == room && room < MOST_SPANS) {
        int64_t more = room ? 2 * room : 1024;
        struct span *p = realloc(spans, (size_t)more * sizeof *p);
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
        keep((struct span){begin, end, number, (uint8_t)work, backward});
}

double rnnd__timeline_seconds(enum rnnd__work work)
{
    return seconds[work];
}

/* ---- the trace */

static void put_names(FILE *f, int rank, const char *host)
{
    static const char *const lane[RNND_LANES] = {"compute", "communication", "input"};
    fprintf(f,
            "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
            "\"args\":{\"name\":\"rank %d on %s\"}},\n",
            rank, rank, host);
    for (int l = 0; l < RNND_LANES; l++)
        fprintf(f,
                "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                "\"args\":{\"name\":\"%s\"}},\n",
                rank, l, lane[l]);
}

/* zero: when the ranks met, on this rank's clock; first: the earliest span of all, from
   it. */
static void put_span(FILE *f, int rank, const struct span *s, double first)
{
    char number[16] = "";
    if (s->number >= 0)
        snprintf(number, sizeof number, " %d", s->number);
    fprintf(f,
            "{\"name\":\"%s%s%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
            "\"dur\":%.3f},\n",
            works[s->work].name, number, s->backward ? " backward" : "", rank,
            works[s->work].lane, 1e6 * (s->begin - first), 1e6 * (s->end - s->begin));
}

static double earliest(const struct span *s, int64_t n)
{
    double first = 0; /* spans lie before the meeting */
    for (int64_t i = 0; i < n; i++)
        first = s[i].begin < first ? s[i].begin : first;
    return first;
}

static int write_all(struct rnnd_comm *comm, const struct span *all, const size_t *size,
                     const char *path)
{
    struct rnnd__file file;
    int64_t total = 0;
    int ranks = rnnd_comm_size(comm);
    for (int r = 0; r < ranks; r++)
        total += (int64_t)(size[r] / sizeof *all);
    double first = earliest(all, total);
    RNND_TRY(rnnd__file_create(path, &file));
    fputs("[\n", file.stream);
    for (int r = 0; r < ranks; r++) {
        put_names(file.stream, r, rnnd__comm_host(comm, r));
        for (size_t i = 0; i < size[r] / sizeof *all; i++)
            put_span(file.stream, r, all++, first);
    }
    fputs("{\"name\":\"end\",\"ph\":\"M\",\"pid\":0}\n]\n", file.stream);
    return rnnd__file_commit(&file);
}

int rnnd__timeline_write(struct rnnd_comm *comm, const char *path)
{
    void *all = NULL;
    size_t *size = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&size, (size_t)rnnd_comm_size(comm), "trace"));
    RNND_TRY_GOTO(rnnd_comm_agree(comm, 0)); /* a barrier: zero on every rank's clock */
    double zero = rnnd__clock();
    for (int64_t i = 0; i < count; i++) {
        spans[i].begin -= zero;
        spans[i].end -= zero;
    }
    RNND_TRY_GOTO(
        rnnd_comm_gather(comm, spans, (size_t)count * sizeof *spans, &all, size));
    count = 0;
    if (rnnd_comm_rank(comm) == 0)
        status = write_all(comm, all, size, path);
    status = rnnd_comm_agree(comm, status);
done:
    free(all);
    free(size);
    return status;
}
