/*
 * evaluate.c - evaluates a model on a data set, with the same result on all ranks:
 * loss and figures.
 *
 * Ranks share the batches of sequences; a streaming language model runs lanes with
 * their own carried state. What is computed together, and the order in which losses are
 * added, do not depend on the ranks, so neither does any bit of the result. Ranks agree
 * after every pool, or every few windows: a signal or failure on one ends it on all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"
#include "base/status.h"
#include "base/task.h"
#include "data/shard.h"
#include "evaluate/figures.h"
#include "evaluate/sweep.h"
#include "evaluate/transcribe.h"

enum { WINDOWS_BETWEEN_CHECKS = 32 };

struct evaluation {
    struct rnnd_model *model;
    struct rnnd_dataset *data;
    struct rnnd_comm *comm;
    const struct rnnd_options *opt;
    struct rnnd_batch *batch;
    struct rnnd_loss_sums *loss;
    struct rnnd__figures *figures;
    /* ctc, else NULL */
    struct rnnd__transcriber *transcriber;
    /* [parts, width] a loss and what figures sum by part. Each part of the work is
       computed by one rank; the zeros of the other ranks change no bit of it, and parts
       are added in order, for any number of ranks. */
    double *part;
    int64_t parts, width;
    /* the part that is computed */
    int64_t current;
    struct rnnd_loss sum;
};

/* A loss is the first three doubles of a part. */
enum { LOSS_DOUBLES = sizeof(struct rnnd_loss) / sizeof(double) };

/* A signal counts as a failure of this rank: a partial result is useless. */
static int agree(struct rnnd_comm *comm, int status)
{
    if (status == 0 && rnnd__signals_received())
        status = rnnd__fail(RNND_STOPPED, "stopped by a signal");
    return rnnd_comm_agree(comm, status);
}

/* ---- sums in one order */

static double *part_at(const struct evaluation *e, int64_t k)
{
    return e->part + k * e->width;
}

static int begin_parts(struct evaluation *e, int64_t parts)
{
    RNND_TRY(RNND_GROW(&e->part, parts * e->width, "losses"));
    memset(e->part, 0, (size_t)(parts * e->width) * sizeof *e->part);
    e->parts = parts;
    return 0;
}

static int end_part(struct evaluation *e, int64_t k)
{
    struct rnnd_loss loss;
    RNND_TRY(rnnd_loss_sums_take(e->loss, &loss));
    memcpy(part_at(e, k), &loss, sizeof loss);
    return 0;
}

static int add_parts(struct evaluation *e)
{
    RNND_TRY(rnnd__figures_sum(e->comm, e->part, e->parts * e->width));
    for (int64_t k = 0; k < e->parts; k++) {
        struct rnnd_loss loss;
        memcpy(&loss, part_at(e, k), sizeof loss);
        e->sum.loss += loss.loss;
        e->sum.targets += loss.targets;
        e->sum.correct += loss.correct;
        rnnd__figures_add_part(e->figures, part_at(e, k) + LOSS_DOUBLES);
    }
    return 0;
}

/* Reads the scores of the current part. */
static int see_scores(void *context, int64_t first, int64_t rows, const float *score)
{
    struct evaluation *e = context;
    const struct rnnd_dataset_info *info = rnnd_dataset_info(e->data);
    if (e->transcriber)
        return rnnd__transcriber_add(e->transcriber, e->batch, score, e->figures);
    /* an element of a target has the same size for all tasks */
    const float *target = rnnd_batch_targets(e->batch);
    target += first * rnnd__task_target_width(info->task, info->outputs);
    return rnnd__figures_add(e->figures, rows, score, target,
                             part_at(e, e->current) + LOSS_DOUBLES);
}

/* ---- sequences: a part is a batch */

static int run_pool(struct evaluation *e, const struct rnnd__sweep *sweep)
{
    static const struct rnnd_pass from_zero;
    RNND_TRY(begin_parts(e, sweep->batches));
    for (int64_t k = 0; k < sweep->own; k++) {
        const int32_t *ids;
        int64_t count = rnnd__sweep_batch(sweep, sweep->mine[k], &ids);
        e->current = sweep->mine[k];
        RNND_TRY(rnnd_batch_load_sequences(e->batch, ids, count));
        RNND_TRY(rnnd_model_evaluate(e->model, e->batch, &from_zero, e->loss));
        RNND_TRY(end_part(e, e->current));
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

static int open_evaluation(struct evaluation *e)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(e->model);
    struct rnnd_backend *be = rnnd_model_backend(e->model);
    RNND_TRY(rnnd_loss_sums_new(be, &e->loss));
    RNND_TRY(rnnd__figures_new(spec->task, spec->outputs,
                               rnnd_dataset_info(e->data)->targets, &e->figures));
    RNND_TRY(rnnd__transcriber_new(e->opt, spec, e->data, &e->transcriber));
    e->width = LOSS_DOUBLES + rnnd__figures_width(e->figures);
    if (rnnd__figures_need_scores(e->figures))
        rnnd_model_on_scores(e->model, see_scores, e);
    return rnnd_batch_new(be, e->data, true, rnnd_model_mean(e->model),
                          rnnd_model_std(e->model), &e->batch);
}

/* The name of a class or answer: the model's, else the data set's. */
static void name_rows(const struct evaluation *e, struct rnnd_metrics *m)
{
    for (int64_t k = 0; m->table && k < m->table->classes; k++) {
        const char *name = rnnd_model_class(e->model, k);
        m->table->row[k].name = name ? name : rnnd_dataset_class(e->data, k);
    }
}

int rnnd_evaluate(struct rnnd_model *model, struct rnnd_dataset *data,
                  struct rnnd_comm *comm, const struct rnnd_options *opt,
                  struct rnnd_metrics *out)
{
    struct evaluation e = {.model = model, .data = data, .comm = comm, .opt = opt};
    int status = 0;
    RNND_TRY_GOTO(rnnd_comm_agree(comm, open_evaluation(&e)));
    RNND_TRY_GOTO(rnnd_streams(opt, rnnd_model_spec(model)->task) ? run_lanes(&e)
                                                                  : run_sequences(&e));
    RNND_TRY_GOTO(rnnd__figures_finish(e.figures, comm, &e.sum,
                                       rnnd_dataset_info(data)->unknown_targets, out));
    name_rows(&e, out);
done:
    if (status == RNND_STOPPED)
        rnnd__signals_forget();
    rnnd_model_on_scores(model, NULL, NULL);
    free(e.part);
    rnnd__transcriber_free(e.transcriber);
    rnnd__figures_free(e.figures);
    rnnd_batch_free(e.batch);
    rnnd_loss_sums_free(e.loss);
    return status;
}
