/*
 * bench.c - times whole training updates.
 *
 * The updates are those of training, without run directory and validation. The rate of
 * large matrix products is measured in the same process: the fraction of it that
 * updates reach depends less on what else the machine does at the time.
 */
#include "commands/bench.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeline.h"
#include "commands/bench_probe.h"
#include "device/device_times.h"
#include "record/trace.h"
#include "train/step.h"

enum { WARM_UP = 3, SUMS = 5 };
static const double seconds_wanted = 10;

struct bench {
    struct rnnd__setup setup;
    struct rnnd__stepper step;
    struct rnnd__train_state at;
    const struct rnnd_options *opt;
    struct rnnd_comm *comm;
    /* packed rows of the measured updates, on this rank */
    double rows;
    struct rnnd__bench_result *out;
};

/* ---- operations */

/* Floating-point operations of the matrix products of one row, forward and backward.
   Each forward product has two backward ones, but there is no gradient of input
   features. */
static double flops_per_row(const struct rnnd_model_spec *s)
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

/* Packed rows of this rank in the current update. */
static double own_rows(const struct bench *b)
{
    const struct rnnd__shard *s = b->setup.shard;
    int64_t end, first = rnnd__shard_windows(s, b->at.entry_updates, &end);
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
    struct rnnd_loss loss = {0, 0, 0, 0};
    const char *skipped;
    if (rnnd__stepper_epoch_is_done(&b->step)) {
        b->at.epoch += b->at.update > 0;
        b->at.entry = 0;
        RNND_TRY(rnnd_comm_agree(b->comm, rnnd__stepper_begin_epoch(&b->step)));
    }
    int status = rnnd__stepper_gradient(&b->step, &loss);
    double rows = status == 0 ? own_rows(b) : 0;
    RNND_TRY(rnnd__stepper_finish(&b->step, status, NULL, &loss, &skipped));
    b->rows += rows;
    return 0;
}

/* Whether enough was measured; the same on all ranks. Collective. */
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
    rnnd__train_state_clear_sums(&b->at);
    b->rows = 0;
    RNND_TRY(rnnd_comm_agree(b->comm, 0)); /* all ranks start together */
    rnnd__timeline_start(b->opt->trace != NULL);
    RNND_TRY(rnnd_comm_agree(b->comm, rnnd__device_times(b->setup.be)));
    double start = rnnd__clock();
    for (b->out->updates = 0; !over; b->out->updates++) {
        RNND_TRY(update(b));
        RNND_TRY(enough(b, start, b->out->updates + 1, &over));
    }
    b->out->seconds = rnnd__clock() - start;
    return 0;
}

/* ---- results */

/* Seconds that the gradient sums of an update take alone: ranks sum zero gradients
   without computing anything. */
static int time_sums(struct bench *b, double *seconds)
{
    double best = 0;
    rnnd_model_zero_gradient(b->setup.model);
    for (int i = 0; i < SUMS; i++) {
        struct rnnd_loss loss = {0, 0, 0, 0};
        RNND_TRY(rnnd_comm_agree(b->comm, 0)); /* all ranks start together */
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
    r->straggler_predicted = b->at.log_straggler / (double)r->updates;
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
    r->gemm_flops = b->rows * flops_per_row(s);
    r->loss = b->at.log_weight > 0 ? b->at.log_loss / b->at.log_weight : 0;
    r->steps = b->at.log_steps;
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
    struct bench b = {
        .at = {.plateau_factor = 1}, .opt = opt, .comm = comm, .out = &result};
    bool traces =
        opt->trace && rnnd_comm_rank(comm) == 0; /* fail now, not at the end */
    int status = rnnd_comm_agree(comm, traces ? rnnd__trace_check(opt->trace) : 0);
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__setup_data(&b.setup, opt, comm, NULL));
    if (status == 0)
        status = rnnd__setup_same(&b.setup, NULL);
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__setup_model(&b.setup));
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__setup_values(&b.setup));
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__stepper_open(&b.step, &b.setup, &b.at));
    if (status == 0)
        status = rnnd_comm_agree(comm, rnnd__bench_gemm(b.setup.be, &result.gemm_rate));
    if (status == 0)
        status = measure(&b);
    if (status == 0) /* again: the machine may have been busy the first time */
        status = rnnd_comm_agree(comm, rnnd__bench_gemm(b.setup.be, &result.gemm_rate));
    if (status == 0)
        status = summarise(&b);
    if (status == 0 && opt->trace)
        status = rnnd__trace_write(comm, opt->trace);
    rnnd__timeline_stop();
    rnnd__stepper_close(&b.step);
    rnnd__setup_close(&b.setup);
    if (status == 0)
        *out = result;
    return status;
}
