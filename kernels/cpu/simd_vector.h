/*
 * simd_vector.h - sums over rows and vectors, and the optimizers.
 *
 * Part of simd.c. Plain loops that the compiler vectorises, except for the sums, where
 * the order of additions is fixed.
 */

static void add(float *restrict out, const float *restrict x, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        out[j] += x[j];
}

/* ---- sums over rows */

/* Vectors of a row that are summed together. */
enum { SUM_VECTORS = 4, SUM_BLOCK = 64 };

/* The columns of m elements from x, summed over at most SUM_BLOCK rows. */
INLINE void sum_block(vf sum[SUM_VECTORS], const float *x, int64_t ld,
                      const int32_t *index, int64_t rows, int64_t cols)
{
    for (int v = 0; v < SUM_VECTORS; v++)
        sum[v] = vset(0);
    for (int64_t r = 0; r < rows; r++) {
        const float *p = x + (index ? index[r] : r) * ld;
        for (int v = 0; v < SUM_VECTORS; v++) {
            int64_t left = cols - v * VL;
            if (left > 0)
                sum[v] += vget(p + v * VL, left < VL ? (int)left : VL);
        }
    }
}

/* Adds the blocks with compensated (Kahan) summation. */
static void sum_cols(float *out, const float *x, int64_t ld, const int32_t *index,
                     int64_t rows, int64_t cols)
{
    vf total[SUM_VECTORS], lost[SUM_VECTORS] = {{0}}, sum[SUM_VECTORS];
    for (int v = 0; v < SUM_VECTORS; v++)
        total[v] = vset(0);
    for (int64_t r = 0; r < rows; r += SUM_BLOCK) {
        int64_t n = rows - r < SUM_BLOCK ? rows - r : SUM_BLOCK;
        const int32_t *at = index ? index + r : NULL;
        const float *p = index ? x : x + r * ld;
        if (cols == SUM_VECTORS * VL)
            sum_block(sum, p, ld, at, n, SUM_VECTORS * VL);
        else
            sum_block(sum, p, ld, at, n, cols);
        for (int v = 0; v < SUM_VECTORS; v++) {
            vf step = sum[v] - lost[v], now = total[v] + step;
            lost[v] = (now - total[v]) - step;
            total[v] = now;
        }
    }
    for (int v = 0; v < SUM_VECTORS; v++) {
        int64_t left = cols - v * VL;
        int m = left < VL ? (int)left : VL;
        if (left > 0)
            vput(out + v * VL, vget(out + v * VL, m) + total[v], m);
    }
}

static void sum_rows(float *out, const float *x, int64_t ld, const int32_t *index,
                     int64_t rows, int64_t cols)
{
    enum { WIDTH = SUM_VECTORS * VL };
    for (int64_t c = 0; c < cols; c += WIDTH)
        sum_cols(out + c, x + c, ld, index, rows, cols - c < WIDTH ? cols - c : WIDTH);
}

/* ---- vectors */

static double sum_sq(const float *x, int64_t n)
{
    enum { LANES = 32 };
    double s[LANES] = {0}, total = 0;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int i = 0; i < LANES; i++)
            s[i] += (double)x[j + i] * x[j + i];
    for (int i = 0; j < n; i++, j++)
        s[i] += (double)x[j] * x[j];
    for (int i = 0; i < LANES; i++)
        total += s[i];
    return total;
}

/* Scalars are computed in double and rounded to float last. */
static void sgd(const struct rnnd__sgd *s, int64_t n, float *restrict w,
                const float *restrict g, float *restrict momentum)
{
    float lr = (float)s->lr, decay = (float)s->decay, gscale = (float)s->gscale;
    float keep = (float)s->momentum;
    bool first = s->first;
    if (!momentum) {
        for (int64_t i = 0; i < n; i++)
            w[i] -= lr * (g[i] * gscale + decay * w[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * gscale + decay * w[i];
        float b = first ? d : keep * momentum[i] + d;
        momentum[i] = b;
        w[i] -= lr * b;
    }
}

static void adam(const struct rnnd__adam *s, int64_t n, float *const part[4])
{
    float *restrict w = part[0], *restrict m = part[2], *restrict v = part[3];
    const float *restrict g = part[1];
    double bias1 = 1 - pow(s->beta1, (double)s->step);
    double bias2 = 1 - pow(s->beta2, (double)s->step);
    float size = (float)(s->lr / bias1), root = (float)(1 / sqrt(bias2));
    float a = (float)(1 - s->beta1), b = (float)(1 - s->beta2), beta2 = (float)s->beta2;
    float eps = (float)s->eps, gscale = (float)s->gscale;
    float to_g = s->decoupled ? 0 : (float)s->decay;
    float to_w = s->decoupled ? (float)(1 - s->lr * s->decay) : 1;
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * gscale + to_g * w[i];
        m[i] += (d - m[i]) * a;
        v[i] = v[i] * beta2 + b * d * d;
        w[i] = w[i] * to_w - size * m[i] / (sqrtf(v[i]) * root + eps);
    }
}
