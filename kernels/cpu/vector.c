/*
 * vector.c - the norm and the optimizers over flat vectors, in one pass over memory
 * each.
 */
#include "cpu.h"

struct vector {
    int64_t n;
    /* struct rnnd__sgd or rnnd__adam */
    const void *s;
    float *part[4];
};

static void sum_sq_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                        int parts)
{
    const struct vector *v = arg;
    int64_t range[2];
    rnnd__cpu_range(v->n, part, parts, range);
    cpu->partial[part * RNND__CPU_LINE] =
        cpu->simd->sum_sq(v->part[0] + range[0], range[1] - range[0]);
}

int rnnd__cpu_sum_sq(struct rnnd_backend *be, int64_t n, double *result,
                     struct rnnd__buf x)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct vector v = {n, NULL, {rnnd__floats(x)}};
    int parts = rnnd__cpu_parts(cpu, n);
    rnnd__cpu_parallel(cpu, parts, sum_sq_part, &v);
    int status = be->ops->sync(be);
    if (status < 0)
        return status;
    double sum = 0;
    for (int part = 0; part < parts; part++)
        sum += cpu->partial[part * RNND__CPU_LINE];
    *result = sum;
    return 0;
}

static void sgd_part(const struct rnnd__cpu *cpu, const void *arg, int part, int parts)
{
    const struct vector *v = arg;
    int64_t range[2];
    rnnd__cpu_range(v->n, part, parts, range);
    cpu->simd->sgd(v->s, range[1] - range[0], v->part[0] + range[0],
                   v->part[1] + range[0], v->part[2] ? v->part[2] + range[0] : NULL);
}

void rnnd__cpu_sgd(struct rnnd_backend *be, const struct rnnd__sgd *s,
                   struct rnnd__buf w, struct rnnd__buf g, struct rnnd__buf momentum)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct vector v = {
        s->n, s, {rnnd__floats(w), rnnd__floats(g), rnnd__floats(momentum)}};
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, s->n), sgd_part, &v);
}

static void adam_part(const struct rnnd__cpu *cpu, const void *arg, int part, int parts)
{
    const struct vector *v = arg;
    int64_t range[2];
    rnnd__cpu_range(v->n, part, parts, range);
    float *at[4];
    for (int i = 0; i < 4; i++)
        at[i] = v->part[i] + range[0];
    cpu->simd->adam(v->s, range[1] - range[0], at);
}

void rnnd__cpu_adam(struct rnnd_backend *be, const struct rnnd__adam *s,
                    struct rnnd__buf w, struct rnnd__buf g, struct rnnd__buf m,
                    struct rnnd__buf v)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct vector a = {
        s->n, s, {rnnd__floats(w), rnnd__floats(g), rnnd__floats(m), rnnd__floats(v)}};
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, s->n), adam_part, &a);
}
