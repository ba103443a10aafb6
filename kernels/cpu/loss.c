/*
 * loss.c - losses of rows of scores, which become their gradients: softmax with
 * cross-entropy over classes or a vocabulary, squared errors, and yes/no answers.
 */
#include <math.h>
#include <string.h>

#include "cpu.h"

struct loss {
    int64_t rows, cols;
    float *scores;
    /* softmax, [rows]; -1: the row is no target */
    const int32_t *label;
    /* the others, [rows,cols]; a NaN: the row is no target */
    const float *target;
    double (*of_values)(float *scores, const float *target, int64_t cols);
};

static bool is_target(const struct loss *l, int64_t row)
{
    if (l->label)
        return l->label[row] >= 0;
    for (int64_t j = 0; j < l->cols; j++)
        if (isnan(l->target[row * l->cols + j]))
            return false;
    return true;
}

static void loss_part(const struct rnnd__cpu *cpu, const void *arg, int part, int parts)
{
    const struct loss *l = arg;
    struct rnnd__sums sums = {0, 0, 0};
    int64_t range[2];
    rnnd__cpu_range(l->rows, part, parts, range);
    for (int64_t r = range[0]; r < range[1]; r++) {
        float *row = l->scores + r * l->cols;
        bool correct = false;
        if (!is_target(l, r)) {
            memset(row, 0, (size_t)l->cols * sizeof(float));
            continue;
        }
        sums.loss += l->label
                         ? cpu->simd->softmax_ce(row, l->cols, l->label[r], &correct)
                         : l->of_values(row, l->target + r * l->cols, l->cols);
        sums.targets += 1;
        sums.correct += correct;
    }
    memcpy(cpu->partial + part * RNND__CPU_LINE, &sums, sizeof sums);
}

static void add_loss(const struct rnnd__cpu *cpu, const struct loss *l,
                     struct rnnd__buf sums)
{
    int parts = rnnd__cpu_parts(cpu, 4 * l->rows * l->cols);
    rnnd__cpu_parallel(cpu, parts, loss_part, l);
    rnnd__cpu_add_sums(cpu, parts, sums);
}

void rnnd__cpu_softmax_ce(struct rnnd_backend *be, int64_t rows, int64_t cols,
                          struct rnnd__buf scores, struct rnnd__buf sums,
                          struct rnnd__buf label)
{
    struct loss l = {.rows = rows,
                     .cols = cols,
                     .scores = rnnd__floats(scores),
                     .label = rnnd__ints(label)};
    add_loss(rnnd__cpu_of(be), &l, sums);
}

static void add_values_loss(const struct rnnd__cpu *cpu, const struct loss *values,
                            struct rnnd__buf scores, struct rnnd__buf sums,
                            struct rnnd__buf target)
{
    struct loss l = *values;
    l.scores = rnnd__floats(scores);
    l.target = rnnd__floats(target);
    add_loss(cpu, &l, sums);
}

void rnnd__cpu_mse(struct rnnd_backend *be, int64_t rows, int64_t cols,
                   struct rnnd__buf scores, struct rnnd__buf sums,
                   struct rnnd__buf target)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct loss l = {.rows = rows, .cols = cols, .of_values = cpu->simd->mse};
    add_values_loss(cpu, &l, scores, sums, target);
}

void rnnd__cpu_bce(struct rnnd_backend *be, int64_t rows, int64_t cols,
                   struct rnnd__buf scores, struct rnnd__buf sums,
                   struct rnnd__buf target)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct loss l = {.rows = rows, .cols = cols, .of_values = cpu->simd->bce};
    add_values_loss(cpu, &l, scores, sums, target);
}
