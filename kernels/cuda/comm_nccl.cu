/*
 * comm_nccl.cu - sums over the devices of all ranks by NCCL, on a stream of their own.
 *
 * A sum starts when the back end's stream has come to where it was asked for, and runs
 * beside what that stream is given afterwards. Ring, one protocol and a fixed number of
 * channels, no NVLS: the same run gives the same bits. Few channels leave processors to
 * the kernels beside. Never waits: the caller polls, and keeps a deadline.
 */
#include "comm_nccl.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_backend.cuh"

struct rnnd__nccl {
    struct rnnd__cuda *cuda;
    ncclComm_t comm;
    cudaStream_t stream;
    /* the back end's stream has come so far */
    cudaEvent_t ready;
    /* all sums asked for so far are done */
    cudaEvent_t done;
    bool running;
};

static_assert(RNND_NCCL_ID_BYTES == sizeof(ncclUniqueId), "the size of NCCL's id");

static int failed(char *error, const char *what, const char *why)
{
    snprintf(error, 256, "NCCL: %s: %s", what, why);
    return RNND__CUDA_ECOMM;
}

static int nccl_status(char *error, const char *what, ncclResult_t status)
{
    return status == ncclSuccess ? 0 : failed(error, what, ncclGetErrorString(status));
}

static int cuda_status(char *error, const char *what, cudaError_t status)
{
    if (status == cudaSuccess)
        return 0;
    (void)cudaGetLastError();
    return failed(error, what, cudaGetErrorString(status));
}

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
    int status = nccl_status(error, "drawing an id", ncclGetUniqueId(&unique));
    if (status == 0)
        memcpy(id, &unique, sizeof unique);
    return status;
}

static int open_comm(struct rnnd__nccl *n, const void *id, int rank, int size,
                     char *error)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    memcpy(&unique, id, sizeof unique);
    config.minCTAs = config.maxCTAs = RNND__NCCL_CHANNELS;
    choose_algorithm();
    return nccl_status(error, "opening the communicator",
                       ncclCommInitRankConfig(&n->comm, size, unique, rank, &config));
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

int rnnd__nccl_open(struct rnnd_backend *be, const void *id, int rank, int size,
                    struct rnnd__nccl **out, char *error)
{
    struct rnnd__nccl *n = (struct rnnd__nccl *)calloc(1, sizeof *n);
    if (!n)
        return failed(error, "opening", "out of memory");
    n->cuda = rnnd__cuda_of(be);
    int status = open_stream(n, error);
    if (status == 0)
        status = open_comm(n, id, rank, size, error);
    if (status < 0) {
        release(n);
        return status;
    }
    *out = n;
    return 0;
}

int rnnd__nccl_sum_begin(struct rnnd__nccl *n, struct rnnd__buf buf, int64_t count,
                         char *error)
{
    int status =
        cuda_status(error, "a sum", cudaEventRecord(n->ready, n->cuda->stream));
    if (status == 0 && !PLANTED(3, "a sum does not wait for the gradients"))
        status =
            cuda_status(error, "a sum", cudaStreamWaitEvent(n->stream, n->ready, 0));
    if (status == 0)
        status = nccl_status(error, "a sum",
                             ncclAllReduce(buf.dev, buf.dev, (size_t)count, ncclFloat32,
                                           ncclSum, n->comm, n->stream));
    if (status == 0)
        status = cuda_status(error, "a sum", cudaEventRecord(n->done, n->stream));
    if (status == 0)
        n->running = true;
    return status;
}

int rnnd__nccl_sum_poll(struct rnnd__nccl *n, char *error)
{
    ncclResult_t state;
    int status = nccl_status(error, "a sum", ncclCommGetAsyncError(n->comm, &state));
    if (status == 0)
        status = nccl_status(error, "a sum", state);
    if (status < 0 || !n->running)
        return status < 0 ? status : 1;
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

void rnnd__nccl_abort(struct rnnd__nccl *n)
{
    if (!n)
        return;
    ncclCommAbort(n->comm);
    release(n);
}

void rnnd__nccl_close(struct rnnd__nccl *n)
{
    if (!n)
        return;
    cudaStreamSynchronize(n->stream);
    ncclCommDestroy(n->comm);
    release(n);
}
