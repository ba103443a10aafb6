/*
 * trainer_open.c - opens everything a run needs before its first update: options, data,
 * model, optimizer; from the start or from a checkpoint.
 *
 * Nothing is written before options and data have been checked. Rank 0 reads the run
 * folder and broadcasts what it found.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/status.h"
#include "base/task.h"
#include "checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "data/dataset_names.h"
#include "options/options.h"
#include "record/trace.h"
#include "train/trainer.h"
#include "train/weights.h"

/* ---- options */

/* Broadcasts rank 0's text, which may be NULL. *text is malloc'ed and owned by the
   caller on every rank. Collective. */
static int broadcast_text(struct rnnd_comm *comm, char **text)
{
    int64_t size = *text ? (int64_t)strlen(*text) + 1 : 0;
    RNND_TRY(rnnd_comm_broadcast(comm, &size, sizeof size));
    if (size == 0)
        return 0;
    if (!*text)
        RNND_TRY(rnnd__new((size_t)size, 1, "options", text));
    return rnnd_comm_broadcast(comm, *text, (size_t)size);
}

/* Rank 0: best.h5, used if no other checkpoint is intact; NULL if there is none, as
   where a run was killed before it saved. If there are some and none is intact,
   starting from the beginning would lose the run silently: EFILE. */
static int find_best(const char *run_dir, char **checkpoint)
{
    char *best;
    bool intact;
    RNND_TRY(rnnd__run_dir_file(run_dir, "best.h5", &best));
    int status = rnnd__checkpoint_is_intact(best, &intact);
    if (status == 0 && intact) {
        *checkpoint = best;
        return 0;
    }
    free(best);
    RNND_TRY(status);
    bool any;
    RNND_TRY(rnnd__checkpoint_any(run_dir, &any));
    if (any)
        return rnnd__fail(RNND_EFILE,
                          "%s: no checkpoint is intact; to start from the beginning, "
                          "move it away or use another --run-dir",
                          run_dir);
    if (rnnd__run_dir_unused(run_dir) < 0)
        rnnd__log_warn("%s: has no checkpoint yet; starting from the beginning",
                       run_dir);
    return 0;
}

/* Rank 0: locks the run directory and reads the options of its run: from the newest
   intact checkpoint, whose path *checkpoint receives, else from config.ini; *text is
   NULL if the folder holds no run. */
static int find_stored(struct rnnd__trainer *t, char **checkpoint, char **text)
{
    const char *run_dir = t->opt->run_dir;
    RNND_TRY(rnnd__run_dir_open_old(run_dir, &t->dir));
    RNND_TRY(rnnd__checkpoint_newest(run_dir, checkpoint));
    if (!*checkpoint)
        RNND_TRY(find_best(run_dir, checkpoint));
    if (!*checkpoint)
        return rnnd__run_dir_read(run_dir, "config.ini", text);
    struct rnnd_checkpoint_info info;
    RNND_TRY(rnnd__checkpoint_read_info(*checkpoint, &info));
    *text = info.config;
    return 0;
}

/* A resumed run may change an option unless it defines the model, the data or the
   plan. */
static int judge_change(void *context, const char *name,
                        enum rnnd__option_effect effect, const char *stored,
                        const char *now)
{
    struct rnnd__trainer *t = context;
    if (effect == RNND_EFFECT_IDENTITY)
        return rnnd__fail(RNND_EUSAGE,
                          "--resume: this run was started with --%s %s, not %s; "
                          "options of model, data and plan cannot change",
                          name, stored, now);
    if (strcmp(name, "class-weight") == 0) { /* a file may say the same: see below */
        t->weights_before = strdup(stored);
        return t->weights_before ? 0 : rnnd__fail_memory(strlen(stored), "options");
    }
    rnnd__log_info("--%s changed from %s to %s", name, stored, now);
    return 0;
}

/* The options that name data. */
static const char *const data_options[] = {"data", "valid"};
enum { DATA_OPTIONS = 2 };

static const char *data_path(const struct rnnd_options *opt, int k)
{
    return k == 0 ? opt->data : opt->valid;
}

/* Rank 0: where the data sets of the stored options are now; *found stays NULL for
   those that the command line names. */
static int find_data(const struct rnnd__trainer *t, const char *text,
                     char *found[DATA_OPTIONS])
{
    struct rnnd_options stored;
    int status;
    RNND_TRY(rnnd_options_init(&stored));
    RNND_TRY_GOTO(
        rnnd__options_read_text(&stored, text, "stored options", RNND_FROM_FILE));
    for (int k = 0; k < DATA_OPTIONS; k++) {
        const char *name = data_options[k], *path = data_path(&stored, k);
        if (!path || rnnd__options_given(t->opt, name))
            continue;
        status = rnnd__run_dir_find(t->opt->run_dir, path, &found[k]);
        if (status < 0)
            RNND_TRY_GOTO(rnnd__fail(status,
                                     "--resume: %s; name the file with --%s FILE",
                                     rnnd_status_detail(), name));
        if (strcmp(path, found[k]) != 0)
            rnnd__log_info("--%s %s is now %s", name, path, found[k]);
    }
done:
    rnnd_options_clear(&stored);
    return status;
}

static int merge_stored(struct rnnd__trainer *t, const char *text,
                        char *const found[DATA_OPTIONS])
{
    struct rnnd_options stored;
    int status = 0;
    RNND_TRY(rnnd_options_init(&stored));
    RNND_TRY_GOTO(
        rnnd__options_read_text(&stored, text, "stored options", RNND_FROM_FILE));
    for (int k = 0; k < DATA_OPTIONS; k++)
        if (found[k])
            RNND_TRY_GOTO(
                rnnd__options_set(&stored, data_options[k], found[k], RNND_FROM_FILE));
    /* options without effect are not stored, so they may differ */
    stored.of_features = t->merged.of_features = !rnnd__options_given(&stored, "embed");
    RNND_TRY_GOTO(rnnd__options_overlay(&t->merged, &stored));
    RNND_TRY_GOTO(rnnd__options_overlay(&t->merged, t->opt));
    t->merged.resume = true;
    RNND_TRY_GOTO(rnnd__options_diff(&stored, &t->merged, judge_change, t));
    t->judged_anew = stored.best_by != t->merged.best_by;
    t->opt = &t->merged;
done:
    rnnd_options_clear(&stored);
    return status;
}

/* Rank 0: all that a run needs to know of an earlier start in its directory. */
static int read_stored(struct rnnd__trainer *t, char **checkpoint, char **text,
                       char *found[DATA_OPTIONS])
{
    if (!t->opt->resume)
        return rnnd__run_dir_unused(t->opt->run_dir);
    RNND_TRY(find_stored(t, checkpoint, text));
    return *text ? find_data(t, *text, found) : 0;
}

/* Determines the options in effect. *checkpoint: path of the checkpoint to resume from,
   malloc'ed, on rank 0 only; NULL if there is none. Collective. */
static int settle_options(struct rnnd__trainer *t, char **checkpoint)
{
    char *text = NULL, *found[DATA_OPTIONS] = {NULL, NULL};
    int status = t->lead ? read_stored(t, checkpoint, &text, found) : 0;
    RNND_TRY_GOTO(rnnd__comm_agree_while(t->comm, status, "reads the run directory"));
    RNND_TRY_GOTO(broadcast_text(t->comm, &text));
    for (int k = 0; k < DATA_OPTIONS; k++)
        RNND_TRY_GOTO(broadcast_text(t->comm, &found[k]));
    if (text)
        RNND_TRY_GOTO(merge_stored(t, text, found));
    RNND_TRY_GOTO(rnnd__options_check_early(t->opt));
    if (!t->opt->data)
        RNND_TRY_GOTO(rnnd__fail(RNND_EUSAGE, "train needs --data FILE"));
done:
    for (int k = 0; k < DATA_OPTIONS; k++)
        free(found[k]);
    free(text);
    return status;
}

/* ---- data */

/* Broadcasts rank 0's names of an axis. Collective. */
static int broadcast_axis(struct rnnd_comm *comm, struct rnnd__names *names,
                          enum rnnd_axis axis)
{
    char *block = NULL, **text = NULL;
    int64_t size[2] = {0, 0}; /* names, bytes of the block */
    int status =
        rnnd_comm_rank(comm) == 0 ? rnnd__names_join(names, axis, &block, size) : 0;
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd_comm_broadcast(comm, size, sizeof size));
    if (!block)
        status = rnnd__new((size_t)size[1], 1, "names", &block);
    if (status == 0)
        status = RNND_NEW(&text, size[0], "names");
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd_comm_broadcast(comm, block, (size_t)size[1]));
    char *at = block;
    for (int64_t i = 0; i < size[0]; i++, at += strlen(at) + 1)
        text[i] = at;
    status = rnnd__names_set(names, axis, text, size[0]);
done:
    free(text);
    free(block);
    return status;
}

/* The names of the run that is resumed, on all ranks. Collective. */
static int broadcast_names(struct rnnd_comm *comm, const char *checkpoint,
                           struct rnnd__names *names)
{
    enum rnnd_task task;
    int status = checkpoint ? rnnd__checkpoint_read_names(checkpoint, names, &task) : 0;
    RNND_TRY(rnnd_comm_agree(comm, status));
    for (int a = 0; a < RNND_AXES; a++)
        RNND_TRY(broadcast_axis(comm, names, (enum rnnd_axis)a));
    return 0;
}

/* Whether a validation of this task has what --best-by asks for. */
static int check_measure(const struct rnnd__trainer *t)
{
    const struct rnnd_model_spec *spec = &t->setup.spec;
    enum rnnd_best_by by = t->opt->best_by;
    char names[160] = "loss";
    if (rnnd__task_has_measure(spec->task, spec->outputs, by))
        return 0;
    for (int i = RNND_BY_LOSS + 1; i <= RNND_BY_LABEL_ERROR_RATE; i++) {
        size_t n = strlen(names);
        if (rnnd__task_has_measure(spec->task, spec->outputs, (enum rnnd_best_by)i))
            snprintf(names + n, sizeof names - n, ", %s",
                     rnnd__measure((enum rnnd_best_by)i)->figure);
    }
    return rnnd__fail(RNND_EUSAGE,
                      "--best-by %s: task %s with %lld outputs has no such figure; it "
                      "has %s",
                      rnnd__measure(by)->figure, rnnd_task_name(spec->task),
                      (long long)spec->outputs, names);
}

/* Weights of a file are stored with the run as numbers: until it resumes, the file may
   have changed. */
static void keep_weights(struct rnnd__trainer *t)
{
    const char *now = t->opt->class_weight, *before = t->weights_before;
    if (now && !rnnd__weights_balance(now)) {
        t->settled = *t->opt;
        now = t->settled.class_weight = t->setup.class_weights;
        t->opt = t->setup.opt = &t->settled;
    }
    now = now ? now : "unset";
    if (before && strcmp(before, now) != 0)
        rnnd__log_info("--class-weight changed from %s to %s", before, now);
}

/* names: of the run that is resumed; else NULL. */
static int open_data(struct rnnd__trainer *t, const struct rnnd__names *names)
{
    RNND_TRY(rnnd__setup_data(&t->setup, t->opt, t->comm, names));
    keep_weights(t);
    if (!t->opt->valid)
        return 0;
    RNND_TRY(check_measure(t));
    RNND_TRY(rnnd_dataset_open(t->opt->valid, &t->valid));
    bool same_task = rnnd_dataset_info(t->valid)->task == t->setup.spec.task;
    RNND_TRY(rnnd__dataset_match(t->valid, rnnd__dataset_names(t->setup.data),
                                 same_task, true));
    RNND_TRY(rnnd_dataset_check_strings(t->valid, t->opt->on_unreachable));
    RNND_TRY(rnnd_model_accepts(&t->setup.spec, rnnd_dataset_info(t->valid), true));
    return t->setup.streams ? rnnd__setup_check_lanes(&t->setup, t->valid) : 0;
}

static void warn_of_long_sequences(const struct rnnd__trainer *t)
{
    int64_t longest = rnnd_dataset_info(t->setup.data)->longest;
    const struct rnnd_options *o = t->opt;
    if (o->batch_tokens && longest > o->batch_tokens)
        rnnd__log_warn(
            "the longest sequence has %lld steps, more than --batch-tokens %lld: it "
            "gets an update of its own",
            (long long)longest, (long long)o->batch_tokens);
    if (o->tbptt && longest > o->tbptt)
        longest = o->tbptt;
    if (o->microbatch_tokens && longest > o->microbatch_tokens)
        rnnd__log_warn("a sequence or window of %lld steps exceeds "
                       "--microbatch-tokens %lld: it gets a micro-batch of its own",
                       (long long)longest, (long long)o->microbatch_tokens);
}

/* Opens all data. checkpoint: what rank 0 resumes from. Collective. */
static int open_all_data(struct rnnd__trainer *t, const char *checkpoint)
{
    struct rnnd__names names = {0};
    int64_t resumes = checkpoint != NULL;
    int status = rnnd_comm_broadcast(t->comm, &resumes, sizeof resumes);
    if (status == 0 && resumes)
        status = broadcast_names(t->comm, checkpoint, &names);
    if (status == 0)
        status = rnnd_comm_agree(t->comm, open_data(t, resumes ? &names : NULL));
    rnnd__names_clear(&names);
    return status;
}

/* ---- model */

static uint64_t valid_fingerprint(const struct rnnd__trainer *t)
{
    return t->valid ? rnnd_dataset_info(t->valid)->fingerprint : 0;
}

static void fresh_state(struct rnnd__trainer *t)
{
    t->at = (struct rnnd__train_state){
        .validated = -1,
        .best_cost = INFINITY,
        .patience_cost = INFINITY,
        .plateau_loss = INFINITY,
        .plateau_factor = 1,
        .fingerprint = rnnd_dataset_info(t->setup.data)->fingerprint,
        .valid_fingerprint = valid_fingerprint(t)};
}

/* Losses on other validation data cannot be compared with those so far. */
static void check_validation(struct rnnd__trainer *t)
{
    uint64_t before = t->at.valid_fingerprint, now = valid_fingerprint(t);
    t->at.valid_fingerprint = now;
    if (now == 0 || before == 0 || now == before)
        return;
    rnnd__log_warn("--resume: the validation data %s have changed: the best model, "
                   "--patience and the plateau schedule start anew",
                   t->opt->valid);
    t->at.best_cost = t->at.patience_cost = t->at.plateau_loss = INFINITY;
    t->at.patience_count = t->at.plateau_count = 0;
}

static int open_model(struct rnnd__trainer *t)
{
    RNND_TRY(rnnd__setup_model(&t->setup));
    return rnnd__stepper_open(&t->step, &t->setup, &t->at);
}

static void describe_launch(const struct rnnd__trainer *t, char *text, size_t size)
{
    snprintf(text, size, "%d ranks, %s", rnnd_comm_size(t->comm),
             rnnd_backend_describe(t->setup.be));
}

static bool is_best(const char *checkpoint)
{
    return strcmp(basename(checkpoint), "best.h5") == 0;
}

/* Loads rank 0's checkpoint, or sets initial values if there is none. Collective. */
static int start(struct rnnd__trainer *t, const char *checkpoint)
{
    char launch[sizeof t->at.launch];
    int64_t resumes = checkpoint != NULL, best = checkpoint && is_best(checkpoint);
    RNND_TRY(rnnd_comm_broadcast(t->comm, &resumes, sizeof resumes));
    RNND_TRY(rnnd_comm_broadcast(t->comm, &best, sizeof best));
    describe_launch(t, launch, sizeof launch);
    fresh_state(t);
    if (!resumes) {
        memcpy(t->at.launch, launch, sizeof launch);
        RNND_TRY(rnnd_comm_agree(t->comm, rnnd__setup_values(&t->setup)));
        /* Mathematical libraries may differ between hosts: use rank 0's values. */
        return rnnd__trainer_broadcast(t);
    }
    uint64_t fingerprint = t->at.fingerprint;
    RNND_TRY(rnnd__trainer_restore(t, checkpoint));
    if (t->judged_anew) { /* what was the best by another measure */
        t->at.best_cost = t->at.patience_cost = INFINITY;
        t->at.patience_count = 0;
    }
    if (best) /* the run has no checkpoint of this update but best.h5 */
        t->saved_at = -1;
    if (t->at.fingerprint != fingerprint)
        return rnnd__fail(RNND_EUSAGE,
                          "--resume: %s has fingerprint %016llx, but the run was "
                          "started with data of fingerprint %016llx",
                          t->opt->data, (unsigned long long)fingerprint,
                          (unsigned long long)t->at.fingerprint);
    check_validation(t);
    if (strcmp(launch, t->at.launch) != 0)
        rnnd__log_warn(
            "the run was started on %s and continues on %s: values agree to rounding, "
            "not bit for bit",
            t->at.launch, launch);
    memcpy(t->at.launch, launch, sizeof launch);
    rnnd__log_info("resuming at update %lld of %s", (long long)t->at.update,
                   checkpoint ? checkpoint : "the run");
    return 0;
}

static bool is_in(const char *file, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(file, folder, n) == 0 && file[n] == '/';
}

/* Checks early that the trace can be written: before the run directory exists, unless
   the trace belongs in it, and once it exists. */
static int check_trace(const struct rnnd_options *opt, bool exists)
{
    if (!opt->trace || (!exists && is_in(opt->trace, opt->run_dir)))
        return 0;
    if (rnnd__run_dir_keeps(opt->run_dir, opt->trace))
        return rnnd__fail(RNND_EUSAGE,
                          "--trace %s: the run uses that file itself; choose "
                          "another",
                          opt->trace);
    return rnnd__trace_check(opt->trace);
}

/* Rank 0: opens the run directory, config.ini, metrics and curves. What can fail comes
   before config.ini, which turns the folder into that of a run. */
static int open_folder(struct rnnd__trainer *t)
{
    const char *path = t->opt->run_dir;
    char *text = NULL;
    RNND_TRY(check_trace(t->opt, false));
    if (!t->dir)
        RNND_TRY(rnnd__run_dir_open(path, t->opt->resume, &t->dir));
    RNND_TRY(check_trace(t->opt, true));
    if (t->opt->tensorboard)
        RNND_TRY(rnnd__tensorboard_open(path, t->at.update, &t->board));
    const char *data[] = {t->opt->data, t->opt->valid};
    RNND_TRY(rnnd__run_dir_keep_paths(path, data, DATA_OPTIONS));
    struct rnnd_options settled =
        rnnd__setup_settled(t->opt, rnnd_dataset_info(t->setup.data));
    RNND_TRY(rnnd__options_text(&settled, &text));
    int status = rnnd__run_dir_write(path, "config.ini", text);
    free(text);
    RNND_TRY(status);
    RNND_TRY(rnnd__checkpoint_prune(path, 0, 0));
    /* needed too if no checkpoint was intact and the run starts from the beginning */
    RNND_TRY(rnnd__metrics_cut(path, t->at.update, t->at.validated, t->at.records));
    free(t->at.records);
    t->at.records = NULL;
    RNND_TRY(rnnd__metrics_open(path, &t->log));
    return rnnd__writer_new(t->opt, t->dir, t->setup.model, t->setup.optim, &t->writer);
}

int rnnd__trainer_open(struct rnnd__trainer *t, const struct rnnd_options *opt)
{
    char *checkpoint = NULL;
    int status = 0;
    t->opt = opt;
    t->lead = rnnd_comm_rank(t->comm) == 0;
    t->started = t->last_save = rnnd__clock();
    t->saved_at = -1;
    rnnd__signals_install();
    RNND_TRY_GOTO(settle_options(t, &checkpoint));
    RNND_TRY_GOTO(open_all_data(t, checkpoint));
    RNND_TRY_GOTO(rnnd__setup_same(&t->setup, t->valid));
    warn_of_long_sequences(t);
    RNND_TRY_GOTO(rnnd_comm_agree(t->comm, open_model(t)));
    RNND_TRY_GOTO(start(t, checkpoint));
    status = t->lead ? open_folder(t) : 0;
    RNND_TRY_GOTO(rnnd__comm_agree_while(t->comm, status, "opens the run directory"));
done:
    free(checkpoint);
    return status;
}

void rnnd__trainer_close(struct rnnd__trainer *t)
{
    rnnd__progress_end(t->meter);
    rnnd__writer_free(t->writer);
    rnnd__metrics_close(t->log);
    rnnd__tensorboard_close(t->board);
    rnnd__run_dir_close(t->dir);
    rnnd__stepper_close(&t->step);
    rnnd__carry_clear(&t->at.carry);
    free(t->at.records);
    rnnd_dataset_close(t->valid);
    rnnd__setup_close(&t->setup);
    free(t->weights_before);
    rnnd_options_clear(&t->merged);
}
