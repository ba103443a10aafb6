/*
 * trainer_open.c - everything a run needs before its first update: options, data, model,
 * optimizer; from the start or from a checkpoint.
 *
 * Nothing is written before options and data have been found right. What rank 0 reads from
 * the run folder it hands to the others.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "options.h"
#include "status.h"
#include "stop.h"
#include "trainer.h"

/* ---- options ------------------------------------------------------------------------ */

/* Rank 0's text, or NULL, to all ranks; *text is owned by the caller everywhere. */
static int broadcast_text(struct rnnd_comm *comm, char **text)
{
    int64_t size = *text ? (int64_t)strlen(*text) + 1 : 0;
    RNND_TRY(rnnd_comm_broadcast(comm, &size, sizeof size));
    if (size == 0)
        return 0;
    if (!*text)
        RNND_TRY(rnnd_new((size_t)size, 1, "options", (void **)text));
    return rnnd_comm_broadcast(comm, *text, (size_t)size);
}

/* Rank 0: the options that the run was made with, from its newest valid checkpoint (whose
   path is kept), else from its config.ini; NULL where the folder holds no run. */
static int find_stored(const char *run_dir, char **checkpoint, char **text)
{
    RNND_TRY(rnnd_checkpoint_newest(run_dir, checkpoint));
    if (!*checkpoint)
        return rnnd_run_dir_read(run_dir, "config.ini", text);
    struct rnnd_checkpoint_info info;
    RNND_TRY(rnnd_checkpoint_read_info(*checkpoint, &info));
    *text = info.config;
    return 0;
}

/* Options of a stored run may change as long as they do not change what it is. */
static int judge_change(void *context, const char *name, enum rnnd_option_effect effect,
                        const char *stored, const char *now)
{
    (void)context;
    if (effect == RNND_EFFECT_IDENTITY)
        return rnnd_fail(RNND_EUSAGE, "--resume: this run was made with --%s %s, not %s: a "
                         "run's model, data and plan stay", name, stored, now);
    rnnd_log_info("--%s was %s, is now %s", name, stored, now);
    return 0;
}

static int merge_stored(struct rnnd_trainer *t, const char *text)
{
    struct rnnd_options stored;
    int status = 0;
    RNND_TRY(rnnd_options_init(&stored));
    RNND_TRY_GOTO(rnnd_options_read_text(&stored, text, "stored options", RNND_FROM_FILE));
    RNND_TRY_GOTO(rnnd_options_overlay(&t->merged, &stored));
    RNND_TRY_GOTO(rnnd_options_overlay(&t->merged, t->opt));
    t->merged.resume = true;
    RNND_TRY_GOTO(rnnd_options_diff(&stored, &t->merged, judge_change, NULL));
    t->opt = &t->merged;
done:
    rnnd_options_clear(&stored);
    return status;
}

/* Settles the options in force. *checkpoint: where to go on from, rank 0 only. */
static int settle_options(struct rnnd_trainer *t, char **checkpoint)
{
    char *text = NULL;
    int status = 0;
    if (t->lead)
        status = t->opt->resume ? find_stored(t->opt->run_dir, checkpoint, &text)
                                : rnnd_run_dir_unused(t->opt->run_dir);
    RNND_TRY_GOTO(rnnd_comm_agree(t->comm, status));
    RNND_TRY_GOTO(broadcast_text(t->comm, &text));
    if (text)
        RNND_TRY_GOTO(merge_stored(t, text));
    RNND_TRY_GOTO(rnnd_options_check_early(t->opt));
    if (!t->opt->data)
        RNND_TRY_GOTO(rnnd_fail(RNND_EUSAGE, "--data: a training data set is needed"));
done:
    free(text);
    return status;
}

/* ---- data --------------------------------------------------------------------------- */

/* A stream needs a pair for every lane, in training and in validation. */
static int check_lanes(const struct rnnd_trainer *t, const struct rnnd_dataset *data)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
    struct rnnd_share *share = NULL;
    RNND_TRY(rnnd_share_new(t->opt, data, t->comm, &share));
    int status = rnnd_share_lanes(share, t->opt->batch);
    rnnd_share_free(share);
    return status < 0 ? rnnd_fail(status, "%s: %s", info->path, rnnd_status_detail()) : 0;
}

static int open_data(struct rnnd_trainer *t, struct rnnd_model_spec *spec)
{
    RNND_TRY(rnnd_dataset_open(t->opt->data, &t->train));
    const struct rnnd_dataset_info *info = rnnd_dataset_info(t->train);
    RNND_TRY(rnnd_model_spec_from(t->opt, info, spec));
    RNND_TRY(rnnd_options_check(t->opt, info->task));
    RNND_TRY(rnnd_model_accepts(spec, info, true));
    t->streams = rnnd_streams(t->opt, info->task);
    if (t->streams)
        RNND_TRY(check_lanes(t, t->train));
    if (!t->opt->valid)
        return 0;
    RNND_TRY(rnnd_dataset_open(t->opt->valid, &t->valid));
    RNND_TRY(rnnd_model_accepts(spec, rnnd_dataset_info(t->valid), true));
    return t->streams ? check_lanes(t, t->valid) : 0;
}

static void warn_of_long_sequences(const struct rnnd_trainer *t)
{
    int64_t longest = rnnd_dataset_info(t->train)->longest;
    const struct rnnd_options *o = t->opt;
    if (o->batch_tokens && longest > o->batch_tokens)
        rnnd_log_warn("a sequence of %lld steps is longer than --batch-tokens %lld: it makes "
                      "an update alone", (long long)longest, (long long)o->batch_tokens);
    if (o->tbptt && longest > o->tbptt)
        longest = o->tbptt;
    if (o->microbatch_tokens && longest > o->microbatch_tokens)
        rnnd_log_warn("a sequence of %lld steps is longer than --microbatch-tokens %lld: it "
                      "runs alone", (long long)longest, (long long)o->microbatch_tokens);
}

/* ---- model -------------------------------------------------------------------------- */

static int name_classes(struct rnnd_trainer *t)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(t->train);
    bool lm = info->task == RNND_LM;
    const char **text = NULL;
    if (!(lm ? rnnd_dataset_token(t->train, 0) : rnnd_dataset_class(t->train, 0)))
        return 0;
    RNND_TRY(rnnd_new((size_t)info->outputs, sizeof *text, "classes", (void **)&text));
    for (int64_t k = 0; k < info->outputs; k++)
        text[k] = lm ? rnnd_dataset_token(t->train, k) : rnnd_dataset_class(t->train, k);
    int status = rnnd_model_set_classes(t->model, text, info->outputs);
    free(text);
    return status;
}

static int make_model(struct rnnd_trainer *t, const struct rnnd_model_spec *spec)
{
    RNND_TRY(rnnd_backend_open(t->opt, t->comm, &t->be));
    RNND_TRY(rnnd_model_new(t->be, spec, &t->model));
    RNND_TRY(name_classes(t));
    RNND_TRY(rnnd_optim_new(t->model, t->opt, &t->optim));
    RNND_TRY(rnnd_reducer_new(t->model, t->comm, t->opt->bucket_mb, &t->reducer));
    RNND_TRY(rnnd_batch_new(t->be, t->train, true, rnnd_model_mean(t->model),
                            rnnd_model_std(t->model), &t->batch));
    RNND_TRY(rnnd_share_new(t->opt, t->train, t->comm, &t->share));
    if (t->streams)
        return 0;
    struct rnnd_plan_options plan = rnnd_plan_options_of(t->opt);
    return rnnd_plan_new(rnnd_dataset_offsets(t->train),
                         rnnd_dataset_info(t->train)->sequences, &plan, &t->plan);
}

/* Initial values are rank 0's on every rank, whatever the hosts' mathematics. */
static int fresh_values(struct rnnd_trainer *t)
{
    int status = rnnd_model_init(t->model, (uint64_t)t->opt->seed);
    if (status == 0 && t->lead && t->opt->init)
        status = rnnd_checkpoint_init(t->opt->init, t->model);
    if (status == 0 && t->opt->normalize)
        status = rnnd_dataset_moments(t->train, rnnd_model_mean(t->model),
                                      rnnd_model_std(t->model));
    RNND_TRY(rnnd_comm_agree(t->comm, status));
    return rnnd_trainer_broadcast(t);
}

static void fresh_state(struct rnnd_trainer *t)
{
    t->at = (struct rnnd_train_state){
        .validated = -1, .best_loss = INFINITY, .patience_loss = INFINITY,
        .plateau_loss = INFINITY, .plateau_factor = 1,
        .fingerprint = rnnd_dataset_info(t->train)->fingerprint};
}

static void describe_launch(const struct rnnd_trainer *t, char *text, size_t size)
{
    snprintf(text, size, "%d ranks, %s", rnnd_comm_size(t->comm),
             rnnd_backend_describe(t->be));
}

/* Rank 0's checkpoint, or fresh values where there is none. */
static int start(struct rnnd_trainer *t, const char *checkpoint)
{
    char launch[sizeof t->at.launch];
    int64_t resumes = checkpoint != NULL;
    RNND_TRY(rnnd_comm_broadcast(t->comm, &resumes, sizeof resumes));
    describe_launch(t, launch, sizeof launch);
    fresh_state(t);
    if (!resumes) {
        memcpy(t->at.launch, launch, sizeof launch);
        return fresh_values(t);
    }
    uint64_t fingerprint = t->at.fingerprint;
    RNND_TRY(rnnd_trainer_restore(t, checkpoint));
    if (t->at.fingerprint != fingerprint)
        return rnnd_fail(RNND_EUSAGE, "--resume: %s has the fingerprint %016llx, the run was "
                         "made with data of %016llx", t->opt->data,
                         (unsigned long long)fingerprint,
                         (unsigned long long)t->at.fingerprint);
    if (strcmp(launch, t->at.launch) != 0)
        rnnd_log_warn("the run was made on %s, goes on on %s: values agree to rounding, not "
                      "to the bit", t->at.launch, launch);
    memcpy(t->at.launch, launch, sizeof launch);
    rnnd_log_info("resuming at update %lld of %s", (long long)t->at.update,
                  checkpoint ? checkpoint : "the run");
    return 0;
}

/* Rank 0: the folder, its record of the options, metrics, progress. */
static int open_folder(struct rnnd_trainer *t)
{
    const char *path = t->opt->run_dir;
    char *text = NULL;
    RNND_TRY(rnnd_run_dir_open(path, t->opt->resume, &t->dir));
    RNND_TRY(rnnd_options_text(t->opt, &text));
    int status = rnnd_run_dir_write(path, "config.ini", text);
    free(text);
    RNND_TRY(status);
    RNND_TRY(rnnd_checkpoint_prune(path, 0));
    /* also where no checkpoint was left to go on from, and the run starts anew */
    RNND_TRY(rnnd_metrics_cut(path, t->at.update, t->at.validated));
    return rnnd_metrics_open(path, &t->log);
}

int rnnd_trainer_open(struct rnnd_trainer *t, const struct rnnd_options *opt)
{
    struct rnnd_model_spec spec;
    char *checkpoint = NULL;
    int status = 0;
    t->opt = opt;
    t->lead = rnnd_comm_rank(t->comm) == 0;
    t->started = t->last_save = rnnd_clock();
    t->saved_at = -1;
    rnnd_stop_install();
    RNND_TRY_GOTO(settle_options(t, &checkpoint));
    RNND_TRY_GOTO(rnnd_comm_agree(t->comm, open_data(t, &spec)));
    warn_of_long_sequences(t);
    RNND_TRY_GOTO(rnnd_comm_agree(t->comm, make_model(t, &spec)));
    RNND_TRY_GOTO(start(t, checkpoint));
    RNND_TRY_GOTO(rnnd_comm_agree(t->comm, t->lead ? open_folder(t) : 0));
done:
    free(checkpoint);
    return status;
}

void rnnd_trainer_close(struct rnnd_trainer *t)
{
    rnnd_progress_end(t->meter);
    rnnd_metrics_close(t->log);
    rnnd_run_dir_close(t->dir);
    rnnd_state_free(t->carried);
    rnnd_carry_clear(&t->at.carry);
    rnnd_share_free(t->share);
    rnnd_plan_free(t->plan);
    rnnd_batch_free(t->batch);
    rnnd_reducer_free(t->reducer);
    rnnd_optim_free(t->optim);
    rnnd_model_free(t->model);
    rnnd_backend_close(t->be);
    rnnd_dataset_close(t->valid);
    rnnd_dataset_close(t->train);
    rnnd_options_clear(&t->merged);
}
