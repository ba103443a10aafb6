/*
 * test_memory.cu - who may touch what: device memory, pinned memory, pointers of the
 * wrong kind, ends of allocations, freed memory.
 */
#include "testing.h"

#include <cmath>
#include <cstring>

__global__ void read_at(float *out, const float *in, long i)
{
    *out = in[i];
}

__global__ void write_at(float *out, long i)
{
    out[i] = 1;
}

static void round_trip()
{
    Stream s;
    Device<float> a(1000);
    std::vector<float> x = some_floats(1000, 3);
    a.put(x, s);
    EXPECT(a.get(s) == x);
}

static void new_memory_is_nan()
{
    Stream s;
    Device<float> a(300);
    for (float x : a.get(s))
        EXPECT(std::isnan(x));
}

static void alignment()
{
    void *p[3];
    for (int i = 0; i < 3; i++) {
        EXPECT_CUDA(cudaMalloc(&p[i], (size_t)i * 300 + 1));
        EXPECT((uintptr_t)p[i] % 256 == 0);
    }
    for (void *q : p)
        EXPECT_CUDA(cudaFree(q));
}

static void host_reads_device()
{
    Device<float> a(4);
    EXPECT(a.p[1] != 0);
}

static void host_writes_device()
{
    Device<float> a(4);
    a.p[1] = 2;
}

static void host_reads_before_waiting()
{
    Stream s;
    Device<float> a(4);
    EXPECT_CUDA(cudaMemsetAsync(a.p, 0, 16, s));
    EXPECT(a.p[1] != 0);
}

template <long i> static void kernel_reads()
{
    Stream s;
    Device<float> a(64), out(1);
    EXPECT_CUDA(launch(read_at, 1, 1, 0, s, out.p, a.p, i));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

/* Just past an odd size there is no page to fault on: seen when it is freed. */
static void kernel_writes_one_past()
{
    Stream s;
    Device<float> a(63);
    EXPECT_CUDA(launch(write_at, 1, 1, 0, s, a.p, 63));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static void kernel_reads_freed()
{
    Stream s;
    Device<float> out(1);
    float *a;
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&a), 4096));
    EXPECT_CUDA(cudaFree(a));
    EXPECT_CUDA(launch(read_at, 1, 1, 0, s, out.p, out.p, (a - out.p) + 3));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

/* A place cut to 32 bits, say. */
[[maybe_unused]] static void kernel_reads_nowhere()
{
    Stream s;
    Device<float> out(1);
    int64_t away = reinterpret_cast<float *>(65536) - out.p;
    EXPECT_CUDA(launch(read_at, 1, 1, 0, s, out.p, out.p, away));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static void freed_argument()
{
    Stream s;
    Device<float> out(1);
    float *a;
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&a), 4096));
    EXPECT_CUDA(cudaFree(a));
    EXPECT_CUDA(launch(read_at, 1, 1, 0, s, out.p, a, 0l));
}

static void freed_twice()
{
    float *a;
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&a), 4096));
    EXPECT_CUDA(cudaFree(a));
    EXPECT_CUDA(cudaFree(a));
}

static void host_argument()
{
    Stream s;
    float x = 0;
    EXPECT_CUDA(launch(write_at, 1, 1, 0, s, &x, 0l));
}

static void wrong_direction()
{
    Stream s;
    Device<float> a(4);
    float x[4];
    cudaMemcpyAsync(a.p, x, 16, cudaMemcpyDeviceToHost, s);
}

static void copy_too_long()
{
    Stream s;
    Device<float> a(4);
    float x[8] = {0};
    cudaMemcpyAsync(a.p, x, 32, cudaMemcpyHostToDevice, s);
}

static void other_device()
{
    float *a;
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&a), 64));
    EXPECT_CUDA(cudaSetDevice(1));
    Stream s;
    EXPECT_CUDA(cudaMemsetAsync(a, 0, 64, s));
}

static void kernel_on_other_device()
{
    float *a, *out;
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&a), 64));
    EXPECT_CUDA(cudaSetDevice(1));
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&out), 64));
    Stream s;
    EXPECT_CUDA(launch(read_at, 1, 1, 0, s, out, a, 0l));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static void default_stream()
{
    Device<float> a(4);
    EXPECT_CUDA(launch(write_at, 1, 1, 0, nullptr, a.p, 0l));
}

static void default_stream_copy()
{
    Device<float> a(4);
    float x[4] = {0};
    cudaMemcpy(a.p, x, 16, cudaMemcpyHostToDevice);
}

static void out_of_memory()
{
    void *p, *q;
    size_t available, total;
    EXPECT_CUDA(cudaMalloc(&p, 3 << 20));
    EXPECT(cudaMalloc(&q, 2 << 20) == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT_CUDA(cudaMemGetInfo(&available, &total));
    EXPECT(total == 4 << 20 && available == 1 << 20);
    EXPECT_CUDA(cudaFree(p));
    EXPECT_CUDA(cudaMalloc(&q, 4 << 20));
    EXPECT_CUDA(cudaFree(q));
}

/* Pageable memory may be changed at once, pinned memory not before the copy has run. */
static void pageable_is_staged()
{
    Stream s;
    Device<int> a(4);
    std::vector<int> x = {1, 2, 3, 4};
    EXPECT_CUDA(cudaMemcpyAsync(a.p, x.data(), 16, cudaMemcpyHostToDevice, s));
    x[2] = 0;
    EXPECT((a.get(s) == std::vector<int>{1, 2, 3, 4}));
}

[[maybe_unused]] static void pinned_is_not()
{
    Stream s;
    Device<int> a(4);
    int *x;
    EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void **>(&x), 16));
    for (int i = 0; i < 4; i++)
        x[i] = i + 1;
    EXPECT_CUDA(cudaMemcpyAsync(a.p, x, 16, cudaMemcpyHostToDevice, s));
    x[2] = 0;
    EXPECT((a.get(s) == std::vector<int>{1, 2, 0, 4}));
    EXPECT_CUDA(cudaFreeHost(x));
}

static void freed_pinned_twice()
{
    void *x;
    EXPECT_CUDA(cudaMallocHost(&x, 16));
    EXPECT_CUDA(cudaFreeHost(x));
    EXPECT_CUDA(cudaFreeHost(x));
}

static void forgotten()
{
    void *p;
    EXPECT_CUDA(cudaMalloc(&p, 12345));
    exit(1);
}

__global__ void misaligned_load(float4 *out, const float *in)
{
    *out = __ldcg(reinterpret_cast<const float4 *>(in + 1));
}

static void misaligned()
{
    Stream s;
    Device<float> in(8);
    Device<float4> out(1);
    EXPECT_CUDA(launch(misaligned_load, 1, 1, 0, s, out.p, in.p));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

#ifdef __SANITIZE_ADDRESS__
static const int caught = 99;
static const char *const past = "ERROR: AddressSanitizer";
#else
static const int caught = 86;
static const char *const past = "past the end of an allocation of 256";
#endif

static const Scenario scenarios[] = {
    {"round_trip", round_trip, 0, nullptr, nullptr, 1},
    {"new_memory_is_nan", new_memory_is_nan, 0, nullptr, nullptr, 1},
    {"alignment", alignment, 0, nullptr, nullptr, 1},
    {"host_reads_device", host_reads_device, 86, "the host reads", nullptr, 1},
    {"host_writes_device", host_writes_device, 86, "the host writes", nullptr, 1},
    {"host_reads_before_waiting", host_reads_before_waiting, 86, "the host reads",
     nullptr, 0},
    {"kernel_reads_last", kernel_reads<63>, 0, nullptr, nullptr, 1},
    {"kernel_reads_past", kernel_reads<64>, caught, past, nullptr, 1},
    {"kernel_reads_far_past", kernel_reads<100000>, 86, "a kernel reads", nullptr, 1},
#ifdef __SANITIZE_ADDRESS__
    {"kernel_writes_one_past", kernel_writes_one_past, 99, past, nullptr, 1},
    {"kernel_reads_freed", kernel_reads_freed, 99, past, nullptr, 1},
#else
    {"kernel_writes_one_past", kernel_writes_one_past, 86, "written 1 bytes past",
     nullptr, 1},
    {"kernel_reads_freed", kernel_reads_freed, 86, "freed memory of device 0", nullptr,
     1},
#ifndef SIMT_TSAN
    {"kernel_reads_nowhere", kernel_reads_nowhere, 86, "no device memory", nullptr, 1},
#endif
#endif
    {"freed_argument", freed_argument, 86, "freed memory of device 0", nullptr, 1},
    {"freed_twice", freed_twice, 86, "cudaFree of", nullptr, 1},
    {"host_argument", host_argument, 86, "argument 1 of a kernel", nullptr, 1},
    {"wrong_direction", wrong_direction, 86, "is device memory", nullptr, 1},
    {"copy_too_long", copy_too_long, 86, "32 bytes at", nullptr, 1},
    {"other_device", other_device, 86, "on device 1: byte 0", nullptr, 1},
    {"kernel_on_other_device", kernel_on_other_device, 86, "on device 0", nullptr, 1},
    {"default_stream", default_stream, 86, "uses the default stream", nullptr, 1},
    {"default_stream_copy", default_stream_copy, 86, "uses the default stream", nullptr,
     1},
    {"out_of_memory", out_of_memory, 0, nullptr, "RNND_SIMT_MEMORY=4", 1},
    {"pageable_is_staged", pageable_is_staged, 0, nullptr, nullptr, 0},
#ifndef SIMT_TSAN /* which rightly calls it a race */
    {"pinned_is_not", pinned_is_not, 0, nullptr, nullptr, 0},
#endif
    {"freed_pinned_twice", freed_pinned_twice, 86, "no pinned memory", nullptr, 1},
    {"forgotten", forgotten, 1, "12345 bytes of device 0 were not freed", nullptr, 1},
    {"misaligned", misaligned, 86, "misaligned access", nullptr, 1},
};

int main(int argc, char **argv)
{
    return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
