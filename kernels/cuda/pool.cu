/*
 * pool.cu - pooling over time, and its gradient: a thread for each column of each
 * sequence.
 */
#include "cuda_backend.cuh"

struct rnnd__pool_shape {
    enum rnnd_pool pool;
    /* cols = D*H */
    int64_t N, H, cols;
    const int64_t *off;
    const int32_t *len;
};

static rnnd__pool_shape pool_shape(const struct rnnd__pooling *s)
{
    return {s->pool,
            s->batch->N,
            s->H,
            s->D * s->H,
            rnnd__longs(s->batch->d_off),
            rnnd__ints(s->batch->d_len)};
}

/* The step that holds the last state of a column's direction: forward ends at the last
   step, reverse at the first. */
__device__ __forceinline__ int64_t last_step(const rnnd__pool_shape &s, rnnd__place p,
                                             int64_t len)
{
    return p.col < s.H ? len - 1 : 0;
}

__device__ __forceinline__ float value_at(const rnnd__pool_shape &s, const float *y,
                                          rnnd__place p, int64_t t)
{
    return y[(__ldg(s.off + t) + p.row) * s.cols + p.col];
}

/* The first of the largest values; a NaN is larger than any number. */
__device__ __forceinline__ float pool_max(const rnnd__pool_shape &s, const float *y,
                                          rnnd__place p, int64_t len, int32_t *at)
{
    float best = value_at(s, y, p, 0);
    *at = 0;
    for (int64_t t = 1; t < len; t++) {
        float v = value_at(s, y, p, t);
        if (v > best || (v != v && best == best)) {
            best = v;
            *at = (int32_t)t;
        }
    }
    return best;
}

__device__ __forceinline__ float pool_mean(const rnnd__pool_shape &s, const float *y,
                                           rnnd__place p, int64_t len)
{
    double sum = 0;
    for (int64_t t = 0; t < len; t++)
        sum += value_at(s, y, p, t);
    return (float)(sum / (double)len);
}

__global__ void __launch_bounds__(RNND__BLOCK)
    pool_columns(float *out, int32_t *argmax, const float *y, rnnd__pool_shape s)
{
    for (int64_t i = thread_index(); i < s.N * s.cols; i += thread_count()) {
        rnnd__place p = place_of(i, s.cols);
        int64_t len = s.len[p.row];
        int32_t at = 0;
        if (len == 0)
            out[i] = 0;
        else if (s.pool == RNND_POOL_LAST)
            out[i] = value_at(s, y, p, last_step(s, p, len));
        else if (s.pool == RNND_POOL_MEAN)
            out[i] = pool_mean(s, y, p, len);
        else
            out[i] = pool_max(s, y, p, len, &at);
        if (s.pool == RNND_POOL_MAX)
            argmax[i] = at;
    }
}

void rnnd__cuda_pool(struct rnnd_backend *be, const struct rnnd__pooling *s,
                     struct rnnd__buf out, struct rnnd__buf argmax, struct rnnd__buf y)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    rnnd__pool_shape shape = pool_shape(s);
    if (shape.N > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(pool_columns, rnnd__blocks(shape.N * shape.cols),
                             dim3(RNND__BLOCK), 0, cuda->stream, rnnd__floats(out),
                             rnnd__ints(argmax), rnnd__floats(y), shape),
                      "pooling");
}

__global__ void __launch_bounds__(RNND__BLOCK)
    pool_columns_backward(float *dy, const float *dout, const int32_t *argmax,
                          rnnd__pool_shape s)
{
    for (int64_t i = thread_index(); i < s.N * s.cols; i += thread_count()) {
        rnnd__place p = place_of(i, s.cols);
        int64_t len = s.len[p.row], at = 0;
        float d = dout[i];
        if (s.pool == RNND_POOL_LAST)
            at = last_step(s, p, len);
        else if (s.pool == RNND_POOL_MAX)
            at = argmax[i];
        else if (len > 0)
            d /= (float)len;
        for (int64_t t = 0; t < len; t++)
            dy[(__ldg(s.off + t) + p.row) * s.cols + p.col] =
                s.pool == RNND_POOL_MEAN || t == at ? d : 0;
    }
}

void rnnd__cuda_pool_backward(struct rnnd_backend *be, const struct rnnd__pooling *s,
                              struct rnnd__buf dy, struct rnnd__buf dout,
                              struct rnnd__buf argmax)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    rnnd__pool_shape shape = pool_shape(s);
    if (shape.N > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(pool_columns_backward, rnnd__blocks(shape.N * shape.cols),
                             dim3(RNND__BLOCK), 0, cuda->stream, rnnd__floats(dy),
                             rnnd__floats(dout), rnnd__ints(argmax), shape),
                      "pooling");
}
