/*
 * vector.cu - the norm and the optimizers over flat vectors, in one pass over memory
 * each.
 */
#include "cuda_backend.cuh"

#include <math.h>

/* ---- the norm, in two stages */

__global__ void __launch_bounds__(RNND__BLOCK)
    sum_squares(double *partial, const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = thread_index(); i < n; i += thread_count())
        sum += (double)x[i] * x[i];
    double total = block_sum(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = total;
}

__global__ void __launch_bounds__(RNND__BLOCK) sum_partial(double *out, int parts)
{
    double sum = 0;
    for (int p = (int)threadIdx.x; p < parts; p += (int)blockDim.x)
        sum += out[p];
    /* Its barriers come between the reads and the write. */
    double total = block_sum(sum);
    if (threadIdx.x == 0)
        out[0] = total;
}

int rnnd__cuda_sum_sq(struct rnnd_backend *be, int64_t n, double *result,
                      struct rnnd__buf x)
{
    const int64_t each = 16 * RNND__BLOCK; /* elements that are worth a block */
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    int64_t blocks =
        rnnd__least(rnnd__most(1, rnnd__ratio_up(n, each)), RNND__SUM_BLOCKS);
    if (rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(sum_squares, dim3((unsigned)blocks), dim3(RNND__BLOCK), 0,
                             cuda->stream, cuda->partial, rnnd__floats(x), n),
                      "norm");
    if (rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(sum_partial, dim3(1), dim3(RNND__BLOCK), 0, cuda->stream,
                             cuda->partial, (int)blocks),
                      "norm");
    if (rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      cudaMemcpyAsync(cuda->answer, cuda->partial, sizeof(double),
                                      cudaMemcpyDeviceToHost, cuda->stream),
                      "norm");
    int status = rnnd__cuda_sync(be);
    if (PLANTED(10, "the host reads the device's memory"))
        *cuda->answer = *cuda->partial;
    if (status == 0)
        *result = *cuda->answer;
    return status;
}

/* ---- optimizers */

/* The scalars are rounded to float last. */
struct rnnd__sgd_floats {
    float lr, decay, gscale, keep;
    bool first;
};

__global__ void __launch_bounds__(RNND__BLOCK)
    update_sgd(float *w, const float *g, float *momentum, int64_t n, rnnd__sgd_floats s)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        float d = g[i] * s.gscale + s.decay * w[i];
        if (momentum)
            momentum[i] = d = s.first ? d : s.keep * momentum[i] + d;
        w[i] -= s.lr * d;
    }
}

void rnnd__cuda_sgd(struct rnnd_backend *be, const struct rnnd__sgd *s,
                    struct rnnd__buf w, struct rnnd__buf g, struct rnnd__buf momentum)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    rnnd__sgd_floats f = {(float)s->lr, (float)s->decay, (float)s->gscale,
                          (float)s->momentum, s->first};
    if (s->n > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(update_sgd, rnnd__blocks(s->n), dim3(RNND__BLOCK), 0,
                             cuda->stream, rnnd__floats(w), rnnd__floats(g),
                             rnnd__floats(momentum), s->n, f),
                      "sgd");
}

struct rnnd__adam_floats {
    float size, root, a, b, beta2, eps, gscale, to_g, to_w;
};

__global__ void __launch_bounds__(RNND__BLOCK)
    update_adam(float *w, const float *g, float *m, float *v, int64_t n,
                rnnd__adam_floats s)
{
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        float d = g[i] * s.gscale + s.to_g * w[i];
        float m1 = m[i] + (d - m[i]) * s.a, v1 = v[i] * s.beta2 + s.b * d * d;
        m[i] = m1;
        v[i] = v1;
        w[i] = w[i] * s.to_w - s.size * m1 / (sqrtf(v1) * s.root + s.eps);
    }
}

void rnnd__cuda_adam(struct rnnd_backend *be, const struct rnnd__adam *s,
                     struct rnnd__buf w, struct rnnd__buf g, struct rnnd__buf m,
                     struct rnnd__buf v)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    double bias1 = 1 - pow(s->beta1, (double)s->step);
    double bias2 = 1 - pow(s->beta2, (double)s->step);
    rnnd__adam_floats f = {
        .size = (float)(s->lr / bias1),
        .root = (float)(1 / sqrt(bias2)),
        .a = (float)(1 - s->beta1),
        .b = (float)(1 - s->beta2),
        .beta2 = (float)s->beta2,
        .eps = (float)s->eps,
        .gscale = (float)s->gscale,
        .to_g = s->decoupled ? 0 : (float)s->decay,
        .to_w = s->decoupled ? (float)(1 - s->lr * s->decay) : 1,
    };
    if (s->n > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(update_adam, rnnd__blocks(s->n), dim3(RNND__BLOCK), 0,
                             cuda->stream, rnnd__floats(w), rnnd__floats(g),
                             rnnd__floats(m), rnnd__floats(v), s->n, f),
                      "adam");
}
