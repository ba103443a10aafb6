/*
 * evaluate.c - the loss of a model over a data set, the same on all ranks.
 *
 * Sequences go batch by batch over the ranks; a streaming language model runs lanes with
 * their own carried state. Sums are doubles and meet once, at the end; after every pool the
 * ranks agree to go on, so that a signal or a failure on one ends it on all.
 */
#include <math.h>

#include "share.h"
#include "status.h"
#include "stop.h"
#include "walk.h"

enum { WINDOWS_BETWEEN_CHECKS = 32 };

/* A signal counts as a failure of this rank here: what was computed is of no use. */
static int agree(struct rnnd_comm *comm, int status)
{
    if (status == 0 && rnnd_stop_requested())
        status = rnnd_fail(RNND_STOPPED, "stopped by a signal");
    return rnnd_comm_agree(comm, status);
}

static int run_pool(struct rnnd_model *model, struct rnnd_batch *batch,
                    const struct rnnd_walk *walk)
{
    static const struct rnnd_pass from_zero;
    for (int64_t k = 0; k < walk->own; k++) {
        const int32_t *ids;
        int64_t count = rnnd_walk_batch(walk, walk->mine[k], &ids);
        RNND_TRY(rnnd_batch_load_sequences(batch, ids, count));
        RNND_TRY(rnnd_model_evaluate(model, batch, &from_zero));
    }
    return 0;
}

static int run_sequences(struct rnnd_model *model, struct rnnd_batch *batch,
                         struct rnnd_dataset *data, struct rnnd_comm *comm,
                         const struct rnnd_options *opt)
{
    struct rnnd_walk *walk = NULL;
    bool more;
    int status = 0;
    RNND_TRY_GOTO(rnnd_walk_new(opt, data, comm, 0, &walk));
    RNND_TRY_GOTO(rnnd_walk_next(walk, &more));
    while (more) {
        RNND_TRY_GOTO(agree(comm, run_pool(model, batch, walk)));
        RNND_TRY_GOTO(rnnd_walk_next(walk, &more));
    }
done:
    rnnd_walk_free(walk);
    return status;
}

static int run_window(struct rnnd_model *model, struct rnnd_batch *batch,
                      struct rnnd_share *share, struct rnnd_state *state, int64_t w)
{
    for (int64_t m = 0; m < share->cuts; m++) {
        const struct rnnd_piece *pieces;
        int64_t count = rnnd_share_slice(share, w, m, &pieces);
        struct rnnd_pass pass = {.state = state, .state_row = share->cut[m]};
        if (count == 0)
            continue;
        RNND_TRY(rnnd_batch_load(batch, pieces, count, w * share->window));
        RNND_TRY(rnnd_model_evaluate(model, batch, &pass));
    }
    rnnd_state_advance(state);
    return 0;
}

static int run_lanes(struct rnnd_model *model, struct rnnd_batch *batch,
                     struct rnnd_dataset *data, struct rnnd_comm *comm,
                     const struct rnnd_options *opt)
{
    struct rnnd_share *share = NULL;
    struct rnnd_state *state = NULL;
    int status = 0, running = 0;
    RNND_TRY_GOTO(rnnd_share_new(opt, data, comm, &share));
    RNND_TRY_GOTO(rnnd_share_lanes(share, opt->batch));
    RNND_TRY_GOTO(rnnd_state_new(model, share->count, &state));
    for (int64_t w = 0; w < share->windows; w++) {
        if (running == 0)
            running = run_window(model, batch, share, state, w);
        if ((w + 1) % WINDOWS_BETWEEN_CHECKS == 0 || w + 1 == share->windows)
            RNND_TRY_GOTO(agree(comm, running));
    }
done:
    rnnd_state_free(state);
    rnnd_share_free(share);
    return status;
}

static void measure(enum rnnd_task task, const struct rnnd_loss *sum, struct rnnd_metrics *out)
{
    struct rnnd_metrics m = {.loss = sum->loss / sum->targets,
                             .targets = (int64_t)sum->targets};
    switch (task) {
    case RNND_CLASSIFY:
    case RNND_TAG:
        m.metric = "accuracy";
        m.value = sum->correct / sum->targets;
        break;
    case RNND_REGRESS:
    case RNND_REGRESS_STEPS:
        m.metric = "rmse";
        m.value = sqrt(m.loss);
        break;
    case RNND_MULTILABEL:
        m.metric = "nll";
        m.value = m.loss;
        break;
    case RNND_LM:
        m.metric = "perplexity";
        m.value = exp(m.loss);
        break;
    case RNND_NO_TASK:
        break;
    }
    *out = m;
}

bool rnnd_streams(const struct rnnd_options *opt, enum rnnd_task task)
{
    if (task != RNND_LM || opt->tbptt == 0 || opt->stream == RNND_STREAM_NO)
        return false;
    return opt->stream == RNND_STREAM_YES || opt->batch_tokens == 0;
}

int rnnd_evaluate(struct rnnd_model *model, struct rnnd_dataset *data, struct rnnd_comm *comm,
                  const struct rnnd_options *opt, struct rnnd_metrics *out)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(model);
    struct rnnd_batch *batch = NULL;
    struct rnnd_loss sum, before;
    int status = 0;
    RNND_TRY(rnnd_model_take_loss(model, &before)); /* a training's sums are not ours */
    RNND_TRY_GOTO(rnnd_batch_new(rnnd_model_backend(model), data, true, rnnd_model_mean(model),
                                 rnnd_model_std(model), &batch));
    RNND_TRY_GOTO(rnnd_streams(opt, spec->task)
                      ? run_lanes(model, batch, data, comm, opt)
                      : run_sequences(model, batch, data, comm, opt));
    RNND_TRY_GOTO(rnnd_model_take_loss(model, &sum));
    double value[3] = {sum.loss, sum.targets, sum.correct};
    RNND_TRY_GOTO(rnnd_comm_sum(comm, value, 3));
    sum = (struct rnnd_loss){value[0], value[1], value[2]};
    measure(spec->task, &sum, out);
done:
    rnnd_batch_free(batch);
    return status;
}
