/*
 * trainer.c - the flow of a training run: epochs, updates, validation.
 *
 * Every decision (skip, stop, save, best model, schedule) is made from reduced values,
 * which are the same on all ranks, so ranks cannot disagree; a rank without work takes
 * part in every collective. The order at an update is: update, record, validation,
 * save. A checkpoint therefore contains everything that its update led to. It is
 * written while the updates after it go on.
 */
#include "train/trainer.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/status.h"
#include "base/task.h"
#include "base/timeline.h"
#include "device/device_times.h"
#include "options/options.h"
#include "record/trace.h"

/* Flags that ranks share with every update: a signal arrived, a checkpoint is due by
   time, a record or a checkpoint could not be written. */
enum { FLAG_STOP = 1, FLAG_SAVE = 2, FLAG_LOST = 4, FLAG_UNSAVED = 8 };

/* Train records of a run that leaves their number to the program, about. */
enum { RECORDS = 200 };

/* ---- one update */

static bool save_is_due(const struct rnnd__trainer *t)
{
    double minutes = t->opt->save_minutes;
    return t->lead && minutes > 0 && rnnd__clock() - t->last_save > 60 * minutes;
}

/* One update of all ranks, with the flags that any of them raised. *save: a checkpoint
   is due. */
static int update(struct rnnd__trainer *t, bool *save)
{
    struct rnnd_loss loss = {0, 0, 0, 0};
    const char *skipped;
    int status = rnnd__stepper_gradient(&t->step, &loss);
    unsigned flags = (rnnd__signals_received() ? FLAG_STOP : 0u) |
                     (save_is_due(t) ? FLAG_SAVE : 0u) |
                     (rnnd__trainer_save_has_failed(t) ? FLAG_UNSAVED : 0u) |
                     (t->lost.status < 0 ? FLAG_LOST : 0u);
    RNND_TRY(rnnd__stepper_finish(&t->step, status, &flags, &loss, &skipped));
    t->stopping = flags & FLAG_STOP;
    t->record_lost = flags & FLAG_LOST;
    *save = flags & FLAG_SAVE;
    t->steps_done += t->step.steps;
    if (skipped)
        rnnd__trainer_report_skip(t, skipped);
    return flags & FLAG_UNSAVED ? rnnd__trainer_settle(t) : 0;
}

/* ---- validation */

/* A signal abandons the validation (*done false); a resumed run repeats it. */
static int validate(struct rnnd__trainer *t, bool *done)
{
    struct rnnd_metrics m;
    struct rnnd__moment mark = rnnd__timeline_now();
    int status = rnnd_evaluate(t->setup.model, t->valid, t->comm, t->opt, &m);
    rnnd__timeline_mark(RNND_WORK_VALIDATE, false, -1, mark);
    *done = status == 0;
    if (status == RNND_STOPPED) {
        t->stopping = true;
        return 0;
    }
    RNND_TRY(status);
    t->at.validated = t->at.update;
    t->saved_at = -1; /* the checkpoint of this update, if any, is out of date */
    rnnd__trainer_report_valid(t, &m);
    rnnd_metrics_clear(&m);
    t->last_valid = m;
    t->validated = true;
    return 0;
}

/* The last validation by --best-by: less is better, NaN is never better. */
static double cost_of(const struct rnnd__trainer *t)
{
    const struct rnnd__measure *measure = rnnd__measure(t->opt->best_by);
    const struct rnnd_metrics *m = &t->last_valid;
    double value = m->loss;
    for (int i = 0; measure->figure && i < m->figures; i++)
        if (strcmp(m->figure[i].name, measure->figure) == 0)
            value = m->figure[i].value;
    if (measure->figure && isnan(value))
        rnnd__log_warn("%s: %s is not defined for its targets and the scores of this "
                       "model; no validation is the best",
                       t->opt->valid, measure->figure);
    return measure->higher ? -value : value;
}

/* Whether the last validation is the best so far: its model is to be saved, after the
   decisions that depend on the validation, which the checkpoint includes. */
static unsigned judge_best(struct rnnd__trainer *t, double cost)
{
    if (!(cost < t->at.best_cost))
        return 0;
    t->at.best_cost = cost;
    return RNND_WRITE_BEST;
}

/* A validation within an epoch: no decision but the best model depends on it. *files:
   what is to be saved. */
static int validate_within(struct rnnd__trainer *t, unsigned *files)
{
    bool done;
    RNND_TRY(validate(t, &done));
    if (!done)
        return 0;
    rnnd__trainer_report_within(t);
    *files = judge_best(t, cost_of(t));
    return 0;
}

/* Whether --valid-every requires a validation at this update that has not been made. */
static bool validation_is_due(const struct rnnd__trainer *t)
{
    int64_t every = t->opt->valid_every;
    return t->valid && every && t->at.update > 0 && t->at.update % every == 0 &&
           t->at.validated != t->at.update && !rnnd__stepper_epoch_is_done(&t->step);
}

/* Updates the plateau schedule with the loss of an epoch's validation, and --patience
   with its cost. */
static void judge_epoch(struct rnnd__trainer *t, double loss, double cost)
{
    struct rnnd__watch plateau = {t->at.plateau_loss, t->at.plateau_count};
    struct rnnd__watch patience = {t->at.patience_cost, t->at.patience_count};
    if (t->opt->lr_schedule == RNND_PLATEAU_LR &&
        rnnd__watch_epoch(&plateau, loss, 1e-4, t->opt->lr_patience)) {
        t->at.plateau_factor *= t->opt->lr_decay;
        plateau.count = 0;
    }
    rnnd__watch_epoch(&patience, cost, 0, t->opt->patience);
    t->at.plateau_loss = plateau.best;
    t->at.plateau_count = plateau.count;
    t->at.patience_cost = patience.best;
    t->at.patience_count = patience.count;
}

/* ---- epochs */

/* Whether the run is to make no further update. */
static bool finished(const struct rnnd__trainer *t)
{
    const struct rnnd_options *o = t->opt;
    return t->stopping || t->record_lost || t->at.epoch >= o->epochs ||
           (o->max_updates && t->at.update >= o->max_updates) ||
           (o->patience && t->at.patience_count >= o->patience);
}

/* due: by time. */
static unsigned files_due(const struct rnnd__trainer *t, bool due)
{
    int64_t every = t->opt->save_every;
    return due || (every && t->at.update % every == 0) ? RNND_WRITE_NEWEST : 0;
}

static int after_update(struct rnnd__trainer *t, bool save)
{
    unsigned files = 0;
    bool logged =
        t->at.update % t->log_every == 0 || rnnd__stepper_epoch_is_done(&t->step);
    rnnd__trainer_report_update(t, logged);
    if (logged)
        rnnd__trainer_report_train(t, false);
    if (t->stopping || t->record_lost)
        return 0;
    if (validation_is_due(t))
        RNND_TRY(validate_within(t, &files));
    /* The last update of an epoch is saved in end_epoch(), after its validation. */
    if (!rnnd__stepper_epoch_is_done(&t->step) && !t->stopping)
        files |= files_due(t, save);
    return rnnd__trainer_save(t, files);
}

static int end_epoch(struct rnnd__trainer *t, bool save)
{
    unsigned files = files_due(t, save);
    bool done = true;
    if (t->stopping || t->record_lost)
        return 0;
    if (t->valid)
        RNND_TRY(validate(t, &done));
    if (!done)
        return 0;
    t->at.epoch++;
    t->at.entry = 0;
    rnnd__trainer_report_epoch(t, t->valid ? &t->last_valid : NULL);
    if (t->valid) {
        double cost = cost_of(t);
        judge_epoch(t, t->last_valid.loss, cost);
        files |= judge_best(t, cost);
    }
    RNND_TRY(rnnd__trainer_compare(t));
    return rnnd__trainer_save(t, files);
}

/* --log-every auto: so many updates that the run, with epochs like this one, leaves
   about RECORDS records. Ranks and clocks take no part. */
static int64_t updates_per_record(const struct rnnd__trainer *t)
{
    const struct rnnd_options *o = t->opt;
    double updates = (double)o->epochs * (double)t->step.epoch_updates;
    if (o->max_updates && (double)o->max_updates < updates)
        updates = (double)o->max_updates;
    int64_t every = (int64_t)fmin(ceil(updates / RECORDS), 1e15);
    return o->log_every ? o->log_every : every > 0 ? every : 1;
}

static int run_epoch(struct rnnd__trainer *t)
{
    unsigned files = 0;
    bool due, save = false;
    RNND_TRY(rnnd_comm_agree(t->comm, rnnd__stepper_begin_epoch(&t->step)));
    t->log_every = updates_per_record(t);
    if (validation_is_due(t)) /* a signal abandoned it before the run was resumed */
        RNND_TRY(validate_within(t, &files));
    RNND_TRY(rnnd__trainer_save(t, files));
    while (!rnnd__stepper_epoch_is_done(&t->step) && !finished(t)) {
        RNND_TRY(update(t, &due));
        save = save || due;
        RNND_TRY(after_update(t, due));
    }
    return rnnd__stepper_epoch_is_done(&t->step) ? end_epoch(t, save) : 0;
}

static int run(struct rnnd__trainer *t)
{
    /* The run was resumed within an epoch; perhaps only its end is left to do. */
    bool open = t->at.entry > 0 || t->at.entry_updates > 0;
    rnnd__trainer_report_start(t);
    while (open || !finished(t)) {
        RNND_TRY(run_epoch(t));
        open = false;
    }
    return rnnd__trainer_compare(t);
}

/* ---- the end */

/* The first failure is what the run ends with; a later one is only a warning. */
static void fail_with(struct rnnd__failure *end, int status)
{
    if (status < 0 && end->status < 0)
        rnnd__log_warn("%s", rnnd_status_detail());
    rnnd__failure_keep(end, status);
}

/* Adds to a text that was kept. */
static void add_text(struct rnnd__failure *end, const char *more)
{
    size_t used = strlen(end->text);
    snprintf(end->text + used, sizeof end->text - used, "%s", more);
}

/* Writes the trace, the last record and the last checkpoint. */
static void write_results(struct rnnd__trainer *t, struct rnnd__failure *end)
{
    if (t->opt->trace)
        fail_with(end, rnnd__trace_write(t->comm, t->opt->trace));
    if (t->at.log_updates > 0)
        rnnd__trainer_report_train(t, true);
    int saved = rnnd__trainer_save(t, RNND_WRITE_NEWEST);
    if (saved == 0)
        saved = rnnd__trainer_settle(t);
    fail_with(end, saved);
    if (saved == 0 && end->status == RNND_ENONFINITE)
        add_text(end, "; the state before it is saved");
    else if (saved == 0 && t->record_lost)
        add_text(end, "; the model is saved");
}

/* Rank 0's first record that could not be written. Collective. */
static int lost_record(struct rnnd__trainer *t)
{
    return rnnd_comm_agree(t->comm, rnnd__failure_restore(&t->lost));
}

/* Ends the run with its first failure, in the order in which they came: the run itself
   (status), a lost record that ended it, the trace, the last checkpoint, a signal, a
   record that was lost since. Results are written only if the state is valid: after
   success, and after an update that was not finite, which leaves the state as it was
   before. */
static int leave(struct rnnd__trainer *t, int status)
{
    struct rnnd__failure end = {0};
    if (status == RNND_ENONFINITE)
        status = rnnd__fail(RNND_ENONFINITE, "update %lld: %s", (long long)t->at.update,
                            rnnd_status_detail());
    fail_with(&end, status);
    if (status == 0 && t->record_lost)
        fail_with(&end, lost_record(t));
    if (status == 0 || status == RNND_ENONFINITE)
        write_results(t, &end);
    else
        fail_with(&end, rnnd__trainer_finish_save(t));
    if (end.status == 0 && t->stopping)
        fail_with(&end, rnnd__fail(RNND_STOPPED,
                                   "stopped by a signal after update %lld; continue "
                                   "with --resume",
                                   (long long)t->at.update));
    rnnd__trainer_report_end(t, end.status);
    if (end.status == 0) {
        fail_with(&end, lost_record(t));
        if (end.status < 0)
            add_text(&end, "; the model is saved");
    } else if (t->lost.status < 0 && !(status == 0 && t->record_lost)) {
        rnnd__log_warn("%s", t->lost.text);
    }
    return rnnd__failure_restore(&end);
}

/* What this call came to; `first` is the update that it started from. */
static struct rnnd_train_result result_of(const struct rnnd__trainer *t, int64_t first)
{
    const struct rnnd_options *o = t->opt;
    struct rnnd_train_result out = {.updates = t->at.update,
                                    .epochs = t->at.epoch,
                                    .seconds = rnnd__clock() - t->started,
                                    .idle = t->at.update == first,
                                    .validated = t->validated,
                                    .valid = t->last_valid};
    bool all = t->at.epoch >= o->epochs;
    bool full = o->max_updates && t->at.update >= o->max_updates;
    out.end = all ? RNND_END_EPOCHS : full ? RNND_END_UPDATES : RNND_END_PATIENCE;
    out.bound = all ? o->epochs : full ? o->max_updates : o->patience;
    return out;
}

int rnnd_train(const struct rnnd_options *opt, struct rnnd_comm *comm,
               struct rnnd_train_result *out)
{
    struct rnnd__trainer t = {.comm = comm};
    RNND_TRY(rnnd_options_init(&t.merged));
    int status = rnnd__trainer_open(&t, opt);
    int64_t first = t.at.update;
    if (opt->trace)
        rnnd__timeline_start(true);
    if (status == 0 && opt->trace)
        status = rnnd_comm_agree(comm, rnnd__device_times(t.setup.be));
    if (status == 0)
        status = leave(&t, run(&t));
    rnnd__timeline_stop();
    if (status == RNND_STOPPED)
        rnnd__signals_forget();
    *out = result_of(&t, first);
    rnnd__trainer_close(&t);
    return status;
}
