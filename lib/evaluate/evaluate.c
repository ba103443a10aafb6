/*
 * evaluate.c - the loss of a model over a data set, the same on all ranks.
 *
 * Sequences go batch by batch over the ranks; a streaming language model runs lanes
 * with their own carried state. What is computed together, and the order in which it is
 * summed, do not depend on the ranks, nor does any bit of the result. After every pool
 * the ranks agree to go on, so that a signal or a failure on one ends it on all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"
#include "base/status.h"
#include "data/shard.h"
#include "evaluate/sweep.h"

enum { WINDOWS_BETWEEN_CHECKS = 32 };

/* A signal counts as a failure of this rank here: what was computed is of no use. */
static int agree(struct rnnd_comm *comm, int status)
{
    if (status == 0 && rnnd__signals_received())
        status = rnnd__fail(RNND_STOPPED, "stopped by a signal");
    return rnnd_comm_agree(comm, status);
}

/* ---- sums in one order, whatever the number of ranks */

/* Each part of the work has its place, which the rank that does it fills. The zeros of
   the others change no bit of it, and the parts are added in their order. */
struct tally {
    /* [parts,3] loss, targets, correct */
    double *part;
    int64_t parts;
    double sum[3];
};

static int begin_parts(struct tally *t, int64_t parts)
{
    RNND_TRY(rnnd__grow((size_t)parts, 3 * sizeof *t->part, "losses", &t->part));
    memset(t->part, 0, (size_t)parts * 3 * sizeof *t->part);
    t->parts = parts;
    return 0;
}

static int end_part(struct tally *t, struct rnnd_model *model, int64_t k)
{
    struct rnnd_loss loss;
    RNND_TRY(rnnd_model_take_loss(model, &loss));
    t->part[3 * k] = loss.loss;
    t->part[3 * k + 1] = loss.targets;
    t->part[3 * k + 2] = loss.correct;
    return 0;
}

static int add_parts(struct tally *t, struct rnnd_comm *comm)
{
    RNND_TRY(rnnd_comm_sum(comm, t->part, (int)(3 * t->parts)));
    for (int64_t k = 0; k < t->parts; k++)
        for (int i = 0; i < 3; i++)
            t->sum[i] += t->part[3 * k + i];
    return 0;
}

/* ---- sequences: a part is a batch */

static int run_pool(struct rnnd_model *model, struct rnnd_batch *batch,
                    const struct rnnd__sweep *sweep, struct tally *tally)
{
    static const struct rnnd_pass from_zero;
    RNND_TRY(begin_parts(tally, sweep->batches));
    for (int64_t k = 0; k < sweep->own; k++) {
        const int32_t *ids;
        int64_t count = rnnd__sweep_batch(sweep, sweep->mine[k], &ids);
        RNND_TRY(rnnd_batch_load_sequences(batch, ids, count));
        RNND_TRY(rnnd_model_evaluate(model, batch, &from_zero));
        RNND_TRY(end_part(tally, model, sweep->mine[k]));
    }
    return 0;
}

static int run_sequences(struct rnnd_model *model, struct rnnd_batch *batch,
                         struct rnnd_dataset *data, struct rnnd_comm *comm,
                         const struct rnnd_options *opt, struct tally *tally)
{
    struct rnnd__sweep *sweep = NULL;
    bool more;
    int status = 0;
    RNND_TRY_GOTO(rnnd__sweep_new(opt, data, comm, 0, &sweep));
    RNND_TRY_GOTO(rnnd__sweep_next(sweep, &more));
    while (more) {
        RNND_TRY_GOTO(agree(comm, run_pool(model, batch, sweep, tally)));
        RNND_TRY_GOTO(add_parts(tally, comm));
        RNND_TRY_GOTO(rnnd__sweep_next(sweep, &more));
    }
done:
    rnnd__sweep_free(sweep);
    return status;
}

/* ---- a stream: a part is a block of lanes */

/* Products of other sizes round otherwise: lanes run in blocks that do not depend on
   the ranks, few enough to be worth a product each. */
enum { LANES_A_BLOCK = 8, MOST_BLOCKS = 16 };

static int blocks_of(int64_t lanes)
{
    int64_t blocks = lanes / LANES_A_BLOCK;
    return blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : (int)blocks;
}

static int run_window(struct rnnd_model *model, struct rnnd_batch *batch,
                      struct rnnd__shard *shard, struct rnnd_state *state, int64_t w)
{
    for (int64_t m = 0; m < shard->cuts; m++) {
        const struct rnnd_piece *pieces;
        int64_t count = rnnd__shard_slice(shard, w, m, &pieces);
        struct rnnd_pass pass = {.state = state, .state_row = shard->cut[m]};
        if (count == 0)
            continue;
        RNND_TRY(rnnd_batch_load(batch, pieces, count, w * shard->window));
        RNND_TRY(rnnd_model_evaluate(model, batch, &pass));
    }
    rnnd_state_advance(state);
    return 0;
}

/* One block, or none (shard->rank is no block): every rank joins in what is agreed. */
static int run_block(struct rnnd_model *model, struct rnnd_batch *batch,
                     struct rnnd__shard *shard, struct rnnd_comm *comm,
                     struct tally *tally)
{
    struct rnnd_state *state = NULL;
    bool mine = shard->rank < shard->ranks;
    int status = 0, running = mine ? rnnd_state_new(model, shard->count, &state) : 0;
    for (int64_t w = 0; w < shard->windows; w++) {
        bool last = w + 1 == shard->windows;
        if (running == 0 && mine)
            running = run_window(model, batch, shard, state, w);
        if (running == 0 && mine && last)
            running = end_part(tally, model, shard->rank);
        if ((w + 1) % WINDOWS_BETWEEN_CHECKS == 0 || last)
            RNND_TRY_GOTO(agree(comm, running));
    }
done:
    rnnd_state_free(state);
    return status;
}

static int run_lanes(struct rnnd_model *model, struct rnnd_batch *batch,
                     struct rnnd_dataset *data, struct rnnd_comm *comm,
                     const struct rnnd_options *opt, struct tally *tally)
{
    struct rnnd__shard *shard = NULL;
    int status = 0, rank = rnnd_comm_rank(comm), ranks = rnnd_comm_size(comm);
    RNND_TRY_GOTO(rnnd__shard_new(opt, data, comm, &shard));
    shard->ranks = blocks_of(opt->batch);
    RNND_TRY_GOTO(begin_parts(tally, shard->ranks));
    for (int first = 0; first < shard->ranks; first += ranks) {
        int block = first + rank;
        shard->rank = block < shard->ranks ? block : 0;
        RNND_TRY_GOTO(rnnd__shard_lanes(shard, opt->batch));
        shard->rank = block;
        RNND_TRY_GOTO(run_block(model, batch, shard, comm, tally));
    }
    RNND_TRY_GOTO(add_parts(tally, comm));
done:
    rnnd__shard_free(shard);
    return status;
}

static void measure(enum rnnd_task task, const struct rnnd_loss *sum,
                    struct rnnd_metrics *out)
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

int rnnd_evaluate(struct rnnd_model *model, struct rnnd_dataset *data,
                  struct rnnd_comm *comm, const struct rnnd_options *opt,
                  struct rnnd_metrics *out)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(model);
    struct rnnd_batch *batch = NULL;
    struct tally tally = {NULL, 0, {0}};
    struct rnnd_loss before;
    int status = 0;
    RNND_TRY(rnnd_model_take_loss(model, &before)); /* a training's sums are not ours */
    RNND_TRY_GOTO(rnnd_batch_new(rnnd_model_backend(model), data, true,
                                 rnnd_model_mean(model), rnnd_model_std(model),
                                 &batch));
    RNND_TRY_GOTO(rnnd_streams(opt, spec->task)
                      ? run_lanes(model, batch, data, comm, opt, &tally)
                      : run_sequences(model, batch, data, comm, opt, &tally));
    struct rnnd_loss sum = {tally.sum[0], tally.sum[1], tally.sum[2]};
    measure(spec->task, &sum, out);
done:
    free(tally.part);
    rnnd_batch_free(batch);
    return status;
}
