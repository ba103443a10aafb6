/*
 * optim.c - SGD, Adam and AdamW over the flat arena, clipping, learning rate schedules.
 *
 * Gradient sums are the same on all ranks, so every rank makes the same update without
 * communication. Results match torch.optim.
 */
#include "optim/optim.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "device/device.h"
#include "model/params.h"

struct rnnd_optim {
    const struct rnnd__params *params;
    struct rnnd__touched *touched;
    enum rnnd_optimizer kind;
    double momentum, beta1, beta2, eps, decay, clip;
    /* updates so far */
    int64_t steps;
    /* number of moments, 0 .. 2, each like the parameter arena */
    int moments;
    struct rnnd__buf moment[2];
};

int rnnd_optim_new(struct rnnd_model *model, const struct rnnd_options *opt,
                   struct rnnd_optim **out)
{
    struct rnnd_optim *o = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&o, 1, "optimizer"));
    o->params = rnnd__model_params(model);
    o->touched = rnnd__model_touched(model);
    o->kind = opt->optimizer;
    o->momentum = opt->momentum;
    o->beta1 = opt->beta1;
    o->beta2 = opt->beta2;
    o->eps = opt->eps;
    o->decay = opt->weight_decay;
    o->clip = opt->clip_norm;
    o->moments = o->kind == RNND_SGD ? o->momentum > 0 : 2;
    struct rnnd_backend *be = o->params->be;
    for (int i = 0; i < o->moments; i++) {
        RNND_TRY_GOTO(rnnd__device_alloc(be, &o->moment[i], o->params->count));
        rnnd__params_zero(o->params, o->moment[i]);
    }
    *out = o;
    return 0;
done:
    rnnd_optim_free(o);
    return status;
}

void rnnd_optim_free(struct rnnd_optim *o)
{
    if (!o)
        return;
    for (int i = 0; i < o->moments; i++)
        rnnd__device_free(o->params->be, &o->moment[i]);
    free(o);
}

/* What differs between updates, and between dense and sparse gradients. */
struct step {
    double lr, gscale, eps;
};

/* Updates n elements from `at` on. */
static void apply_to(struct rnnd_optim *o, const struct step *step, int64_t at,
                     int64_t n)
{
    const struct rnnd__params *p = o->params;
    const struct rnnd__backend_ops *op = p->be->ops;
    struct rnnd__buf value = rnnd__at(p->value, at), grad = rnnd__at(p->grad, at);
    struct rnnd__buf moment[2] = {{NULL}, {NULL}};
    for (int i = 0; i < o->moments; i++)
        moment[i] = rnnd__at(o->moment[i], at);
    if (o->kind == RNND_SGD) {
        struct rnnd__sgd sgd = {.n = n,
                                .lr = step->lr,
                                .momentum = o->momentum,
                                .decay = o->decay,
                                .gscale = step->gscale,
                                .first = o->steps == 1};
        op->sgd(p->be, &sgd, value, grad, moment[0]);
        return;
    }
    struct rnnd__adam adam = {.n = n,
                              .lr = step->lr,
                              .beta1 = o->beta1,
                              .beta2 = o->beta2,
                              .eps = step->eps,
                              .decay = o->decay,
                              .gscale = step->gscale,
                              .decoupled = o->kind == RNND_ADAMW,
                              .step = o->steps};
    op->adam(p->be, &adam, value, grad, moment[0], moment[1]);
}

/* Dense gradients first, then the touched rows, whose moments are left as they are
   between their updates. SparseAdam of torch adds eps to the root of the second moment
   before bias correction, Adam after it. */
static void apply(struct rnnd_optim *o, double lr, double gscale)
{
    const struct rnnd__touched *t = &o->params->touched;
    struct step step = {.lr = lr, .gscale = gscale, .eps = o->eps};
    apply_to(o, &step, 0, rnnd__params_dense(o->params));
    step.eps /= sqrt(1 - pow(o->beta2, (double)o->steps));
    for (int64_t i = 0; i < t->count; i++)
        apply_to(o, &step, rnnd__touched_at(t, i), t->cols);
}

/* Rows that were not touched have gradient 0. */
static int sum_squares(const struct rnnd__params *p, double *squares)
{
    const struct rnnd__touched *t = &p->touched;
    double sum, row;
    RNND_TRY(rnnd__device_status(
        p->be, p->be->ops->sum_sq(p->be, rnnd__params_dense(p), &sum, p->grad)));
    for (int64_t i = 0; i < t->count; i++) {
        struct rnnd__buf grad = rnnd__at(p->grad, rnnd__touched_at(t, i));
        RNND_TRY(
            rnnd__device_status(p->be, p->be->ops->sum_sq(p->be, t->cols, &row, grad)));
        sum += row;
    }
    *squares = sum;
    return 0;
}

int rnnd_optim_step(struct rnnd_optim *o, const struct rnnd_loss *loss, double lr,
                    double *grad_norm)
{
    double squares;
    rnnd__touched_settle(o->touched);
    RNND_TRY(sum_squares(o->params, &squares));
    if (!isfinite(loss->loss) || !isfinite(squares))
        return rnnd__fail(RNND_ENONFINITE, "the %s is not finite",
                          isfinite(loss->loss) ? "gradient" : "loss");
    if (loss->weight == 0) {
        *grad_norm = 0;
        return 0;
    }
    double norm = sqrt(squares) / loss->weight, factor = 1;
    if (o->clip > 0 && o->clip < norm + 1e-6)
        factor = o->clip / (norm + 1e-6);
    o->steps++;
    apply(o, lr, factor / loss->weight);
    *grad_norm = norm;
    return 0;
}

int rnnd__optim_moments(const struct rnnd_optim *o)
{
    return o->moments;
}

const char *rnnd__optim_moment_name(const struct rnnd_optim *o, int i)
{
    static const char *const adam[] = {"exp_avg", "exp_avg_sq"};
    return o->kind == RNND_SGD ? "momentum_buffer" : adam[i];
}

struct rnnd__buf rnnd__optim_moment(const struct rnnd_optim *o, int i)
{
    return o->moment[i];
}

int64_t rnnd__optim_step_count(const struct rnnd_optim *o)
{
    return o->steps;
}

void rnnd__optim_set_step_count(struct rnnd_optim *o, int64_t count)
{
    o->steps = count;
}

/* ---- schedules */

static double cosine_progress(const struct rnnd_options *opt,
                              const struct rnnd__schedule_point *at)
{
    double p = opt->max_updates ? (double)at->update / (double)opt->max_updates
                                : ((double)at->epoch + at->part) / (double)opt->epochs;
    return p < 1 ? p : 1;
}

double rnnd__learning_rate(const struct rnnd_options *opt,
                           const struct rnnd__schedule_point *at)
{
    double lr = opt->lr;
    switch (opt->lr_schedule) {
    case RNND_CONSTANT_LR:
        break;
    case RNND_STEP_LR:
        lr *= pow(opt->lr_decay, (double)(at->epoch / opt->lr_step));
        break;
    case RNND_PLATEAU_LR:
        lr *= at->plateau_factor;
        break;
    case RNND_COSINE_LR:
        lr *= (1 + cos(M_PI * cosine_progress(opt, at))) / 2;
        break;
    }
    double warm = (double)(at->update + 1) / (double)opt->warmup;
    return opt->warmup && warm < 1 ? lr * warm : lr;
}

bool rnnd__watch_epoch(struct rnnd__watch *w, double loss, double relative,
                       int64_t patience)
{
    /* Before the first epoch any number is an improvement. */
    bool better = isinf(w->best) ? !isnan(loss) : loss < w->best * (1 - relative);
    if (better) {
        w->best = loss;
        w->count = 0;
        return false;
    }
    return ++w->count >= patience;
}
