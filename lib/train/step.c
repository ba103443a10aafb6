/*
 * step.c - makes one update after another: plan entries, gradients, the optimizer.
 */
#include "train/step.h"

#include <math.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeline.h"
#include "optim/optim.h"
#include "train/gradient.h"

int rnnd__stepper_open(struct rnnd__stepper *s, struct rnnd__setup *setup,
                       struct rnnd__train_state *at)
{
    *s = (struct rnnd__stepper){.setup = setup, .at = at};
    return rnnd_loss_sums_new(setup->be, &s->loss);
}

void rnnd__stepper_close(struct rnnd__stepper *s)
{
    rnnd__carried_free(&s->carried);
    rnnd_loss_sums_free(s->loss);
    s->loss = NULL;
}

/* ---- epochs */

static int reserve(struct rnnd__stepper *s, const struct rnnd_limits *limits)
{
    RNND_TRY(rnnd_batch_reserve(s->setup->batch, limits));
    RNND_TRY(rnnd_model_reserve(s->setup->model, limits, true));
    return s->setup->opt->tbptt
               ? rnnd__carried_reserve(&s->carried, s->setup->model, limits->sequences)
               : 0;
}

static int64_t longest_of(const struct rnnd__setup *setup, const int32_t *ids,
                          int64_t count)
{
    const int64_t *offsets = rnnd_dataset_offsets(setup->data);
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = offsets[ids[i] + 1] - offsets[ids[i]];
        longest = length > longest ? length : longest;
    }
    return longest - (setup->shard->pairs && longest > 0);
}

/* A stream has one entry per epoch: all its lanes. */
static int begin_stream(struct rnnd__stepper *s)
{
    struct rnnd__shard *shard = s->setup->shard;
    struct rnnd_limits limits = {0, 0, 0, 0};
    s->entries = 1;
    RNND_TRY(rnnd__shard_lanes(shard, s->setup->opt->batch));
    rnnd__shard_limits(shard, NULL, shard->members, &limits);
    s->epoch_updates = rnnd__shard_updates(shard, shard->length[shard->members - 1]);
    s->epoch_done = s->at->entry ? s->epoch_updates : s->at->entry_updates;
    return reserve(s, &limits);
}

int rnnd__stepper_begin_epoch(struct rnnd__stepper *s)
{
    struct rnnd__setup *setup = s->setup;
    struct rnnd_limits limits = {0, 0, 0, 0};
    s->epoch_updates = s->epoch_done = 0;
    s->in_entry = false;
    if (setup->streams)
        return begin_stream(s);
    rnnd_plan_epoch(setup->plan, s->at->epoch);
    s->entries = rnnd_plan_entries(setup->plan);
    for (int64_t e = 0; e < s->entries; e++) {
        const int32_t *ids;
        int64_t count;
        rnnd_plan_entry(setup->plan, e, &ids, &count);
        rnnd__shard_limits(setup->shard, ids, count, &limits);
        int64_t updates =
            rnnd__shard_updates(setup->shard, longest_of(setup, ids, count));
        s->epoch_updates += updates;
        if (e < s->at->entry)
            s->epoch_done += updates;
    }
    s->epoch_done += s->at->entry_updates;
    return reserve(s, &limits);
}

bool rnnd__stepper_epoch_is_done(const struct rnnd__stepper *s)
{
    return s->at->entry == s->entries;
}

/* ---- this rank's gradient */

/* Shards the current entry. Carried states start at zero, or as in a checkpoint. */
static int begin_entry(struct rnnd__stepper *s)
{
    struct rnnd__setup *setup = s->setup;
    if (!setup->streams) {
        const int32_t *ids;
        int64_t count;
        rnnd_plan_entry(setup->plan, s->at->entry, &ids, &count);
        RNND_TRY(rnnd__shard_sequences(setup->shard, ids, count));
        RNND_TRY(rnnd__prefetch_entry(setup->prefetch, setup->plan, s->at->entry + 1));
    }
    if (s->carried.state)
        rnnd_state_zero(s->carried.state);
    if (s->carried.state && s->resumes_entry)
        RNND_TRY(rnnd__carried_put(&s->carried, setup->shard, &s->at->carry));
    s->resumes_entry = false;
    s->in_entry = true;
    return 0;
}

int rnnd__stepper_accumulate(struct rnnd__stepper *s)
{
    struct rnnd__setup *setup = s->setup;
    struct rnnd__gradient gradient = {.model = setup->model,
                                      .batch = setup->batch,
                                      .shard = setup->shard,
                                      .state = s->carried.state,
                                      .loss = s->loss,
                                      .seed = (uint64_t)setup->opt->seed,
                                      .update = s->at->update,
                                      .index = s->at->entry_updates};
    if (!s->in_entry)
        RNND_TRY(begin_entry(s));
    if (s->carried.state)
        rnnd_state_mark(s->carried.state);
    if (setup->streams)
        rnnd__prefetch_lanes(setup->prefetch, setup->shard, s->at->entry_updates + 1);
    RNND_TRY(rnnd__gradient_accumulate(&gradient));
    s->at->log_wait += gradient.loading;
    return 0;
}

int rnnd__stepper_gradient(struct rnnd__stepper *s, struct rnnd_loss *loss)
{
    s->began = rnnd__clock();
    rnnd_comm_at_update(s->setup->comm, s->at->update);
    rnnd_model_zero_gradient(s->setup->model);
    RNND_TRY(rnnd__stepper_accumulate(s));
    return rnnd_loss_sums_take(s->loss, loss);
}

/* ---- the update of all ranks */

static double learning_rate(const struct rnnd__stepper *s)
{
    struct rnnd__schedule_point point = {
        .update = s->at->update,
        .epoch = s->at->epoch,
        .part = s->epoch_updates ? (double)s->epoch_done / (double)s->epoch_updates : 0,
        .plateau_factor = s->at->plateau_factor};
    return rnnd__learning_rate(s->setup->opt, &point);
}

static int apply(struct rnnd__stepper *s, const struct rnnd_loss *loss,
                 const char **skipped)
{
    struct rnnd__moment mark = rnnd__timeline_now();
    double lr = learning_rate(s), norm = NAN;
    int status = rnnd_optim_step(s->setup->optim, loss, lr, &norm);
    rnnd__timeline_mark(RNND_WORK_OPTIMIZER, false, -1, mark);
    *skipped = loss->targets == 0  ? "no targets"
               : loss->weight == 0 ? "no weights but 0"
                                   : NULL;
    if (status == RNND_ENONFINITE &&
        s->setup->opt->on_nonfinite == RNND_NONFINITE_SKIP) {
        *skipped = isfinite(loss->loss) ? "non-finite gradient" : "non-finite loss";
        status = 0;
    }
    if (status == RNND_ENONFINITE && s->carried.state)
        rnnd_state_back(s->carried.state);
    RNND_TRY(status);
    s->at->last_lr = lr;
    s->at->last_norm = norm;
    if (*skipped)
        return 0;
    s->at->applied++;
    s->at->log_loss += loss->loss;
    s->at->log_targets += loss->targets;
    s->at->log_weight += loss->weight;
    return 0;
}

/* Counts the update and advances the position. */
static void advance(struct rnnd__stepper *s)
{
    const struct rnnd__shard *shard = s->setup->shard;
    int64_t end, first = rnnd__shard_windows(shard, s->at->entry_updates, &end);
    s->steps = (double)rnnd__shard_steps(shard, first, end);
    s->at->log_steps += s->steps;
    s->at->log_straggler += shard->straggler;
    s->at->log_updates++;
    s->at->update++;
    s->at->entry_updates++;
    s->epoch_done++;
    if (end < shard->windows)
        return;
    s->at->entry_updates = 0;
    s->at->entry++;
    s->in_entry = false;
}

int rnnd__stepper_finish(struct rnnd__stepper *s, int status, unsigned *flags,
                         struct rnnd_loss *loss, const char **skipped)
{
    struct rnnd_reducer *reducer = s->setup->reducer;
    RNND_TRY(rnnd_reducer_finish(reducer, status, flags, loss));
    RNND_TRY(apply(s, loss, skipped));
    s->at->log_wait += rnnd_reducer_take_wait(reducer);
    advance(s);
    s->at->log_seconds += rnnd__clock() - s->began;
    return 0;
}

void rnnd__train_state_clear_sums(struct rnnd__train_state *at)
{
    at->log_loss = at->log_targets = at->log_weight = at->log_steps = 0;
    at->log_seconds = at->log_wait = at->log_straggler = 0;
    at->log_updates = 0;
}
