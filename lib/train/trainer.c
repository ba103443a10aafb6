/*
 * trainer.c - the flow of a training run: epochs, entries of the plan, updates,
 * validation.
 *
 * Every decision (skip, stop, save, best, schedule) comes from values that a reduction
 * has made the same on all ranks, so ranks cannot disagree, and a rank without work
 * joins all the same. Order at an update: update, record, validation, save; a
 * checkpoint of an update therefore holds what that update led to.
 */
#include "train/trainer.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/status.h"
#include "base/timeline.h"
#include "options/options.h"
#include "train/gradient.h"

/* Flags that ranks shard with every update. */
enum { FLAG_STOP = 1, FLAG_SAVE = 2, FLAG_MUTE = 4 };

/* ---- one update */

static double learning_rate(const struct rnnd__trainer *t)
{
    struct rnnd__schedule_point at = {
        .update = t->at.update,
        .epoch = t->at.epoch,
        .part = t->epoch_updates ? (double)t->epoch_done / (double)t->epoch_updates : 0,
        .plateau_factor = t->at.plateau_factor};
    return rnnd__learning_rate(t->opt, &at);
}

static bool save_is_due(const struct rnnd__trainer *t)
{
    double minutes = t->opt->save_minutes;
    return t->lead && minutes > 0 && rnnd__clock() - t->last_save > 60 * minutes;
}

/* The position after an update that ended with this window. */
static void advance(struct rnnd__trainer *t, int64_t end)
{
    t->at.update++;
    t->at.entry_updates++;
    t->epoch_done++;
    if (end < t->setup.shard->windows)
        return;
    t->at.entry_updates = 0;
    t->at.entry++;
}

/* Applies the sums of all ranks. *skipped: why not, NULL = applied. */
static int apply(struct rnnd__trainer *t, const struct rnnd_loss *loss, double lr,
                 const char **skipped)
{
    double norm = NAN, mark = rnnd__timeline_now();
    int status = rnnd_optim_step(t->setup.optim, loss, lr, &norm);
    rnnd__timeline_mark(RNND_WORK_OPTIMIZER, false, -1, mark);
    *skipped = loss->targets == 0 ? "no targets" : NULL;
    if (status == RNND_ENONFINITE && t->opt->on_nonfinite == RNND_NONFINITE_SKIP) {
        *skipped = isfinite(loss->loss) ? "non-finite gradient" : "non-finite loss";
        status = 0;
    }
    if (status == RNND_ENONFINITE && t->carried)
        rnnd_state_back(t->carried);
    RNND_TRY(status);
    t->at.last_lr = lr;
    t->at.last_norm = norm;
    if (*skipped)
        return 0;
    t->at.applied++;
    t->at.log_loss += loss->loss;
    t->at.log_targets += loss->targets;
    return 0;
}

/* This rank's sums. begun: a failure that the others are still to learn of. */
static int own_sums(struct rnnd__trainer *t, int begun, struct rnnd_loss *loss)
{
    struct rnnd__gradient gradient = {.model = t->setup.model,
                                      .batch = t->setup.batch,
                                      .shard = t->setup.shard,
                                      .state = t->carried,
                                      .seed = (uint64_t)t->opt->seed,
                                      .update = t->at.update,
                                      .index = t->at.entry_updates};
    RNND_TRY(begun);
    if (t->carried)
        rnnd_state_mark(t->carried);
    if (t->setup.streams)
        rnnd__prefetch_lanes(t->setup.prefetch, t->setup.shard,
                             t->at.entry_updates + 1);
    RNND_TRY(rnnd__gradient_accumulate(&gradient));
    t->at.log_wait += gradient.loading;
    return rnnd_model_take_loss(t->setup.model, loss);
}

static void count_steps(struct rnnd__trainer *t, int64_t first, int64_t end)
{
    double steps = (double)rnnd__shard_steps(t->setup.shard, first, end);
    t->at.log_steps += steps;
    t->steps_done += steps;
    t->at.log_straggler += t->setup.shard->straggler;
    t->at.log_updates++;
}

/* One update: this rank's sums, the sums of all, the optimizer. */
static int update(struct rnnd__trainer *t, int begun, bool *save)
{
    double start = rnnd__clock();
    int64_t end, first = rnnd__shard_windows(t->setup.shard, t->at.entry_updates, &end);
    struct rnnd_loss loss = {0, 0, 0};
    const char *skipped;
    rnnd_comm_at_update(t->comm, t->at.update);
    int status = own_sums(t, begun, &loss);
    unsigned flags = (rnnd__signals_received() ? FLAG_STOP : 0u) |
                     (save_is_due(t) ? FLAG_SAVE : 0u) |
                     (t->report_status < 0 ? FLAG_MUTE : 0u);
    RNND_TRY(rnnd_reducer_finish(t->setup.reducer, status, &flags, &loss));
    t->stopping = flags & FLAG_STOP;
    t->mute = flags & FLAG_MUTE;
    *save = flags & FLAG_SAVE;
    RNND_TRY(apply(t, &loss, learning_rate(t), &skipped));
    t->at.log_wait += rnnd_reducer_take_wait(t->setup.reducer);
    count_steps(t, first, end);
    advance(t, end);
    t->at.log_seconds += rnnd__clock() - start;
    if (skipped)
        rnnd__trainer_report_skip(t, skipped);
    return 0;
}

/* ---- validation */

/* A signal while it runs gives it up: it is made again on resume. */
static int validate(struct rnnd__trainer *t, bool *done)
{
    struct rnnd_metrics m;
    double mark = rnnd__timeline_now();
    int status = rnnd_evaluate(t->setup.model, t->valid, t->comm, t->opt, &m);
    rnnd__timeline_mark(RNND_WORK_VALIDATE, false, -1, mark);
    *done = status == 0;
    if (status == RNND_STOPPED) {
        t->stopping = true;
        return 0;
    }
    RNND_TRY(status);
    t->at.validated = t->at.update;
    t->saved_at = -1; /* what is saved does not know this yet */
    t->last_valid = m;
    t->validated = true;
    rnnd__trainer_report_valid(t, &m);
    return 0;
}

/* After a validation, and what it decides, the best model so far is kept. */
static int keep_best(struct rnnd__trainer *t)
{
    if (!(t->last_valid.loss < t->at.best_loss))
        return 0;
    t->at.best_loss = t->last_valid.loss;
    return rnnd__trainer_save_best(t);
}

/* A validation within an epoch, which decides nothing else. */
static int validate_within(struct rnnd__trainer *t)
{
    bool done;
    RNND_TRY(validate(t, &done));
    return done ? keep_best(t) : 0;
}

/* Whether --valid-every asks for a validation that is still to be made here. */
static bool validation_is_due(const struct rnnd__trainer *t)
{
    int64_t every = t->opt->valid_every;
    return t->valid && every && t->at.update > 0 && t->at.update % every == 0 &&
           t->at.validated != t->at.update && t->at.entry < t->entries;
}

/* What an epoch's validation decides. */
static void judge_epoch(struct rnnd__trainer *t, double loss)
{
    struct rnnd__watch plateau = {t->at.plateau_loss, t->at.plateau_count};
    struct rnnd__watch patience = {t->at.patience_loss, t->at.patience_count};
    if (t->opt->lr_schedule == RNND_PLATEAU_LR &&
        rnnd__watch_epoch(&plateau, loss, 1e-4, t->opt->lr_patience)) {
        t->at.plateau_factor *= t->opt->lr_decay;
        plateau.count = 0;
    }
    rnnd__watch_epoch(&patience, loss, 0, t->opt->patience);
    t->at.plateau_loss = plateau.best;
    t->at.plateau_count = plateau.count;
    t->at.patience_loss = patience.best;
    t->at.patience_count = patience.count;
}

/* ---- epochs */

/* Whether no further update is to be made. */
static bool finished(const struct rnnd__trainer *t)
{
    const struct rnnd_options *o = t->opt;
    return t->stopping || t->mute || t->at.epoch >= o->epochs ||
           (o->max_updates && t->at.update >= o->max_updates) ||
           (o->patience && t->at.patience_count >= o->patience);
}

/* Memory for all batches of the epoch, so that the loop allocates nothing. */
static int reserve(struct rnnd__trainer *t, const struct rnnd_limits *limits)
{
    RNND_TRY(rnnd_batch_reserve(t->setup.batch, limits));
    RNND_TRY(rnnd_model_reserve(t->setup.model, limits, true));
    if (t->opt->tbptt == 0 || limits->sequences <= t->carried_rows)
        return 0;
    rnnd_state_free(t->carried);
    t->carried = NULL;
    t->carried_rows = limits->sequences;
    return rnnd_state_new(t->setup.model, t->carried_rows, &t->carried);
}

static int64_t longest_of(const struct rnnd__trainer *t, const int32_t *ids,
                          int64_t count)
{
    const int64_t *offsets = rnnd_dataset_offsets(t->setup.data);
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = offsets[ids[i] + 1] - offsets[ids[i]];
        longest = length > longest ? length : longest;
    }
    return longest - (t->setup.shard->pairs && longest > 0);
}

/* Lays out the epoch that at.epoch says. */
static int begin_epoch(struct rnnd__trainer *t)
{
    struct rnnd_limits limits = {0, 0, 0};
    t->epoch_updates = t->epoch_done = 0;
    if (t->setup.streams) {
        t->entries = 1;
        RNND_TRY(rnnd__shard_lanes(t->setup.shard, t->opt->batch));
        rnnd__shard_limits(t->setup.shard, NULL, t->setup.shard->members, &limits);
        t->epoch_updates = rnnd__shard_updates(
            t->setup.shard, t->setup.shard->length[t->setup.shard->members - 1]);
        t->epoch_done = t->at.entry ? t->epoch_updates : t->at.entry_updates;
        return reserve(t, &limits);
    }
    rnnd_plan_epoch(t->setup.plan, t->at.epoch);
    t->entries = rnnd_plan_entries(t->setup.plan);
    for (int64_t e = 0; e < t->entries; e++) {
        const int32_t *ids;
        int64_t count;
        rnnd_plan_entry(t->setup.plan, e, &ids, &count);
        rnnd__shard_limits(t->setup.shard, ids, count, &limits);
        int64_t groups = rnnd__shard_updates(t->setup.shard, longest_of(t, ids, count));
        t->epoch_done += e < t->at.entry    ? groups
                         : e == t->at.entry ? t->at.entry_updates
                                            : 0;
        t->epoch_updates += groups;
    }
    return reserve(t, &limits);
}

/* This rank's shard of the entry under way; carried states start from zero, or from the
   checkpoint where the run goes on in the middle. */
static int begin_entry(struct rnnd__trainer *t)
{
    if (!t->setup.streams) {
        const int32_t *ids;
        int64_t count;
        rnnd_plan_entry(t->setup.plan, t->at.entry, &ids, &count);
        RNND_TRY(rnnd__shard_sequences(t->setup.shard, ids, count));
        RNND_TRY(
            rnnd__prefetch_entry(t->setup.prefetch, t->setup.plan, t->at.entry + 1));
    }
    if (!t->carried)
        return 0;
    rnnd_state_zero(t->carried);
    if (t->mid_entry)
        RNND_TRY(rnnd__trainer_put_carry(t));
    t->mid_entry = false;
    return 0;
}

static int after_update(struct rnnd__trainer *t, bool save)
{
    int64_t every = t->opt->save_every;
    bool logged = t->at.update % t->opt->log_every == 0;
    rnnd__trainer_report_update(t, logged);
    if (logged)
        rnnd__trainer_report_train(t, false);
    if (t->stopping || t->mute)
        return 0;
    if (validation_is_due(t))
        RNND_TRY(validate_within(t));
    /* The last update of an epoch is saved once the epoch is judged. */
    bool due = save || (every && t->at.update % every == 0);
    return due && t->at.entry < t->entries && !t->stopping ? rnnd__trainer_save(t) : 0;
}

/* The updates of the entry under way, until it ends or the run does. */
static int run_entry(struct rnnd__trainer *t, bool *save)
{
    int64_t entry = t->at.entry;
    int begun = begin_entry(t);
    while (t->at.entry == entry && !finished(t)) {
        bool due;
        RNND_TRY(update(t, begun, &due));
        *save = *save || due;
        RNND_TRY(after_update(t, due));
    }
    return 0;
}

static int end_epoch(struct rnnd__trainer *t, bool save)
{
    int64_t every = t->opt->save_every;
    bool done = true;
    if (t->stopping || t->mute)
        return 0;
    if (t->valid)
        RNND_TRY(validate(t, &done));
    if (!done)
        return 0;
    t->at.epoch++;
    t->at.entry = 0;
    if (t->valid) {
        judge_epoch(t, t->last_valid.loss);
        RNND_TRY(keep_best(t));
    }
    RNND_TRY(rnnd__trainer_compare(t));
    bool due = save || (every && t->at.update % every == 0);
    return due ? rnnd__trainer_save(t) : 0;
}

static int run_epoch(struct rnnd__trainer *t)
{
    bool save = false;
    RNND_TRY(rnnd_comm_agree(t->comm, begin_epoch(t)));
    if (validation_is_due(t)) /* it was given up when the run was stopped */
        RNND_TRY(validate_within(t));
    while (t->at.entry < t->entries && !finished(t))
        RNND_TRY(run_entry(t, &save));
    return t->at.entry == t->entries ? end_epoch(t, save) : 0;
}

static int run(struct rnnd__trainer *t)
{
    /* Resumed within an epoch, perhaps with all its updates done and it to be
       judged. */
    bool open = t->at.entry > 0 || t->at.entry_updates > 0;
    rnnd__trainer_report_start(t);
    while (open || !finished(t)) {
        RNND_TRY(run_epoch(t));
        open = false;
    }
    return rnnd__trainer_compare(t);
}

/* Writes what the run leaves behind, also where it ended by a number that is not
   finite: the state is then that before the update. */
static int leave(struct rnnd__trainer *t, int status)
{
    bool saves = status == 0 || status == RNND_ENONFINITE;
    if (saves && t->opt->trace) {
        int written = rnnd__timeline_write(t->comm, t->opt->trace);
        status = status < 0 ? status : written;
    }
    if (saves && t->at.log_updates > 0)
        rnnd__trainer_report_train(t, true);
    if (saves) {
        char cause[1024];
        snprintf(cause, sizeof cause, "%s", rnnd_status_detail());
        int saved = rnnd__trainer_save(t);
        if (saved < 0)
            status = saved;
        else if (status == RNND_ENONFINITE)
            status = rnnd__fail(RNND_ENONFINITE,
                                "update %lld: %s; the state before it is "
                                "saved",
                                (long long)t->at.update, cause);
        else if (status < 0) /* of the trace */
            status = rnnd__fail((enum rnnd_status)status, "%s", cause);
    }
    if (status == 0 && t->stopping)
        status = rnnd__fail(RNND_STOPPED,
                            "stopped by a signal after update %lld; go on with "
                            "--resume",
                            (long long)t->at.update);
    rnnd__trainer_report_end(t, status);
    /* The model is saved: that is when a record that was lost may end the run. */
    return status == 0 ? rnnd_comm_agree(t->comm, rnnd__trainer_report_lost(t))
                       : status;
}

int rnnd_train(const struct rnnd_options *opt, struct rnnd_comm *comm,
               struct rnnd_train_result *out)
{
    struct rnnd__trainer t = {.comm = comm};
    RNND_TRY(rnnd_options_init(&t.merged));
    int status = rnnd__trainer_open(&t, opt);
    if (opt->trace)
        rnnd__timeline_start(true);
    if (status == 0)
        status = leave(&t, run(&t));
    rnnd__timeline_stop();
    *out = (struct rnnd_train_result){.updates = t.at.update,
                                      .seconds = rnnd__clock() - t.started,
                                      .validated = t.validated,
                                      .valid = t.last_valid};
    rnnd__trainer_close(&t);
    return status;
}
