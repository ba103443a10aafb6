/*
 * device.cc - what the emulated devices are, and the limits that they set to a launch.
 *
 * One device of each architecture is modelled, by the table of NVIDIA's programming
 * guide on compute capabilities. Registers are not modelled: nvcc's table of them is in
 * the build's log.
 */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <unistd.h>

#include "core.h"

namespace simt
{

namespace
{

struct Model {
    int arch, multiprocessors;
    /* KiB: the most of a block, of a multiprocessor */
    int shared_block, shared_all;
    /* of a multiprocessor */
    int threads;
    /* MiB */
    int l2;
};

const Model models[] = {
    {75, 40, 64, 64, 1024, 4},     {80, 108, 163, 164, 2048, 40},
    {86, 84, 99, 100, 1536, 6},    {89, 142, 99, 100, 1536, 96},
    {90, 132, 227, 228, 2048, 50}, {100, 148, 227, 228, 2048, 126},
    {120, 170, 99, 100, 1536, 96},
};

const Model &model()
{
    for (const Model &m : models)
        if (m.arch == settings().arch)
            return m;
    error("RNND_SIMT_ARCH=%d: 75, 80, 86, 89, 90, 100 or 120 was expected",
          settings().arch);
}

int multiprocessors()
{
    return settings().multiprocessors ? settings().multiprocessors
                                      : model().multiprocessors;
}

const size_t unasked = 48 << 10; /* dynamic shared memory that needs no attribute */
int device;
std::map<const void *, size_t> dynamic_limit;
cudaError_t last;

bool exists(int number)
{
    return number >= 0 && number < settings().devices;
}

size_t reserved_shared()
{
    return model().arch >= 80 ? 1024 : 0;
}

/* Blocks of a kernel that fit into a multiprocessor. */
int occupancy(const void *function, int threads, size_t dynamic)
{
    size_t shared = static_shared(function) + dynamic + reserved_shared();
    size_t most = (size_t)model().shared_all << 10;
    int rounded = (threads + 31) / 32 * 32;
    int by_threads = rounded > 0 ? model().threads / rounded : 0;
    int by_shared = shared > 0 ? (int)std::min<size_t>(most / shared, 32) : 32;
    return std::min(by_threads, by_shared);
}

void fill(cudaDeviceProp *p, int number)
{
    const Model &m = model();
    *p = {};
    snprintf(p->name, sizeof p->name, "emulated sm_%d", m.arch);
    gethostname(p->uuid.bytes, sizeof p->uuid.bytes - 1);
    p->uuid.bytes[sizeof p->uuid.bytes - 1] = (char)number;
    p->pciBusID = number + 1;
    p->totalGlobalMem = settings().memory;
    p->sharedMemPerBlock = unasked;
    p->sharedMemPerBlockOptin = (size_t)m.shared_block << 10;
    p->sharedMemPerMultiprocessor = (size_t)m.shared_all << 10;
    p->reservedSharedMemPerBlock = reserved_shared();
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = INT32_MAX;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->maxThreadsPerMultiProcessor = m.threads;
    p->maxBlocksPerMultiProcessor = 32;
    p->major = m.arch / 10;
    p->minor = m.arch % 10;
    p->multiProcessorCount = multiprocessors();
    p->l2CacheSize = m.l2 << 20;
    p->cooperativeLaunch = p->unifiedAddressing = p->concurrentKernels = 1;
    p->asyncEngineCount = 2;
    p->streamPrioritiesSupported = 1;
    p->clusterLaunch = m.arch >= 90;
}

int attribute(const cudaDeviceProp &p, cudaDeviceAttr which)
{
    switch (which) {
    case cudaDevAttrMultiProcessorCount:
        return p.multiProcessorCount;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return (int)p.sharedMemPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return (int)p.sharedMemPerBlockOptin;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return (int)p.sharedMemPerMultiprocessor;
    case cudaDevAttrReservedSharedMemoryPerBlock:
        return (int)p.reservedSharedMemPerBlock;
    case cudaDevAttrMaxThreadsPerBlock:
        return p.maxThreadsPerBlock;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrComputeCapabilityMajor:
        return p.major;
    case cudaDevAttrComputeCapabilityMinor:
        return p.minor;
    case cudaDevAttrCooperativeLaunch:
        return p.cooperativeLaunch;
    case cudaDevAttrL2CacheSize:
        return p.l2CacheSize;
    case cudaDevAttrWarpSize:
        return p.warpSize;
    case cudaDevAttrMaxGridDimX:
        return p.maxGridSize[0];
    default:
        error("cudaDeviceGetAttribute(%d) is not emulated", (int)which);
    }
}

} // namespace

int current_device()
{
    if (settings().devices == 0)
        error("there is no device (RNND_SIMT_DEVICES=0)");
    return device;
}

cudaError_t result(cudaError_t status)
{
    if (status != cudaSuccess)
        last = status;
    return status;
}

cudaError_t check_launch(const Launch &launch)
{
    const dim3 g = launch.grid, b = launch.block;
    uint64_t threads = (uint64_t)b.x * b.y * b.z;
    auto asked = dynamic_limit.find(launch.kernel.function);
    size_t limit = asked == dynamic_limit.end() ? unasked : asked->second;
    if (threads == 0 || threads > 1024 || b.z > 64 || !g.x || !g.y || !g.z ||
        g.x > INT32_MAX || g.y > 65535 || g.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (launch.shared > limit)
        return cudaErrorInvalidValue;
    size_t shared = launch.shared + static_shared(launch.kernel.function);
    if (shared > (size_t)model().shared_block << 10)
        return cudaErrorInvalidConfiguration;
    uint64_t together =
        (uint64_t)multiprocessors() *
        (unsigned)occupancy(launch.kernel.function, (int)threads, launch.shared);
    uint64_t grid = (uint64_t)g.x * g.y * g.z;
    if (launch.cooperative && grid > together)
        return cudaErrorCooperativeLaunchTooLarge;
    static long cooperative;
    if (launch.cooperative && settings().refuses && ++cooperative >= settings().refuses)
        return cudaErrorCooperativeLaunchTooLarge;
    int held = held_by_collectives(device);
    if (launch.cooperative && grid + (unsigned)held > together)
        error("%s: %llu blocks that wait for each other beside collectives, which may "
              "hold %d of %d multiprocessors: one waits for the other's end",
              launch.name, (unsigned long long)grid, held, multiprocessors());
    return cudaSuccess;
}

} // namespace simt

using namespace simt;

/* ---- entry points */

extern "C" {

cudaError_t cudaGetDeviceCount(int *count)
{
    enter("cudaGetDeviceCount");
    *count = settings().devices;
    if (*count > 0)
        model(); /* an unknown architecture is reported at once */
    return result(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int number)
{
    enter("cudaSetDevice");
    if (!exists(number))
        return result(cudaErrorInvalidDevice);
    device = number;
    return result(cudaSuccess);
}

cudaError_t cudaGetDevice(int *number)
{
    *number = current_device();
    return result(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int number)
{
    enter("cudaGetDeviceProperties");
    if (!exists(number))
        return result(cudaErrorInvalidDevice);
    fill(p, number);
    return result(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int number)
{
    cudaDeviceProp p;
    enter("cudaDeviceGetAttribute");
    if (!exists(number))
        return result(cudaErrorInvalidDevice);
    fill(&p, number);
    *value = attribute(p, which);
    return result(cudaSuccess);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int number)
{
    if (!exists(number))
        return result(cudaErrorInvalidDevice);
    snprintf(text, (size_t)size, "0000:%02x:00.0", number + 1);
    return result(cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return result(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return cudaRuntimeGetVersion(version);
}

/* ---- kernels */

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute which,
                                 int value)
{
    enter("cudaFuncSetAttribute");
    size_t most = (size_t)model().shared_block << 10;
    if (which == cudaFuncAttributePreferredSharedMemoryCarveout)
        return result(cudaSuccess);
    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        (size_t)value + static_shared(function) > most)
        return result(cudaErrorInvalidValue);
    dynamic_limit[function] = (size_t)value;
    return result(cudaSuccess);
}

/* Static shared memory is what launches so far have used. */
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *function)
{
    enter("cudaFuncGetAttributes");
    auto asked = dynamic_limit.find(function);
    *out = {};
    out->sharedSizeBytes = static_shared(function);
    out->maxDynamicSharedSizeBytes =
        (int)(asked == dynamic_limit.end() ? unasked : asked->second);
    out->maxThreadsPerBlock = 1024;
    out->numRegs = 32;
    out->ptxVersion = out->binaryVersion = model().arch;
    return result(cudaSuccess);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *function,
                                                          int threads, size_t dynamic)
{
    enter("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    bool fits = static_shared(function) + dynamic <= (size_t)model().shared_block << 10;
    *blocks = fits ? occupancy(function, threads, dynamic) : 0;
    return result(cudaSuccess);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int threads, size_t dynamic, unsigned)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads,
                                                         dynamic);
}

/* ---- errors */

cudaError_t cudaGetLastError(void)
{
    cudaError_t status = last;
    last = cudaSuccess;
    return status;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}

const char *cudaGetErrorName(cudaError_t status)
{
    switch (status) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorInvalidValue:
        return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
        return "cudaErrorInvalidConfiguration";
    case cudaErrorNoDevice:
        return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
        return "cudaErrorInvalidDevice";
    case cudaErrorNotReady:
        return "cudaErrorNotReady";
    case cudaErrorCooperativeLaunchTooLarge:
        return "cudaErrorCooperativeLaunchTooLarge";
    case cudaErrorGraphExecUpdateFailure:
        return "cudaErrorGraphExecUpdateFailure";
    default:
        return "cudaErrorUnknown";
    }
}

const char *cudaGetErrorString(cudaError_t status)
{
    switch (status) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorCooperativeLaunchTooLarge:
        return "too many blocks in cooperative launch";
    case cudaErrorGraphExecUpdateFailure:
        return "the graph update was not performed because of what it would change";
    default:
        return "unknown error";
    }
}

} // extern "C"
