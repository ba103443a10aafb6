/*
 * embed.c - rows of the embedding, and their gradients.
 */
#include <string.h>

#include "cpu.h"

struct embed {
    int64_t R, E;
    float *out;
    const float *in;
    const int32_t *token;
    const struct rnnd__segments *seg;
};

static void gather_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                        int parts)
{
    const struct embed *e = arg;
    (void)cpu;
    int64_t range[2];
    rnnd__cpu_range(e->R, part, parts, range);
    for (int64_t r = range[0]; r < range[1]; r++)
        memcpy(e->out + r * e->E, e->in + e->token[r] * e->E,
               (size_t)e->E * sizeof(float));
}

void rnnd__cpu_embed_gather(struct rnnd_backend *be, int64_t R, int64_t E,
                            struct rnnd__buf out, struct rnnd__buf table,
                            struct rnnd__buf token)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct embed e = {.R = R,
                      .E = E,
                      .out = rnnd__floats(out),
                      .in = rnnd__floats(table),
                      .token = rnnd__ints(token)};
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, R * E), gather_part, &e);
}

/* A thread takes the segments that begin in its part of the rows. */
static void scatter_part(const struct rnnd__cpu *cpu, const void *arg, int part,
                         int parts)
{
    const struct embed *e = arg;
    const int32_t *rows = rnnd__ints(e->seg->rows), *token = rnnd__ints(e->seg->token);
    const int32_t *segment = rnnd__ints(e->seg->segment);
    int64_t range[2];
    rnnd__cpu_range(segment[e->seg->count], part, parts, range);
    for (int64_t s = 0; s < e->seg->count; s++) {
        if (segment[s] < range[0] || segment[s] >= range[1])
            continue;
        cpu->simd->sum_rows(e->out + token[s] * e->E, e->in, e->E, rows + segment[s],
                            segment[s + 1] - segment[s], e->E);
    }
}

void rnnd__cpu_embed_scatter_add(struct rnnd_backend *be, int64_t E,
                                 struct rnnd__buf dtable, struct rnnd__buf dx,
                                 const struct rnnd__segments *seg)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    struct embed e = {
        .E = E, .out = rnnd__floats(dtable), .in = rnnd__floats(dx), .seg = seg};
    if (seg->count == 0)
        return;
    int64_t R = rnnd__ints(seg->segment)[seg->count];
    rnnd__cpu_parallel(cpu, rnnd__cpu_parts(cpu, R * E), scatter_part, &e);
}
