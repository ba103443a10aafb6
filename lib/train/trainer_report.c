/*
 * trainer_report.c - what a run reports: records in metrics.jsonl, curves, the meter.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "train/trainer.h"

enum { DEVICE_TEXT = 128 };

/* The current epoch, counted from 1. */
static int64_t epoch_number(const struct rnnd__trainer *t)
{
    return t->at.epoch + 1;
}

/* Steps of one epoch, over all ranks. */
static double epoch_steps(const struct rnnd__trainer *t)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(t->setup.data);
    return (double)(info->task == RNND_LM ? info->targets : info->steps);
}

/* The records of the epoch that a run was resumed in. */
static void add_record(void *context, struct json_t *record)
{
    struct rnnd__trainer *t = context;
    double loss, weight;
    if (!rnnd__metrics_loss_of(record, epoch_number(t), &loss, &weight))
        return;
    t->epoch.loss += loss;
    t->epoch.weight += weight;
}

static void begin_meter(struct rnnd__trainer *t)
{
    if (t->at.entry > 0 || t->at.entry_updates > 0)
        rnnd__failure_keep(&t->lost,
                           rnnd__metrics_each(t->opt->run_dir, add_record, t));
    t->steps_done = epoch_steps(t) * (double)t->at.epoch;
    struct rnnd__progress_work work = {.steps = epoch_steps(t) * (double)t->opt->epochs,
                                       .steps_done = t->steps_done,
                                       .updates = t->opt->max_updates,
                                       .updates_done = t->at.update};
    rnnd__failure_keep(&t->lost,
                       rnnd__progress_begin(t->opt->progress, &work, &t->meter));
}

/* Collects the device description of every rank on all ranks: all [ranks *
   DEVICE_TEXT], and name [ranks] pointing into it. Collective. */
static int gather_devices(struct rnnd__trainer *t, char *all, const char **name)
{
    char own[DEVICE_TEXT];
    snprintf(own, sizeof own, "%s", rnnd_backend_describe(t->setup.be));
    RNND_TRY(rnnd__comm_allgather(t->comm, own, sizeof own, all));
    for (int r = 0; r < rnnd_comm_size(t->comm); r++)
        name[r] = all + (size_t)r * sizeof own;
    return 0;
}

void rnnd__trainer_report_start(struct rnnd__trainer *t)
{
    size_t ranks = (size_t)rnnd_comm_size(t->comm);
    char *all = NULL;
    const char **devices = NULL;
    int status = rnnd__new(ranks, DEVICE_TEXT, "device names", &all);
    if (status == 0)
        status = RNND_NEW(&devices, ranks, "device names");
    status = rnnd_comm_agree(t->comm, status);
    if (status == 0)
        status = gather_devices(t, all, devices);
    if (status == 0 && t->lead) {
        struct rnnd_options settled =
            rnnd__setup_settled(t->opt, rnnd_dataset_info(t->setup.data));
        struct rnnd__start_record record = {.opt = &settled,
                                            .update = t->at.update,
                                            .ranks = (int)ranks,
                                            .devices = devices,
                                            .parameters =
                                                rnnd_model_parameters(t->setup.model)};
        status = rnnd__metrics_start(t->log, &record);
    }
    free(all);
    free(devices);
    rnnd__failure_keep(&t->lost, status);
    if (t->lead)
        begin_meter(t);
}

/* NaN without targets. */
static double mean_loss(const struct rnnd__trainer *t)
{
    return t->at.log_weight > 0 ? t->at.log_loss / t->at.log_weight : NAN;
}

static double speed(const struct rnnd__trainer *t)
{
    return t->at.log_seconds > 0 ? t->at.log_steps / t->at.log_seconds : 0;
}

void rnnd__trainer_report_update(struct rnnd__trainer *t, bool logged)
{
    struct rnnd__progress_point point = {.update = t->at.update,
                                         .epoch = epoch_number(t),
                                         .epochs = t->opt->epochs,
                                         .steps = t->steps_done,
                                         .loss = mean_loss(t),
                                         .steps_per_s = speed(t),
                                         .lr = t->at.last_lr};
    rnnd__progress_update(t->meter, &point, logged);
}

/* The epoch, counted from 1, that the last update belongs to: the previous one if it
   has just ended. */
static int64_t epoch_of_last_update(const struct rnnd__trainer *t)
{
    bool ended = t->at.entry == 0 && t->at.entry_updates == 0 && t->at.epoch > 0;
    return ended ? t->at.epoch : epoch_number(t);
}

/* Failing to write curves does not end a run. */
static void draw(struct rnnd__trainer *t, int64_t update,
                 const struct rnnd__scalar *point, int count)
{
    if (rnnd__tensorboard_add(t->board, update, point, count) == 0)
        return;
    rnnd__log_warn("%s: continuing without TensorBoard curves", rnnd_status_detail());
    rnnd__tensorboard_close(t->board);
    t->board = NULL;
}

static void draw_train(struct rnnd__trainer *t, const struct rnnd__train_record *r)
{
    const struct rnnd__scalar point[] = {
        {"train/loss", r->loss},           {"train/lr", r->lr},
        {"train/grad_norm", r->grad_norm}, {"train/steps_per_s", r->steps_per_s},
        {"train/idle", r->idle},           {"train/straggler", r->straggler},
    };
    draw(t, r->update, point, sizeof point / sizeof *point);
}

static void draw_valid(struct rnnd__trainer *t, const struct rnnd__valid_record *r)
{
    char tag[RNND_FIGURES][RNND_TAG_BYTES + 1];
    struct rnnd__scalar point[1 + RNND_FIGURES] = {{"valid/loss", r->result.loss}};
    for (int i = 0; i < r->result.figures; i++) {
        const struct rnnd_figure *f = &r->result.figure[i];
        snprintf(tag[i], sizeof tag[i], "valid/%s", f->name);
        point[1 + i] = (struct rnnd__scalar){tag[i], f->value};
    }
    draw(t, r->update, point, 1 + r->result.figures);
}

void rnnd__trainer_report_train(struct rnnd__trainer *t, bool final)
{
    struct rnnd__train_record record = {.update = t->at.update,
                                        .epoch = epoch_of_last_update(t),
                                        .loss = mean_loss(t),
                                        .targets = (int64_t)t->at.log_targets,
                                        .weight = t->at.log_weight,
                                        .steps_per_s = speed(t),
                                        .lr = t->at.last_lr,
                                        .grad_norm = t->at.last_norm,
                                        .idle = t->at.log_wait / t->at.log_seconds,
                                        .straggler = t->at.log_straggler /
                                                     (double)t->at.log_updates,
                                        .partial = final};
    if (t->lead)
        rnnd__failure_keep(&t->lost, rnnd__metrics_train(t->log, &record));
    if (t->board)
        draw_train(t, &record);
    if (final)
        return;
    t->epoch.loss += t->at.log_loss;
    t->epoch.weight += t->at.log_weight;
    t->epoch.steps += t->at.log_steps;
    t->epoch.seconds += t->at.log_seconds;
    rnnd__train_state_clear_sums(&t->at);
}

void rnnd__trainer_report_valid(struct rnnd__trainer *t, const struct rnnd_metrics *m)
{
    struct rnnd__valid_record record = {t->at.update, epoch_number(t), *m};
    if (!t->lead)
        return;
    rnnd__failure_keep(&t->lost, rnnd__metrics_valid(t->log, &record));
    if (t->board)
        draw_valid(t, &record);
}

void rnnd__trainer_report_within(struct rnnd__trainer *t)
{
    struct rnnd__progress_point point = {.update = t->at.update,
                                         .epoch = epoch_number(t),
                                         .epochs = t->opt->epochs,
                                         .steps = t->steps_done};
    rnnd__progress_within(t->meter, &point, &t->last_valid);
}

void rnnd__trainer_report_epoch(struct rnnd__trainer *t,
                                const struct rnnd_metrics *valid)
{
    struct rnnd__progress_point point = {
        .update = t->at.update,
        .epoch = t->at.epoch,
        .epochs = t->opt->epochs,
        .steps = t->steps_done,
        .loss = t->epoch.weight > 0 ? t->epoch.loss / t->epoch.weight : NAN,
        .steps_per_s = t->epoch.seconds > 0 ? t->epoch.steps / t->epoch.seconds : NAN};
    rnnd__progress_epoch(t->meter, &point, valid);
    memset(&t->epoch, 0, sizeof t->epoch);
}

void rnnd__trainer_report_skip(struct rnnd__trainer *t, const char *reason)
{
    if (t->lead)
        rnnd__failure_keep(&t->lost, rnnd__metrics_skip(t->log, t->at.update, reason));
}

void rnnd__trainer_report_save(struct rnnd__trainer *t, int64_t update)
{
    char *path;
    int status = rnnd__checkpoint_path(t->opt->run_dir, update, &path);
    if (status == 0) {
        status = rnnd__metrics_save(t->log, update, basename(path));
        free(path);
    }
    rnnd__failure_keep(&t->lost, status);
}

void rnnd__trainer_report_end(struct rnnd__trainer *t, int status)
{
    rnnd__progress_end(t->meter);
    t->meter = NULL;
    if (t->lead)
        rnnd__failure_keep(&t->lost, rnnd__metrics_end(t->log, -status, t->at.update,
                                                       rnnd__clock() - t->started));
}
