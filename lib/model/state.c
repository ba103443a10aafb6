/*
 * state.c - hidden states carried from window to window: the one that passes read, and
 * the one that they write.
 */
#include <stdlib.h>

#include "base/status.h"
#include "device/device.h"
#include "model/model.h"

static int64_t state_floats(const struct rnnd_state *s)
{
    const struct rnnd_model_spec *spec = &s->model->spec;
    return spec->layers * s->model->D * s->rows * spec->hidden;
}

static size_t state_bytes(const struct rnnd_state *s)
{
    return (size_t)state_floats(s) * sizeof(float);
}

int rnnd_state_new(struct rnnd_model *m, int64_t sequences, struct rnnd_state **out)
{
    struct rnnd_state *s = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&s, 1, "hidden states"));
    s->model = m;
    s->rows = sequences;
    for (int k = 0; k <= RNND_STATE_MARKED; k++) {
        RNND_TRY_GOTO(rnnd__device_alloc(m->be, &s->h[k], state_floats(s)));
        if (m->spec.cell == RNND_LSTM)
            RNND_TRY_GOTO(rnnd__device_alloc(m->be, &s->c[k], state_floats(s)));
    }
    rnnd_state_zero(s);
    *out = s;
    return 0;
done:
    rnnd_state_free(s);
    return status;
}

void rnnd_state_free(struct rnnd_state *s)
{
    if (!s)
        return;
    for (int k = 0; k <= RNND_STATE_MARKED; k++) {
        rnnd__device_free(s->model->be, &s->h[k]);
        rnnd__device_free(s->model->be, &s->c[k]);
    }
    free(s);
}

void rnnd_state_zero(struct rnnd_state *s)
{
    size_t bytes = state_bytes(s);
    const struct rnnd__backend_ops *op = s->model->be->ops;
    for (int k = 0; k <= RNND_STATE_MARKED; k++) {
        op->zero(s->model->be, s->h[k], bytes);
        if (!rnnd__buf_is_null(s->c[k]))
            op->zero(s->model->be, s->c[k], bytes);
    }
}

void rnnd_state_advance(struct rnnd_state *s)
{
    s->current = !s->current;
}

static void copy(struct rnnd_state *s, int to, int from)
{
    struct rnnd_backend *be = s->model->be;
    size_t bytes = state_bytes(s);
    be->ops->copy(be, s->h[to], s->h[from], bytes);
    if (!rnnd__buf_is_null(s->c[to]))
        be->ops->copy(be, s->c[to], s->c[from], bytes);
}

void rnnd_state_mark(struct rnnd_state *s)
{
    copy(s, RNND_STATE_MARKED, s->current);
}

void rnnd_state_back(struct rnnd_state *s)
{
    copy(s, s->current, RNND_STATE_MARKED);
}

int rnnd_state_get(struct rnnd_state *s, float *h, float *c)
{
    struct rnnd_backend *be = s->model->be;
    size_t bytes = state_bytes(s);
    RNND_TRY(rnnd__device_download(be, h, s->h[s->current], bytes));
    if (rnnd__buf_is_null(s->c[s->current]))
        return 0;
    return rnnd__device_download(be, c, s->c[s->current], bytes);
}

int rnnd_state_set(struct rnnd_state *s, const float *h, const float *c)
{
    struct rnnd_backend *be = s->model->be;
    size_t bytes = state_bytes(s);
    be->ops->upload(be, s->h[s->current], h, bytes);
    if (!rnnd__buf_is_null(s->c[s->current]))
        be->ops->upload(be, s->c[s->current], c, bytes);
    return rnnd__device_sync(be);
}
