/*
 * test_stream.cu - streams and events: queues hide no missing wait, and hold what is
 * right.
 */
#include "testing.h"

#include <cstring>

__global__ void add(float *out, const float *a, const float *b, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        out[i] = a[i] + b[i];
}

enum {
    /* the second stream does not wait for the first */
    no_wait = 1,
    /* the first stream does not wait for the second before it continues */
    no_wait_back,
    /* the host refills what a copy still reads */
    source_reused,
    /* the host reads what a copy has not brought yet */
    read_early,
    /* the host waits for one of two streams */
    waits_for_one
};

/* Some rounds of what training does: s1 uploads and adds, s2 uses the sum and
   downloads. */
template <int broken> static void two_streams()
{
    const int n = 100, rounds = 16;
    Stream s1, s2;
    Event ready, used;
    Device<float> a(n), b(n), sum(n), twice(n);
    Pinned in(n), out(n);
    EXPECT_CUDA(cudaMemsetAsync(b.p, 0, n * 4, s1));
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++)
            in.p[i] = (float)(i + 1000 * round);
        EXPECT_CUDA(cudaMemcpyAsync(a.p, in.p, n * 4, cudaMemcpyHostToDevice, s1));
        if (broken == source_reused)
            memset(in.p, 0, n * 4);
        if (broken != no_wait_back)
            EXPECT_CUDA(cudaStreamWaitEvent(s1, used.e, 0));
        EXPECT_CUDA(launch(add, 4, 32, 0, s1, sum.p, a.p, b.p, n));
        EXPECT_CUDA(cudaEventRecord(ready.e, s1));
        if (broken != no_wait)
            EXPECT_CUDA(cudaStreamWaitEvent(s2, ready.e, 0));
        EXPECT_CUDA(launch(add, 4, 32, 0, s2, twice.p, sum.p, sum.p, n));
        EXPECT_CUDA(cudaEventRecord(used.e, s2));
        EXPECT_CUDA(cudaMemcpyAsync(out.p, twice.p, n * 4, cudaMemcpyDeviceToHost, s2));
        if (broken == no_wait_back) {
            /* the next round's sum comes at once, after nothing */
            EXPECT_CUDA(launch(add, 4, 32, 0, s1, sum.p, b.p, b.p, n));
            EXPECT_CUDA(cudaStreamSynchronize(s1));
        }
        if (broken == waits_for_one)
            EXPECT_CUDA(cudaStreamSynchronize(s1));
        else if (broken != read_early)
            EXPECT_CUDA(cudaStreamSynchronize(s2));
        for (int i = 0; i < n; i++)
            EXPECT(out.p[i] == 2.0f * (float)(i + 1000 * round));
        EXPECT_CUDA(cudaStreamSynchronize(s1));
        EXPECT_CUDA(cudaStreamSynchronize(s2));
    }
}

/* ---- who gets on when */

/* Nothing runs before somebody waits; asking again and again is waiting. */
[[maybe_unused]] static void runs_when_waited_for()
{
    Stream s;
    Device<float> a(4);
    Event e;
    Pinned out(4);
    out.p[0] = -1;
    EXPECT_CUDA(cudaMemsetAsync(a.p, 0, 16, s));
    EXPECT_CUDA(cudaMemcpyAsync(out.p, a.p, 16, cudaMemcpyDeviceToHost, s));
    EXPECT_CUDA(cudaEventRecord(e.e, s));
    EXPECT(out.p[0] == -1);
    cudaError_t status;
    int asked = 1;
    while ((status = cudaEventQuery(e.e)) == cudaErrorNotReady)
        asked++;
    EXPECT_CUDA(status);
    EXPECT(asked == 3);
    EXPECT(out.p[0] == 0);
    EXPECT_CUDA(cudaStreamQuery(s));
}

static void event_of_another_time()
{
    Stream s1, s2;
    Event e;
    Device<float> a(4);
    EXPECT_CUDA(
        cudaStreamWaitEvent(s2, e.e, 0)); /* never recorded: waits for nothing */
    EXPECT_CUDA(cudaStreamSynchronize(s2));
    EXPECT_CUDA(cudaEventSynchronize(e.e));
    EXPECT_CUDA(cudaEventRecord(e.e, s1));
    EXPECT_CUDA(
        cudaStreamWaitEvent(s2, e.e, 0)); /* for this record, not for the next */
    EXPECT_CUDA(cudaMemsetAsync(a.p, 0, 16, s1));
    EXPECT_CUDA(cudaEventRecord(e.e, s1));
    EXPECT_CUDA(cudaEventSynchronize(e.e));
    EXPECT_CUDA(cudaStreamSynchronize(s2));
    EXPECT_CUDA(cudaStreamSynchronize(s1));
}

static void destroyed_stream()
{
    cudaStream_t s;
    Device<float> a(4);
    EXPECT_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    EXPECT_CUDA(cudaStreamDestroy(s));
    EXPECT_CUDA(cudaMemsetAsync(a.p, 0, 16, s));
}

static void blocking_stream()
{
    cudaStream_t s;
    EXPECT_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamDefault));
}

static void destroyed_event()
{
    Stream s;
    cudaEvent_t e;
    EXPECT_CUDA(cudaEventCreateWithFlags(&e, 0));
    EXPECT_CUDA(cudaEventDestroy(e));
    EXPECT_CUDA(cudaEventRecord(e, s));
}

/* Work that nobody waits for is reported at the end. */
static void not_waited_for()
{
    cudaStream_t s;
    float *a;
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&a), 16));
    EXPECT_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    EXPECT_CUDA(cudaMemsetAsync(a, 0, 16, s));
    exit(1);
}

static const Scenario scenarios[] = {
    {"two_streams", two_streams<0>, 0, nullptr, nullptr, 20},
    {"missing_event_wait", two_streams<no_wait>, 1, "expected", nullptr, 20},
    {"missing_wait_back", two_streams<no_wait_back>, 1, "expected", nullptr, 20},
    {"source_reused", two_streams<source_reused>, 1, "expected", nullptr, 20},
    {"read_early", two_streams<read_early>, 1, "expected", nullptr, 20},
    {"waits_for_one", two_streams<waits_for_one>, 1, "expected", nullptr, 20},
#ifndef SIMT_TSAN /* which rightly calls it a race */
    {"runs_when_waited_for", runs_when_waited_for, 0, nullptr, nullptr, 0},
#endif
    {"event_of_another_time", event_of_another_time, 0, nullptr, nullptr, 0},
    {"destroyed_stream", destroyed_stream, 86, "was destroyed", nullptr, 1},
    {"blocking_stream", blocking_stream, 86, "cudaStreamNonBlocking", nullptr, 1},
    {"destroyed_event", destroyed_event, 86, "was destroyed", nullptr, 1},
    {"not_waited_for", not_waited_for, 1, "that nobody waited for", nullptr, 1},
};

int main(int argc, char **argv)
{
    return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
