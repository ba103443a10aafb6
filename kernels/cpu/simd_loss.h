/*
 * simd_loss.h - rows of losses, and of dropout.
 *
 * Part of simd.c. Sums over a row are kept in float over a short block and in double
 * beyond.
 */

/* ---- softmax and cross-entropy */

static float row_max(const float *x, int64_t n)
{
    vf m = vset(-INFINITY);
    int64_t j = 0;
    for (; j + VL <= n; j += VL)
        m = vselect(vload(x + j) > m, vload(x + j), m);
    float best = vmax(m);
    for (; j < n; j++)
        best = x[j] > best ? x[j] : best;
    return best;
}

/* x = e^(x - max); returns the sum. */
static double row_exp(float *x, int64_t n, float max)
{
    enum { BLOCK = 16 * VL };
    double total = 0;
    for (int64_t j = 0; j < n;) {
        int64_t end = n - j > BLOCK ? j + BLOCK : n;
        vf s = vset(0);
        for (; j + VL <= end; j += VL) {
            vf e = vexp(vload(x + j) - max);
            vstore(x + j, e);
            s += e;
        }
        if (j < end) {
            int m = (int)(end - j);
            vput(x + j, vexp(vget(x + j, m) - max), m);
            s += vget(x + j, m);
            j = end;
        }
        total += vsum(s);
    }
    return total;
}

static void row_scale(float *x, int64_t n, float factor)
{
    int64_t j = 0;
    for (; j + VL <= n; j += VL)
        vstore(x + j, vload(x + j) * factor);
    for (; j < n; j++)
        x[j] *= factor;
}

/* Whether no class before the label has its score, and none a higher one. */
static bool is_best(const float *x, int32_t label, float max)
{
    if (!(x[label] == max))
        return false;
    for (int32_t j = 0; j < label; j++)
        if (x[j] == max)
            return false;
    return true;
}

static double softmax_ce(float *x, int64_t n, int32_t label, bool *correct)
{
    float max = row_max(x, n), own = x[label];
    *correct = is_best(x, label, max);
    double sum = row_exp(x, n, max);
    row_scale(x, n, (float)(1.0 / sum));
    x[label] -= 1.0f;
    return log(sum) - ((double)own - max);
}

/* own * (-log p of the label) + spread * sum over classes of weight * (-log p). */
static double weighted_ce(float *x, const struct rnnd__loss *l, int32_t label,
                          bool *correct)
{
    int64_t n = l->cols;
    float max = row_max(x, n), score = x[label];
    double own = (1 - l->smoothing) * rnnd__loss_weight(l, label);
    double spread = l->smoothing / (double)n, below = 0;
    *correct = is_best(x, label, max);
    for (int64_t j = 0; j < n && spread > 0; j++)
        below += rnnd__loss_weight(l, j) * ((double)x[j] - max);
    double sum = row_exp(x, n, max), all = own + spread * l->weights;
    row_scale(x, n, (float)(all / sum));
    for (int64_t j = 0; j < n && spread > 0; j++)
        x[j] -= (float)(spread * rnnd__loss_weight(l, j));
    x[label] -= (float)own;
    return all * log(sum) - own * ((double)score - max) - spread * below;
}

/* ---- other losses */

static double mse(float *x, const float *target, int64_t n)
{
    float factor = 2.0f / (float)n;
    double total = 0;
    for (int64_t j = 0; j < n; j++) {
        float d = x[j] - target[j];
        total += (double)d * d;
        x[j] = d * factor;
    }
    return total / (double)n;
}

/* On logits: max(x,0) - x t + log(1 + e^-|x|), and sigmoid(x) - t. */
static double bce(float *x, const float *target, int64_t n)
{
    double total = 0;
    for (int64_t j = 0; j < n; j += VL) {
        int m = n - j < VL ? (int)(n - j) : VL;
        vf s = vget(x + j, m), t = vget(target + j, m);
        vf loss = rnnd__relu(s) - s * t + vlog1p(vexp(-vabs(s)));
        for (int i = 0; i < m; i++)
            total += loss[i];
        vput(x + j, rnnd__sigmoid(s) - t, m);
    }
    return total;
}

/* With weight w of a yes: (1-t) x + (1 - t + w t) log(1 + e^-x). */
static double weighted_bce(float *x, const float *target, const struct rnnd__loss *l)
{
    const float *weight = (const float *)l->weight.dev;
    int64_t n = l->cols;
    double total = 0;
    for (int64_t j = 0; j < n; j += VL) {
        int m = n - j < VL ? (int)(n - j) : VL;
        vf s = vget(x + j, m), t = vget(target + j, m), w = vget(weight + j, m);
        vf both = 1 - t + w * t;
        vf loss = (1 - t) * s + both * (vlog1p(vexp(-vabs(s))) + rnnd__relu(-s));
        for (int i = 0; i < m; i++)
            total += loss[i];
        vput(x + j, both * rnnd__sigmoid(s) - w * t, m);
    }
    return total;
}

/* ---- dropout */

static void dropout(float *out, const float *in, const struct rnnd__dropout *d,
                    int64_t id, int64_t step)
{
    uint32_t threshold = rnnd__dropout_threshold(d->p);
    float scale = (float)(1.0 / (1.0 - d->p));
    for (int64_t j = 0; j < d->cols; j += 4) {
        struct rnnd__random r = rnnd__dropout_words(d->key, id, step, j);
        int64_t m = d->cols - j < 4 ? d->cols - j : 4;
        for (int64_t i = 0; i < m; i++)
            out[j + i] = r.word[i] < threshold ? 0.0f : in[j + i] * scale;
    }
}
