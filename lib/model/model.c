/*
 * model.c - the model: its parameters, access to them by name, its workspace.
 *
 * The passes are in passes.c. Parameters are stored in one arena, in the order in which
 * the backward pass completes their gradients.
 */
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/task.h"
#include "data/batch.h"
#include "device/device.h"

/* ---- parameters */

static int64_t add(struct rnnd__params *par, const char *name, int64_t rows,
                   int64_t cols, double bound)
{
    struct rnnd__param p = {
        .rows = rows, .cols = cols, .initial = RNND_UNIFORM, .bound = bound};
    snprintf(p.name, sizeof p.name, "%s", name);
    return rnnd__params_add(par, &p, -1);
}

static void add_layer(struct rnnd_model *m, int l)
{
    struct rnnd__recurrent *r = &m->layer[l];
    int64_t H = m->spec.hidden, GH = rnnd__cell_gates(m->spec.cell) * H;
    double bound = 1 / sqrt((double)H);
    r->cell = m->spec.cell;
    r->H = H;
    r->D = m->D;
    r->in = m->spec.inputs;
    if (l > 0)
        r->in = rnnd__model_width(m);
    else if (rnnd__model_reads_tokens(m))
        r->in = m->spec.embed;
    for (int d = 0; d < r->D; d++) {
        const char *suffix = d ? "_reverse" : "";
        char name[48];
        snprintf(name, sizeof name, "rnn.weight_ih_l%d%s", l, suffix);
        r->w_ih[d] = add(&m->params, name, GH, r->in, bound);
        snprintf(name, sizeof name, "rnn.weight_hh_l%d%s", l, suffix);
        r->w_hh[d] = add(&m->params, name, GH, H, bound);
        r->b_ih[d] = r->b_hh[d] = -1;
        if (m->spec.no_bias)
            continue;
        snprintf(name, sizeof name, "rnn.bias_ih_l%d%s", l, suffix);
        r->b_ih[d] = add(&m->params, name, GH, 0, bound);
        snprintf(name, sizeof name, "rnn.bias_hh_l%d%s", l, suffix);
        r->b_hh[d] = add(&m->params, name, GH, 0, bound);
    }
}

static void add_embedding(struct rnnd_model *m)
{
    struct rnnd__param p = {.name = "embed.weight",
                            .rows = m->spec.vocab,
                            .cols = m->spec.embed,
                            .initial = RNND_NORMAL};
    if (m->spec.tie_weights) {
        p.initial = RNND_UNIFORM;
        p.bound = 1 / sqrt((double)m->spec.hidden);
    }
    m->embed_weight = rnnd__params_add(&m->params, &p, -1);
    if (!m->spec.tie_weights)
        return;
    snprintf(p.name, sizeof p.name, "head.weight");
    m->head.weight = rnnd__params_add(&m->params, &p, m->embed_weight);
}

/* Adds all parameters in the order in which the backward pass completes their
   gradients. */
static void add_all(struct rnnd_model *m)
{
    struct rnnd__head *h = &m->head;
    double bound = 1 / sqrt((double)rnnd__model_width(m));
    h->task = m->spec.task;
    h->in = rnnd__model_width(m);
    h->outputs = m->spec.outputs;
    if (!m->spec.tie_weights)
        h->weight = add(&m->params, "head.weight", h->outputs, h->in, bound);
    h->bias = add(&m->params, "head.bias", h->outputs, 0, bound);
    for (int l = (int)m->spec.layers - 1; l >= 0; l--)
        add_layer(m, l);
    if (rnnd__model_reads_tokens(m))
        add_embedding(m);
}

/* The biases of layers without any. */
static int alloc_zeros(struct rnnd_model *m)
{
    int64_t GH = rnnd__cell_gates(m->spec.cell) * m->spec.hidden;
    RNND_TRY(rnnd__device_alloc(m->be, &m->zeros, GH));
    m->be->ops->zero(m->be, m->zeros, (size_t)GH * sizeof(float));
    for (int l = 0; l < m->spec.layers; l++)
        m->layer[l].zeros = m->zeros;
    return 0;
}

int rnnd_model_new(struct rnnd_backend *be, const struct rnnd_model_spec *spec,
                   struct rnnd_model **out)
{
    struct rnnd_model *m = NULL;
    int status = 0;
    if (spec->layers < 1 || spec->layers > RNND_MAX_LAYERS)
        return rnnd__fail(RNND_EUSAGE, "%lld layers: there must be 1 to %d",
                          (long long)spec->layers, RNND_MAX_LAYERS);
    RNND_TRY(rnnd__spec_check(spec));
    RNND_TRY_GOTO(RNND_NEW(&m, 1, "model"));
    m->be = be;
    m->spec = *spec;
    m->D = spec->bidirectional ? 2 : 1;
    int most = (int)spec->layers * 8 + 4;
    RNND_TRY_GOTO(RNND_NEW(&m->params.list, most, "parameter table"));
    add_all(m);
    RNND_TRY_GOTO(rnnd__params_alloc(&m->params, be));
    if (spec->no_bias)
        RNND_TRY_GOTO(alloc_zeros(m));
    if (spec->normalize) {
        size_t I = (size_t)spec->inputs;
        RNND_TRY_GOTO(RNND_NEW(&m->mean, I, "input.mean"));
        RNND_TRY_GOTO(RNND_NEW(&m->std, I, "input.std"));
        for (size_t i = 0; i < I; i++)
            m->std[i] = 1;
    }
    *out = m;
    return 0;
done:
    rnnd_model_free(m);
    return status;
}

int rnnd_model_init(struct rnnd_model *m, uint64_t seed)
{
    return rnnd__params_init(&m->params, seed);
}

void rnnd_model_zero_gradient(struct rnnd_model *m)
{
    rnnd__params_zero_gradient(&m->params);
}

const struct rnnd__params *rnnd__model_params(const struct rnnd_model *m)
{
    return &m->params;
}

const struct rnnd_model_spec *rnnd_model_spec(const struct rnnd_model *m)
{
    return &m->spec;
}

struct rnnd_backend *rnnd_model_backend(const struct rnnd_model *m)
{
    return m->be;
}

int64_t rnnd_model_parameters(const struct rnnd_model *m)
{
    int64_t count = 0;
    for (int i = 0; i < m->params.listed; i++)
        if (!m->spec.tie_weights || strcmp(m->params.list[i].name, "head.weight") != 0)
            count += rnnd__param_size(&m->params.list[i]);
    return count;
}

int rnnd_model_batch(struct rnnd_model *m, struct rnnd_batch **out)
{
    return rnnd__batch_new_steps(m->be, m->spec.inputs, m->spec.vocab, m->mean, m->std,
                                 out);
}

float *rnnd_model_mean(struct rnnd_model *m)
{
    return m->mean;
}

float *rnnd_model_std(struct rnnd_model *m)
{
    return m->std;
}

/* input.mean or input.std, which are not trained parameters and are kept on the host;
   NULL for other names, and where the model has none. */
static float *host_values(const struct rnnd_model *m, const char *name)
{
    if (strcmp(name, "input.mean") == 0)
        return m->mean;
    return strcmp(name, "input.std") == 0 ? m->std : NULL;
}

/* The part of an arena that belongs to a name, and its size. */
static int find(const struct rnnd_model *m, const char *name, struct rnnd__buf arena,
                struct rnnd__buf *part, size_t *bytes)
{
    const struct rnnd__param *p = rnnd__params_find(&m->params, name);
    if (!p)
        return rnnd__fail(RNND_EUSAGE, "the model has no parameter %s", name);
    *part = rnnd__at(arena, p->offset);
    *bytes = (size_t)rnnd__param_size(p) * sizeof(float);
    return 0;
}

static int get_from(struct rnnd_model *m, const char *name, struct rnnd__buf arena,
                    float *out)
{
    struct rnnd__buf part;
    size_t bytes;
    RNND_TRY(find(m, name, arena, &part, &bytes));
    return rnnd__device_download(m->be, out, part, bytes);
}

int rnnd_model_get(struct rnnd_model *m, const char *name, float *out)
{
    const float *host = host_values(m, name);
    if (!host)
        return get_from(m, name, m->params.value, out);
    memcpy(out, host, (size_t)m->spec.inputs * sizeof *out);
    return 0;
}

int rnnd_model_get_gradient(struct rnnd_model *m, const char *name, float *out)
{
    return get_from(m, name, m->params.grad, out);
}

int rnnd_model_set(struct rnnd_model *m, const char *name, const float *in)
{
    float *host = host_values(m, name);
    struct rnnd__buf part;
    size_t bytes;
    if (host) {
        memcpy(host, in, (size_t)m->spec.inputs * sizeof *in);
        return 0;
    }
    RNND_TRY(find(m, name, m->params.value, &part, &bytes));
    m->be->ops->upload(m->be, part, in, bytes);
    return rnnd__device_sync(m->be);
}

bool rnnd_model_parameter(const struct rnnd_model *m, int i, const char **name,
                          int64_t *rows, int64_t *cols)
{
    static const char *const extra[] = {"input.mean", "input.std"};
    if (i < m->params.listed) {
        const struct rnnd__param *p = &m->params.list[i];
        *name = p->name;
        *rows = p->rows;
        *cols = p->cols;
        return true;
    }
    i -= m->params.listed;
    if (!m->spec.normalize || i > 1)
        return false;
    *name = extra[i];
    *rows = m->spec.inputs;
    *cols = 0;
    return true;
}

/* ---- workspace */

/* In evaluation layers share buffers: a freed buffer is cleared in all of them. */
static void free_once(struct rnnd_model *m, struct rnnd__buf buf)
{
    for (int l = 0; l < m->spec.layers; l++) {
        struct rnnd__recurrent *r = &m->layer[l];
        struct rnnd__buf *all[] = {&r->gates[0], &r->gates[1], &r->keep[0], &r->keep[1],
                                   &r->y};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (all[i]->dev == buf.dev)
                all[i]->dev = NULL;
    }
    m->be->ops->free(m->be, buf);
}

static void free_workspace(struct rnnd_model *m)
{
    for (int l = 0; l < m->spec.layers; l++) {
        struct rnnd__recurrent *r = &m->layer[l];
        for (int d = 0; d < m->D; d++) {
            free_once(m, r->gates[d]);
            free_once(m, r->keep[d]);
        }
        free_once(m, r->y);
        rnnd__device_free(m->be, &m->dropped[l]);
    }
    struct rnnd__buf *rest[] = {&m->embedded,    &m->pooled,     &m->argmax,
                                &m->dpooled,     &m->dy,         &m->dx,
                                &m->scratch[0],  &m->scratch[1], &m->head.scores,
                                &m->head.scratch};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        rnnd__device_free(m->be, rest[i]);
    m->room = (struct rnnd_limits){0, 0, 0, 0};
}

void rnnd_model_free(struct rnnd_model *m)
{
    if (!m)
        return;
    free_workspace(m);
    rnnd__params_clear(&m->params);
    rnnd__names_clear(&m->names);
    rnnd__device_free(m->be, &m->zeros);
    rnnd__device_free(m->be, &m->head.class_weight);
    free(m->head.host_scores);
    free(m->mean);
    free(m->std);
    free(m);
}

/* Training keeps the buffers of every layer for the backward pass. In evaluation all
   layers share one set of gates, and alternate between two outputs. */
static int alloc_layers(struct rnnd_model *m, int64_t R, bool training)
{
    int64_t H = m->spec.hidden, GH = rnnd__cell_gates(m->spec.cell) * H;
    bool keeps = m->spec.cell == RNND_LSTM || m->spec.cell == RNND_GRU;
    for (int l = 0; l < m->spec.layers; l++) {
        struct rnnd__recurrent *r = &m->layer[l];
        for (int d = 0; d < m->D; d++) {
            if (!training && l > 0) {
                r->gates[d] = m->layer[0].gates[d];
                r->keep[d] = m->layer[0].keep[d];
                continue;
            }
            RNND_TRY(rnnd__device_alloc(m->be, &r->gates[d], R * GH));
            if (keeps)
                RNND_TRY(rnnd__device_alloc(m->be, &r->keep[d], R * H));
        }
        if (!training && l > 1)
            r->y = m->layer[l - 2].y;
        else
            RNND_TRY(rnnd__device_alloc(m->be, &r->y, R * rnnd__model_width(m)));
        if (training && rnnd__model_dropout_after(m, l) > 0)
            RNND_TRY(
                rnnd__device_alloc(m->be, &m->dropped[l], R * rnnd__model_width(m)));
    }
    return 0;
}

static int64_t floats_of(size_t bytes)
{
    return (int64_t)((bytes + sizeof(float) - 1) / sizeof(float));
}

/* A loss over strings needs the scores of whole sequences. */
static int alloc_head(struct rnnd_model *m, const struct rnnd_limits *room,
                      int64_t rows)
{
    struct rnnd__head *h = &m->head;
    bool strings = rnnd__task_has_strings(m->spec.task);
    h->chunk = strings && rows > 0 ? rows : rnnd__head_chunk(rows, m->spec.outputs);
    RNND_TRY(rnnd__device_alloc(m->be, &h->scores, h->chunk * m->spec.outputs));
    if (!strings)
        return 0;
    size_t bytes =
        m->be->ops->ctc_scratch(m->be, room->sequences, room->steps, room->labels);
    return rnnd__device_alloc(m->be, &h->scratch, floats_of(bytes));
}

static int alloc_workspace(struct rnnd_model *m, const struct rnnd_limits *room,
                           bool training)
{
    int64_t R = room->rows, N = room->sequences, W = rnnd__model_width(m);
    int64_t head_rows = rnnd__model_is_stepwise(m) ? R : N;
    RNND_TRY(alloc_layers(m, R, training));
    if (rnnd__model_reads_tokens(m))
        RNND_TRY(rnnd__device_alloc(m->be, &m->embedded, R * m->spec.embed));
    if (!rnnd__model_is_stepwise(m)) {
        RNND_TRY(rnnd__device_alloc(m->be, &m->pooled, N * W));
        RNND_TRY(rnnd__device_alloc(m->be, &m->argmax, N * W));
        RNND_TRY(rnnd__device_alloc(m->be, &m->dpooled, N * W));
    }
    if (training) {
        int64_t widest =
            rnnd__model_reads_tokens(m) && m->spec.embed > W ? m->spec.embed : W;
        RNND_TRY(rnnd__device_alloc(m->be, &m->dy, R * widest));
        RNND_TRY(rnnd__device_alloc(m->be, &m->dx, R * widest));
    }
    RNND_TRY(alloc_head(m, room, head_rows));
    int64_t floats =
        floats_of(m->be->ops->rnn_scratch(m->be, m->spec.cell, m->spec.hidden, N, R));
    for (int d = 0; d < m->D; d++)
        RNND_TRY(rnnd__device_alloc(m->be, &m->scratch[d], floats));
    return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int rnnd_model_reserve(struct rnnd_model *m, const struct rnnd_limits *limits,
                       bool training)
{
    struct rnnd_limits room = {larger(limits->sequences, m->room.sequences),
                               larger(limits->steps, m->room.steps),
                               larger(limits->rows, m->room.rows),
                               larger(limits->labels, m->room.labels)};
    bool enough = m->room_for_training || !training;
    if (enough && memcmp(&room, &m->room, sizeof room) == 0 &&
        !rnnd__buf_is_null(m->scratch[0]))
        return 0;
    free_workspace(m);
    m->room_for_training = training || m->room_for_training;
    RNND_TRY(alloc_workspace(m, &room, m->room_for_training));
    m->room = room;
    return 0;
}

static int check_weights(const struct rnnd_model *m, const float *weight,
                         double smoothing)
{
    bool answers = rnnd__task(m->spec.task)->target == RNND__TARGET_ANSWERS;
    bool labels = rnnd__task_is_categorical(m->spec.task) &&
                  !rnnd__task_has_strings(m->spec.task);
    if (!(smoothing >= 0 && smoothing <= 1))
        return rnnd__fail(RNND_EUSAGE, "label smoothing of %g is not between 0 and 1",
                          smoothing);
    if ((weight && !labels && !answers) || (smoothing > 0 && !labels))
        return rnnd__fail(RNND_EUSAGE, "the loss of task %s has no %s",
                          rnnd_task_name(m->spec.task),
                          weight && !answers ? "class weights" : "label smoothing");
    for (int64_t k = 0; weight && k < m->spec.outputs; k++)
        if (!(weight[k] >= 0 && isfinite(weight[k])))
            return rnnd__fail(RNND_EUSAGE,
                              "weight %lld is %g: a weight is finite and not negative",
                              (long long)k, (double)weight[k]);
    return 0;
}

int rnnd_model_weigh(struct rnnd_model *m, const float *weight, double smoothing)
{
    struct rnnd__head *h = &m->head;
    struct rnnd__buf copy = {NULL};
    RNND_TRY(check_weights(m, weight, smoothing));
    if (weight) {
        RNND_TRY(rnnd__device_alloc(m->be, &copy, h->outputs));
        m->be->ops->upload(m->be, copy, weight, (size_t)h->outputs * sizeof *weight);
        /* the caller's memory is free for other use once all is there */
        int status = rnnd__device_sync(m->be);
        if (status < 0) {
            rnnd__device_free(m->be, &copy);
            return status;
        }
    }
    rnnd__device_free(m->be, &h->class_weight);
    h->class_weight = copy;
    h->smoothing = smoothing;
    h->weights = 0;
    for (int64_t k = 0; k < h->outputs; k++)
        h->weights += weight ? (double)weight[k] : 1;
    return 0;
}

void rnnd_model_on_scores(struct rnnd_model *m, rnnd_scores_reader reader,
                          void *context)
{
    m->head.reader = reader;
    m->head.reader_context = context;
}

void rnnd_model_on_ready(struct rnnd_model *m, rnnd_bucket_ready ready, void *context)
{
    m->ready = ready;
    m->ready_context = context;
}
