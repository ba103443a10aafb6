/*
 * vec.h - vectors of floats as wide as the instruction set that a file is compiled for.
 *
 * GCC's vector extensions carry the arithmetic, so one source serves SSE2, AVX2,
 * AVX-512 and others; only partial loads and the clamps use intrinsics. exp,
 * sigmoid, tanh and log1p are accurate to 2 units in the last place and propagate NaN.
 * Included by simd.c only.
 */
#ifndef RNND_VEC_H
#define RNND_VEC_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VL 16
#elif defined(__AVX2__)
#define VL 8
#else
#define VL 4
#endif

#define INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));
typedef uint32_t vu __attribute__((vector_size(4 * VL)));
typedef float vf_any __attribute__((vector_size(4 * VL), aligned(4), may_alias));

INLINE vf vset(float x)
{
    return x - (vf){0};
}

INLINE vf vload(const float *p)
{
    return *(const vf_any *)p;
}

INLINE void vstore(float *p, vf x)
{
    *(vf_any *)p = x;
}

/* The first m elements, 0 < m < VL; the others are 0 and not touched. */
#if defined(__AVX512F__)
INLINE vf vload_part(const float *p, int m)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << m) - 1), p);
}

INLINE void vstore_part(float *p, vf x, int m)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << m) - 1), x);
}
#elif defined(__AVX2__)
INLINE __m256i vmask(int m)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(m), lane);
}

INLINE vf vload_part(const float *p, int m)
{
    return _mm256_maskload_ps(p, vmask(m));
}

INLINE void vstore_part(float *p, vf x, int m)
{
    _mm256_maskstore_ps(p, vmask(m), x);
}
#else
INLINE vf vload_part(const float *p, int m)
{
    vf x = {0};
    for (int i = 0; i < m; i++)
        x[i] = p[i];
    return x;
}

INLINE void vstore_part(float *p, vf x, int m)
{
    for (int i = 0; i < m; i++)
        p[i] = x[i];
}
#endif

/* m elements, 0 < m <= VL. */
INLINE vf vget(const float *p, int m)
{
    return m == VL ? vload(p) : vload_part(p, m);
}

INLINE void vput(float *p, vf x, int m)
{
    if (m == VL)
        vstore(p, x);
    else
        vstore_part(p, x, m);
}

/* The m elements p[i*step]; the others are 0. */
INLINE vf vgather(const float *p, int64_t step, int m)
{
#if defined(__AVX512F__)
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return _mm512_mask_i32gather_ps(vset(0), (__mmask16)((1u << m) - 1),
                                    (__m512i)(lane * (int32_t)step), p, 4);
#elif defined(__AVX2__)
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return _mm256_mask_i32gather_ps(vset(0), p, (__m256i)(lane * (int32_t)step),
                                    (__m256)vmask(m), 4);
#else
    vf x = vset(0);
    for (int i = 0; i < m; i++)
        x[i] = p[i * step];
    return x;
#endif
}

INLINE vf vselect(vi mask, vf yes, vf no)
{
    return (vf)(((vi)yes & mask) | ((vi)no & ~mask));
}

/* The larger of x and a bound; NaN where x is NaN (the processor's max gives its second
   operand then). */
INLINE vf vat_least(vf x, vf bound)
{
#if defined(__AVX512F__)
    return _mm512_max_ps(bound, x);
#elif defined(__AVX2__)
    return _mm256_max_ps(bound, x);
#elif defined(__x86_64__)
    return _mm_max_ps(bound, x);
#else
    return vselect(x < bound, bound, x);
#endif
}

INLINE vf vat_most(vf x, vf bound)
{
#if defined(__AVX512F__)
    return _mm512_min_ps(bound, x);
#elif defined(__AVX2__)
    return _mm256_min_ps(bound, x);
#elif defined(__x86_64__)
    return _mm_min_ps(bound, x);
#else
    return vselect(x > bound, bound, x);
#endif
}

INLINE vf vabs(vf x)
{
    return (vf)((vi)x & 0x7fffffff);
}

INLINE vf vcopysign(vf x, vf sign)
{
    return (vf)(((vi)x & 0x7fffffff) | ((vi)sign & INT32_MIN));
}

/* Sum and maximum over the lanes, in a fixed order. */
INLINE double vsum(vf x)
{
    double s = 0;
    for (int i = 0; i < VL; i++)
        s += x[i];
    return s;
}

INLINE float vmax(vf x)
{
    float m = x[0];
    for (int i = 1; i < VL; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

/* e^x = 2^n (1 + p), |x| at most 88: *scale = 2^n, returns p. ln 2 comes in two parts,
   the first short enough for n ln 2 to be exact; the polynomial is a minimax fit of
   (e^r - 1 - r) / r^2 over |r| <= ln(2)/2 with a relative error of 6e-9. */
INLINE vf vexp_parts(vf x, vf *scale)
{
    /* adding it rounds to an integer, kept in the low bits */
    const float magic = 0x1.8p23f;
    vf shifted = x * 1.44269504f + magic;
    vf n = shifted - magic;
    vf r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vf q = r * 0.0013811662793f + 0.0083701349795f;
    q = q * r + 0.0416685268283f;
    q = q * r + 0.1666650921106f;
    q = q * r + 0.4999999403954f;
    *scale = (vf)(((vu)shifted << 23) + 0x3f800000u);
    return r * r * q + r;
}

/* x at most 88. Below -87 the result stays e^-87, near the smallest normal number. */
INLINE vf vexp(vf x)
{
    vf scale, p = vexp_parts(vat_least(x, vset(-87.0f)), &scale);
    return scale * p + scale;
}

INLINE vf rnnd__sigmoid(vf x)
{
    return 1.0f / (1.0f + vexp(vat_most(-x, vset(88.0f))));
}

/* From e = e^(-2|x|) - 1, which keeps small x exact. */
INLINE vf rnnd__tanh(vf x)
{
    vf scale, p = vexp_parts(vat_least(-2.0f * vabs(x), vset(-87.0f)), &scale);
    vf e = scale * p + (scale - 1.0f);
    return vcopysign(e / (e + 2.0f), x);
}

INLINE vf rnnd__relu(vf x)
{
    return vat_least(x, vset(0.0f));
}

INLINE vf rnnd__relu_gradient(vf h, vf dh)
{
    return vselect(h <= 0.0f, vset(0.0f), dh);
}

/* log(1+x) for 0 <= x <= 1, as 2 artanh(s) with s = x / (2+x) <= 1/3; minimax fit of
   the odd series with a relative error of 6e-10. */
INLINE vf vlog1p(vf x)
{
    vf s = x / (2.0f + x), t = s * s;
    vf w = t * 0.2430832387992f + 0.2142585212953f;
    w = w * t + 0.2861703634262f;
    w = w * t + 0.3999887406826f;
    w = w * t + 0.6666667461395f;
    return s * 2.0f + s * t * w;
}

#endif
