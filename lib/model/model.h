/*
 * model.h - what a model is made of, for checkpoint and tests.
 */
#ifndef RNND_MODEL_H
#define RNND_MODEL_H

#include "model/layer.h"

enum { RNND_MAX_LAYERS = 64 };

struct rnnd_model {
    struct rnnd_backend *be;
    struct rnnd_model_spec spec;
    /* directions */
    int D;
    struct rnnd__params params;
    /* offset, token input only */
    int64_t embed_weight;
    struct rnnd__recurrent layer[RNND_MAX_LAYERS];
    struct rnnd__head head;
    /* host [I], with normalize */
    float *mean, *std;
    /* [O] owned, NULL = unnamed */
    char **classes;

    rnnd_bucket_ready ready;
    void *ready_context;

    /* workspace, sized by reserve */
    struct rnnd_limits room;
    bool room_for_training;
    /* [R,E] */
    struct rnnd__buf embedded;
    /* [R,D*H] outputs after dropout, where p > 0 */
    struct rnnd__buf dropped[RNND_MAX_LAYERS];
    /* [N,D*H], sequence tasks */
    struct rnnd__buf pooled, argmax, dpooled;
    /* [R, max(D*H,E)] gradients between layers */
    struct rnnd__buf dy, dx;
    /* of the time loop, a direction */
    struct rnnd__buf scratch[2];
};

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

/* The share of outputs of layer l that dropout takes in training: between layers, and
   of the top layer where the head reads it step by step. */
static inline double rnnd__model_dropout_after(const struct rnnd_model *m, int l)
{
    if (l < m->spec.layers - 1)
        return m->spec.dropout;
    return rnnd__model_is_stepwise(m) ? m->spec.dropout_head : 0;
}

struct rnnd_loss_sums {
    struct rnnd_backend *be;
    /* struct rnnd__sums */
    struct rnnd__buf sums;
};

/* Hidden states of rows: current, next, marked; each [L*D, rows, H]. */
enum { RNND_STATE_MARKED = 2 };

struct rnnd_state {
    struct rnnd_model *model;
    int64_t rows;
    /* c: LSTM only */
    struct rnnd__buf h[3], c[3];
    /* 0 or 1; the other is the next */
    int current;
};

#endif
