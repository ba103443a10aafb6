/*
 * bench.c - whole training updates, timed.
 *
 * The same rooms as in training, without folder and validation. The rate of large
 * products is measured in the same process, so that the share of it that the updates
 * reach does not depend on what else the machine does at the time.
 */
#include "commands/bench.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/timeline.h"
#include "commands/bench_probe.h"
#include "train/gradient.h"
#include "train/setup.h"

enum { WARM_UP = 3, SUMS = 5 };
static const double seconds_wanted = 10;

struct bench {
    struct rnnd__setup setup;
    const struct rnnd_options *opt;
    struct rnnd_comm *comm;
    struct rnnd_state *state;
    int64_t update, epoch, entry, group;
    /* rows: this rank's */
    double rows, straggler, targets, loss;
    struct rnnd__bench_result *out;
};

/* ---- what is needed */

/* Products of one time step, forward and backward. Each forward product has two in the
   backward pass, but none leads to features. */
static double flops_a_row(const struct rnnd_model_spec *s)
{
    double D = s->bidirectional ? 2 : 1, H = (double)s->hidden;
    double GH = (double)rnnd__cell_gates(s->cell) * H, flops = 0;
    for (int64_t l = 0; l < s->layers; l++) {
        double in = l > 0 ? D * H : (double)(s->inputs ? s->inputs : s->embed);
        double passes = l == 0 && s->inputs ? 2 : 3;
        flops += D * 2 * GH * (passes * in + 3 * H);
    }
    if (rnnd_task_is_stepwise(s->task))
        flops += 3 * 2 * D * H * (double)s->outputs;
    return flops;
}

/* ---- updates */

static int begin_entry(struct bench *b)
{
    if (b->setup.streams) {
        RNND_TRY(rnnd__shard_lanes(b->setup.shard, b->opt->batch));
    } else {
        const int32_t *ids;
        int64_t count;
        if (b->entry == 0)
            rnnd_plan_epoch(b->setup.plan, b->epoch);
        rnnd_plan_entry(b->setup.plan, b->entry, &ids, &count);
        RNND_TRY(rnnd__shard_sequences(b->setup.shard, ids, count));
        RNND_TRY(rnnd__prefetch_entry(b->setup.prefetch, b->setup.plan, b->entry + 1));
    }
    if (!b->opt->tbptt)
        return 0;
    rnnd_state_free(b->state);
    b->state = NULL;
    return rnnd_state_new(b->setup.model, b->setup.shard->members, &b->state);
}

static void advance(struct bench *b, int64_t end)
{
    b->update++;
    b->group++;
    if (end < b->setup.shard->windows)
        return;
    b->group = 0;
    b->entry++;
    if (b->setup.streams || b->entry == rnnd_plan_entries(b->setup.plan)) {
        b->entry = 0;
        b->epoch++;
    }
}

static double own_rows(const struct bench *b, int64_t first, int64_t end)
{
    const struct rnnd__shard *s = b->setup.shard;
    double rows = 0;
    for (int64_t j = 0; j < s->count; j++) {
        int64_t length = s->piece[j].length, from = first * s->window,
                to = end * s->window;
        if (!s->window)
            rows += (double)length;
        else if (length > from)
            rows += (double)((length < to ? length : to) - from);
    }
    return rows;
}

static int update(struct bench *b)
{
    struct rnnd__gradient gradient = {.model = b->setup.model,
                                      .batch = b->setup.batch,
                                      .shard = b->setup.shard,
                                      .seed = (uint64_t)b->opt->seed,
                                      .update = b->update,
                                      .index = b->group};
    struct rnnd_loss loss = {0, 0, 0};
    double norm;
    int status = b->group == 0 ? begin_entry(b) : 0;
    int64_t end, first = rnnd__shard_windows(b->setup.shard, b->group, &end);
    gradient.state = b->state;
    if (status == 0 && b->setup.streams)
        rnnd__prefetch_lanes(b->setup.prefetch, b->setup.shard, b->group + 1);
    if (status == 0)
        status = rnnd__gradient_accumulate(&gradient);
    if (status == 0)
        status = rnnd_model_take_loss(b->setup.model, &loss);
    RNND_TRY(rnnd_reducer_finish(b->setup.reducer, status, NULL, &loss));
    double mark = rnnd__timeline_now();
    RNND_TRY(rnnd_optim_step(b->setup.optim, &loss, b->opt->lr, &norm));
    rnnd__timeline_mark(RNND_WORK_OPTIMIZER, false, -1, mark);
    b->loss += loss.loss;
    b->targets += loss.targets;
    b->rows += own_rows(b, first, end);
    b->straggler += b->setup.shard->straggler;
    b->out->steps += (double)rnnd__shard_steps(b->setup.shard, first, end);
    advance(b, end);
    return 0;
}

/* Whether enough was measured; the same on all ranks. */
static int enough(struct bench *b, double start, int64_t done, bool *out)
{
    int64_t over = b->opt->max_updates ? done >= b->opt->max_updates
                                       : rnnd__clock() - start >= seconds_wanted;
    if (!b->opt->max_updates)
        RNND_TRY(rnnd_comm_max(b->comm, &over, 1));
    *out = over;
    return 0;
}

static int measure(struct bench *b)
{
    bool over = false;
    for (int i = 0; i < WARM_UP; i++)
        RNND_TRY(update(b));
    b->loss = b->targets = b->rows = b->straggler = b->out->steps = 0;
    RNND_TRY(rnnd_comm_agree(b->comm, 0)); /* all start together */
    rnnd__timeline_start(b->opt->trace != NULL);
    double start = rnnd__clock();
    for (b->out->updates = 0; !over; b->out->updates++) {
        RNND_TRY(update(b));
        RNND_TRY(enough(b, start, b->out->updates + 1, &over));
    }
    b->out->seconds = rnnd__clock() - start;
    return 0;
}

/* ---- results */

/* The seconds of an update's sums where nothing hides them: ranks that have computed
   nothing meet, with gradients that are zero. */
static int time_sums(struct bench *b, double *seconds)
{
    double best = 0;
    for (int i = 0; i < SUMS; i++) {
        struct rnnd_loss loss = {0, 0, 0};
        RNND_TRY(rnnd_comm_agree(b->comm, 0)); /* all start together */
        double start = rnnd__clock();
        RNND_TRY(rnnd_reducer_finish(b->setup.reducer, 0, NULL, &loss));
        double now = rnnd__clock() - start;
        best = i == 0 || now < best ? now : best;
    }
    *seconds = best;
    return 0;
}

static int take_communication(struct bench *b)
{
    struct rnnd__bench_result *r = b->out;
    double alone = 0;
    r->waiting = rnnd__timeline_seconds(RNND_WORK_MEET);
    r->exposed = rnnd__timeline_seconds(RNND_WORK_REDUCE);
    r->hidden = 0;
    if (!rnnd_reducer_overlaps(b->setup.reducer))
        return 0;
    RNND_TRY(time_sums(b, &alone));
    alone *= (double)r->updates;
    r->hidden = alone > r->exposed ? alone - r->exposed : 0;
    return 0;
}

static int take_stragglers(struct bench *b)
{
    struct rnnd__bench_result *r = b->out;
    double work = r->seconds - r->waiting - r->exposed, sum = work;
    int64_t longest = (int64_t)(1e9 * work);
    RNND_TRY(rnnd_comm_sum(b->comm, &sum, 1));
    RNND_TRY(rnnd_comm_max(b->comm, &longest, 1));
    r->straggler_predicted = b->straggler / (double)r->updates;
    r->straggler_measured = 1e-9 * (double)longest * rnnd_comm_size(b->comm) / sum;
    return 0;
}

static int summarise(struct bench *b)
{
    const struct rnnd_model_spec *s = &b->setup.spec;
    struct rnnd__bench_result *r = b->out;
    double cell = 0;
    r->embedding = rnnd__timeline_seconds(RNND_WORK_EMBEDDING);
    r->recurrent = rnnd__timeline_seconds(RNND_WORK_RECURRENT);
    r->head = rnnd__timeline_seconds(RNND_WORK_HEAD);
    r->optimizer = rnnd__timeline_seconds(RNND_WORK_OPTIMIZER);
    r->input = rnnd__timeline_seconds(RNND_WORK_LOAD);
    r->gemm_flops = b->rows * flops_a_row(s);
    r->loss = b->targets > 0 ? b->loss / b->targets : 0;
    RNND_TRY(take_communication(b));
    RNND_TRY(take_stragglers(b));
    int64_t rows = (int64_t)(b->rows / (double)r->updates);
    int status = rnnd__bench_cell(b->setup.be, s->cell, s->hidden, rows, &cell);
    RNND_TRY(rnnd_comm_agree(b->comm, status));
    cell *= b->rows * (double)(s->layers * (s->bidirectional ? 2 : 1));
    r->cell = cell < r->recurrent ? cell : r->recurrent;
    return 0;
}

/* ---- the flow */

int rnnd__bench(const struct rnnd_options *opt, struct rnnd_comm *comm,
                struct rnnd__bench_result *out)
{
    struct rnnd__bench_result result = {0};
    struct bench b = {.opt = opt, .comm = comm, .out = &result};
    bool traces = opt->trace && rnnd_comm_rank(comm) == 0; /* found out now */
    int status = rnnd_comm_agree(comm, traces ? rnnd__file_check(opt->trace) : 0);
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__setup_data(&b.setup, opt, comm));
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__setup_model(&b.setup));
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__setup_values(&b.setup));
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__bench_gemm(b.setup.be, &result.gemm_rate));
    if (status == 0)
        status = measure(&b);
    if (status == 0) /* again: the machine may have been busy before */
        status = rnnd_comm_agree(comm, rnnd__bench_gemm(b.setup.be, &result.gemm_rate));
    if (status == 0)
        status = summarise(&b);
    if (status == 0 && opt->trace)
        status = rnnd__timeline_write(comm, opt->trace);
    rnnd__timeline_stop();
    rnnd_state_free(b.state);
    rnnd__setup_close(&b.setup);
    if (status == 0)
        *out = result;
    return status;
}
