/*
 * test_device.cu - devices, the limits that they set to a launch, and the environment.
 */
#include "testing.h"

#include <cstring>
#include <string>

__global__ void nothing()
{
}

__global__ void uses_shared(float *out, int n)
{
    SHARED_DYN(float, s);
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        s[i] = (float)i;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = s[n - 1];
}

static cudaDeviceProp properties(int device)
{
    cudaDeviceProp p;
    EXPECT_CUDA(cudaGetDeviceProperties(&p, device));
    return p;
}

static void two_devices()
{
    int count;
    EXPECT_CUDA(cudaGetDeviceCount(&count));
    EXPECT(count == 2);
    cudaDeviceProp a = properties(0), b = properties(1);
    EXPECT(a.major == 9 && a.minor == 0 && a.multiProcessorCount == 132);
    EXPECT(a.sharedMemPerBlockOptin == 227 << 10);
    EXPECT(memcmp(&a.uuid, &b.uuid, sizeof a.uuid) != 0);
    EXPECT(cudaGetDeviceProperties(&a, 2) == cudaErrorInvalidDevice);
    EXPECT(cudaSetDevice(2) == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
}

static void no_device()
{
    int count = -1;
    EXPECT(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
    EXPECT(count == 0);
}

/* Largest block of the programming guide's table: KiB of shared memory, threads of an
   SM. */
static void check_arch(int arch, int shared, int threads)
{
    int value;
    cudaDeviceProp p = properties(0);
    EXPECT(10 * p.major + p.minor == arch);
    EXPECT_CUDA(
        cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    EXPECT(value == shared << 10);
    EXPECT_CUDA(
        cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    EXPECT(value == threads);
}

static void sm_75()
{
    check_arch(75, 64, 1024);
}

static void sm_86()
{
    check_arch(86, 99, 1536);
}

static void sm_100()
{
    check_arch(100, 227, 2048);
}

static void wrong_setting()
{
    int count;
    cudaGetDeviceCount(&count);
}

static void launch_limits()
{
    Stream s;
    EXPECT(launch(nothing, 1, 1025, 0, s) == cudaErrorInvalidConfiguration);
    EXPECT(launch(nothing, 0, 32, 0, s) == cudaErrorInvalidConfiguration);
    EXPECT(launch(nothing, dim3(1, 65536), 32, 0, s) == cudaErrorInvalidConfiguration);
    EXPECT_CUDA(launch(nothing, dim3(1, 2, 3), 1024, 0, s));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

/* More than 48 KiB must be asked for, and more than the device has is never given. */
static void dynamic_shared_limits()
{
    Stream s;
    Device<float> out(1);
    const int most = 227 << 10;
    auto set = [](int bytes) {
        return cudaFuncSetAttribute(uses_shared,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    };
    EXPECT_CUDA(launch(uses_shared, 1, 64, 48 << 10, s, out.p, 12 << 10));
    EXPECT(launch(uses_shared, 1, 64, (48 << 10) + 4, s, out.p, 9) ==
           cudaErrorInvalidValue);
    EXPECT(set(most + 4) == cudaErrorInvalidValue);
    EXPECT_CUDA(set(most));
    EXPECT_CUDA(launch(uses_shared, 1, 64, (size_t)most, s, out.p, most / 4));
    EXPECT(out.get(s)[0] == (float)(most / 4 - 1));
}

/* One block of 200 KB fits into a multiprocessor, two of 100 KB, and 2048 threads. */
static void occupancy()
{
    int blocks;
    const struct {
        int threads;
        size_t shared;
        int expected;
    } cases[] = {{256, 0, 8},         {1024, 0, 2}, {128, 200 << 10, 1},
                 {128, 100 << 10, 2}, {33, 0, 32},  {128, 228 << 10, 0}};
    for (const auto &c : cases) {
        EXPECT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, uses_shared,
                                                                  c.threads, c.shared));
        EXPECT(blocks == c.expected);
    }
}

/* 2 multiprocessors with 2048 threads each hold 4 blocks of 1024. */
static void cooperative_limit()
{
    Stream s;
    EXPECT_CUDA(launch_cooperative(nothing, 4, 1024, 0, s));
    EXPECT(launch_cooperative(nothing, 5, 1024, 0, s) ==
           cudaErrorCooperativeLaunchTooLarge);
    EXPECT(std::string(cudaGetErrorString(cudaGetLastError())) ==
           "too many blocks in cooperative launch");
    EXPECT_CUDA(launch(nothing, 5, 1024, 0, s));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static void streams_of_devices()
{
    Stream s;
    EXPECT_CUDA(cudaSetDevice(1));
    EXPECT_CUDA(launch(nothing, 1, 32, 0, s));
}

/* The same seed gives the same schedule: the order in which blocks arrive. */
__global__ void arrive(unsigned *count, unsigned *order)
{
    order[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(count, 1u);
}

static void print_order()
{
    Stream s;
    Device<unsigned> count(1), order(64);
    EXPECT_CUDA(cudaMemsetAsync(count.p, 0, 4, s));
    EXPECT_CUDA(launch(arrive, 8, 8, 0, s, count.p, order.p));
    std::vector<unsigned> v = order.get(s);
    uint64_t hash = 1469598103934665603u;
    for (unsigned x : v)
        hash = (hash ^ x) * 1099511628211u;
    std::vector<bool> seen(64);
    for (unsigned x : v)
        seen[x] = true;
    for (bool x : seen)
        EXPECT(x);
    const char *seed = getenv("RNND_SIMT_SEED");
    bool inorder = strcmp(seed, "inorder") == 0;
    for (unsigned i = 0; i < 64 && inorder; i++)
        EXPECT(v[i] == i);
    printf("order %016llx\n", (unsigned long long)hash);
}

static const Scenario scenarios[] = {
    {"two_devices", two_devices, 0, nullptr, nullptr, 1},
    {"no_device", no_device, 0, nullptr, "RNND_SIMT_DEVICES=0", 1},
    {"sm_75", sm_75, 0, nullptr, "RNND_SIMT_ARCH=75", 1},
    {"sm_86", sm_86, 0, nullptr, "RNND_SIMT_ARCH=86", 1},
    {"sm_100", sm_100, 0, nullptr, "RNND_SIMT_ARCH=100", 1},
    {"unknown_arch", wrong_setting, 86, "75, 80, 86, 89, 90, 100 or 120 was expected",
     "RNND_SIMT_ARCH=91", 1},
    {"wrong_seed", wrong_setting, 86, "a number of", "RNND_SIMT_SEED=often", 1},
    {"launch_limits", launch_limits, 0, nullptr, nullptr, 1},
    {"dynamic_shared_limits", dynamic_shared_limits, 0, nullptr, nullptr, 1},
    {"occupancy", occupancy, 0, nullptr, nullptr, 1},
    {"cooperative_limit", cooperative_limit, 0, nullptr, "RNND_SIMT_SMS=2", 1},
    {"streams_of_devices", streams_of_devices, 86, "the stream is of device 0", nullptr,
     1},
    {"seed_1", print_order, 0, "order ", "RNND_SIMT_SEED=1", 0},
    {"inorder", print_order, 0, "order ", "RNND_SIMT_SEED=inorder", 1},
};

int main(int argc, char **argv)
{
    return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
