/*
 * trace.c - writes the spans of all ranks as a Chrome trace.
 *
 * The file is a JSON array of trace events: complete events ("ph":"X"), in
 * microseconds, and metadata events that name processes and threads. Ranks take their
 * zero of time at a barrier when the trace is written, so clocks of different hosts
 * need not agree.
 */
#include "record/trace.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/timeline.h"
#include "comm/comm.h"

static const struct rnnd__kind kind = {
    "a trace of rnn_dist",
    {"[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,"},
    NULL};

int rnnd__trace_check(const char *path)
{
    return rnnd__output_check(path, &kind);
}

/* The threads that a rank is shown as. */
enum lane { COMPUTE, COMMUNICATION, INPUT, DEVICE, DEVICE_SUMS, LANES };

static const struct {
    const char *name;
    enum lane lane;
} works[RNND_WORKS] = {
    [RNND_WORK_EMBEDDING] = {"embedding", COMPUTE},
    [RNND_WORK_RECURRENT] = {"layer", COMPUTE},
    [RNND_WORK_HEAD] = {"head and loss", COMPUTE},
    [RNND_WORK_OPTIMIZER] = {"optimizer", COMPUTE},
    [RNND_WORK_LOAD] = {"load and pack", INPUT},
    [RNND_WORK_MEET] = {"wait for ranks", COMMUNICATION},
    [RNND_WORK_REDUCE] = {"reduce", COMMUNICATION},
    [RNND_WORK_VALIDATE] = {"validation", COMPUTE},
    [RNND_WORK_SAVE] = {"checkpoint", COMPUTE},
};

static enum lane lane_of(const struct rnnd__span *s)
{
    return s->of == RNND_SPAN_DEVICE       ? DEVICE
           : s->of == RNND_SPAN_DEVICE_SUM ? DEVICE_SUMS
                                           : works[s->work].lane;
}

/* Lanes of the device are named where there is one. */
static void put_names(FILE *f, int rank, const char *host, bool device)
{
    static const char *const lane[LANES] = {"compute", "communication", "input",
                                            "device", "device, gradient sums"};
    fprintf(f,
            "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
            "\"args\":{\"name\":\"rank %d on %s\"}},\n",
            rank, rank, host);
    for (int l = 0; l < (device ? LANES : DEVICE); l++)
        fprintf(f,
                "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                "\"args\":{\"name\":\"%s\"}},\n",
                rank, l, lane[l]);
}

/* first: begin of the earliest span of all ranks, which is shown as time 0. */
static void put_span(FILE *f, int rank, const struct rnnd__span *s, double first)
{
    char number[16] = "";
    if (s->number >= 0)
        snprintf(number, sizeof number, " %d", s->number);
    fprintf(f,
            "{\"name\":\"%s%s%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
            "\"dur\":%.3f},\n",
            works[s->work].name, number, s->backward ? " backward" : "", rank,
            lane_of(s), 1e6 * (s->begin - first), 1e6 * (s->end - s->begin));
}

static bool has_device(const struct rnnd__span *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (s[i].of != RNND_SPAN_HOST)
            return true;
    return false;
}

static double earliest(const struct rnnd__span *s, int64_t n)
{
    double first = 0; /* spans begin before the barrier */
    for (int64_t i = 0; i < n; i++)
        first = s[i].begin < first ? s[i].begin : first;
    return first;
}

static int write_all(struct rnnd_comm *comm, const struct rnnd__span *all,
                     const size_t *size, const char *path)
{
    struct rnnd__file file;
    int64_t total = 0;
    int ranks = rnnd_comm_size(comm);
    for (int r = 0; r < ranks; r++)
        total += (int64_t)(size[r] / sizeof *all);
    double first = earliest(all, total);
    RNND_TRY(rnnd__file_create(path, &kind, &file));
    fputs("[\n", file.stream);
    for (int r = 0; r < ranks; r++) {
        int64_t count = (int64_t)(size[r] / sizeof *all);
        put_names(file.stream, r, rnnd__comm_host(comm, r), has_device(all, count));
        for (int64_t i = 0; i < count; i++)
            put_span(file.stream, r, all++, first);
    }
    fputs("{\"name\":\"end\",\"ph\":\"M\",\"pid\":0}\n]\n", file.stream);
    return rnnd__file_commit(&file);
}

int rnnd__trace_write(struct rnnd_comm *comm, const char *path)
{
    const struct rnnd__span *kept;
    struct rnnd__span *own = NULL;
    void *all = NULL;
    size_t *size = NULL;
    int64_t count = rnnd__timeline_spans(&kept);
    int status = RNND_NEW(&size, rnnd_comm_size(comm), "trace");
    if (status == 0)
        status = RNND_NEW(&own, count, "trace");
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status)); /* the barrier */
    double zero = rnnd__clock();
    for (int64_t i = 0; i < count; i++) {
        own[i] = kept[i];
        own[i].begin -= zero;
        own[i].end -= zero;
    }
    RNND_TRY_GOTO(rnnd_comm_gather(comm, own, (size_t)count * sizeof *own, &all, size));
    if (rnnd_comm_rank(comm) == 0)
        status = write_all(comm, all, size, path);
    status = rnnd_comm_agree(comm, status);
done:
    free(own);
    free(all);
    free(size);
    return status;
}
