/*
 * checkpoint_model.h - small models with odd values, for the tests of checkpoints and
 * of named arrays.
 */
#ifndef RNND_CHECKPOINT_MODEL_H
#define RNND_CHECKPOINT_MODEL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "model/params.h"
#include "options/options.h"
#include "testing.h"

static struct rnnd_backend *be;

static inline void open_backend(void)
{
    struct rnnd__backend_config config = {.threads = 1, .precision = RNND_FP32};
    char error[256];
    ck_assert_int_eq(rnnd__cpu_open(&config, &be, error), 0);
}

/* The shapes that there are: tokens or features, tied, both directions, normalized. */
static const struct rnnd_model_spec specs[] = {
    {.task = RNND_CLASSIFY,
     .cell = RNND_LSTM,
     .inputs = 2,
     .hidden = 3,
     .layers = 2,
     .bidirectional = true,
     .pool = RNND_POOL_MAX,
     .outputs = 3,
     .normalize = true,
     .dropout = 0.25},
    {.task = RNND_LM,
     .cell = RNND_GRU,
     .vocab = 7,
     .embed = 4,
     .hidden = 4,
     .layers = 1,
     .outputs = 7,
     .tie_weights = true,
     .dropout_embed = 0.125,
     .dropout_kind = RNND_DROPOUT_SEQUENCE},
    {.task = RNND_TAG,
     .cell = RNND_RNN_TANH,
     .vocab = 5,
     .embed = 2,
     .hidden = 3,
     .layers = 3,
     .outputs = 2,
     .dropout_head = 0.5},
    {.task = RNND_REGRESS,
     .cell = RNND_RNN_RELU,
     .inputs = 1,
     .hidden = 1,
     .layers = 1,
     .outputs = 1,
     .pool = RNND_POOL_MEAN},
    {.task = RNND_REGRESS_STEPS,
     .cell = RNND_GRU,
     .inputs = 3,
     .hidden = 2,
     .layers = 1,
     .outputs = 4},
    {.task = RNND_MULTILABEL,
     .cell = RNND_LSTM,
     .inputs = 2,
     .hidden = 2,
     .layers = 1,
     .outputs = 5},
};
enum { SPECS = sizeof specs / sizeof *specs };

/* Values of every kind that a float has; the same for the same start. */
static inline void fill_odd(float *x, int64_t n, uint32_t start)
{
    static const uint32_t odd[] = {0x80000000, 0x7f800000, 0xff800000, 0x7fc00001,
                                   1,          0x007fffff, 0x7f7fffff, 0};
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (start + (uint32_t)i) * 2654435761u;
        if (bits % 5 == 0)
            bits = odd[bits / 5 % 8];
        memcpy(&x[i], &bits, 4);
    }
}

/* Every parameter; the gaps between them stay zero. */
static inline void fill_arena(struct rnnd_model *m, struct rnnd__buf arena,
                              uint32_t start)
{
    const struct rnnd__params *par = rnnd__model_params(m);
    for (int i = 0; i < par->listed; i++)
        fill_odd((float *)be->ops->host(be, rnnd__at(arena, par->list[i].offset)),
                 rnnd__param_size(&par->list[i]), start + 1000u * (uint32_t)i);
}

/* start 0: as it is made, all zero. */
static inline struct rnnd_model *new_model(const struct rnnd_model_spec *spec,
                                           uint32_t start)
{
    struct rnnd_model *m;
    must(rnnd_model_new(be, spec, &m));
    if (start == 0)
        return m;
    fill_arena(m, rnnd__model_params(m)->value, start);
    if (spec->normalize) {
        for (int64_t i = 0; i < spec->inputs; i++) { /* none odd: these are checked */
            rnnd_model_mean(m)[i] = (float)(start + 7 + i) / -3;
            rnnd_model_std(m)[i] = (float)(start + 8 + i) / 7;
        }
    }
    return m;
}

static inline void same_arenas(struct rnnd_model *a, struct rnnd__buf x,
                               struct rnnd__buf y)
{
    ck_assert(memcmp(be->ops->host(be, x), be->ops->host(be, y),
                     (size_t)rnnd__model_params(a)->count * 4) == 0);
}

static inline bool are_same_models(struct rnnd_model *a, struct rnnd_model *b)
{
    const struct rnnd__params *p = rnnd__model_params(a), *q = rnnd__model_params(b);
    size_t inputs = (size_t)rnnd_model_spec(a)->inputs * 4;
    return p->count == q->count &&
           memcmp(be->ops->host(be, p->value), be->ops->host(be, q->value),
                  (size_t)p->count * 4) == 0 &&
           (!rnnd_model_mean(a) ||
            (memcmp(rnnd_model_mean(a), rnnd_model_mean(b), inputs) == 0 &&
             memcmp(rnnd_model_std(a), rnnd_model_std(b), inputs) == 0));
}

static inline void same_specs(const struct rnnd_model_spec *a,
                              const struct rnnd_model_spec *b)
{
    ck_assert(a->task == b->task && a->cell == b->cell && a->pool == b->pool);
    ck_assert(a->inputs == b->inputs && a->vocab == b->vocab && a->embed == b->embed);
    ck_assert(a->hidden == b->hidden && a->layers == b->layers &&
              a->outputs == b->outputs);
    ck_assert(a->bidirectional == b->bidirectional && a->tie_weights == b->tie_weights);
    ck_assert(a->normalize == b->normalize);
    ck_assert(a->dropout == b->dropout && a->dropout_embed == b->dropout_embed);
    ck_assert(a->dropout_head == b->dropout_head && a->dropout_kind == b->dropout_kind);
}

#endif
