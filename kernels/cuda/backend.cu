/*
 * backend.cu - opening a CUDA device, its memory, its stream, and the table of its
 * operations.
 *
 * All work goes to one stream in order. Uploads pass through pinned memory, so that
 * only download and sync wait. The first failure is kept and voids later work.
 */
#include "cuda_backend.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Half of what is pinned; a batch of features is a few of them. */
static const size_t stage_bytes = (size_t)4 << 20;

/* ---- failures and sums */

static void keep(struct rnnd__cuda *cuda, const char *what, const char *why)
{
    if (cuda->base.status != 0)
        return;
    cuda->base.status = RNND__CUDA_EDEVICE;
    snprintf(cuda->base.error, sizeof cuda->base.error, "cuda %d: %s: %s", cuda->device,
             what, why);
}

bool rnnd__cuda_ok(struct rnnd__cuda *cuda, cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return true;
    keep(cuda, what, cudaGetErrorString(status));
    (void)cudaGetLastError(); /* it is reported; CUDA would report it again */
    return false;
}

bool rnnd__cublas_ok(struct rnnd__cuda *cuda, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    keep(cuda, what, cublasGetStatusString(status));
    return false;
}

/* One block: thread by thread, then over the threads, always in the same order. */
__global__ void __launch_bounds__(RNND__BLOCK)
    add_partial_sums(double *sums, const double *partial, int parts)
{
    for (int k = 0; k < 4; k++) {
        double own = 0;
        for (int p = (int)threadIdx.x; p < parts; p += (int)blockDim.x)
            own += partial[4 * p + k];
        double total = block_sum(own);
        if (threadIdx.x == 0)
            sums[k] += total;
    }
}

void rnnd__cuda_add_sums(struct rnnd__cuda *cuda, int parts, struct rnnd__buf sums)
{
    rnnd__cuda_ok(cuda,
                  launch(add_partial_sums, dim3(1), dim3(RNND__BLOCK), 0, cuda->stream,
                         (double *)sums.dev, cuda->partial, parts),
                  "sums of a loss");
}

/* ---- memory */

static int cuda_alloc(struct rnnd_backend *be, struct rnnd__buf *out, size_t bytes)
{
    void *p = NULL;
    cudaError_t status = cudaMalloc(&p, bytes ? bytes : 1);
    if (status == cudaSuccess) {
        out->dev = (char *)p;
        return 0;
    }
    (void)cudaGetLastError();
    if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue)
        snprintf(be->error, sizeof be->error, "out of memory: %zu bytes on cuda %d",
                 bytes, rnnd__cuda_of(be)->device);
    else
        snprintf(be->error, sizeof be->error,
                 "cuda %d: allocating %zu bytes of memory: %s",
                 rnnd__cuda_of(be)->device, bytes, cudaGetErrorString(status));
    return RNND__CUDA_EDEVICE;
}

static void cuda_free(struct rnnd_backend *be, struct rnnd__buf buf)
{
    rnnd__cuda_ok(rnnd__cuda_of(be), cudaFree(buf.dev), "freeing memory");
}

/* Room for up to `bytes` in the stage being filled; *room is what there is. */
static char *stage_room(struct rnnd__cuda *cuda, size_t bytes, size_t *room)
{
    const size_t line = 256;
    if (cuda->filled == stage_bytes) {
        cuda->staging = (cuda->staging + 1) % RNND__STAGES;
        cuda->filled = 0;
        bool hasty =
            PLANTED(9, "pinned memory is reused before the device has read it");
        if (!hasty &&
            !rnnd__cuda_ok(cuda, cudaEventSynchronize(cuda->stage[cuda->staging].used),
                           "waiting for an upload"))
            return NULL;
    }
    size_t left = stage_bytes - cuda->filled;
    *room = bytes < left ? bytes : left;
    char *p = cuda->stage[cuda->staging].host + cuda->filled;
    cuda->filled += (*room + line - 1) / line * line;
    return p;
}

/* Sends what is in the stage; a stage that is full is not touched before
   then. */
static bool stage_send(struct rnnd__cuda *cuda, char *dst, const char *from,
                       size_t bytes)
{
    if (!rnnd__cuda_ok(
            cuda,
            cudaMemcpyAsync(dst, from, bytes, cudaMemcpyHostToDevice, cuda->stream),
            "upload"))
        return false;
    if (cuda->filled < stage_bytes)
        return true;
    return rnnd__cuda_ok(
        cuda, cudaEventRecord(cuda->stage[cuda->staging].used, cuda->stream), "upload");
}

static void cuda_upload(struct rnnd_backend *be, struct rnnd__buf dst, const void *src,
                        size_t bytes)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    const char *from = (const char *)src;
    char *to = dst.dev;
    while (bytes > 0 && rnnd__cuda_sound(cuda)) {
        size_t room;
        char *stage = stage_room(cuda, bytes, &room);
        if (!stage)
            return;
        memcpy(stage, from, room);
        if (!stage_send(cuda, to, stage, room))
            return;
        from += room;
        to += room;
        bytes -= room;
    }
}

/* Whether a kernel gave up, since blocks that should run together did not. */
static void look_for_lost(struct rnnd__cuda *cuda)
{
    if (!cuda->watches || !rnnd__cuda_sound(cuda))
        return;
    cuda->watches = false;
    if (!rnnd__cuda_ok(cuda,
                       cudaMemcpyAsync(cuda->lost_seen, cuda->lost, sizeof(uint32_t),
                                       cudaMemcpyDeviceToHost, cuda->stream),
                       "asking for lost blocks") ||
        !rnnd__cuda_ok(cuda, cudaStreamSynchronize(cuda->stream),
                       "waiting for the device"))
        return;
    if (*cuda->lost_seen)
        keep(cuda, "a persistent recurrent layer",
             "timed out waiting for another block; "
             "--rnn-path stepwise does without");
}

int rnnd__cuda_sync(struct rnnd_backend *be)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    look_for_lost(cuda);
    rnnd__cuda_ok(cuda, cudaStreamSynchronize(cuda->stream), "waiting for the device");
    int status = be->status;
    be->status = 0;
    return status;
}

int rnnd__cuda_download(struct rnnd_backend *be, void *dst, struct rnnd__buf src,
                        size_t bytes)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    if (bytes > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(
            cuda,
            cudaMemcpyAsync(dst, src.dev, bytes, cudaMemcpyDeviceToHost, cuda->stream),
            "download");
    return rnnd__cuda_sync(be);
}

void rnnd__cuda_copy(struct rnnd_backend *be, struct rnnd__buf dst,
                     struct rnnd__buf src, size_t bytes)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    if (bytes > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      cudaMemcpyAsync(dst.dev, src.dev, bytes, cudaMemcpyDeviceToDevice,
                                      cuda->stream),
                      "copy");
}

void rnnd__cuda_zero(struct rnnd_backend *be, struct rnnd__buf dst, size_t bytes)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    if (bytes > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda, cudaMemsetAsync(dst.dev, 0, bytes, cuda->stream),
                      "zeroing");
}

static void *cuda_host(struct rnnd_backend *be, struct rnnd__buf buf)
{
    (void)be, (void)buf;
    return NULL;
}

/* ---- opening and closing */

static const char *cuda_describe(const struct rnnd_backend *be)
{
    return ((const struct rnnd__cuda *)be)->description;
}

/* Also of what was opened half. */
static void cuda_close(struct rnnd_backend *be)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    if (!cuda)
        return;
    if (cuda->stream)
        cudaStreamSynchronize(cuda->stream);
    rnnd__graphs_close(cuda);
    rnnd__times_close(cuda);
    if (cuda->blas)
        cublasDestroy(cuda->blas);
    cudaFree(cuda->workspace);
    cudaFree(cuda->partial);
    cudaFreeHost(cuda->answer);
    cudaFree(cuda->lost);
    cudaFreeHost(cuda->lost_seen);
    for (int i = 0; i < RNND__STAGES; i++) {
        if (cuda->stage[i].used)
            cudaEventDestroy(cuda->stage[i].used);
        cudaFreeHost(cuda->stage[i].host);
    }
    if (cuda->stream)
        cudaStreamDestroy(cuda->stream);
    free(cuda);
}

static const struct rnnd__backend_ops cuda_ops = {
    .name = "cuda",
    .describe = cuda_describe,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = rnnd__cuda_download,
    .copy = rnnd__cuda_copy,
    .zero = rnnd__cuda_zero,
    .sync = rnnd__cuda_sync,
    .host = cuda_host,
    .matmul = rnnd__cuda_matmul,
    .add_bias = rnnd__cuda_add_bias,
    .col_sum = rnnd__cuda_col_sum,
    .rnn_scratch = rnnd__cuda_rnn_scratch,
    .rnn_forward = rnnd__cuda_rnn_forward,
    .rnn_backward = rnnd__cuda_rnn_backward,
    .rnn_explain = rnnd__cuda_rnn_explain,
    .embed_gather = rnnd__cuda_embed_gather,
    .embed_scatter_add = rnnd__cuda_embed_scatter_add,
    .pool = rnnd__cuda_pool,
    .pool_backward = rnnd__cuda_pool_backward,
    .dropout = rnnd__cuda_dropout,
    .softmax_ce = rnnd__cuda_softmax_ce,
    .mse = rnnd__cuda_mse,
    .bce = rnnd__cuda_bce,
    .ctc_scratch = rnnd__cuda_ctc_scratch,
    .ctc = rnnd__cuda_ctc,
    .sum_sq = rnnd__cuda_sum_sq,
    .sgd = rnnd__cuda_sgd,
    .adam = rnnd__cuda_adam,
};

static cublasComputeType_t compute_type(enum rnnd_precision precision)
{
    switch (precision) {
    case RNND_TF32:
        return CUBLAS_COMPUTE_32F_FAST_TF32;
    case RNND_BF16:
        return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
        return CUBLAS_COMPUTE_32F_PEDANTIC;
    }
}

static const char *precision_name(enum rnnd_precision precision)
{
    return precision == RNND_TF32 ? "tf32" : precision == RNND_BF16 ? "bf16" : "fp32";
}

static bool learn_device(struct rnnd__cuda *cuda)
{
    cudaDeviceProp p;
    if (!rnnd__cuda_ok(cuda, cudaSetDevice(cuda->device), "taking the device") ||
        !rnnd__cuda_ok(cuda, cudaGetDeviceProperties(&p, cuda->device),
                       "its properties"))
        return false;
    cuda->arch = 10 * p.major + p.minor;
    cuda->multiprocessors = p.multiProcessorCount;
    cuda->shared = p.sharedMemPerBlockOptin;
    snprintf(cuda->description, sizeof cuda->description, "cuda %d, %.80s, sm_%d, %s",
             cuda->device, p.name, cuda->arch, precision_name(cuda->precision));
    return true;
}

static bool open_stages(struct rnnd__cuda *cuda)
{
    for (int i = 0; i < RNND__STAGES; i++) {
        struct rnnd__stage *s = &cuda->stage[i];
        if (!rnnd__cuda_ok(
                cuda,
                cudaHostAlloc((void **)&s->host, stage_bytes, cudaHostAllocDefault),
                "pinned memory") ||
            !rnnd__cuda_ok(cuda,
                           cudaEventCreateWithFlags(&s->used, cudaEventDisableTiming),
                           "an event"))
            return false;
    }
    return rnnd__cuda_ok(cuda,
                         cudaHostAlloc((void **)&cuda->answer, sizeof *cuda->answer,
                                       cudaHostAllocDefault),
                         "pinned memory") &&
           rnnd__cuda_ok(cuda,
                         cudaHostAlloc((void **)&cuda->lost_seen, sizeof(uint32_t),
                                       cudaHostAllocDefault),
                         "pinned memory");
}

/* The workspace that cuBLAS asks for on these devices. Setting the stream forgets
   it. */
static bool open_blas(struct rnnd__cuda *cuda)
{
    size_t bytes = (size_t)(cuda->arch >= 90 ? 32 : 4) << 20;
    return rnnd__cublas_ok(cuda, cublasCreate(&cuda->blas), "cuBLAS") &&
           rnnd__cublas_ok(cuda, cublasSetStream(cuda->blas, cuda->stream), "cuBLAS") &&
           rnnd__cuda_ok(cuda, cudaMalloc(&cuda->workspace, bytes),
                         "cuBLAS's workspace") &&
           rnnd__cublas_ok(cuda, cublasSetWorkspace(cuda->blas, cuda->workspace, bytes),
                           "cuBLAS's workspace");
}

static bool open_parts(struct rnnd__cuda *cuda)
{
    if (!learn_device(cuda))
        return false;
    if (cuda->precision != RNND_FP32 && cuda->arch < 80) {
        cuda->base.status = RNND__CUDA_EUSAGE;
        snprintf(
            cuda->base.error, sizeof cuda->base.error,
            "--precision %s needs a GPU of sm_80 or later, cuda %d is sm_%d: use fp32",
            precision_name(cuda->precision), cuda->device, cuda->arch);
        return false;
    }
    return rnnd__cuda_ok(
               cuda, cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking),
               "a stream") &&
           rnnd__cuda_ok(
               cuda,
               cudaMalloc((void **)&cuda->partial, RNND__PARTIALS * sizeof(double)),
               "memory") &&
           rnnd__cuda_ok(cuda, cudaMalloc((void **)&cuda->lost, sizeof(uint32_t)),
                         "memory") &&
           rnnd__cuda_ok(cuda,
                         cudaMemsetAsync(cuda->lost, 0, sizeof(uint32_t), cuda->stream),
                         "memory") &&
           open_stages(cuda) && open_blas(cuda) && rnnd__graphs_open(cuda);
}

static int cuda_open(const struct rnnd__backend_config *config,
                     struct rnnd_backend **out, char *error)
{
    struct rnnd__cuda *cuda = (struct rnnd__cuda *)calloc(1, sizeof *cuda);
    if (!cuda) {
        snprintf(error, 256, "cuda: out of memory");
        return RNND__CUDA_EDEVICE;
    }
    cuda->base.ops = &cuda_ops;
    cuda->device = config->device;
    cuda->precision = (enum rnnd_precision)config->precision;
    cuda->path = (enum rnnd_rnn_path)config->rnn_path;
    cuda->gates = getenv("RNND_CUDA_GATES");
    cuda->compute = compute_type(cuda->precision);
    if (!open_parts(cuda)) {
        int status = cuda->base.status;
        memcpy(error, cuda->base.error, sizeof cuda->base.error);
        cuda_close(&cuda->base);
        return status;
    }
    *out = &cuda->base;
    return 0;
}

/* ---- what devices there are */

/* Any error means that there is none: a missing or old driver is reported in many
   ways. */
static int device_count(int *count, char *error)
{
    int n = 0;
    cudaError_t status = cudaGetDeviceCount(&n);
    (void)cudaGetLastError();
    if (status == cudaSuccess && n > 0) {
        *count = n;
        return 0;
    }
    snprintf(error, 256, "no CUDA device: %s",
             status == cudaSuccess ? "none is visible" : cudaGetErrorString(status));
    return RNND__CUDA_EDEVICE;
}

static int device_info(int device, struct rnnd__cuda_device *out, char *error)
{
    cudaDeviceProp p;
    cudaError_t status = cudaGetDeviceProperties(&p, device);
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
        snprintf(error, 256, "cuda %d: %s", device, cudaGetErrorString(status));
        return RNND__CUDA_EDEVICE;
    }
    struct rnnd__cuda_device d = {};
    snprintf(d.name, sizeof d.name, "%s", p.name);
    for (int i = 0; i < 16; i++)
        snprintf(d.identity + 2 * i, 3, "%02x", (unsigned char)p.uuid.bytes[i]);
    d.arch = 10 * p.major + p.minor;
    d.multiprocessors = p.multiProcessorCount;
    d.memory = (int64_t)p.totalGlobalMem;
    *out = d;
    return 0;
}

/* ---- when work ran */

static int times_start(struct rnnd_backend *be, char *error)
{
    if (rnnd__times_start(rnnd__cuda_of(be)))
        return 0;
    snprintf(error, 256, "%s", be->status < 0 ? be->error : "cuda: out of memory");
    return RNND__CUDA_EDEVICE;
}

static int times_mark(struct rnnd_backend *be)
{
    return rnnd__times_mark(rnnd__cuda_of(be), rnnd__cuda_of(be)->stream);
}

static void times_span(struct rnnd_backend *be, int begin, int end, uint64_t tag)
{
    rnnd__times_span(rnnd__cuda_of(be), begin, end, tag);
}

static int times_take(struct rnnd_backend *be, bool wait, uint64_t *tag, double at[2])
{
    return rnnd__times_take(rnnd__cuda_of(be), wait, tag, at);
}

#include "comm_nccl.h"

extern "C" __attribute__((visibility("default")))
const struct rnnd__cuda_plugin rnnd__cuda_plugin = {
    .abi = RNND_CUDA_PLUGIN_ABI,
    .ops_size = sizeof(struct rnnd__backend_ops),
    .device_count = device_count,
    .device_info = device_info,
    .open = cuda_open,
    .times_start = times_start,
    .times_mark = times_mark,
    .times_span = times_span,
    .times_take = times_take,
    .nccl_open = rnnd__nccl_open,
    .nccl_id = rnnd__nccl_id,
    .nccl_join = rnnd__nccl_join,
    .nccl_poll = rnnd__nccl_poll,
    .nccl_sum_begin = rnnd__nccl_sum_begin,
    .nccl_sum_poll = rnnd__nccl_sum_poll,
    .nccl_leave = rnnd__nccl_leave,
    .nccl_abort = rnnd__nccl_abort,
    .nccl_close = rnnd__nccl_close,
};
