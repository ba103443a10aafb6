/*
 * comm_nccl.cu - sums over the devices of all ranks by NCCL, on a stream of their own.
 *
 * A sum starts when the back end's stream has come to where it was asked for, and runs
 * beside what that stream is given afterwards. Ring, one protocol and a fixed number of
 * channels, no NVLS: the same run gives the same bits. Few channels, and no clusters of
 * blocks, leave processors to the kernels beside.
 *
 * Never waits: NCCL's calls go on in the background, the caller polls until they are
 * through, and keeps a deadline. The library is looked for at run time, by programs of
 * two or more ranks only.
 */
#include "comm_nccl.h"

#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_backend.cuh"

struct rnnd__nccl {
    struct rnnd__cuda *cuda;
    /* NULL: not joined, or aborted */
    ncclComm_t comm;
    cudaStream_t stream;
    /* the back end's stream has come so far */
    cudaEvent_t ready;
    /* all sums that have reached the stream are done */
    cudaEvent_t done;
    /* a sum has not reached the stream yet; some may not be done */
    bool issuing, running;
    /* where the latest sum begins: a mark of times */
    int begin;
};

static_assert(RNND_NCCL_ID_BYTES == sizeof(ncclUniqueId), "the size of NCCL's id");

static int failed(char *error, const char *what, const char *why)
{
    snprintf(error, 256, "NCCL: %s: %s", what, why);
    return RNND__CUDA_ECOMM;
}

/* ---- the library */

/* Its functions, by their names after "nccl". */
static struct {
    decltype(&ncclGetVersion) GetVersion;
    decltype(&ncclGetUniqueId) GetUniqueId;
    decltype(&ncclGetErrorString) GetErrorString;
    decltype(&ncclCommInitRankConfig) CommInitRankConfig;
    decltype(&ncclCommGetAsyncError) CommGetAsyncError;
    decltype(&ncclCommFinalize) CommFinalize;
    decltype(&ncclCommDestroy) CommDestroy;
    decltype(&ncclCommAbort) CommAbort;
    decltype(&ncclAllReduce) AllReduce;
} nccl;

template <class Function> static bool find(void *library, const char *name, Function *f)
{
    *f = (Function)dlsym(library, name);
    return *f != NULL;
}

/* It stays loaded: NCCL has threads. */
static int load(char *error)
{
    const int least = NCCL_VERSION(2, 18, 0);
    int version = 0;
    if (nccl.AllReduce)
        return 0;
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(error, 256,
                 "NCCL, which sums over GPUs, cannot be loaded: %.150s; install it, or "
                 "use --comm mpi",
                 dlerror());
        return RNND__CUDA_EDEVICE;
    }
    bool whole = find(library, "ncclGetVersion", &nccl.GetVersion) &&
                 find(library, "ncclGetUniqueId", &nccl.GetUniqueId) &&
                 find(library, "ncclGetErrorString", &nccl.GetErrorString) &&
                 find(library, "ncclCommInitRankConfig", &nccl.CommInitRankConfig) &&
                 find(library, "ncclCommGetAsyncError", &nccl.CommGetAsyncError) &&
                 find(library, "ncclCommFinalize", &nccl.CommFinalize) &&
                 find(library, "ncclCommDestroy", &nccl.CommDestroy) &&
                 find(library, "ncclCommAbort", &nccl.CommAbort) &&
                 nccl.GetVersion(&version) == ncclSuccess && version >= least &&
                 find(library, "ncclAllReduce", &nccl.AllReduce);
    if (whole)
        return 0;
    snprintf(error, 256,
             "NCCL: libnccl.so.2 is version %d.%d, and 2.18 or later is needed; "
             "--comm mpi does without",
             version / 10000, version / 100 % 100);
    return RNND__CUDA_EDEVICE;
}

/* A call that goes on in the background has not failed. */
static int nccl_status(char *error, const char *what, ncclResult_t status)
{
    return status == ncclSuccess || status == ncclInProgress
               ? 0
               : failed(error, what, nccl.GetErrorString(status));
}

static int cuda_status(char *error, const char *what, cudaError_t status)
{
    if (status == cudaSuccess)
        return 0;
    (void)cudaGetLastError();
    return failed(error, what, cudaGetErrorString(status));
}

/* ---- opening */

/* A variable that the user has set keeps its value. */
static void choose_algorithm(void)
{
    setenv("NCCL_ALGO", "Ring", 0);
    setenv("NCCL_PROTO", "Simple", 0);
    setenv("NCCL_NVLS_ENABLE", "0", 0);
}

int rnnd__nccl_id(void *id, char *error)
{
    ncclUniqueId unique;
    choose_algorithm();
    int status = load(error);
    if (status == 0)
        status = nccl_status(error, "drawing an id", nccl.GetUniqueId(&unique));
    if (status == 0)
        memcpy(id, &unique, sizeof unique);
    return status;
}

/* The highest priority: a sum that can run is not kept waiting by the kernels
   beside. */
static int open_stream(struct rnnd__nccl *n, char *error)
{
    int least, greatest, status;
    status = cuda_status(error, "priorities",
                         cudaDeviceGetStreamPriorityRange(&least, &greatest));
    if (status == 0)
        status = cuda_status(
            error, "a stream",
            cudaStreamCreateWithPriority(&n->stream, cudaStreamNonBlocking, greatest));
    if (status == 0)
        status =
            cuda_status(error, "an event",
                        cudaEventCreateWithFlags(&n->ready, cudaEventDisableTiming));
    if (status == 0)
        status =
            cuda_status(error, "an event",
                        cudaEventCreateWithFlags(&n->done, cudaEventDisableTiming));
    return status;
}

static void release(struct rnnd__nccl *n)
{
    if (n->ready)
        cudaEventDestroy(n->ready);
    if (n->done)
        cudaEventDestroy(n->done);
    if (n->stream)
        cudaStreamDestroy(n->stream);
    free(n);
}

int rnnd__nccl_open(struct rnnd_backend *be, struct rnnd__nccl **out, char *error)
{
    int status = load(error);
    if (status < 0)
        return status;
    struct rnnd__nccl *n = (struct rnnd__nccl *)calloc(1, sizeof *n);
    if (!n)
        return failed(error, "opening", "out of memory");
    n->cuda = rnnd__cuda_of(be);
    status = open_stream(n, error);
    if (status < 0) {
        release(n);
        return status;
    }
    *out = n;
    return 0;
}

int rnnd__nccl_join(struct rnnd__nccl *n, const void *id, int rank, int size,
                    char *error)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    memcpy(&unique, id, sizeof unique);
    config.blocking = 0;
    /* a cluster of blocks may find no room beside a kernel that fills the device */
    config.cgaClusterSize = 1;
    config.minCTAs = config.maxCTAs = RNND__NCCL_CHANNELS;
    choose_algorithm();
    return nccl_status(error, "opening the communicator",
                       nccl.CommInitRankConfig(&n->comm, size, unique, rank, &config));
}

/* ---- progress */

/* Only what NCCL has given to the stream is before an event that is recorded there. */
static int record_done(struct rnnd__nccl *n, char *error)
{
    n->issuing = false;
    n->running = true;
    int end = rnnd__times_mark(n->cuda, n->stream);
    rnnd__times_span(n->cuda, n->begin, end, RNND_TIMES_SUM);
    return cuda_status(error, "a sum", cudaEventRecord(n->done, n->stream));
}

int rnnd__nccl_poll(struct rnnd__nccl *n, char *error)
{
    ncclResult_t state = ncclInProgress;
    if (!n->comm)
        return failed(error, "polling", "it was given up");
    int status = nccl_status(error, "asking how it goes",
                             nccl.CommGetAsyncError(n->comm, &state));
    if (status == 0)
        status = nccl_status(error, "in the background", state);
    if (status < 0 || state == ncclInProgress)
        return status;
    if (n->issuing)
        status = record_done(n, error);
    return status < 0 ? status : 1;
}

int rnnd__nccl_sum_begin(struct rnnd__nccl *n, struct rnnd__buf buf, int64_t count,
                         char *error)
{
    int status =
        cuda_status(error, "a sum", cudaEventRecord(n->ready, n->cuda->stream));
    if (status == 0 && !PLANTED(3, "a sum does not wait for the gradients"))
        status =
            cuda_status(error, "a sum", cudaStreamWaitEvent(n->stream, n->ready, 0));
    n->begin = rnnd__times_mark(n->cuda, n->stream);
    if (status == 0)
        status = nccl_status(error, "a sum",
                             nccl.AllReduce(buf.dev, buf.dev, (size_t)count,
                                            ncclFloat32, ncclSum, n->comm, n->stream));
    if (status == 0)
        n->issuing = true;
    if (status == 0 &&
        PLANTED(20, "a sum is taken for done that was not on its stream"))
        status = record_done(n, error);
    return status;
}

int rnnd__nccl_sum_poll(struct rnnd__nccl *n, char *error)
{
    int status = rnnd__nccl_poll(n, error);
    if (status <= 0 || !n->running)
        return status;
    cudaError_t done = cudaEventQuery(n->done);
    if (done == cudaErrorNotReady)
        return 0;
    status = cuda_status(error, "a sum", done);
    if (status == 0)
        status = cuda_status(error, "a sum",
                             cudaStreamWaitEvent(n->cuda->stream, n->done, 0));
    n->running = false;
    return status < 0 ? status : 1;
}

/* ---- the end */

int rnnd__nccl_leave(struct rnnd__nccl *n, char *error)
{
    return nccl_status(error, "the end", nccl.CommFinalize(n->comm));
}

/* Its kernels end, and with them all that waits for the device. */
void rnnd__nccl_abort(struct rnnd__nccl *n)
{
    if (n->comm)
        nccl.CommAbort(n->comm);
    n->comm = NULL;
    n->issuing = n->running = false;
}

void rnnd__nccl_close(struct rnnd__nccl *n)
{
    if (!n)
        return;
    if (n->comm)
        nccl.CommDestroy(n->comm);
    release(n);
}
