/*
 * model.h - the contents of a model, its states and loss sums, for this room and tests.
 */
#ifndef RNND_MODEL_H
#define RNND_MODEL_H

#include "base/names.h"
#include "model/layer.h"

enum { RNND_MAX_LAYERS = 64 };

struct rnnd_model {
    struct rnnd_backend *be;
    struct rnnd_model_spec spec;
    /* directions: 1 or 2 */
    int D;
    struct rnnd__params params;
    /* offset in the arenas; token input only */
    int64_t embed_weight;
    /* [G*H], without biases only */
    struct rnnd__buf zeros;
    struct rnnd__recurrent layer[RNND_MAX_LAYERS];
    struct rnnd__head head;
    /* host [I], owned; NULL without normalize */
    float *mean, *std;
    /* of features, tokens and classes; lm: tokens only */
    struct rnnd__names names;

    /* called when gradients are final; NULL = nothing */
    rnnd_bucket_ready ready;
    void *ready_context;

    /* what the workspace below has room for; training needs more of it */
    struct rnnd_limits room;
    bool room_for_training;
    /* [R,E], token input only */
    struct rnnd__buf embedded;
    /* [R,D*H] outputs of each layer after dropout, if p > 0 */
    struct rnnd__buf dropped[RNND_MAX_LAYERS];
    /* [N,D*H], sequence tasks only */
    struct rnnd__buf pooled, argmax, dpooled;
    /* [R, max(D*H,E)] gradients between layers */
    struct rnnd__buf dy, dx;
    /* of the time loop, by direction */
    struct rnnd__buf scratch[2];
};

/* Whether a model can have these sizes. They may come from a hostile checkpoint: they
   are checked, without overflow, before anything is allocated. */
RNND_CHECKED int rnnd__spec_check(const struct rnnd_model_spec *spec);

/* Whether the model reads tokens rather than features. */
static inline bool rnnd__model_reads_tokens(const struct rnnd_model *m)
{
    return m->spec.inputs == 0;
}

/* Whether scores belong to steps rather than sequences. */
static inline bool rnnd__model_is_stepwise(const struct rnnd_model *m)
{
    return rnnd_task_is_stepwise(m->spec.task);
}

/* Columns of a layer's output. */
static inline int64_t rnnd__model_width(const struct rnnd_model *m)
{
    return m->D * m->spec.hidden;
}

/* The dropout probability of the output of layer l: --dropout between layers; for the
   top layer --dropout-head if the head reads every step, else 0. */
static inline double rnnd__model_dropout_after(const struct rnnd_model *m, int l)
{
    if (l < m->spec.layers - 1)
        return m->spec.dropout;
    return rnnd__model_is_stepwise(m) ? m->spec.dropout_head : 0;
}

struct rnnd_loss_sums {
    struct rnnd_backend *be;
    /* a struct rnnd__sums on the device */
    struct rnnd__buf sums;
};

/* Index of the marked copy in h and c; 0 and 1 are the current and the next state. */
enum { RNND_STATE_MARKED = 2 };

struct rnnd_state {
    struct rnnd_model *model;
    int64_t rows;
    /* [L*D, rows, H] each; c for LSTM only */
    struct rnnd__buf h[3], c[3];
    /* 0 or 1; the other one is the next state */
    int current;
};

#endif
