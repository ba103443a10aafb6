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
#include "record/trace.h"

/* Flags that ranks share with every update. */
enum { FLAG_STOP = 1, FLAG_SAVE = 2, FLAG_MUTE = 4 };

/* ---- one update */

static bool save_is_due(const struct rnnd__trainer *t)
{
    double minutes = t->opt->save_minutes;
    return t->lead && minutes > 0 && rnnd__clock() - t->last_save > 60 * minutes;
}

/* One update of all ranks, and what any of them asks for. *save: a checkpoint. */
static int update(struct rnnd__trainer *t, bool *save)
{
    struct rnnd_loss loss = {0, 0, 0};
    const char *skipped;
    int status = rnnd__stepper_gradient(&t->step, &loss);
    unsigned flags = (rnnd__signals_received() ? FLAG_STOP : 0u) |
                     (save_is_due(t) ? FLAG_SAVE : 0u) |
                     (t->report_status < 0 ? FLAG_MUTE : 0u);
    RNND_TRY(rnnd__stepper_finish(&t->step, status, &flags, &loss, &skipped));
    t->stopping = flags & FLAG_STOP;
    t->mute = flags & FLAG_MUTE;
    *save = flags & FLAG_SAVE;
    t->steps_done += t->step.steps;
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
           t->at.validated != t->at.update && !rnnd__stepper_epoch_is_done(&t->step);
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
    return due && !rnnd__stepper_epoch_is_done(&t->step) && !t->stopping
               ? rnnd__trainer_save(t)
               : 0;
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
    bool due, save = false;
    RNND_TRY(rnnd_comm_agree(t->comm, rnnd__stepper_begin_epoch(&t->step)));
    if (validation_is_due(t)) /* it was given up when the run was stopped */
        RNND_TRY(validate_within(t));
    while (!rnnd__stepper_epoch_is_done(&t->step) && !finished(t)) {
        RNND_TRY(update(t, &due));
        save = save || due;
        RNND_TRY(after_update(t, due));
    }
    return rnnd__stepper_epoch_is_done(&t->step) ? end_epoch(t, save) : 0;
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
        int written = rnnd__trace_write(t->comm, t->opt->trace);
        status = status < 0 ? status : written;
    }
    if (saves && t->at.log_updates > 0)
        rnnd__trainer_report_train(t, true);
    if (saves) {
        struct rnnd__failure cause;
        rnnd__failure_save(&cause, status);
        int saved = rnnd__trainer_save(t);
        if (saved < 0)
            status = saved;
        else if (status == RNND_ENONFINITE)
            status = rnnd__fail(RNND_ENONFINITE,
                                "update %lld: %s; the state before it is "
                                "saved",
                                (long long)t->at.update, cause.text);
        else if (status < 0) /* of the trace */
            status = rnnd__failure_restore(&cause);
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
