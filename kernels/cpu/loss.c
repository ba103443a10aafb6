/*
 * loss.c - losses of rows of scores, which become their gradients: softmax with
 * cross-entropy over classes or a vocabulary, squared errors, and yes/no answers.
 */
#include <math.h>
#include <string.h>

#include "cpu.h"

/* One row that is a target. */
typedef void row_loss(const struct rnnd__cpu *cpu, const struct rnnd__loss *l,
                      int64_t row, struct rnnd__sums *sums);

struct task {
    const struct rnnd__loss *loss;
    row_loss *of_row;
    /* targets are labels */
    bool labels;
};

static float *scores_of(const struct rnnd__loss *l, int64_t row)
{
    return rnnd__floats(l->scores) + row * l->cols;
}

static const float *values_of(const struct rnnd__loss *l, int64_t row)
{
    return rnnd__floats(l->target) + row * l->cols;
}

static bool is_target(const struct task *t, int64_t row)
{
    const struct rnnd__loss *l = t->loss;
    if (t->labels)
        return rnnd__ints(l->target)[row] >= 0;
    for (int64_t j = 0; j < l->cols; j++)
        if (isnan(values_of(l, row)[j]))
            return false;
    return true;
}

static void loss_part(const struct rnnd__cpu *cpu, const void *arg, int part, int parts)
{
    const struct task *t = arg;
    const struct rnnd__loss *l = t->loss;
    struct rnnd__sums sums = {0, 0, 0, 0};
    int64_t range[2];
    rnnd__cpu_range(l->rows, part, parts, range);
    for (int64_t r = range[0]; r < range[1]; r++) {
        if (!is_target(t, r)) {
            memset(scores_of(l, r), 0, (size_t)l->cols * sizeof(float));
            continue;
        }
        t->of_row(cpu, l, r, &sums);
        sums.targets += 1;
    }
    memcpy(cpu->partial + part * RNND__CPU_LINE, &sums, sizeof sums);
}

static void add_loss(struct rnnd_backend *be, const struct rnnd__loss *l,
                     row_loss *of_row, bool labels)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct task t = {l, of_row, labels};
    int parts = rnnd__cpu_parts(cpu, 4 * l->rows * l->cols);
    rnnd__cpu_parallel(cpu, parts, loss_part, &t);
    rnnd__cpu_add_sums(cpu, parts, l->sums);
}

/* ---- rows */

static void softmax_row(const struct rnnd__cpu *cpu, const struct rnnd__loss *l,
                        int64_t row, struct rnnd__sums *sums)
{
    int32_t label = rnnd__ints(l->target)[row];
    float *scores = scores_of(l, row);
    bool correct;
    if (rnnd__buf_is_null(l->weight) && l->smoothing == 0) {
        sums->loss += cpu->simd->softmax_ce(scores, l->cols, label, &correct);
        sums->weight += 1;
    } else {
        sums->loss += cpu->simd->weighted_ce(scores, l, label, &correct);
        sums->weight += rnnd__loss_weight(l, label);
    }
    sums->correct += correct;
}

static void mse_row(const struct rnnd__cpu *cpu, const struct rnnd__loss *l,
                    int64_t row, struct rnnd__sums *sums)
{
    sums->loss += cpu->simd->mse(scores_of(l, row), values_of(l, row), l->cols);
    sums->weight += 1;
}

static void bce_row(const struct rnnd__cpu *cpu, const struct rnnd__loss *l,
                    int64_t row, struct rnnd__sums *sums)
{
    float *scores = scores_of(l, row);
    const float *target = values_of(l, row);
    sums->loss += rnnd__buf_is_null(l->weight)
                      ? cpu->simd->bce(scores, target, l->cols)
                      : cpu->simd->weighted_bce(scores, target, l);
    sums->weight += 1;
}

void rnnd__cpu_softmax_ce(struct rnnd_backend *be, const struct rnnd__loss *l)
{
    add_loss(be, l, softmax_row, true);
}

void rnnd__cpu_mse(struct rnnd_backend *be, const struct rnnd__loss *l)
{
    add_loss(be, l, mse_row, false);
}

void rnnd__cpu_bce(struct rnnd_backend *be, const struct rnnd__loss *l)
{
    add_loss(be, l, bce_row, false);
}
