/*
 * fold.c - the normalization of features as part of the first layer.
 *
 * W ((x - mean) / std) + b = (W / std) x + (b - W (mean / std)), so a model that reads
 * features as they are computes the same. The new numbers are worked out in double.
 */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/model.h"

/* weight [rows,cols] and bias [rows] of one direction. Whether float holds all. */
static bool fold(const struct rnnd_model *m, int64_t rows, float *weight, float *bias)
{
    int64_t cols = m->spec.inputs;
    bool fits = true;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < cols; i++) {
            double w = (double)weight[r * cols + i] / (double)m->std[i];
            sum += w * (double)m->mean[i];
            fits = fits && (isfinite((float)w) || !isfinite(weight[r * cols + i]));
            weight[r * cols + i] = (float)w;
        }
        fits = fits && (isfinite((float)sum) || !isfinite(sum));
        bias[r] = (float)((double)bias[r] - sum);
    }
    return fits;
}

static int fold_direction(struct rnnd_model *m, const char *suffix, float *weight,
                          float *bias)
{
    int64_t rows = rnnd__cell_gates(m->spec.cell) * m->spec.hidden;
    char w[48], b[48];
    snprintf(w, sizeof w, "rnn.weight_ih_l0%s", suffix);
    snprintf(b, sizeof b, "rnn.bias_ih_l0%s", suffix);
    RNND_TRY(rnnd_model_get(m, w, weight));
    RNND_TRY(rnnd_model_get(m, b, bias));
    if (!fold(m, rows, weight, bias))
        return rnnd__fail(RNND_EDATA,
                          "%s: a weight divided by the deviation of its feature is too "
                          "large for float32; --no-fold keeps them apart",
                          w);
    RNND_TRY(rnnd_model_set(m, w, weight));
    return rnnd_model_set(m, b, bias);
}

int rnnd__model_fold(struct rnnd_model *m, double *ratio)
{
    int64_t rows = rnnd__cell_gates(m->spec.cell) * m->spec.hidden;
    float *weight = NULL, *bias = NULL;
    int status = 0;
    *ratio = 0;
    if (!m->spec.normalize)
        return 0;
    if (m->spec.no_bias)
        return rnnd__fail(
            RNND_EUSAGE, "a first layer without biases (--no-bias) cannot take the "
                         "normalization of features into it; --no-fold keeps it apart, "
                         "as input.mean and input.std");
    for (int64_t i = 0; i < m->spec.inputs; i++)
        *ratio = fmax(*ratio, fabs((double)m->mean[i]) / (double)m->std[i]);
    RNND_TRY_GOTO(RNND_NEW(&weight, rows * m->spec.inputs, "rnn.weight_ih_l0"));
    RNND_TRY_GOTO(RNND_NEW(&bias, rows, "rnn.bias_ih_l0"));
    for (int d = 0; d < m->D; d++)
        RNND_TRY_GOTO(fold_direction(m, d ? "_reverse" : "", weight, bias));
    m->spec.normalize = false;
    free(m->mean);
    free(m->std);
    m->mean = m->std = NULL;
done:
    free(weight);
    free(bias);
    return status;
}
