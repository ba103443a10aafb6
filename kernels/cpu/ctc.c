/*
 * ctc.c - connectionist temporal classification: shares the sequences of a batch among
 * threads. simd_ctc.h computes one.
 *
 * The losses are added in the order of the sequences: threads change no bit.
 */
#include <string.h>

#include "cpu.h"

struct ctc {
    const struct rnnd__ctc *ctc;
    float *scores;
    /* [N] out */
    double *loss;
    /* work space of part 0, and from one part to the next */
    double *work;
    int64_t share;
};

size_t rnnd__cpu_ctc_scratch(struct rnnd_backend *be, int64_t N, int64_t T,
                             int64_t longest)
{
    int64_t parts = rnnd__cpu_of(be)->threads;
    return (size_t)(N + parts * rnnd__ctc_work(T, longest)) * sizeof(double);
}

/* A sequence that is no target has no gradient. */
static void clear_gradient(const struct ctc *c, int64_t j)
{
    const struct rnnd__packed *batch = c->ctc->batch;
    int64_t cols = c->ctc->cols;
    for (int64_t t = 0; t < batch->len[j]; t++)
        memset(c->scores + (batch->off[t] + j) * cols, 0, (size_t)cols * sizeof(float));
}

/* Sequences are sorted by length: every part gets long and short ones. */
static void ctc_part(const struct rnnd__cpu *cpu, const void *arg, int part, int parts)
{
    const struct ctc *c = arg;
    const struct rnnd__packed *batch = c->ctc->batch;
    const struct rnnd__strings *s = c->ctc->strings;
    const int32_t *first = rnnd__ints(s->first), *count = rnnd__ints(s->count);
    for (int64_t j = part; j < batch->N; j += parts) {
        struct rnnd__ctc_path path = {.T = batch->len[j],
                                      .cols = c->ctc->cols,
                                      .scores = c->scores,
                                      .off = batch->off,
                                      .place = j,
                                      .label = rnnd__ints(s->label) + first[j],
                                      .labels = count[j],
                                      .gradient = c->ctc->gradient,
                                      .work = c->work + part * c->share};
        c->loss[j] = count[j] < 0 ? 0 : cpu->simd->ctc(&path);
        if (count[j] < 0)
            clear_gradient(c, j);
    }
}

void rnnd__cpu_ctc(struct rnnd_backend *be, const struct rnnd__ctc *ctc,
                   struct rnnd__buf scores, struct rnnd__buf sums)
{
    const struct rnnd__cpu *cpu = rnnd__cpu_of(be);
    const struct rnnd__packed *batch = ctc->batch;
    const int32_t *count = rnnd__ints(ctc->strings->count);
    struct rnnd__sums *total = (struct rnnd__sums *)sums.dev;
    double *scratch = (double *)ctc->scratch.dev;
    struct ctc c = {.ctc = ctc,
                    .scores = rnnd__floats(scores),
                    .loss = scratch,
                    .work = scratch + batch->N,
                    .share = rnnd__ctc_work(batch->T, ctc->strings->longest)};
    int64_t cells = batch->R * (ctc->cols + 8 * (ctc->strings->longest + 1));
    int parts = rnnd__cpu_parts(cpu, cells);
    rnnd__cpu_parallel(cpu, parts < batch->N ? parts : (int)batch->N, ctc_part, &c);
    for (int64_t j = 0; j < batch->N; j++) {
        if (count[j] < 0)
            continue;
        total->loss += c.loss[j] / (count[j] > 0 ? count[j] : 1);
        total->targets += 1;
        total->weight += 1;
    }
}
