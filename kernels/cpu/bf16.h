/*
 * bf16.h - factors rounded to bf16, two in a lane: how they are made and multiplied.
 *
 * Part of simd.c. A bf16 is the upper half of a float, rounded to nearest, ties to
 * even; denormals become zero. A pair of factors k and k+1 takes the place of one
 * float, with k in the lower half; it is moved but never computed with. vdot() is the
 * processor's vdpbf16ps, or gives the same bits without it.
 */

#if defined(__AVX512BF16__)
#define BF16_SUPPORT RNND__BF16_HARDWARE
#elif defined(__FMA__)
#define BF16_SUPPORT RNND__BF16_EMULATED
#else
#define BF16_SUPPORT RNND__BF16_NONE
#endif

/* 32-bit elements that hold k factors. */
INLINE int64_t depth_of(bool bf16, int64_t k)
{
    return bf16 ? (k + 1) / 2 : k;
}

/* A pair in all lanes. */
INLINE vf vset_pair(const float *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return (vf)(bits - (vi){0});
}

#if defined(__AVX512BF16__)
/* Pairs of a lane of each. */
INLINE vf vpair(vf low, vf high)
{
    typedef int16_t vs __attribute__((vector_size(64)));
    const vs lane = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return (vf)_mm512_permutexvar_epi16((__m512i)lane,
                                        (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

/* Of n neighbours, 0 < n <= 2 VL; the others are 0. */
INLINE vf vget_pairs(const float *p, int n)
{
    vf low = vget(p, n < VL ? n : VL);
    vf high = n > VL ? vget(p + VL, n - VL) : vset(0);
    return (vf)_mm512_cvtne2ps_pbh(high, low);
}

/* sum + high a * high b + low a * low b */
INLINE vf vdot(vf sum, vf a, vf b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
#else
/* In the upper halves. A NaN becomes quiet; the lower halves are 0. */
INLINE vu vround(vf x)
{
    vu bits = (vu)x, nearest = bits + 0x7fffu + ((bits >> 16) & 1);
    vu nan = (vu)(x != x), tiny = (vu)((bits & 0x7f800000u) == 0);
    bits = ((bits | 0x400000u) & nan) | (bits & 0x80000000u & tiny) |
           (nearest & ~(nan | tiny));
    return bits & 0xffff0000u;
}

INLINE vf vpair(vf low, vf high)
{
    return (vf)(vround(low) >> 16 | vround(high));
}

INLINE vf vget_pairs(const float *p, int n)
{
    return vpair(vgather(p, 2, (n + 1) / 2), vgather(p + 1, 2, n / 2));
}

INLINE vf vfma(vf a, vf b, vf sum)
{
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, sum);
#elif defined(__FMA__)
    return _mm256_fmadd_ps(a, b, sum);
#else
    return a * b + sum;
#endif
}

/* vdpbf16ps adds the product of the upper halves first, then that of the lower ones.
   Each is a fused multiply-add, rounded to nearest even, with denormals as zero: the
   mode in which all work of this back end runs (threads.c). */
INLINE vf vdot(vf sum, vf a, vf b)
{
    vu x = (vu)a, y = (vu)b;
    sum = vfma((vf)(x & 0xffff0000u), (vf)(y & 0xffff0000u), sum);
    return vfma((vf)(x << 16), (vf)(y << 16), sum);
}
#endif

/* Pairs of two rows, NULL = zeros: m lanes. */
INLINE vf vpair_rows(const float *low, const float *high, int m)
{
    return vpair(low ? vget(low, m) : vset(0), high ? vget(high, m) : vset(0));
}

/* ---- rows and their transpose */

/* Pairs of the n neighbours at `in`; of an odd n the last is paired with 0. */
static void round_row(float *out, const float *in, int64_t n)
{
    int64_t i = 0;
    for (; n - i >= 2 * VL; i += 2 * VL, out += VL)
        vstore(out, vget_pairs(in + i, 2 * VL));
    if (i < n)
        vput(out, vget_pairs(in + i, (int)(n - i)), (int)(n - i + 1) / 2);
}

#if defined(__AVX512F__)
INLINE void vtranspose(vf x[VL])
{
    typedef double vd __attribute__((vector_size(64)));
    vf a[VL], b[VL];
    UNROLL
    for (int i = 0; i < VL; i += 2) {
        a[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    UNROLL
    for (int i = 0; i < VL; i += 4) {
        UNROLL
        for (int j = 0; j < 2; j++) {
            b[i + 2 * j] = (vf)_mm512_unpacklo_pd((vd)a[i + j], (vd)a[i + j + 2]);
            b[i + 2 * j + 1] = (vf)_mm512_unpackhi_pd((vd)a[i + j], (vd)a[i + j + 2]);
        }
    }
    /* b[4 q + j]: columns j, j+4, j+8, j+12 of rows 4 q .. 4 q + 3 */
    UNROLL
    for (int j = 0; j < 4; j++) {
        vf even = _mm512_shuffle_f32x4(b[j], b[4 + j], 0x88);
        vf odd = _mm512_shuffle_f32x4(b[j], b[4 + j], 0xdd);
        vf even2 = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0x88);
        vf odd2 = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0xdd);
        x[j] = _mm512_shuffle_f32x4(even, even2, 0x88);
        x[j + 8] = _mm512_shuffle_f32x4(even, even2, 0xdd);
        x[j + 4] = _mm512_shuffle_f32x4(odd, odd2, 0x88);
        x[j + 12] = _mm512_shuffle_f32x4(odd, odd2, 0xdd);
    }
}
#else
INLINE void vtranspose(vf x[VL])
{
    int32_t was[VL][VL], now[VL][VL];
    memcpy(was, x, sizeof was);
    for (int i = 0; i < VL; i++)
        for (int j = 0; j < VL; j++)
            now[i][j] = was[j][i];
    memcpy(x, now, sizeof now);
}
#endif

/* Pairs of n <= 2 VL neighbours of m <= VL rows as columns: out[k*stride + i] of row
   i. */
INLINE void pack_square(float *out, int64_t stride, const float *in, int64_t ld, int m,
                        int n)
{
    vf x[VL];
    UNROLL
    for (int i = 0; i < VL; i++)
        x[i] = i < m ? vget_pairs(in + i * ld, n) : vset(0);
    vtranspose(x);
    UNROLL
    for (int j = 0; j < VL; j++)
        if (j < (n + 1) / 2)
            vput(out + j * stride, x[j], m);
}

/* The same of K neighbours. */
static void pack_columns(float *out, int64_t stride, const float *in, int64_t ld, int m,
                         int64_t K)
{
    for (int64_t k = 0; k < K; k += 2 * VL, out += VL * stride) {
        int n = K - k < 2 * VL ? (int)(K - k) : 2 * VL;
        if (m == VL && n == 2 * VL)
            pack_square(out, stride, in + k, ld, VL, 2 * VL);
        else
            pack_square(out, stride, in + k, ld, m, n);
    }
}
