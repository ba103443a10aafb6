/*
 * evaluate.c - evaluates a model on a data set, with the same result on all ranks.
 *
 * Ranks share the batches of sequences; a streaming language model runs lanes with
 * their own carried state. What is computed together, and the order in which losses are
 * added, do not depend on the ranks, so neither does any bit of the result. Ranks agree
 * after every pool, or every few windows: a signal or failure on one ends it on all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"
#include "base/status.h"
#include "base/task.h"
#include "data/shard.h"
#include "evaluate/sweep.h"

enum { WINDOWS_BETWEEN_CHECKS = 32 };

struct evaluation {
    struct rnnd_model *model;
    struct rnnd_dataset *data;
    struct rnnd_comm *comm;
    const struct rnnd_options *opt;
    struct rnnd_batch *batch;
    struct rnnd_loss_sums *loss;
    /* [parts] losses. Each part of the work is computed by one rank; the zeros of the
       other ranks change no bit of it, and parts are added in order, for any number of
       ranks. */
    struct rnnd_loss *part;
    int64_t parts;
    struct rnnd_loss sum;
};

/* A signal counts as a failure of this rank: a partial result is useless. */
static int agree(struct rnnd_comm *comm, int status)
{
    if (status == 0 && rnnd__signals_received())
        status = rnnd__fail(RNND_STOPPED, "stopped by a signal");
    return rnnd_comm_agree(comm, status);
}

/* ---- sums in one order */

static int begin_parts(struct evaluation *e, int64_t parts)
{
    RNND_TRY(RNND_GROW(&e->part, parts, "losses"));
    memset(e->part, 0, (size_t)parts * sizeof *e->part);
    e->parts = parts;
    return 0;
}

static int end_part(struct evaluation *e, int64_t k)
{
    return rnnd_loss_sums_take(e->loss, &e->part[k]);
}

/* A loss is summed over ranks as three doubles. */
enum { LOSS_DOUBLES = sizeof(struct rnnd_loss) / sizeof(double) };

static int add_parts(struct evaluation *e)
{
    RNND_TRY(rnnd_comm_sum(e->comm, (double *)e->part, (int)(LOSS_DOUBLES * e->parts)));
    for (int64_t k = 0; k < e->parts; k++) {
        e->sum.loss += e->part[k].loss;
        e->sum.targets += e->part[k].targets;
        e->sum.correct += e->part[k].correct;
    }
    return 0;
}

/* ---- sequences: a part is a batch */

static int run_pool(struct evaluation *e, const struct rnnd__sweep *sweep)
{
    static const struct rnnd_pass from_zero;
    RNND_TRY(begin_parts(e, sweep->batches));
    for (int64_t k = 0; k < sweep->own; k++) {
        const int32_t *ids;
        int64_t count = rnnd__sweep_batch(sweep, sweep->mine[k], &ids);
        RNND_TRY(rnnd_batch_load_sequences(e->batch, ids, count));
        RNND_TRY(rnnd_model_evaluate(e->model, e->batch, &from_zero, e->loss));
        RNND_TRY(end_part(e, sweep->mine[k]));
    }
    return 0;
}

static int run_sequences(struct evaluation *e)
{
    struct rnnd__sweep *sweep = NULL;
    bool more;
    int status = 0;
    RNND_TRY_GOTO(rnnd__sweep_new(e->opt, e->data, e->comm, 0, &sweep));
    RNND_TRY_GOTO(rnnd__sweep_next(sweep, &more));
    while (more) {
        RNND_TRY_GOTO(agree(e->comm, run_pool(e, sweep)));
        RNND_TRY_GOTO(add_parts(e));
        RNND_TRY_GOTO(rnnd__sweep_next(sweep, &more));
    }
done:
    rnnd__sweep_free(sweep);
    return status;
}

/* ---- a stream: a part is a block of lanes */

/* Matrix products of different sizes round differently. Lanes therefore run in blocks
   that do not depend on the ranks, few enough to keep products large. */
enum { LANES_A_BLOCK = 8, MOST_BLOCKS = 16 };

static int blocks_of(int64_t lanes)
{
    int64_t blocks = lanes / LANES_A_BLOCK;
    return blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : (int)blocks;
}

static int run_window(struct evaluation *e, struct rnnd__shard *lanes,
                      struct rnnd_state *state, int64_t w)
{
    for (int64_t m = 0; m < lanes->cuts; m++) {
        const struct rnnd_piece *pieces;
        int64_t count = rnnd__shard_slice(lanes, w, m, &pieces);
        struct rnnd_pass pass = {.state = state, .state_row = lanes->cut[m]};
        if (count == 0)
            continue;
        RNND_TRY(rnnd_batch_load(e->batch, pieces, count, w * lanes->window));
        RNND_TRY(rnnd_model_evaluate(e->model, e->batch, &pass, e->loss));
    }
    rnnd_state_advance(state);
    return 0;
}

/* Runs all windows of a block. A rank without a block (idle) only takes part in the
   agreements of the others. */
static int run_block(struct evaluation *e, struct rnnd__shard *lanes, bool idle)
{
    struct rnnd_state *state = NULL;
    int status = 0, running = idle ? 0 : rnnd_state_new(e->model, lanes->count, &state);
    for (int64_t w = 0; w < lanes->windows; w++) {
        bool last = w + 1 == lanes->windows;
        if (running == 0 && !idle)
            running = run_window(e, lanes, state, w);
        if (running == 0 && !idle && last)
            running = end_part(e, lanes->part);
        if ((w + 1) % WINDOWS_BETWEEN_CHECKS == 0 || last)
            RNND_TRY_GOTO(agree(e->comm, running));
    }
done:
    rnnd_state_free(state);
    return status;
}

static int run_lanes(struct evaluation *e)
{
    struct rnnd__shard *lanes = NULL;
    int status = 0, rank = rnnd_comm_rank(e->comm), ranks = rnnd_comm_size(e->comm);
    int blocks = blocks_of(e->opt->batch);
    RNND_TRY_GOTO(begin_parts(e, blocks));
    for (int first = 0; first < blocks; first += ranks) {
        int block = first + rank;
        bool idle = block >= blocks;
        rnnd__shard_free(lanes);
        lanes = NULL;
        RNND_TRY_GOTO(
            rnnd__shard_new(e->opt, e->data, idle ? 0 : block, blocks, &lanes));
        RNND_TRY_GOTO(rnnd__shard_lanes(lanes, e->opt->batch));
        RNND_TRY_GOTO(run_block(e, lanes, idle));
    }
    RNND_TRY_GOTO(add_parts(e));
done:
    rnnd__shard_free(lanes);
    return status;
}

/* unknown: targets of classes that the model does not know, and so gets wrong. */
static void measure(enum rnnd_task task, const struct rnnd_loss *sum, int64_t unknown,
                    struct rnnd_metrics *out)
{
    const struct rnnd__task_traits *traits = rnnd__task(task);
    double mean = sum->loss / sum->targets, value = mean;
    if (traits->target == RNND__TARGET_CLASS)
        value = sum->correct / (sum->targets + (double)unknown);
    else if (traits->target == RNND__TARGET_VALUES)
        value = sqrt(mean);
    else if (traits->target == RNND__TARGET_TOKEN)
        value = exp(mean);
    *out = (struct rnnd_metrics){.loss = mean,
                                 .targets = (int64_t)sum->targets,
                                 .metric = traits->metric,
                                 .value = value};
}

int rnnd_evaluate(struct rnnd_model *model, struct rnnd_dataset *data,
                  struct rnnd_comm *comm, const struct rnnd_options *opt,
                  struct rnnd_metrics *out)
{
    struct evaluation e = {.model = model, .data = data, .comm = comm, .opt = opt};
    struct rnnd_backend *be = rnnd_model_backend(model);
    enum rnnd_task task = rnnd_model_spec(model)->task;
    int status = 0;
    RNND_TRY_GOTO(rnnd_loss_sums_new(be, &e.loss));
    RNND_TRY_GOTO(rnnd_batch_new(be, data, true, rnnd_model_mean(model),
                                 rnnd_model_std(model), &e.batch));
    RNND_TRY_GOTO(rnnd_streams(opt, task) ? run_lanes(&e) : run_sequences(&e));
    measure(task, &e.sum, rnnd_dataset_info(data)->unknown_targets, out);
done:
    free(e.part);
    rnnd_batch_free(e.batch);
    rnnd_loss_sums_free(e.loss);
    return status;
}
