/*
 * test_races.cu - under ThreadSanitizer: what lacks a barrier, a fence or an event is
 * reported in every order of execution, and nothing else is.
 */
#include "testing.h"

/* ---- within a block */

enum { right, no_barrier, no_wait, no_refill_barrier, no_warp_barrier };

__global__ void reverse(float *out, const float *in, int broken)
{
    SHARED_ARRAY(float, part, [64]);
    int t = (int)threadIdx.x;
    part[t] = in[t];
    if (broken != no_barrier)
        __syncthreads();
    out[t] = part[63 - t];
}

__global__ void tiles(float *out, const float *in, int broken)
{
    SHARED_ARRAY(float, buffer, [2][128]);
    int t = (int)threadIdx.x;
    copy_async<16>(&buffer[0][4 * t], in + 4 * t);
    copy_commit();
    for (int k = 0; k < 3; k++) {
        if (k < 2)
            copy_async<16>(&buffer[(k + 1) & 1][4 * t], in + 128 * (k + 1) + 4 * t);
        copy_commit();
        if (broken != no_wait)
            copy_wait<1>();
        __syncthreads();
        for (int i = t; i < 128; i += 32)
            out[128 * k + i] = buffer[k & 1][127 - i];
        if (broken != no_refill_barrier)
            __syncthreads();
    }
}

/* Lanes exchange through shared memory: a shuffle orders none of it. */
__global__ void neighbours(float *out, int broken)
{
    SHARED_ARRAY(float, part, [32]);
    int t = (int)threadIdx.x;
    part[t] = (float)t;
    if (broken != no_warp_barrier)
        __syncwarp();
    out[t] = part[t ^ 1] + __shfl_xor_sync(0xffffffffu, 1.0f, 2);
}

template <int broken> static void run_reverse()
{
    Stream s;
    Device<float> in(64), out(64);
    in.put(some_floats(64, 0), s);
    EXPECT_CUDA(launch(reverse, 1, 64, 0, s, out.p, in.p, broken));
    out.get(s);
}

template <int broken> static void run_tiles()
{
    Stream s;
    Device<float> in(384), out(384);
    in.put(some_floats(384, 0), s);
    EXPECT_CUDA(launch(tiles, 1, 32, 0, s, out.p, in.p, broken));
    out.get(s);
}

template <int broken> static void run_neighbours()
{
    Stream s;
    Device<float> out(32);
    EXPECT_CUDA(launch(neighbours, 1, 32, 0, s, out.p, broken));
    out.get(s);
}

/* ---- between blocks */

__global__ void ring(int *value, uint32_t *flags, int broken)
{
    int n = (int)gridDim.x, me = (int)blockIdx.x;
    for (int step = 0; step < 3; step++) {
        if (threadIdx.x == 0)
            value[(step + 1) * n + me] = __ldcg(value + step * n + (me + 1) % n) + 1;
        if (broken)
            __syncthreads();
        else if (!grid_barrier(flags, (uint32_t)step + 1))
            return;
    }
}

template <int broken> static void run_ring()
{
    Stream s;
    Device<int> value(16);
    Device<uint32_t> flags(4);
    EXPECT_CUDA(cudaMemsetAsync(value.p, 0, 64, s));
    EXPECT_CUDA(cudaMemsetAsync(flags.p, 0, 16, s));
    EXPECT_CUDA(launch_cooperative(ring, 4, 32, 0, s, value.p, flags.p, broken));
    EXPECT(value.get(s)[15] >= 0);
}

/* Two blocks write the same place, in one launch or in two. */
__global__ void mark(int *where)
{
    if (threadIdx.x == 0)
        *where = 1;
}

template <int blocks> static void run_mark()
{
    Stream s;
    Device<int> where(1);
    EXPECT_CUDA(launch(mark, blocks, 32, 0, s, where.p));
    EXPECT_CUDA(launch(mark, 1, 32, 0, s, where.p));
    EXPECT(where.get(s)[0] == 1);
}

/* ---- between streams and the host */

enum { no_event = 1, source_reused };

template <int broken> static void run_streams()
{
    Stream s1, s2;
    Device<int> where(1);
    cudaEvent_t e;
    int *pinned;
    EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void **>(&pinned), 4));
    EXPECT_CUDA(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    *pinned = 7;
    EXPECT_CUDA(cudaMemcpyAsync(where.p, pinned, 4, cudaMemcpyHostToDevice, s1));
    if (broken == source_reused)
        *pinned = 8;
    EXPECT_CUDA(cudaEventRecord(e, s1));
    if (broken != no_event)
        EXPECT_CUDA(cudaStreamWaitEvent(s2, e, 0));
    EXPECT_CUDA(launch(mark, 1, 32, 0, s2, where.p));
    EXPECT_CUDA(cudaStreamSynchronize(s2));
    EXPECT_CUDA(cudaStreamSynchronize(s1));
    *pinned = 9;
    EXPECT_CUDA(cudaEventDestroy(e));
    EXPECT_CUDA(cudaFreeHost(pinned));
}

/* Two branches of a graph write the same place, or the second waits for the first. */
template <int broken> static void run_branches()
{
    Stream s1, s2;
    Device<int> where(1);
    Event fork, between, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    EXPECT_CUDA(cudaStreamBeginCapture(s1, cudaStreamCaptureModeThreadLocal));
    EXPECT_CUDA(cudaEventRecord(fork.e, s1));
    EXPECT_CUDA(cudaStreamWaitEvent(s2, fork.e, 0));
    EXPECT_CUDA(launch(mark, 1, 32, 0, s1, where.p));
    EXPECT_CUDA(cudaEventRecord(between.e, s1));
    if (!broken)
        EXPECT_CUDA(cudaStreamWaitEvent(s2, between.e, 0));
    EXPECT_CUDA(launch(mark, 1, 32, 0, s2, where.p));
    EXPECT_CUDA(cudaEventRecord(join.e, s2));
    EXPECT_CUDA(cudaStreamWaitEvent(s1, join.e, 0));
    EXPECT_CUDA(cudaStreamEndCapture(s1, &graph));
    EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_CUDA(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; i++)
        EXPECT_CUDA(cudaGraphLaunch(exec, s1));
    EXPECT_CUDA(cudaStreamSynchronize(s1));
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

static const char *const race = "data race";

static const Scenario scenarios[] = {
    {"reverse", run_reverse<right>, 0, nullptr, nullptr, 0},
    {"reverse_no_barrier", run_reverse<no_barrier>, 66, race, nullptr, 0},
    {"tiles", run_tiles<right>, 0, nullptr, nullptr, 0},
    {"tiles_no_wait", run_tiles<no_wait>, 66, race, nullptr, 0},
    {"tiles_no_refill_barrier", run_tiles<no_refill_barrier>, 66, race, nullptr, 0},
    {"neighbours", run_neighbours<right>, 0, nullptr, nullptr, 0},
    {"neighbours_no_barrier", run_neighbours<no_warp_barrier>, 66, race, nullptr, 0},
    {"ring", run_ring<0>, 0, nullptr, nullptr, 0},
    {"ring_no_barrier", run_ring<1>, 66, race, nullptr, 0},
    {"mark", run_mark<1>, 0, nullptr, nullptr, 0},
    {"mark_twice", run_mark<2>, 66, race, nullptr, 0},
    {"streams", run_streams<0>, 0, nullptr, nullptr, 0},
    {"streams_no_event", run_streams<no_event>, 66, race, nullptr, 0},
    {"branches", run_branches<0>, 0, nullptr, nullptr, 0},
    {"branches_without_edge", run_branches<1>, 66, race, nullptr, 0},
    {"streams_source_reused", run_streams<source_reused>, 66, race, nullptr, 0},
};

int main(int argc, char **argv)
{
    return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
