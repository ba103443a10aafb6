/*
 * test_block.cu - the emulator on what blocks do: barriers, shared memory, barriers
 * between blocks, asynchronous copies. What is wrong is reported, what is right is not.
 */
#include "testing.h"

#include <cmath>

/* ---- the block barrier */

/* Reverses each block's part through shared memory. */
__global__ void reverse(float *out, const float *in, int broken)
{
    SHARED_ARRAY(float, part, [128]);
    int t = (int)threadIdx.x, i = (int)(blockIdx.x * blockDim.x) + t;
    part[t] = in[i];
    if (!broken)
        __syncthreads();
    out[i] = part[127 - t];
}

static void run_reverse(int broken)
{
    Stream s;
    Device<float> in(512), out(512);
    std::vector<float> x = some_floats(512, 0);
    in.put(x, s);
    EXPECT_CUDA(launch(reverse, 4, 128, 0, s, out.p, in.p, broken));
    std::vector<float> y = out.get(s);
    for (int i = 0; i < 512; i++)
        EXPECT(y[i] == x[i / 128 * 128 + 127 - i % 128]);
}

static void right_barrier()
{
    run_reverse(0);
}

static void missing_barrier()
{
    run_reverse(1);
}

__global__ void votes(int *out, int n)
{
    int t = (int)threadIdx.x;
    int any = __syncthreads_or(t == n), all = __syncthreads_and(t < n),
        count = __syncthreads_count(t < n);
    out[t] = any + 10 * all + 100 * count;
}

static void barrier_votes()
{
    Stream s;
    Device<int> out(64);
    const int expected[][2] = {{0, 1}, {40, 4001}, {64, 6410}};
    for (const auto &e : expected) {
        EXPECT_CUDA(launch(votes, 1, 64, 0, s, out.p, e[0]));
        for (int v : out.get(s))
            EXPECT(v == e[1]);
    }
}

/* The six ways to diverge that must be reported. */
__global__ void diverge(float *f, int kind)
{
    int t = (int)threadIdx.x;
    if (kind == 0 && t < 64)
        __syncthreads();
    else if (kind == 0)
        __syncthreads(); /* another line */
    if (kind == 1 && t < 64)
        __syncthreads(); /* the others end */
    if (kind == 2)
        f[t] = __shfl_sync(t & 1 ? 0xffffffffu : 0x55555555u, f[t], 0);
    if (kind == 3 && (t & 31) == 7)
        return;
    if (kind == 3)
        f[t] = __shfl_xor_sync(0xffffffffu, f[t], 1);
    if (kind == 4 && t < 16)
        f[t] = __shfl_sync(0xffffffffu, f[t], 0);
    else if (kind == 4)
        __syncthreads();
    for (int i = 0; kind == 5 && i < t % 2 + 1; i++)
        __syncthreads();
}

template <int kind> static void run_diverge()
{
    Stream s;
    Device<float> f(128);
    EXPECT_CUDA(launch(diverge, 1, 128, 0, s, f.p, kind));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

/* ---- shared memory */

__global__ void read_shared(float *out)
{
    SHARED_ARRAY(float, fixed, [8]);
    SHARED_DYN(float, dynamic);
    out[threadIdx.x] = fixed[threadIdx.x];
    out[8 + threadIdx.x] = dynamic[threadIdx.x];
    __syncthreads();
    fixed[threadIdx.x] = dynamic[threadIdx.x] = 1;
}

/* The second launch must not see the first one's. */
static void shared_starts_as_nan()
{
    Stream s;
    Device<float> out(16);
    for (int i = 0; i < 2; i++) {
        EXPECT_CUDA(launch(read_shared, 1, 8, 32, s, out.p));
        for (float v : out.get(s))
            EXPECT(std::isnan(v));
    }
}

__global__ void write_behind(int past)
{
    SHARED_DYN(float, s);
    s[7 + past] = 1;
}

static void shared_in_bounds()
{
    Stream s;
    EXPECT_CUDA(launch(write_behind, 1, 1, 32, s, 0));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static void shared_overrun()
{
    Stream s;
    EXPECT_CUDA(launch(write_behind, 1, 1, 32, s, 1));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static void no_dynamic_shared()
{
    Stream s;
    EXPECT_CUDA(launch(write_behind, 1, 1, 0, s, 0));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

/* ---- between blocks */

/* Each step every block adds what its neighbour had before. */
__global__ void ring(int *value, uint32_t *flags, int *failed, int steps, int broken)
{
    int n = (int)gridDim.x, me = (int)blockIdx.x;
    for (int step = 0; step < steps; step++) {
        const int *before = value + step * n;
        if (threadIdx.x == 0)
            value[(step + 1) * n + me] =
                __ldcg(before + me) + __ldcg(before + (me + 1) % n);
        if (broken)
            __syncthreads();
        else if (!grid_barrier(flags, (uint32_t)step + 1)) {
            *failed = 1;
            return;
        }
    }
}

static void run_ring(int broken, bool cooperative)
{
    const int n = 6, steps = 9;
    Stream s;
    Device<int> value((steps + 1) * n), failed(1);
    Device<uint32_t> flags(n);
    std::vector<int> start((steps + 1) * n, -1);
    for (int i = 0; i < n; i++)
        start[i] = i * i;
    value.put(start, s);
    EXPECT_CUDA(cudaMemsetAsync(flags.p, 0, n * 4, s));
    EXPECT_CUDA(cudaMemsetAsync(failed.p, 0, 4, s));
    if (cooperative)
        EXPECT_CUDA(launch_cooperative(ring, n, 32, 0, s, value.p, flags.p, failed.p,
                                       steps, broken));
    else
        EXPECT_CUDA(
            launch(ring, n, 32, 0, s, value.p, flags.p, failed.p, steps, broken));
    std::vector<int> end = value.get(s);
    for (int step = 0; step < steps; step++)
        for (int i = 0; i < n; i++)
            start[(step + 1) * n + i] =
                start[step * n + i] + start[step * n + (i + 1) % n];
    EXPECT(failed.get(s)[0] == 0);
    EXPECT(end == start);
}

static void right_grid_barrier()
{
    run_ring(0, true);
}

static void missing_grid_barrier()
{
    run_ring(1, true);
}

static void grid_barrier_without_cooperation()
{
    run_ring(0, false);
}

/* One of two blocks of a group does not come: the others learn it and end. */
__global__ void lose(uint32_t *flags, int *lost)
{
    if (blockIdx.x == 1)
        return;
    bool met = group_barrier(flags, 2, (int)blockIdx.x, 1);
    if (threadIdx.x == 0)
        *lost = !met;
}

static void lost_member()
{
    Stream s;
    Device<uint32_t> flags(2);
    Device<int> lost(1);
    EXPECT_CUDA(cudaMemsetAsync(flags.p, 0, 8, s));
    EXPECT_CUDA(launch_cooperative(lose, 2, 32, 0, s, flags.p, lost.p));
    EXPECT(lost.get(s)[0] == 1);
}

/* ---- asynchronous copies */

enum { no_wait = 1, no_commit, early_refill };

/* Four tiles through two buffers, reversed. */
__global__ void tiles(float *out, const float *in, int broken)
{
    SHARED_ARRAY(float, buffer, [2][512]);
    int t = (int)threadIdx.x;
    copy_async<16>(&buffer[0][4 * t], in + 4 * t);
    if (broken != no_commit)
        copy_commit();
    for (int k = 0; k < 4; k++) {
        if (k < 3)
            copy_async<16>(&buffer[(k + 1) & 1][4 * t], in + 512 * (k + 1) + 4 * t);
        if (broken != no_commit)
            copy_commit();
        if (broken != no_wait)
            copy_wait<1>();
        __syncthreads();
        for (int i = t; i < 512; i += 128)
            out[512 * k + i] = buffer[k & 1][511 - i];
        if (broken != early_refill)
            __syncthreads();
    }
}

template <int broken> static void run_tiles()
{
    Stream s;
    Device<float> in(2048), out(2048);
    std::vector<float> x = some_floats(2048, 7);
    in.put(x, s);
    EXPECT_CUDA(launch(tiles, 1, 128, 0, s, out.p, in.p, broken));
    std::vector<float> y = out.get(s);
    for (int i = 0; i < 2048; i++)
        EXPECT(y[i] == x[i / 512 * 512 + 511 - i % 512]);
}

__global__ void part(float *out, const float *in, int valid)
{
    SHARED_ARRAY(float, s, [4]);
    copy_async<16>(s, in, valid);
    copy_commit();
    copy_wait<0>();
    for (int i = 0; i < 4; i++)
        out[i] = s[i];
}

/* The rest is zero, and is not read: in has only 2 floats. */
static void copy_of_a_part()
{
    Stream s;
    Device<float> in(2), out(4);
    in.put({3, 4}, s);
    EXPECT_CUDA(launch(part, 1, 1, 0, s, out.p, in.p, 8));
    EXPECT((out.get(s) == std::vector<float>{3, 4, 0, 0}));
}

static void copy_past_the_end()
{
    Stream s;
    Device<float> in(2), out(4);
    EXPECT_CUDA(launch(part, 1, 1, 0, s, out.p, in.p, 16));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static void misaligned_copy()
{
    Stream s;
    Device<float> in(8), out(4);
    EXPECT_CUDA(launch(part, 1, 1, 0, s, out.p, in.p + 1, 16));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

/* ---- floating-point atomics */

__global__ void add_floats(float *sum, int *count)
{
    atomicAdd(count, 1);
    atomicAdd(sum, 0.1f);
}

static void float_atomics()
{
    Stream s;
    Device<float> sum(1);
    Device<int> count(1);
    EXPECT_CUDA(launch(add_floats, 1, 32, 0, s, sum.p, count.p));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static const Scenario scenarios[] = {
    {"right_barrier", right_barrier, 0, nullptr, nullptr, 20},
    {"missing_barrier", missing_barrier, 1, "expected", nullptr, 20},
    {"barrier_votes", barrier_votes, 0, nullptr, nullptr, 0},
    {"two_barriers", run_diverge<0>, 86, "divergent block barrier: others wait at",
     nullptr, 0},
    {"ends_before_barrier", run_diverge<1>, 86, "barrier", nullptr, 0},
    {"different_masks", run_diverge<2>, 86, "of its warp waits for it at", nullptr, 0},
    {"ended_lane", run_diverge<3>, 86, "end", nullptr, 0},
    {"shuffle_and_barrier", run_diverge<4>, 86, "no thread can run", nullptr, 0},
    {"unequal_barriers", run_diverge<5>, 86, "barrier", nullptr, 0},
    {"shared_starts_as_nan", shared_starts_as_nan, 0, nullptr, nullptr, 0},
    {"shared_in_bounds", shared_in_bounds, 0, nullptr, nullptr, 0},
#ifndef __SANITIZE_ADDRESS__
    {"shared_overrun", shared_overrun, 86, "shared memory written outside", nullptr, 0},
#else
    {"shared_overrun", shared_overrun, 99, "heap-buffer-overflow", nullptr, 0},
#endif
    {"no_dynamic_shared", no_dynamic_shared, 86, "without dynamic shared memory",
     nullptr, 0},
    {"right_grid_barrier", right_grid_barrier, 0, nullptr, nullptr, 20},
    {"missing_grid_barrier", missing_grid_barrier, 1, "expected", nullptr, 20},
    {"grid_barrier_without_cooperation", grid_barrier_without_cooperation, 86,
     "not cooperative", nullptr, 0},
    {"lost_member", lost_member, 0, nullptr, nullptr, 0},
    {"right_tiles", run_tiles<0>, 0, nullptr, nullptr, 20},
    {"missing_wait", run_tiles<no_wait>, 1, "expected", nullptr, 20},
    {"missing_commit", run_tiles<no_commit>, 1, "expected", nullptr, 20},
    {"early_refill", run_tiles<early_refill>, 1, "expected", nullptr, 20},
    {"copy_of_a_part", copy_of_a_part, 0, nullptr, nullptr, 0},
    {"copy_past_the_end", copy_past_the_end, 86, "past the end", nullptr, 0},
    {"misaligned_copy", misaligned_copy, 86, "not aligned", nullptr, 0},
    {"float_atomics", float_atomics, 86, "atomicAdd on floating point", nullptr, 0},
};

int main(int argc, char **argv)
{
    return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
