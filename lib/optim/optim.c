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

static void apply(struct rnnd_optim *o, double lr, double gscale)
{
    const struct rnnd__params *p = o->params;
    const struct rnnd__backend_ops *op = p->be->ops;
    if (o->kind == RNND_SGD) {
        struct rnnd__sgd sgd = {.n = p->count,
                                .lr = lr,
                                .momentum = o->momentum,
                                .decay = o->decay,
                                .gscale = gscale,
                                .first = o->steps == 1};
        op->sgd(p->be, &sgd, p->value, p->grad, o->moment[0]);
        return;
    }
    struct rnnd__adam adam = {.n = p->count,
                              .lr = lr,
                              .beta1 = o->beta1,
                              .beta2 = o->beta2,
                              .eps = o->eps,
                              .decay = o->decay,
                              .gscale = gscale,
                              .decoupled = o->kind == RNND_ADAMW,
                              .step = o->steps};
    op->adam(p->be, &adam, p->value, p->grad, o->moment[0], o->moment[1]);
}

int rnnd_optim_step(struct rnnd_optim *o, const struct rnnd_loss *loss, double lr,
                    double *grad_norm)
{
    const struct rnnd__params *p = o->params;
    double squares;
    RNND_TRY(rnnd__device_status(
        p->be, p->be->ops->sum_sq(p->be, p->count, &squares, p->grad)));
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
