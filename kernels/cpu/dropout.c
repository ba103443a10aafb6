/*
 * dropout.c - dropout by masks that depend on sequence and step, not on the batch.
 */
#include "cpu.h"

struct drop {
    const struct rnnd__dropout *s;
    float *out;
    const float *in;
};

static void drop_row(const struct rnnd__cpu *cpu, const struct drop *d, int64_t row,
                     int64_t j, int64_t step)
{
    int64_t at = row * d->s->cols;
    cpu->simd->dropout(d->out + at, d->in + at, d->s, d->s->batch->id[j], step);
}

static void dropout_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                         int parts)
{
    const struct drop *d = arg;
    const struct rnnd__packed *b = d->s->batch;
    bool timeless = d->s->by_sequence || d->s->kind == RNND_DROPOUT_SEQUENCE;
    if (d->s->by_sequence) {
        for (int64_t j = part; j < b->N; j += parts)
            drop_row(cpu, d, j, j, 0);
        return;
    }
    for (int64_t t = 0; t < b->T; t++)
        for (int64_t j = part; j < b->n[t]; j += parts)
            drop_row(cpu, d, b->off[t] + j, j, timeless ? 0 : b->first + t);
}

void rnnd__cpu_dropout(struct rnnd_backend *be, const struct rnnd__dropout *s,
                       struct rnnd__buf out, struct rnnd__buf in)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct drop d = {s, rnnd__floats(out), rnnd__floats(in)};
    int64_t rows = s->by_sequence ? s->batch->N : s->batch->R;
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, 4 * rows * s->cols), dropout_part, &d);
}
