/*
 * checkpoint.c - saves and loads everything that decides the next update, as HDF5.
 *
 *   attributes                format, version, update, epoch, config; task, inputs,
 *                             vocab_size, outputs
 *   /model/NAME               parameters under PyTorch's names
 *   /optimizer/MOMENT/NAME    moments under the same names; /optimizer/step
 *   /state/...                position, schedule, sums of the train record under way,
 *                             carried states
 *   /classes /vocab /features names of classes, tokens and features
 *
 * Every array has a checksum, and so has the file. Files of other tools may have
 * less: a model needs the arrays and a task, resuming needs everything.
 */
#include "checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/output.h"
#include "base/status.h"
#include "base/task.h"
#include "checkpoint/statedict.h"
#include "device/device.h"
#include "hdf/hdf.h"
#include "model/params.h"
#include "optim/optim.h"

enum { VERSION = 1 };
static const char checkpoint_format[] = "rnn_dist-checkpoint";

/* ---- which files are checkpoints */

/* A checkpoint that lacks something, or whose parts do not fit, is damaged. */
static int as_damage(int status)
{
    return status == RNND_EDATA || status == RNND_EUSAGE ? RNND_EFILE : status;
}

static int check_format(struct rnnd__hdf *f)
{
    return as_damage(rnnd__hdf_check_format(f, checkpoint_format, VERSION));
}

int rnnd__checkpoint_open(const char *path, bool of_run, struct rnnd__hdf **out)
{
    struct rnnd__hdf *f;
    RNND_TRY(
        as_damage(of_run ? rnnd__hdf_open_own(path, &f) : rnnd__hdf_open(path, &f)));
    int status = check_format(f);
    if (status < 0)
        rnnd__hdf_close(f);
    else
        *out = f;
    return status;
}

/* Arrays without a checksum: whether they are damaged cannot be determined. */
struct unchecked {
    struct rnnd__hdf *file;
    int count;
};

static int count_unchecked(void *context, const char *object)
{
    struct unchecked *u = context;
    bool has;
    RNND_TRY(rnnd__hdf_has_checksum(u->file, object, &has));
    u->count += !has;
    return 0;
}

static int report_unchecked(struct rnnd__hdf *f)
{
    struct unchecked u = {f, 0};
    RNND_TRY(rnnd__hdf_each(f, "/", count_unchecked, &u));
    if (u.count)
        rnnd__log_info(
            "%s: %d arrays have no checksum, as another tool wrote them: damage to "
            "them goes unnoticed",
            rnnd__hdf_path(f), u.count);
    return 0;
}

/* ---- arenas, as one array per parameter */

/* Returns the rank. */
static int shape_of(const struct rnnd__param *p, int64_t *dim)
{
    dim[0] = p->rows;
    dim[1] = p->cols;
    return p->cols ? 2 : 1;
}

/* host: a copy of the arena. */
static int save_arena(struct rnnd__hdf *f, const struct rnnd__params *par,
                      const char *group, const float *host)
{
    for (int i = 0; i < par->listed; i++) {
        const struct rnnd__param *p = &par->list[i];
        char object[128];
        int64_t dim[2];
        int rank = shape_of(p, dim);
        snprintf(object, sizeof object, "%s/%s", group, p->name);
        RNND_TRY(
            rnnd__hdf_write(f, object, RNND_F32, rank, dim, true, host + p->offset));
    }
    return 0;
}

static int load_arena(struct rnnd__hdf *f, const struct rnnd__params *par,
                      const char *group, struct rnnd__buf arena)
{
    float *host = NULL;
    int status = 0;
    RNND_TRY(RNND_NEW(&host, par->count, "a checkpoint"));
    for (int i = 0; i < par->listed; i++) {
        const struct rnnd__param *p = &par->list[i];
        struct rnnd__hdf_shape shape;
        char object[128];
        int64_t dim[2];
        int rank = shape_of(p, dim);
        snprintf(object, sizeof object, "%s/%s", group, p->name);
        RNND_TRY_GOTO(rnnd__hdf_shape(f, object, &shape));
        if (shape.rank != rank ||
            memcmp(shape.dim, dim, (size_t)rank * sizeof *dim) != 0)
            RNND_TRY_GOTO(rnnd__fail(RNND_EFILE,
                                     "%s: %s: its shape is not that of the parameter",
                                     rnnd__hdf_path(f), object));
        RNND_TRY_GOTO(
            rnnd__hdf_read(f, object, 0, p->rows, RNND_F32, host + p->offset));
    }
    par->be->ops->upload(par->be, arena, host, (size_t)par->count * sizeof *host);
    RNND_TRY_GOTO(rnnd__device_sync(par->be));
done:
    free(host);
    return status;
}

/* ---- optimizer */

enum { GROUP = 64 };

static void moment_group(const struct rnnd_optim *optim, int i, char group[GROUP])
{
    snprintf(group, GROUP, "/optimizer/%s", rnnd__optim_moment_name(optim, i));
}

/* Where the run had another optimizer, moments start as in a new run, and so does the
   step count of Adam's bias correction. */
static int load_optimizer(struct rnnd__hdf *f, const struct rnnd__params *par,
                          struct rnnd_optim *optim)
{
    int64_t steps;
    bool fresh = false;
    RNND_TRY(rnnd__hdf_read(f, "/optimizer/step", 0, 1, RNND_I64, &steps));
    for (int i = 0; i < rnnd__optim_moments(optim); i++) {
        struct rnnd__buf moment = rnnd__optim_moment(optim, i);
        char group[GROUP];
        moment_group(optim, i, group);
        if (rnnd__hdf_has(f, group)) {
            RNND_TRY(load_arena(f, par, group, moment));
            continue;
        }
        par->be->ops->zero(par->be, moment, (size_t)par->count * sizeof(float));
        fresh = true;
    }
    if (fresh)
        rnnd__log_info("%s: has no moments of this optimizer: they start at zero",
                       rnnd__hdf_path(f));
    rnnd__optim_set_step_count(optim, fresh ? 0 : steps);
    return 0;
}

/* ---- saving */

struct rnnd__snapshot {
    /* borrowed; optim and opt may be NULL */
    struct rnnd_model *model;
    struct rnnd_optim *optim;
    const struct rnnd_options *opt;
    /* [params->count] owned: parameters, then moments */
    float *values, **moment;
    /* updates of the optimizer */
    int64_t steps;
    /* its carry and its records are borrowed */
    struct rnnd__train_state state;
    bool has_state;
};

static int moments_of(const struct rnnd__snapshot *s)
{
    return s->optim ? rnnd__optim_moments(s->optim) : 0;
}

int rnnd__snapshot_new(struct rnnd_model *model, struct rnnd_optim *optim,
                       const struct rnnd_options *opt, struct rnnd__snapshot **out)
{
    int64_t count = rnnd__model_params(model)->count;
    struct rnnd__snapshot *s;
    int status = 0;
    RNND_TRY(RNND_NEW(&s, 1, "a checkpoint"));
    s->model = model;
    s->optim = optim;
    s->opt = opt;
    RNND_TRY_GOTO(RNND_NEW(&s->values, count, "a checkpoint"));
    RNND_TRY_GOTO(RNND_NEW(&s->moment, moments_of(s), "a checkpoint"));
    for (int i = 0; i < moments_of(s); i++)
        RNND_TRY_GOTO(RNND_NEW(&s->moment[i], count, "a checkpoint"));
    *out = s;
    return 0;
done:
    rnnd__snapshot_free(s);
    return status;
}

void rnnd__snapshot_free(struct rnnd__snapshot *s)
{
    if (!s)
        return;
    for (int i = 0; s->moment && i < moments_of(s); i++)
        free(s->moment[i]);
    free(s->moment);
    free(s->values);
    free(s);
}

int rnnd__snapshot_take(struct rnnd__snapshot *s, const struct rnnd__train_state *state)
{
    const struct rnnd__params *par = rnnd__model_params(s->model);
    RNND_TRY(rnnd__params_download(par, par->value, s->values));
    for (int i = 0; i < moments_of(s); i++)
        RNND_TRY(
            rnnd__params_download(par, rnnd__optim_moment(s->optim, i), s->moment[i]));
    s->steps = s->optim ? rnnd__optim_step_count(s->optim) : 0;
    s->has_state = state != NULL;
    if (state)
        s->state = *state;
    return 0;
}

static int save_optimizer(struct rnnd__hdf *f, const struct rnnd__snapshot *s)
{
    const int64_t one = 1;
    for (int i = 0; i < moments_of(s); i++) {
        char group[GROUP];
        moment_group(s->optim, i, group);
        RNND_TRY(save_arena(f, rnnd__model_params(s->model), group, s->moment[i]));
    }
    return rnnd__hdf_write(f, "/optimizer/step", RNND_I64, 1, &one, true, &s->steps);
}

/* input.mean and input.std, beside the parameters. */
static int save_normalization(struct rnnd__hdf *f, struct rnnd_model *model)
{
    int64_t inputs = rnnd_model_spec(model)->inputs;
    if (!rnnd_model_mean(model))
        return 0;
    RNND_TRY(rnnd__hdf_write(f, "/model/input.mean", RNND_F32, 1, &inputs, true,
                             rnnd_model_mean(model)));
    return rnnd__hdf_write(f, "/model/input.std", RNND_F32, 1, &inputs, true,
                           rnnd_model_std(model));
}

static int save_attributes(struct rnnd__hdf *f, const struct rnnd__snapshot *s)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(s->model);
    char *config;
    RNND_TRY(rnnd__hdf_set_string(f, "format", checkpoint_format));
    RNND_TRY(rnnd__hdf_set_int(f, "version", VERSION));
    RNND_TRY(rnnd__hdf_set_int(f, "update", s->state.update));
    RNND_TRY(rnnd__hdf_set_int(f, "epoch", s->state.epoch));
    RNND_TRY(rnnd__hdf_set_string(f, "task", rnnd_task_name(spec->task)));
    RNND_TRY(rnnd__hdf_set_int(f, "inputs", spec->inputs));
    RNND_TRY(rnnd__hdf_set_int(f, "vocab_size", spec->vocab));
    RNND_TRY(rnnd__hdf_set_int(f, "outputs", spec->outputs));
    RNND_TRY(rnnd__statedict_config(s->model, s->opt, &config));
    int status = rnnd__hdf_set_string(f, "config", config);
    free(config);
    return status;
}

static int save_all(struct rnnd__hdf *f, const struct rnnd__snapshot *s)
{
    RNND_TRY(save_attributes(f, s));
    RNND_TRY(save_arena(f, rnnd__model_params(s->model), "/model", s->values));
    RNND_TRY(save_normalization(f, s->model));
    RNND_TRY(rnnd__statedict_write_axes(f, s->model));
    if (!s->has_state)
        return 0;
    RNND_TRY(save_optimizer(f, s));
    return rnnd__checkpoint_save_state(f, &s->state);
}

static const struct rnnd__kind kind = {
    "a checkpoint", {RNND_HDF_START}, checkpoint_format};

/* With a state, the file is one of a run directory, and may replace a damaged one. */
int rnnd__snapshot_write(const struct rnnd__snapshot *s, const char *path)
{
    struct rnnd__hdf *f;
    RNND_TRY(rnnd__hdf_create_as(path, s->has_state ? NULL : &kind, &f));
    int status = save_all(f, s);
    if (status < 0) {
        rnnd__hdf_close(f);
        return status;
    }
    return rnnd__hdf_commit(f);
}

int rnnd__checkpoint_save(const char *path, struct rnnd_model *model,
                          struct rnnd_optim *optim, const struct rnnd_options *opt,
                          const struct rnnd__train_state *state)
{
    struct rnnd__snapshot *s;
    RNND_TRY(rnnd__snapshot_new(model, state ? optim : NULL, opt, &s));
    int status = rnnd__snapshot_take(s, state);
    if (status == 0)
        status = rnnd__snapshot_write(s, path);
    rnnd__snapshot_free(s);
    return status;
}

int rnnd_checkpoint_save_model(const char *path, struct rnnd_model *model,
                               const struct rnnd_options *opt)
{
    return rnnd__checkpoint_save(path, model, NULL, opt, NULL);
}

/* ---- loading */

static int load_parameters(struct rnnd__hdf *f, struct rnnd_model *model)
{
    struct rnnd__statedict sd;
    RNND_TRY(rnnd__statedict_of(f, &sd));
    int status = rnnd__statedict_load(&sd, model);
    rnnd__statedict_close(&sd);
    return status;
}

int rnnd__checkpoint_load(const char *path, struct rnnd_model *model,
                          struct rnnd_optim *optim, struct rnnd__train_state *state)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(model);
    int64_t width = spec->layers * (spec->bidirectional ? 2 : 1) * spec->hidden;
    struct rnnd__hdf *f = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd__checkpoint_open(path, false, &f));
    RNND_TRY_GOTO(report_unchecked(f));
    RNND_TRY_GOTO(load_parameters(f, model));
    RNND_TRY_GOTO(as_damage(rnnd__checkpoint_load_state(f, width, state)));
    RNND_TRY_GOTO(as_damage(load_optimizer(f, rnnd__model_params(model), optim)));
done:
    rnnd__hdf_close(f);
    return status;
}

int rnnd__checkpoint_init(const char *path, struct rnnd_model *model)
{
    struct rnnd__statedict sd;
    RNND_TRY(rnnd__statedict_open(path, &sd));
    if (rnnd__statedict_find(&sd, "input.mean") && !rnnd_model_mean(model))
        rnnd__log_warn("%s: its model was trained with --normalize, this one uses "
                       "features as they are",
                       path);
    int status = sd.hdf ? report_unchecked(sd.hdf) : 0;
    if (status == 0)
        status = rnnd__statedict_load(&sd, model);
    rnnd__statedict_close(&sd);
    return status;
}

int rnnd__checkpoint_read_names(const char *path, struct rnnd__names *out,
                                enum rnnd_task *task)
{
    struct rnnd__statedict sd;
    enum rnnd_task found = RNND_NO_TASK;
    RNND_TRY(rnnd__statedict_open(path, &sd));
    if (sd.task && !rnnd__task_find(sd.task, &found))
        found = RNND_NO_TASK;
    int status = rnnd__names_copy(out, &sd.names);
    rnnd__statedict_close(&sd);
    RNND_TRY(status);
    *task = found;
    return 0;
}

/* What a file of another tool lacks is 0 or "". */
static int take_info(const struct rnnd__statedict *sd, struct rnnd_checkpoint_info *out)
{
    struct rnnd_checkpoint_info info = {0, 0, NULL};
    if (sd->hdf && rnnd__hdf_has_attribute(sd->hdf, "update"))
        RNND_TRY(rnnd__hdf_get_int(sd->hdf, "update", &info.update));
    if (sd->hdf && rnnd__hdf_has_attribute(sd->hdf, "epoch"))
        RNND_TRY(rnnd__hdf_get_int(sd->hdf, "epoch", &info.epoch));
    const char *config = sd->config ? sd->config : "";
    info.config = strdup(config);
    if (!info.config)
        return rnnd__fail_memory(strlen(config), "options");
    *out = info;
    return 0;
}

int rnnd__checkpoint_read_info(const char *path, struct rnnd_checkpoint_info *out)
{
    struct rnnd__statedict sd;
    struct rnnd__hdf *f;
    RNND_TRY(rnnd__checkpoint_open(path, false, &f));
    int status = as_damage(rnnd__statedict_of(f, &sd));
    if (status == 0) {
        status = as_damage(take_info(&sd, out));
        rnnd__statedict_close(&sd);
    }
    rnnd__hdf_close(f);
    return status;
}

int rnnd_checkpoint_load_model(const char *path, struct rnnd_backend *be,
                               struct rnnd_model **out,
                               struct rnnd_checkpoint_info *info)
{
    struct rnnd_checkpoint_info own = {0, 0, NULL};
    struct rnnd_model *model = NULL;
    struct rnnd__statedict sd;
    int status = 0;
    RNND_TRY(as_damage(rnnd__statedict_open(path, &sd)));
    if (sd.hdf && !rnnd__hdf_has_attribute(sd.hdf, "format"))
        RNND_TRY_GOTO(rnnd__fail(RNND_EFILE,
                                 "%s: not a checkpoint (no attribute format); convert "
                                 "it with rnn_dist import",
                                 path));
    if (sd.hdf) {
        RNND_TRY_GOTO(check_format(sd.hdf));
        RNND_TRY_GOTO(report_unchecked(sd.hdf));
    }
    RNND_TRY_GOTO(rnnd__statedict_model(&sd, NULL, be, &model));
    RNND_TRY_GOTO(take_info(&sd, &own));
    *out = model;
    model = NULL;
    if (info) {
        *info = own;
        own.config = NULL;
    }
done:
    free(own.config);
    rnnd_model_free(model);
    rnnd__statedict_close(&sd);
    return as_damage(status);
}
