/*
 * ctc.cu - connectionist temporal classification: a block takes a sequence at a time,
 * its threads the labels of the string, and a barrier separates steps.
 *
 * The numbers are those of kernels/cpu/simd_ctc.h, m 2^e in two doubles: products and
 * sums of a lattice need no exp and no log. Blocks have a lattice each in the scratch,
 * and leave a loss for every sequence; these are added in one order.
 */
#include <math.h>
#include <string.h>

#include "ctc.h"
#include "cuda_backend.cuh"

struct ctc_job {
    float *scores;
    const int32_t *label, *first, *count, *len;
    const int64_t *off;
    int64_t N, cols;
    /* [N], and doubles of each block behind it */
    double *loss, *work;
    int64_t share;
    bool gradient;
};

/* ---- numbers m 2^e, 1 <= m < 2 */

struct wide {
    double m, e;
};

__device__ __forceinline__ wide wide_none()
{
    return {0, -1e300};
}

/* 2^n for a whole n of at most 1000; from 2^-1000 down, the same. */
__device__ __forceinline__ double power_of(double n)
{
    uint64_t bits = (uint64_t)((int64_t)(n > -1000 ? n : -1000) + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* s 2^e for s = 0 or s >= 2^-1000. */
__device__ __forceinline__ wide wide_make(double s, double e)
{
    uint64_t bits;
    double m;
    if (s == 0)
        return wide_none();
    memcpy(&bits, &s, sizeof bits);
    double high = (double)((int64_t)(bits >> 52) - 1023);
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&m, &bits, sizeof m);
    return {m, e + high};
}

__device__ __forceinline__ wide wide_times(wide a, wide b)
{
    return wide_make(a.m * b.m, a.e + b.e);
}

__device__ __forceinline__ wide wide_sum(wide a, wide b)
{
    double top = a.e > b.e ? a.e : b.e;
    return wide_make(a.m * power_of(a.e - top) + b.m * power_of(b.e - top), top);
}

/* e^y, y <= 0 */
__device__ __forceinline__ wide wide_exp(double y)
{
    double n = rint(y * 0x1.71547652b82fep0);
    double r = y - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33;
    /* so large that nothing is left of it */
    if (n < -0x1p51)
        r = 0;
    return wide_make(exp(r), n);
}

/* ---- the lattice of a sequence */

struct lattice {
    const ctc_job *job;
    const int32_t *label;
    int64_t T, L, j, stride, row, block;
    double *beta, *next, *posterior;
    /* of each label the place of the next of its class, -1 = none, and whether it is
       the first of it */
    int64_t *chain, *leads;
    double *top, *sum, *rows, *first;
};

__device__ lattice lattice_of(const ctc_job &job, int64_t j)
{
    lattice c;
    double *at = job.work + (int64_t)blockIdx.x * job.share;
    c.job = &job;
    c.label = job.label + job.first[j];
    c.T = job.len[j];
    c.L = job.count[j];
    c.j = j;
    c.stride = rnnd__ctc_stride(c.L);
    c.row = rnnd__ctc_row(c.L);
    c.block = rnnd__ctc_block(c.T, c.L);
    c.beta = at;
    c.next = at + c.row;
    c.posterior = at + 2 * c.row;
    c.chain = (int64_t *)(at + 3 * c.row);
    c.leads = c.chain + c.stride;
    c.top = at + 4 * c.row;
    c.sum = c.top + c.T;
    c.rows = c.sum + c.T;
    c.first = c.rows + c.block * c.row;
    return c;
}

__device__ __forceinline__ wide get(const lattice &c, const double *row, int kind,
                                    int64_t i)
{
    return {row[2 * kind * c.stride + i], row[(2 * kind + 1) * c.stride + i]};
}

__device__ __forceinline__ void put(const lattice &c, double *row, int kind, int64_t i,
                                    wide x)
{
    row[2 * kind * c.stride + i] = x.m;
    row[(2 * kind + 1) * c.stride + i] = x.e;
}

/* Kinds of numbers in a row. */
enum { LABEL, BLANK };

__device__ __forceinline__ float *scores_at(const lattice &c, int64_t t)
{
    return c.job->scores + (c.job->off[t] + c.j) * c.job->cols;
}

/* The probability of an output at a step, times the sum. */
__device__ __forceinline__ wide output_at(const lattice &c, int64_t t, int32_t k)
{
    return wide_exp((double)scores_at(c, t)[k] - c.top[t]);
}

/* Label i may follow label i-1 without a blank where they differ. */
__device__ __forceinline__ bool apart(const lattice &c, int64_t i)
{
    return i > 0 && i < c.L && c.label[i] != c.label[i - 1];
}

/* The largest score of each step, and the sum of the exps of all less that, by a warp;
   returns the sum of the logs, NaN where a score is not finite. */
__device__ double measure(const lattice &c)
{
    int64_t cols = c.job->cols, lane = threadIdx.x % 32;
    double logs = 0;
    for (int64_t t = threadIdx.x / 32; t < c.T; t += blockDim.x / 32) {
        const float *x = scores_at(c, t);
        float top = -INFINITY;
        double sum = 0;
        for (int64_t k = lane; k < cols; k += 32)
            top = fmaxf(top, x[k]);
        UNROLL
        for (int step = 16; step > 0; step /= 2)
            top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
        for (int64_t k = lane; k < cols; k += 32)
            sum += expf(x[k] - top) + x[k] * 0.0f;
        UNROLL
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) {
            c.top[t] = top;
            c.sum[t] = sum;
            logs += log(sum);
        }
    }
    return block_sum(logs);
}

/* ---- forward */

__device__ void forward_first(const lattice &c, double *row)
{
    for (int64_t i = threadIdx.x; i <= c.L; i += blockDim.x) {
        put(c, row, BLANK, i, i == 0 ? output_at(c, 0, 0) : wide_none());
        put(c, row, LABEL, i,
            i == 0 && c.L > 0 ? output_at(c, 0, c.label[0]) : wide_none());
    }
    __syncthreads();
}

__device__ void forward_step(const lattice &c, double *to, const double *from,
                             int64_t t)
{
    wide blank = output_at(c, t, 0);
    for (int64_t i = threadIdx.x; i <= c.L; i += blockDim.x) {
        wide gap = get(c, from, BLANK, i);
        wide before = i > 0 ? get(c, from, LABEL, i - 1) : wide_none();
        put(c, to, BLANK, i, wide_times(wide_sum(gap, before), blank));
        if (i == c.L)
            continue;
        wide all = wide_sum(get(c, from, LABEL, i), gap);
        if (apart(c, i))
            all = wide_sum(all, before);
        put(c, to, LABEL, i, wide_times(all, output_at(c, t, c.label[i])));
    }
    if (!PLANTED(23, "a step of a lattice is read before all of it is written"))
        __syncthreads();
}

/* Rows of the block that begins at step t, of which the first is there. */
__device__ void forward_block(const lattice &c, int64_t t)
{
    int64_t n = c.T - t < c.block ? c.T - t : c.block;
    for (int64_t i = 1; i < n; i++)
        forward_step(c, c.rows + i * c.row, c.rows + (i - 1) * c.row, t + i);
}

__device__ void copy_row(const lattice &c, double *to, const double *from)
{
    for (int64_t i = threadIdx.x; i < c.row; i += blockDim.x)
        to[i] = from[i];
    __syncthreads();
}

/* All blocks; the rows of the last one stay. Returns the probability of all paths. */
__device__ wide forward_all(const lattice &c)
{
    forward_first(c, c.rows);
    for (int64_t t = 0; t < c.T; t += c.block) {
        double *first = c.first + t / c.block * c.row;
        if (t > 0) {
            forward_step(c, first, c.rows + (c.block - 1) * c.row, t);
            copy_row(c, c.rows, first);
        } else if (c.block < c.T) {
            copy_row(c, first, c.rows);
        }
        forward_block(c, t);
    }
    const double *last = c.rows + (c.T - 1) % c.block * c.row;
    return wide_sum(get(c, last, BLANK, c.L),
                    c.L > 0 ? get(c, last, LABEL, c.L - 1) : wide_none());
}

/* ---- backward */

__device__ void backward_first(const lattice &c)
{
    for (int64_t i = threadIdx.x; i <= c.L; i += blockDim.x) {
        int64_t before = i - 1, after = i + 1;
        wide one = {1, 0};
        put(c, c.beta, BLANK, i, i == c.L ? one : wide_none());
        put(c, c.beta, LABEL, i, after == c.L ? one : wide_none());
        if (i == c.L)
            continue;
        while (before >= 0 && c.label[before] != c.label[i])
            before--;
        while (after < c.L && c.label[after] != c.label[i])
            after++;
        c.chain[i] = after < c.L ? after : -1;
        c.leads[i] = before < 0;
    }
    __syncthreads();
}

/* The posteriors at a step, of the blanks their sum, all over that of all paths; beta
   times the probabilities of the step becomes `next`. */
__device__ double meet(const lattice &c, const double *alpha, wide all, int64_t t)
{
    double blanks = 0;
    wide blank = output_at(c, t, 0);
    for (int64_t i = threadIdx.x; i <= c.L; i += blockDim.x) {
        wide a = get(c, alpha, BLANK, i), b = get(c, c.beta, BLANK, i);
        blanks += a.m * b.m / all.m * power_of(a.e + b.e - all.e);
        put(c, c.next, BLANK, i, wide_times(b, blank));
        if (i == c.L)
            continue;
        a = get(c, alpha, LABEL, i);
        b = get(c, c.beta, LABEL, i);
        c.posterior[i] = a.m * b.m / all.m * power_of(a.e + b.e - all.e);
        put(c, c.next, LABEL, i, wide_times(b, output_at(c, t, c.label[i])));
    }
    return block_sum(blanks);
}

/* beta of the step before. */
__device__ void backward_step(const lattice &c)
{
    for (int64_t i = threadIdx.x; i <= c.L; i += blockDim.x) {
        wide gap = get(c, c.next, BLANK, i);
        if (i == c.L) {
            put(c, c.beta, BLANK, i, gap);
            continue;
        }
        wide label = get(c, c.next, LABEL, i);
        wide all = wide_sum(label, get(c, c.next, BLANK, i + 1));
        if (apart(c, i + 1))
            all = wide_sum(all, get(c, c.next, LABEL, i + 1));
        put(c, c.beta, BLANK, i, wide_sum(gap, label));
        put(c, c.beta, LABEL, i, all);
    }
}

/* The gradient of the scores of a step: softmax less posteriors, over the labels. The
   first label of a class sums those of all. Where the model is sure, both are near 1:
   only their difference is rounded to a float. */
__device__ void put_gradient(const lattice &c, int64_t t, double blanks)
{
    double scale = 1. / (double)(c.L > 0 ? c.L : 1), total = c.sum[t];
    float *x = scores_at(c, t), top = (float)c.top[t];
    float factor = (float)(scale / total);
    for (int64_t k = threadIdx.x; k < c.job->cols; k += blockDim.x) {
        float e = expf(x[k] - top);
        x[k] = k == 0 ? (float)((double)e - total * blanks) : e;
    }
    if (!PLANTED(24, "posteriors are taken from scores that are no softmax yet"))
        __syncthreads();
    for (int64_t i = threadIdx.x; i < c.L; i += blockDim.x) {
        double sum = 0;
        if (!c.leads[i])
            continue;
        for (int64_t at = i; at >= 0; at = c.chain[at])
            sum += c.posterior[at];
        float *own = x + c.label[i];
        *own = (float)((double)*own - total * sum);
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; k < c.job->cols; k += blockDim.x)
        x[k] *= factor;
    __syncthreads();
}

__device__ void backward_all(const lattice &c, wide all)
{
    int64_t start = (c.T - 1) / c.block * c.block;
    backward_first(c);
    for (int64_t t = c.T - 1; t >= 0; t--) {
        if (t < start) {
            start -= c.block;
            copy_row(c, c.rows, c.first + start / c.block * c.row);
            forward_block(c, start);
        }
        double blanks = meet(c, c.rows + (t - start) * c.row, all, t);
        backward_step(c);
        put_gradient(c, t, blanks);
    }
}

/* ---- sequences */

/* All scores of a sequence. */
__device__ void fill(const ctc_job &job, int64_t j, float value)
{
    for (int64_t t = 0; t < job.len[j]; t++) {
        float *x = job.scores + (job.off[t] + j) * job.cols;
        for (int64_t k = threadIdx.x; k < job.cols; k += blockDim.x)
            x[k] = value;
    }
}

__device__ double sequence_loss(const lattice &c)
{
    if (c.T == 0)
        return c.L == 0 ? 0 : (double)INFINITY;
    double logs = measure(c);
    if (logs != logs) {
        fill(*c.job, c.j, __uint_as_float(0x7fc00000u));
        return logs;
    }
    wide all = forward_all(c);
    if (all.m == 0) {
        fill(*c.job, c.j, __uint_as_float(0x7fc00000u));
        return INFINITY;
    }
    if (c.job->gradient)
        backward_all(c, all);
    return logs - (log(all.m) + all.e * 0.69314718055994530942);
}

/* A sequence that is no target has no gradient. */
__global__ void __launch_bounds__(256) ctc_sequences(ctc_job job)
{
    for (int64_t j = blockIdx.x; j < job.N; j += gridDim.x) {
        if (job.count[j] < 0) {
            fill(job, j, 0);
            continue;
        }
        double loss = sequence_loss(lattice_of(job, j));
        if (threadIdx.x == 0)
            job.loss[j] = loss;
        __syncthreads(); /* before the lattice is used again */
    }
}

/* One block: losses over their labels, in one order. */
__global__ void __launch_bounds__(256)
    ctc_total(double *partial, const double *loss, const int32_t *count, int64_t N)
{
    double sum = 0, targets = 0;
    for (int64_t j = threadIdx.x; j < N; j += blockDim.x)
        if (count[j] >= 0) {
            sum += loss[j] / (count[j] > 0 ? count[j] : 1);
            targets += 1;
        }
    sum = block_sum(sum);
    targets = block_sum(targets);
    if (threadIdx.x == 0) {
        partial[0] = sum;
        partial[1] = targets;
        partial[2] = 0;
        partial[3] = targets;
    }
}

/* ---- launches */

/* Doubles that all lattices take at most, unless one takes more: 1 GiB. */
static const int64_t most_work = (int64_t)1 << 27;

/* Blocks that are worth their memory: two for each multiprocessor. */
static int64_t wanted_blocks(const struct rnnd__cuda *cuda, int64_t N)
{
    return rnnd__most(1, rnnd__least(N, 2 * (int64_t)cuda->multiprocessors));
}

size_t rnnd__cuda_ctc_scratch(struct rnnd_backend *be, int64_t N, int64_t T,
                              int64_t longest)
{
    int64_t share = rnnd__ctc_work(T, longest);
    int64_t all = wanted_blocks(rnnd__cuda_of(be), N) * share;
    return (size_t)(N + rnnd__least(all, rnnd__most(most_work, share))) *
           sizeof(double);
}

void rnnd__cuda_ctc(struct rnnd_backend *be, const struct rnnd__ctc *ctc,
                    struct rnnd__buf scores, struct rnnd__buf sums)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    const struct rnnd__packed *batch = ctc->batch;
    const struct rnnd__strings *s = ctc->strings;
    double *scratch = (double *)ctc->scratch.dev;
    struct ctc_job job = {rnnd__floats(scores),
                          rnnd__ints(s->label),
                          rnnd__ints(s->first),
                          rnnd__ints(s->count),
                          rnnd__ints(batch->d_len),
                          rnnd__longs(batch->d_off),
                          batch->N,
                          ctc->cols,
                          scratch,
                          scratch + batch->N,
                          rnnd__ctc_work(batch->T, s->longest),
                          ctc->gradient};
    unsigned threads = 32;
    int64_t fit = rnnd__most(1, most_work / job.share);
    unsigned blocks = (unsigned)rnnd__least(wanted_blocks(cuda, batch->N), fit);
    if (batch->N == 0 || !rnnd__cuda_sound(cuda))
        return;
    while (threads < 256 && threads < s->longest + 1)
        threads *= 2;
    bool sound = rnnd__cuda_ok(
        cuda, launch(ctc_sequences, dim3(blocks), dim3(threads), 0, cuda->stream, job),
        "ctc");
    if (sound &&
        rnnd__cuda_ok(cuda,
                      launch(ctc_total, dim3(1), dim3(RNND__BLOCK), 0, cuda->stream,
                             cuda->partial, job.loss, job.count, job.N),
                      "ctc"))
        rnnd__cuda_add_sums(cuda, 1, sums);
}
