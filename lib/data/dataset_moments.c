/*
 * dataset_moments.c - mean and standard deviation of each feature, over the steps that
 * have a value.
 */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "data/dataset.h"

/* Sums over steps, one per feature: of the values in the first pass, of the squared
   deviations in the second. */
struct moments {
    int64_t I;
    /* [I] values that are not missing */
    int64_t *count;
    /* [I]; mean: the sum until the first pass ends */
    double *mean, *square;
    /* [I] smallest and largest value */
    float *low, *high;
    bool second;
};

static void add_moments(struct moments *m, const float *x, int64_t steps)
{
    for (int64_t t = 0; t < steps; t++, x += m->I) {
        for (int64_t i = 0; i < m->I && !m->second; i++) {
            if (isnan(x[i]))
                continue;
            m->count[i]++;
            m->mean[i] += (double)x[i];
            m->low[i] = x[i] < m->low[i] ? x[i] : m->low[i];
            m->high[i] = x[i] > m->high[i] ? x[i] : m->high[i];
        }
        for (int64_t i = 0; i < m->I && m->second; i++) {
            double d = isnan(x[i]) ? 0 : (double)x[i] - m->mean[i];
            m->square[i] += d * d;
        }
    }
}

static int moments_pass(struct rnnd_dataset *data, struct moments *m, float *block,
                        int64_t steps)
{
    for (int64_t at = 0; at < data->info.steps; at += steps) {
        int64_t n = data->info.steps - at < steps ? data->info.steps - at : steps;
        RNND_TRY(rnnd_dataset_inputs(data, at, n, block));
        add_moments(m, block, n);
    }
    return 0;
}

static int fail_no_value(const struct rnnd_dataset *data, int64_t feature)
{
    const char *name = rnnd_dataset_feature(data, feature);
    return rnnd__fail(RNND_EDATA,
                      "%s: /inputs: column %lld%s%.40s%s has no value, and no mean",
                      data->path, (long long)feature, name ? " (" : "",
                      name ? name : "", name ? ")" : "");
}

/* Both passes. */
static int sum_moments(struct rnnd_dataset *data, struct moments *m)
{
    int64_t steps = (1 << 18) / m->I + 1; /* of a block */
    float *block;
    RNND_TRY(RNND_NEW(&block, steps * m->I, "statistics"));
    int status;
    RNND_TRY_GOTO(moments_pass(data, m, block, steps));
    for (int64_t i = 0; i < m->I; i++) {
        if (m->count[i] == 0 && data->info.steps)
            RNND_TRY_GOTO(fail_no_value(data, i));
        m->mean[i] /= (double)(m->count[i] ? m->count[i] : 1);
    }
    m->second = true;
    RNND_TRY_GOTO(moments_pass(data, m, block, steps));
done:
    free(block);
    return status;
}

int rnnd_dataset_moments(struct rnnd_dataset *data, float *mean, float *std)
{
    int64_t I = data->info.inputs;
    struct moments m = {.I = I};
    int status;
    if (I == 0)
        return rnnd__fail(RNND_EDATA, "%s: /inputs: token ids have no mean",
                          data->path);
    RNND_TRY_GOTO(rnnd__new((size_t)I, 2 * sizeof(double), "statistics", &m.mean));
    RNND_TRY_GOTO(rnnd__new((size_t)I, 2 * sizeof(float), "statistics", &m.low));
    RNND_TRY_GOTO(RNND_NEW(&m.count, I, "statistics"));
    m.square = m.mean + I;
    m.high = m.low + I;
    for (int64_t i = 0; i < I; i++) {
        m.low[i] = INFINITY;
        m.high[i] = -INFINITY;
    }
    RNND_TRY_GOTO(sum_moments(data, &m));
    for (int64_t i = 0; i < I; i++) {
        int64_t n = m.count[i];
        /* By its values: the sums of a constant need not give exactly 0. */
        bool constant = !(m.low[i] < m.high[i]);
        float s = (float)sqrt(m.square[i] / (double)(n ? n : 1));
        mean[i] = constant && n ? m.low[i] : (float)m.mean[i];
        std[i] = constant || s == 0 ? 1 : s;
    }
done:
    free(m.count);
    free(m.low);
    free(m.mean);
    return status;
}
