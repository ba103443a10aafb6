/*
 * test_nccl.cu - NCCL over MPI; tests/simt/nccl.sh starts it on several ranks, once for
 * each scenario.
 */
#include "testing.h"

#include <cmath>
#include <cstring>
#define OMPI_SKIP_MPICXX  1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

#define EXPECT_NCCL(call) EXPECT((call) == ncclSuccess)

static int rank, size;

/* A communicator of all ranks, on a device and a stream of its own. */
struct World {
    ncclComm_t comm;
    cudaStream_t s;
    explicit World(bool blocking = true)
    {
        ncclUniqueId id;
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = blocking;
        if (rank == 0)
            EXPECT_NCCL(ncclGetUniqueId(&id));
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
        EXPECT_CUDA(cudaSetDevice(rank));
        EXPECT_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
        settle(ncclCommInitRankConfig(&comm, size, id, rank, &config), blocking);
    }
    /* Waits for what a call has left to do. */
    void settle(ncclResult_t status, bool blocking = false)
    {
        EXPECT(status == (blocking ? ncclSuccess : ncclInProgress));
        while (status == ncclInProgress)
            EXPECT_NCCL(ncclCommGetAsyncError(comm, &status));
        EXPECT_NCCL(status);
    }
    World(const World &) = delete;
    ~World()
    {
        cudaStreamDestroy(s);
    }
};

static void all_reduce()
{
    const int n = 1000;
    World w;
    Device<float> v(n), sum(n);
    std::vector<float> x(n);
    for (int i = 0; i < n; i++)
        x[i] = (float)(i * (rank + 1));
    for (int round = 0; round < 5; round++) {
        v.put(x, w.s);
        EXPECT_NCCL(ncclAllReduce(v.p, sum.p, n, ncclFloat32, ncclSum, w.comm, w.s));
        EXPECT_NCCL(ncclAllReduce(v.p, v.p, n, ncclFloat32, ncclMax, w.comm, w.s));
        std::vector<float> y = sum.get(w.s), z = v.get(w.s);
        for (int i = 0; i < n; i++) {
            EXPECT(y[i] == (float)(i * size * (size + 1) / 2));
            EXPECT(z[i] == (float)(i * size));
        }
    }
    EXPECT_NCCL(ncclCommDestroy(w.comm));
}

/* Sums that depend on their order are the same bits on all ranks. */
static void same_bits()
{
    const int n = 512;
    World w;
    Device<float> v(n);
    std::vector<float> x = some_floats(n, (size_t)rank * 1000);
    v.put(x, w.s);
    EXPECT_NCCL(ncclAllReduce(v.p, v.p, n, ncclFloat32, ncclSum, w.comm, w.s));
    std::vector<float> y = v.get(w.s), first = y;
    MPI_Bcast(first.data(), n, MPI_FLOAT, 0, MPI_COMM_WORLD);
    EXPECT(memcmp(first.data(), y.data(), n * 4) == 0);
    EXPECT_NCCL(ncclCommDestroy(w.comm));
}

/* A bf16 sum beside a broadcast and 64-bit integers, given out together at the group's
   end. */
static void grouped()
{
    World w;
    Device<bf16> half(4);
    Device<int64_t> whole(3);
    Device<double> from_last(2);
    half.put(std::vector<bf16>(4, to_bf16((float)(rank + 1))), w.s);
    whole.put({rank, 1, (int64_t)1 << 40}, w.s);
    from_last.put({(double)rank, 0.5}, w.s);
    EXPECT_NCCL(ncclGroupStart());
    EXPECT_NCCL(ncclAllReduce(half.p, half.p, 4, ncclBfloat16, ncclSum, w.comm, w.s));
    EXPECT_NCCL(ncclAllReduce(whole.p, whole.p, 3, ncclInt64, ncclSum, w.comm, w.s));
    EXPECT_NCCL(
        ncclBroadcast(from_last.p, from_last.p, 2, ncclFloat64, size - 1, w.comm, w.s));
    EXPECT_NCCL(ncclGroupEnd());
    std::vector<int64_t> v = whole.get(w.s);
    EXPECT(from_bf16(half.get(w.s)[3]) == (float)(size * (size + 1) / 2));
    EXPECT(v[0] == size * (size - 1) / 2 && v[1] == size &&
           v[2] == (int64_t)size << 40);
    EXPECT(from_last.get(w.s)[0] == size - 1);
    EXPECT_NCCL(ncclCommDestroy(w.comm));
}

/* Compute and communication streams, joined by events, as in training. */
__global__ void scale(float *x, float factor, int n)
{
    int i = (int)threadIdx.x;
    if (i < n)
        x[i] *= factor;
}

template <bool broken> static void overlapped()
{
    const int n = 64, rounds = 12;
    World w;
    Stream compute;
    Device<float> grad(n);
    cudaEvent_t ready, reduced;
    EXPECT_CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    EXPECT_CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int round = 1; round <= rounds; round++) {
        grad.put(std::vector<float>(n, (float)(rank + round)), compute);
        EXPECT_CUDA(launch(scale, 1, 64, 0, compute, grad.p, 2.0f, n));
        EXPECT_CUDA(cudaEventRecord(ready, compute));
        if (!broken)
            EXPECT_CUDA(cudaStreamWaitEvent(w.s, ready, 0));
        EXPECT_NCCL(
            ncclAllReduce(grad.p, grad.p, n, ncclFloat32, ncclSum, w.comm, w.s));
        EXPECT_CUDA(cudaEventRecord(reduced, w.s));
        EXPECT_CUDA(cudaStreamWaitEvent(compute, reduced, 0));
        for (float x : grad.get(compute))
            EXPECT(x == (float)(size * (size - 1) + 2 * size * round));
    }
    EXPECT_CUDA(cudaStreamSynchronize(w.s));
    EXPECT_CUDA(cudaEventDestroy(ready));
    EXPECT_CUDA(cudaEventDestroy(reduced));
    EXPECT_NCCL(ncclCommDestroy(w.comm));
}

/* Calls that do not wait: each is asked after before the next one, and before what
   follows on the stream. */
template <bool broken> static void in_the_background()
{
    const int n = 100;
    World w(false);
    Device<int> v(n);
    cudaEvent_t done;
    EXPECT_CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    v.put(std::vector<int>(n, rank + 1), w.s);
    for (int i = 0; i < 3; i++) {
        ncclResult_t status =
            ncclAllReduce(v.p, v.p, n, ncclInt32, ncclSum, w.comm, w.s);
        if (!broken)
            w.settle(status);
    }
    EXPECT_CUDA(cudaEventRecord(done, w.s));
    while (cudaEventQuery(done) == cudaErrorNotReady)
        usleep(10);
    for (int x : v.get(w.s))
        EXPECT(x == size * (size + 1) / 2 * size * size);
    EXPECT_CUDA(cudaEventDestroy(done));
    w.settle(ncclCommFinalize(w.comm));
    EXPECT_NCCL(ncclCommDestroy(w.comm));
}

/* What follows on the stream comes before the sum that has not reached it. */
static void recorded_too_early()
{
    World w(false);
    Device<float> v(1);
    cudaEvent_t done;
    EXPECT_CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    v.put({1}, w.s);
    ncclResult_t status = ncclAllReduce(v.p, v.p, 1, ncclFloat32, ncclSum, w.comm, w.s);
    EXPECT_CUDA(cudaEventRecord(done, w.s));
    EXPECT_CUDA(cudaEventSynchronize(done));
    EXPECT(v.get(w.s)[0] == 1);
    w.settle(status);
    EXPECT(v.get(w.s)[0] == (float)size);
    EXPECT_CUDA(cudaEventDestroy(done));
    w.settle(ncclCommFinalize(w.comm));
    EXPECT_NCCL(ncclCommDestroy(w.comm));
}

static void counts_differ()
{
    World w;
    Device<float> v(10);
    EXPECT_NCCL(
        ncclAllReduce(v.p, v.p, rank == 1 ? 9 : 10, ncclFloat32, ncclSum, w.comm, w.s));
    EXPECT_CUDA(cudaStreamSynchronize(w.s));
}

static void order_differs()
{
    World w;
    Device<float> v(10);
    for (int i = 0; i < 2; i++)
        EXPECT_NCCL(
            (i == 0) == (rank == 1)
                ? ncclBroadcast(v.p, v.p, 10, ncclFloat32, 0, w.comm, w.s)
                : ncclAllReduce(v.p, v.p, 10, ncclFloat32, ncclSum, w.comm, w.s));
    EXPECT_CUDA(cudaStreamSynchronize(w.s));
}

static void ids_differ()
{
    ncclUniqueId id;
    ncclComm_t comm;
    EXPECT_NCCL(ncclGetUniqueId(&id));
    ncclCommInitRank(&comm, size, id, rank);
}

static void same_device()
{
    ncclUniqueId id = {};
    ncclComm_t comm;
    EXPECT(ncclCommInitRank(&comm, size, id, rank) == ncclInvalidUsage);
}

/* The last rank never comes. The others keep a deadline, by asking, not waiting. */
static void lost_peer()
{
    World w(false);
    Device<float> v(10);
    w.settle(ncclAllReduce(v.p, v.p, 10, ncclFloat32, ncclSum, w.comm, w.s));
    EXPECT_CUDA(cudaStreamSynchronize(w.s));
    if (rank < size - 1) {
        ncclResult_t status;
        w.settle(ncclAllReduce(v.p, v.p, 10, ncclFloat32, ncclSum, w.comm, w.s));
        for (int i = 0; i < 100; i++) {
            EXPECT(cudaStreamQuery(w.s) == cudaErrorNotReady);
            EXPECT_NCCL(ncclCommGetAsyncError(w.comm, &status));
            EXPECT(status == ncclSuccess);
            usleep(1000);
        }
    }
    EXPECT(ncclCommAbort(w.comm) == ncclInProgress);
    EXPECT_CUDA(cudaStreamSynchronize(w.s));
}

/* Nor does it come to open, or to the first sum, which connects the ranks. */
static void never_came()
{
    ncclUniqueId id = {};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;
    ncclResult_t status = ncclInProgress;
    config.blocking = 0;
    EXPECT_CUDA(cudaSetDevice(0));
    if (rank < size - 1) {
        EXPECT(ncclCommInitRankConfig(&comm, size, id, rank, &config) ==
               ncclInProgress);
        for (int i = 0; i < 100; i++) {
            EXPECT_NCCL(ncclCommGetAsyncError(comm, &status));
            EXPECT(status == ncclInProgress);
            usleep(1000);
        }
        EXPECT(ncclCommAbort(comm) == ncclInProgress);
    }
}

static void never_connected()
{
    World w(false);
    Device<float> v(10);
    ncclResult_t status = ncclInProgress;
    if (rank < size - 1) {
        EXPECT(ncclAllReduce(v.p, v.p, 10, ncclFloat32, ncclSum, w.comm, w.s) ==
               ncclInProgress);
        for (int i = 0; i < 100; i++) {
            EXPECT_NCCL(ncclCommGetAsyncError(w.comm, &status));
            EXPECT(status == ncclInProgress);
            usleep(1000);
        }
    }
    EXPECT(ncclCommAbort(w.comm) == ncclInProgress);
    EXPECT_CUDA(cudaStreamSynchronize(w.s));
}

static void destroyed_too_early()
{
    World w;
    Device<float> v(10);
    EXPECT_NCCL(ncclAllReduce(v.p, v.p, 10, ncclFloat32, ncclSum, w.comm, w.s));
    ncclCommDestroy(w.comm);
}

static const Scenario scenarios[] = {
    {"all_reduce", all_reduce, 0, nullptr, nullptr, 0},
    {"same_bits", same_bits, 0, nullptr, nullptr, 0},
    {"grouped", grouped, 0, nullptr, nullptr, 0},
    {"overlapped", overlapped<false>, 0, nullptr, nullptr, 0},
    {"in_the_background", in_the_background<false>, 0, nullptr, nullptr, 0},
    {"not_asked_after", in_the_background<true>, 86, "in progress", nullptr, 0},
    {"recorded_too_early", recorded_too_early, 0, nullptr, nullptr, 0},
    {"missing_event_wait", overlapped<true>, 1, "expected", nullptr, 0},
    {"counts_differ", counts_differ, 86, "of 9", nullptr, 0},
    {"order_differs", order_differs, 86, "in its broadcast", nullptr, 0},
    {"ids_differ", ids_differ, 86, "different ids", nullptr, 0},
    {"same_device", same_device, 0, "both use device", nullptr, 0},
    {"lost_peer", lost_peer, 0, nullptr, nullptr, 0},
    {"never_came", never_came, 0, nullptr, nullptr, 0},
    {"never_connected", never_connected, 0, nullptr, nullptr, 0},
    {"destroyed_too_early", destroyed_too_early, 86, "have not run", nullptr, 0},
};

int main(int argc, char **argv)
{
    const size_t count = sizeof scenarios / sizeof *scenarios;
    if (argc < 2) { /* what nccl.sh has to start and to expect */
        for (const Scenario &s : scenarios)
            printf("%s %d %s\n", s.name, s.status, s.text ? s.text : "");
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int status = run_here(argv[1], scenarios, count);
    MPI_Finalize();
    return status;
}
