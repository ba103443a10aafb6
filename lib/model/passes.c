/*
 * passes.c - the passes of a model over a packed batch: forward, loss, backward.
 *
 * Adds gradient sums to the gradient arena and the loss to the caller's sums, and
 * announces gradients as soon as they are final. Means, norms and updates are computed
 * elsewhere, from sums over all ranks.
 */
#include "base/random.h"
#include "base/status.h"
#include "base/timeline.h"
#include "device/device.h"
#include "model/model.h"

static const struct rnnd__buf none = {NULL};

static struct rnnd__buf state_at(const struct rnnd_state *s,
                                 const struct rnnd__buf *half, int which, int place,
                                 int64_t row)
{
    return rnnd__buf_is_null(half[which])
               ? none
               : rnnd__at(half[which], (place * s->rows + row) * s->model->spec.hidden);
}

static struct rnnd__layer_state layer_state(const struct rnnd_model *m,
                                            const struct rnnd_pass *pass, int l)
{
    struct rnnd__layer_state s = {
        {none, none}, {none, none}, {none, none}, {none, none}};
    const struct rnnd_state *state = pass->state;
    for (int d = 0; state && d < m->D; d++) {
        int place = l * m->D + d, now = state->current;
        s.h0[d] = state_at(state, state->h, now, place, pass->state_row);
        s.c0[d] = state_at(state, state->c, now, place, pass->state_row);
        s.hn[d] = state_at(state, state->h, !now, place, pass->state_row);
        s.cn[d] = state_at(state, state->c, !now, place, pass->state_row);
    }
    return s;
}

static void drop(const struct rnnd_model *m, const struct rnnd__dropout *mask,
                 struct rnnd__buf out, struct rnnd__buf in)
{
    if (mask->p > 0)
        m->be->ops->dropout(m->be, mask, out, in);
}

/* The dropout mask of one place in the stack: 0 is the embedding, 1+l the output of
   layer l, 1+L the input of the head. */
static struct rnnd__dropout mask_at(const struct rnnd_model *m,
                                    const struct rnnd_batch *batch,
                                    const struct rnnd_pass *pass, int place, double p)
{
    return (struct rnnd__dropout){
        .p = p,
        .kind = m->spec.dropout_kind,
        .batch = &batch->packed,
        .key = rnnd__random_key(pass->seed, RNND_FOR_DROPOUT, place,
                                (uint64_t)pass->update),
        .cols = place == 0 ? m->spec.embed : rnnd__model_width(m),
        .by_sequence = place > m->spec.layers && !rnnd__model_is_stepwise(m)};
}

/* The mask of the output of layer l; for the top layer that of the head's input. */
static struct rnnd__dropout mask_after(const struct rnnd_model *m,
                                       const struct rnnd_batch *batch,
                                       const struct rnnd_pass *pass, int l)
{
    int place = l == m->spec.layers - 1 ? l + 2 : l + 1;
    return mask_at(m, batch, pass, place, rnnd__model_dropout_after(m, l));
}

static struct rnnd__dropout mask_of_embedding(const struct rnnd_model *m,
                                              const struct rnnd_batch *batch,
                                              const struct rnnd_pass *pass)
{
    return mask_at(m, batch, pass, 0, m->spec.dropout_embed);
}

static struct rnnd__dropout mask_of_pooled(const struct rnnd_model *m,
                                           const struct rnnd_batch *batch,
                                           const struct rnnd_pass *pass)
{
    return mask_at(m, batch, pass, (int)m->spec.layers + 1, m->spec.dropout_head);
}

/* The output of layer l, after dropout in training. */
static struct rnnd__buf layer_output(const struct rnnd_model *m, int l, bool training)
{
    bool dropped = training && rnnd__model_dropout_after(m, l) > 0;
    return dropped ? m->dropped[l] : m->layer[l].y;
}

/* The input of layer l. */
static struct rnnd__buf layer_input(const struct rnnd_model *m,
                                    const struct rnnd_batch *batch, int l,
                                    bool training)
{
    if (l == 0)
        return rnnd__model_reads_tokens(m) ? m->embedded : batch->inputs;
    return layer_output(m, l - 1, training);
}

/* The input of the head, [N or R, D*H]. */
static struct rnnd__buf head_input(const struct rnnd_model *m, bool training)
{
    if (!rnnd__model_is_stepwise(m))
        return m->pooled;
    return layer_output(m, (int)m->spec.layers - 1, training);
}

static void embed(struct rnnd_model *m, struct rnnd_batch *batch,
                  const struct rnnd_pass *pass, bool training)
{
    struct rnnd__moment mark = rnnd__timeline_now();
    m->be->ops->embed_gather(m->be, batch->packed.R, m->spec.embed, m->embedded,
                             rnnd__at(m->params.value, m->embed_weight), batch->inputs);
    struct rnnd__dropout mask = mask_of_embedding(m, batch, pass);
    if (training)
        drop(m, &mask, m->embedded, m->embedded);
    rnnd__timeline_mark(RNND_WORK_EMBEDDING, false, -1, mark);
}

static void layer_forward(struct rnnd_model *m, struct rnnd_batch *batch,
                          const struct rnnd_pass *pass, int l, bool training)
{
    struct rnnd__moment mark = rnnd__timeline_now();
    struct rnnd__layer_state state = layer_state(m, pass, l);
    rnnd__recurrent_forward(&m->layer[l], &m->params, &batch->packed,
                            layer_input(m, batch, l, training), &state, m->scratch);
    struct rnnd__dropout mask = mask_after(m, batch, pass, l);
    if (training)
        drop(m, &mask, m->dropped[l], m->layer[l].y);
    rnnd__timeline_mark(RNND_WORK_RECURRENT, false, l, mark);
}

static void forward(struct rnnd_model *m, struct rnnd_batch *batch,
                    const struct rnnd_pass *pass, bool training)
{
    int layers = (int)m->spec.layers;
    if (rnnd__model_reads_tokens(m))
        embed(m, batch, pass, training);
    for (int l = 0; l < layers; l++)
        layer_forward(m, batch, pass, l, training);
    if (rnnd__model_is_stepwise(m))
        return;
    struct rnnd__pooling pooling = {m->spec.pool, m->D, m->spec.hidden, &batch->packed};
    m->be->ops->pool(m->be, &pooling, m->pooled, m->argmax, m->layer[layers - 1].y);
    struct rnnd__dropout mask = mask_of_pooled(m, batch, pass);
    if (training)
        drop(m, &mask, m->pooled, m->pooled);
}

static int announce(struct rnnd_model *m, bool last, int64_t from, int64_t to)
{
    return last && m->ready ? m->ready(m->ready_context, from, to - from) : 0;
}

/* The end of the parameters of layer l in the arena; layers above come before it. */
static int64_t layer_end(const struct rnnd_model *m, int l)
{
    if (l > 0)
        return m->layer[l - 1].w_ih[0];
    return rnnd__model_reads_tokens(m) ? m->embed_weight : m->params.count;
}

/* What a layer's time loop gives: all but w_ih. */
static int announce_loop(struct rnnd_model *m, bool last, int l)
{
    const struct rnnd__recurrent *r = &m->layer[l];
    for (int d = 0; d < r->D; d++) {
        int64_t end = d + 1 < r->D ? r->w_ih[d + 1] : layer_end(m, l);
        RNND_TRY(announce(m, last, r->w_hh[d], end));
    }
    return 0;
}

static int announce_input(struct rnnd_model *m, bool last, int l)
{
    const struct rnnd__recurrent *r = &m->layer[l];
    for (int d = 0; d < r->D; d++)
        RNND_TRY(announce(m, last, r->w_ih[d], r->w_hh[d]));
    return 0;
}

/* As the backward pass does. */
int rnnd_model_announce(struct rnnd_model *m)
{
    int64_t end = layer_end(m, 0);
    RNND_TRY(announce(m, true, 0, m->layer[m->spec.layers - 1].w_ih[0]));
    for (int l = (int)m->spec.layers - 1; l >= 0; l--) {
        RNND_TRY(announce_loop(m, true, l));
        RNND_TRY(announce_input(m, true, l));
    }
    return end < m->params.count ? announce(m, true, end, m->params.count) : 0;
}

/* Adds the loss, and computes the gradient of the top layer's output in dy. */
static void head_backward(struct rnnd_model *m, struct rnnd_batch *batch,
                          const struct rnnd_pass *pass, struct rnnd_loss_sums *loss)
{
    const struct rnnd__backend_ops *op = m->be->ops;
    const struct rnnd__packed *p = &batch->packed;
    int top = (int)m->spec.layers - 1;
    if (rnnd__model_is_stepwise(m)) {
        rnnd__head_gradient(&m->head, &m->params, p->R, loss->sums, m->dy,
                            head_input(m, true), batch);
        struct rnnd__dropout mask = mask_after(m, batch, pass, top);
        drop(m, &mask, m->dy, m->dy);
        return;
    }
    struct rnnd__pooling pooling = {m->spec.pool, m->D, m->spec.hidden, p};
    struct rnnd__dropout mask = mask_of_pooled(m, batch, pass);
    rnnd__head_gradient(&m->head, &m->params, p->N, loss->sums, m->dpooled, m->pooled,
                        batch);
    drop(m, &mask, m->dpooled, m->dpooled);
    op->pool_backward(m->be, &pooling, m->dy, m->dpooled, m->argmax);
}

void rnnd__model_touch_rows(struct rnnd_model *m)
{
    m->params.touched = (struct rnnd__touched){
        .on = true, .begin = m->embed_weight, .cols = m->spec.embed};
}

struct rnnd__touched *rnnd__model_touched(struct rnnd_model *m)
{
    return &m->params.touched;
}

static int embedding_backward(struct rnnd_model *m, struct rnnd_batch *batch,
                              const struct rnnd_pass *pass)
{
    const struct rnnd__backend_ops *op = m->be->ops;
    struct rnnd__moment mark = rnnd__timeline_now();
    struct rnnd__dropout mask = mask_of_embedding(m, batch, pass);
    RNND_TRY(rnnd__batch_sort_tokens(batch));
    if (m->params.touched.on)
        RNND_TRY(
            rnnd__touched_add(&m->params.touched, batch->token, batch->segments.count));
    drop(m, &mask, m->dy, m->dy);
    op->embed_scatter_add(m->be, m->spec.embed,
                          rnnd__at(m->params.grad, m->embed_weight), m->dy,
                          &batch->segments);
    rnnd__timeline_mark(RNND_WORK_EMBEDDING, true, -1, mark);
    return announce(m, pass->last, m->embed_weight, m->params.count);
}

/* Replaces dy, the gradient of the output of layer l, by that of its input. Gradients
   of the time loop are announced before those of the input's weights are computed: a
   sum of the ones can run beside the others. */
static int layer_backward(struct rnnd_model *m, struct rnnd_batch *batch,
                          const struct rnnd_pass *pass, int l)
{
    struct rnnd__moment mark = rnnd__timeline_now();
    struct rnnd__layer_state state = layer_state(m, pass, l);
    bool below = l > 0 || rnnd__model_reads_tokens(m);
    rnnd__recurrent_backward(&m->layer[l], &m->params, &batch->packed, m->dy, &state,
                             m->scratch);
    RNND_TRY(announce_loop(m, pass->last, l));
    rnnd__recurrent_input(&m->layer[l], &m->params, &batch->packed,
                          below ? m->dx : none, layer_input(m, batch, l, true));
    RNND_TRY(announce_input(m, pass->last, l));
    struct rnnd__buf swap = m->dy;
    m->dy = m->dx;
    m->dx = swap;
    if (l > 0) {
        struct rnnd__dropout mask = mask_after(m, batch, pass, l - 1);
        drop(m, &mask, m->dy, m->dy);
    }
    rnnd__timeline_mark(RNND_WORK_RECURRENT, true, l, mark);
    return 0;
}

static int backward(struct rnnd_model *m, struct rnnd_batch *batch,
                    const struct rnnd_pass *pass, struct rnnd_loss_sums *loss)
{
    struct rnnd__moment mark = rnnd__timeline_now();
    head_backward(m, batch, pass, loss);
    rnnd__timeline_mark(RNND_WORK_HEAD, false, -1, mark);
    RNND_TRY(announce(m, pass->last, 0, m->layer[m->spec.layers - 1].w_ih[0]));
    for (int l = (int)m->spec.layers - 1; l >= 0; l--)
        RNND_TRY(layer_backward(m, batch, pass, l));
    return rnnd__model_reads_tokens(m) ? embedding_backward(m, batch, pass) : 0;
}

static int reserve_for(struct rnnd_model *m, const struct rnnd_batch *batch,
                       bool training)
{
    const struct rnnd__packed *p = &batch->packed;
    struct rnnd_limits need = {p->N, p->T, p->R, batch->strings.longest};
    return rnnd_model_reserve(m, &need, training);
}

int rnnd_model_gradient(struct rnnd_model *m, struct rnnd_batch *batch,
                        const struct rnnd_pass *pass, struct rnnd_loss_sums *loss)
{
    RNND_TRY(reserve_for(m, batch, true));
    forward(m, batch, pass, true);
    return backward(m, batch, pass, loss);
}

int rnnd_model_evaluate(struct rnnd_model *m, struct rnnd_batch *batch,
                        const struct rnnd_pass *pass, struct rnnd_loss_sums *loss)
{
    int64_t rows = rnnd__model_is_stepwise(m) ? batch->packed.R : batch->packed.N;
    RNND_TRY(reserve_for(m, batch, false));
    forward(m, batch, pass, false);
    return rnnd__head_evaluate(&m->head, &m->params, rows, loss->sums,
                               head_input(m, false), batch);
}

int rnnd_model_scores(struct rnnd_model *m, struct rnnd_batch *batch,
                      const struct rnnd_pass *pass, float *out)
{
    static const struct rnnd_pass from_zero;
    int64_t rows = rnnd__model_is_stepwise(m) ? batch->packed.R : batch->packed.N;
    RNND_TRY(reserve_for(m, batch, false));
    forward(m, batch, pass ? pass : &from_zero, false);
    return rnnd__head_scores(&m->head, &m->params, rows, out, head_input(m, false));
}
