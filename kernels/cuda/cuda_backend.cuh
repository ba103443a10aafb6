/*
 * cuda_backend.cuh - what the files of the CUDA back end share: its struct, its stream,
 * its products, and how a launch that failed is kept.
 *
 * Nothing outside kernels/cuda/ includes it. One process drives one device.
 */
#ifndef RNND_CUDA_BACKEND_CUH
#define RNND_CUDA_BACKEND_CUH

#include <cublas_v2.h>

#include "backend.h"
#include "dialect.cuh"
#include "plugin.h"

/* Statuses of lib/rnn_dist.h, which the plug-in does not see. */
enum { RNND__CUDA_EUSAGE = -2, RNND__CUDA_EDEVICE = -5, RNND__CUDA_ECOMM = -6 };

enum {
    /* threads of a block where nothing else is said */
    RNND__BLOCK = 256,
    /* Doubles that a sum in two stages may leave between them. */
    RNND__PARTIALS = 1 << 17,
    /* blocks of such a sum at most */
    RNND__SUM_BLOCKS = 1024,
    RNND__STAGES = 2,
    /* multiprocessors that a sum over ranks may hold */
    RNND__NCCL_CHANNELS = 4,
    /* words */
    RNND__GRAPH_KEY = 24
};

/* Pinned memory through which uploads pass, so that none of them waits for the
   device. */
struct rnnd__stage {
    char *host;
    /* when the device has read it */
    cudaEvent_t used;
};

struct rnnd__cuda {
    struct rnnd_backend base;
    int device, arch, multiprocessors;
    /* bytes of shared memory that a block may ask for */
    size_t shared;
    enum rnnd_precision precision;
    /* asked for */
    enum rnnd_rnn_path path;
    /* RNND_CUDA_GATES: of the persistent path, NULL = as it pays */
    const char *gates;
    /* a persistent launch was refused: there are no more */
    bool refused;
    cudaStream_t stream;
    cublasHandle_t blas;
    cublasComputeType_t compute;
    /* of cuBLAS: one size, so that it picks the same kernels */
    void *workspace;
    /* device [RNND__PARTIALS] */
    double *partial;
    /* pinned [1] */
    double *answer;
    /* device [1]: a block waited for one that did not come */
    uint32_t *lost;
    /* pinned [1] */
    uint32_t *lost_seen;
    /* a kernel that may say so was started since the last sync */
    bool watches;
    struct rnnd__stage stage[RNND__STAGES];
    /* the one being filled */
    int staging;
    size_t filled;
    /* NULL: none are made */
    struct rnnd__graphs *graphs;
    /* NULL: nobody wants to know when work ran */
    struct rnnd__times *times;
    char description[128];
};

static inline struct rnnd__cuda *rnnd__cuda_of(struct rnnd_backend *be)
{
    return (struct rnnd__cuda *)be;
}

static inline float *rnnd__floats(struct rnnd__buf buf)
{
    return (float *)buf.dev;
}

static inline int32_t *rnnd__ints(struct rnnd__buf buf)
{
    return (int32_t *)buf.dev;
}

static inline int64_t *rnnd__longs(struct rnnd__buf buf)
{
    return (int64_t *)buf.dev;
}

static inline int64_t rnnd__least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t rnnd__most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t rnnd__ratio_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Blocks for n elements, each thread taking every so-manieth: kernels loop. */
static inline dim3 rnnd__blocks(int64_t n)
{
    return dim3((unsigned)rnnd__least(rnnd__ratio_up(n, RNND__BLOCK), 1 << 20));
}

/* ---- inside kernels */

/* This thread among all of a launch, and how many those are. */
__device__ __forceinline__ int64_t thread_index()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ int64_t thread_count()
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* i = row * cols + col. */
struct rnnd__place {
    int64_t row, col;
};

__device__ __forceinline__ rnnd__place place_of(int64_t i, int64_t cols)
{
    if (((i | cols) >> 32) == 0) { /* the usual case, at a fifth of the price */
        uint32_t row = (uint32_t)i / (uint32_t)cols;
        return {row, (uint32_t)i - row * (uint32_t)cols};
    }
    int64_t row = i / cols;
    return {row, i - row * cols};
}

/* The step that a packed row belongs to: the last t with off[t] <= row. */
__device__ __forceinline__ int64_t step_of_row(const int64_t *off, int64_t T,
                                               int64_t row)
{
    int64_t low = 0, high = T;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (__ldg(off + middle) <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The sum over all threads of a block, whole warps, to all of them: in one fixed
   order. */
__device__ __forceinline__ double block_sum(double x)
{
    SHARED_ARRAY(double, warp_sum, [32]);
    UNROLL
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    if (threadIdx.x % 32 == 0)
        warp_sum[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    for (unsigned w = 0; w < blockDim.x / 32; w++)
        sum += warp_sum[w];
    __syncthreads(); /* before the array is used again */
    return sum;
}

/* ---- backend.cu */

/* Whether work may continue: false after a failure, which the next wait returns. */
static inline bool rnnd__cuda_sound(const struct rnnd__cuda *cuda)
{
    return cuda->base.status == 0;
}

/* Keep the first failure; false if there was one. */
bool rnnd__cuda_ok(struct rnnd__cuda *cuda, cudaError_t status, const char *what);
bool rnnd__cublas_ok(struct rnnd__cuda *cuda, cublasStatus_t status, const char *what);
/* sums (struct rnnd__sums) += [parts] of the four in cuda->partial. */
void rnnd__cuda_add_sums(struct rnnd__cuda *cuda, int parts, struct rnnd__buf sums);
int rnnd__cuda_download(struct rnnd_backend *, void *dst, struct rnnd__buf src,
                        size_t bytes);
void rnnd__cuda_copy(struct rnnd_backend *, struct rnnd__buf dst, struct rnnd__buf src,
                     size_t bytes);
void rnnd__cuda_zero(struct rnnd_backend *, struct rnnd__buf dst, size_t bytes);
int rnnd__cuda_sync(struct rnnd_backend *);

/* ---- graph.cu */

/* RNND_CUDA_GRAPHS=no: none are made, as where a capture has failed. */
bool rnnd__graphs_open(struct rnnd__cuda *cuda);
void rnnd__graphs_close(struct rnnd__cuda *cuda);
/* The entries of plugin.h, for any stream. */
bool rnnd__times_start(struct rnnd__cuda *cuda);
int rnnd__times_mark(struct rnnd__cuda *cuda, cudaStream_t stream);
void rnnd__times_span(struct rnnd__cuda *cuda, int begin, int end, uint64_t tag);
int rnnd__times_take(struct rnnd__cuda *cuda, bool wait, uint64_t *tag, double at[2]);
void rnnd__times_close(struct rnnd__cuda *cuda);
/* work(be, arg), which only launches, or the graph of it where the key has come before.
   The key holds all that the launches depend on, pointers too; its rest is 0. */
void rnnd__graph_run(struct rnnd__cuda *cuda, const int64_t (&key)[RNND__GRAPH_KEY],
                     void (*work)(struct rnnd_backend *, const void *arg),
                     const void *arg);

/* ---- the entries of the table, by file */

/* matrix.cu */
void rnnd__cuda_matmul(struct rnnd_backend *, const struct rnnd__matmul *,
                       struct rnnd__buf C, struct rnnd__buf A, struct rnnd__buf B);
void rnnd__cuda_add_bias(struct rnnd_backend *, int64_t rows, int64_t cols,
                         struct rnnd__buf y, struct rnnd__buf bias);
void rnnd__cuda_col_sum(struct rnnd_backend *, int64_t rows, int64_t cols,
                        struct rnnd__buf out, struct rnnd__buf x);
/* The same of rows that are ld apart. */
void rnnd__cuda_sum_rows(struct rnnd__cuda *, int64_t rows, int64_t cols, int64_t ld,
                         float *out, const float *x);
/* rnn.cu */
size_t rnnd__cuda_rnn_scratch(struct rnnd_backend *, enum rnnd_cell, int64_t H,
                              int64_t N, int64_t R);
void rnnd__cuda_rnn_forward(struct rnnd_backend *, const struct rnnd__rnn *);
void rnnd__cuda_rnn_backward(struct rnnd_backend *, const struct rnnd__rnn *);
void rnnd__cuda_rnn_explain(struct rnnd_backend *, enum rnnd_cell, int64_t H, int64_t N,
                            char *text);
/* embed.cu */
void rnnd__cuda_embed_gather(struct rnnd_backend *, int64_t R, int64_t E,
                             struct rnnd__buf out, struct rnnd__buf table,
                             struct rnnd__buf token);
void rnnd__cuda_embed_scatter_add(struct rnnd_backend *, int64_t E,
                                  struct rnnd__buf dtable, struct rnnd__buf dx,
                                  const struct rnnd__segments *);
/* pool.cu */
void rnnd__cuda_pool(struct rnnd_backend *, const struct rnnd__pooling *,
                     struct rnnd__buf out, struct rnnd__buf argmax, struct rnnd__buf y);
void rnnd__cuda_pool_backward(struct rnnd_backend *, const struct rnnd__pooling *,
                              struct rnnd__buf dy, struct rnnd__buf dout,
                              struct rnnd__buf argmax);
/* dropout.cu */
void rnnd__cuda_dropout(struct rnnd_backend *, const struct rnnd__dropout *,
                        struct rnnd__buf out, struct rnnd__buf in);
/* loss.cu */
void rnnd__cuda_softmax_ce(struct rnnd_backend *, const struct rnnd__loss *);
void rnnd__cuda_mse(struct rnnd_backend *, const struct rnnd__loss *);
void rnnd__cuda_bce(struct rnnd_backend *, const struct rnnd__loss *);
/* ctc.cu */
size_t rnnd__cuda_ctc_scratch(struct rnnd_backend *, int64_t N, int64_t T,
                              int64_t longest);
void rnnd__cuda_ctc(struct rnnd_backend *, const struct rnnd__ctc *,
                    struct rnnd__buf scores, struct rnnd__buf sums);
/* vector.cu */
int rnnd__cuda_sum_sq(struct rnnd_backend *, int64_t n, double *result,
                      struct rnnd__buf x);
void rnnd__cuda_sgd(struct rnnd_backend *, const struct rnnd__sgd *, struct rnnd__buf w,
                    struct rnnd__buf g, struct rnnd__buf momentum);
void rnnd__cuda_adam(struct rnnd_backend *, const struct rnnd__adam *,
                     struct rnnd__buf w, struct rnnd__buf g, struct rnnd__buf m,
                     struct rnnd__buf v);

#endif
