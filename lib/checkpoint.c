/*
 * checkpoint.c - all that decides the next update, to HDF5 and back.
 *
 *   /model/NAME               parameters under PyTorch's names
 *   /optimizer/MOMENT/NAME    moments under the same names; /optimizer/step
 *   /state/...                position, schedule, sums of the log line, carried states
 *   /classes                  texts of classes or tokens
 *
 * Every array carries a checksum, and so does the file.
 */
#include "checkpoint.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "hdf.h"
#include "log.h"
#include "optim.h"
#include "options.h"
#include "params.h"
#include "status.h"

enum { VERSION = 1 };
static const char format[] = "rnn_dist-checkpoint";

void rnnd_carry_clear(struct rnnd_carry *carry)
{
    free(carry->id);
    free(carry->h);
    free(carry->c);
    memset(carry, 0, sizeof *carry);
}

/* ---- the trainer's numbers ---------------------------------------------------------- */

/* Each is a dataset /state/NAME of one element. */
static const struct number {
    const char *name;
    size_t offset;
    enum rnnd_hdf_type type;
} numbers[] = {
#define INTEGER(field) {#field, offsetof(struct rnnd_train_state, field), RNND_I64}
#define REAL(field) {#field, offsetof(struct rnnd_train_state, field), RNND_F64}
    INTEGER(update),         INTEGER(applied),       INTEGER(epoch),
    INTEGER(entry),          INTEGER(group),         INTEGER(validated),
    INTEGER(patience_count), INTEGER(plateau_count), INTEGER(log_updates),
    INTEGER(fingerprint),    REAL(seconds),          REAL(best_loss),
    REAL(patience_loss),     REAL(plateau_loss),     REAL(plateau_factor),
    REAL(log_loss),          REAL(log_targets),      REAL(log_steps),
    REAL(log_seconds),       REAL(log_wait),         REAL(log_straggler),
    REAL(last_lr),           REAL(last_norm),
#undef INTEGER
#undef REAL
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static int save_numbers(struct rnnd_hdf *f, const struct rnnd_train_state *state)
{
    const int64_t one = 1;
    for (int i = 0; i < NUMBERS; i++) {
        char object[64];
        snprintf(object, sizeof object, "/state/%s", numbers[i].name);
        RNND_TRY(rnnd_hdf_write(f, object, numbers[i].type, 1, &one, true,
                                (const char *)state + numbers[i].offset));
    }
    const char *launch = state->launch;
    return rnnd_hdf_write_strings(f, "/state/launch", &launch, 1);
}

static int load_numbers(struct rnnd_hdf *f, struct rnnd_train_state *state)
{
    for (int i = 0; i < NUMBERS; i++) {
        char object[64];
        snprintf(object, sizeof object, "/state/%s", numbers[i].name);
        RNND_TRY(rnnd_hdf_read(f, object, 0, 1, numbers[i].type,
                               (char *)state + numbers[i].offset));
    }
    char **launch = NULL;
    int64_t count;
    RNND_TRY(rnnd_hdf_read_strings(f, "/state/launch", &launch, &count));
    snprintf(state->launch, sizeof state->launch, "%s", count ? launch[0] : "");
    free(launch);
    return 0;
}

/* ---- carried states ----------------------------------------------------------------- */

static int save_carry(struct rnnd_hdf *f, const struct rnnd_carry *carry)
{
    int64_t dim[] = {carry->count, carry->width};
    if (carry->count == 0)
        return 0;
    RNND_TRY(rnnd_hdf_write(f, "/state/carry/id", RNND_I64, 1, dim, true, carry->id));
    RNND_TRY(rnnd_hdf_write(f, "/state/carry/h", RNND_F32, 2, dim, true, carry->h));
    if (!carry->c)
        return 0;
    return rnnd_hdf_write(f, "/state/carry/c", RNND_F32, 2, dim, true, carry->c);
}

static int load_floats(struct rnnd_hdf *f, const char *object, int64_t rows, int64_t width,
                       float **out)
{
    RNND_TRY(rnnd_new((size_t)(rows * width), sizeof(float), object, (void **)out));
    return rnnd_hdf_read(f, object, 0, rows, RNND_F32, *out);
}

static int load_carry(struct rnnd_hdf *f, struct rnnd_carry *carry)
{
    struct rnnd_hdf_shape shape;
    rnnd_carry_clear(carry);
    if (!rnnd_hdf_has(f, "/state/carry/h"))
        return 0;
    RNND_TRY(rnnd_hdf_shape(f, "/state/carry/h", &shape));
    carry->count = shape.dim[0];
    carry->width = shape.dim[1];
    RNND_TRY(rnnd_new((size_t)carry->count, sizeof *carry->id, "carried states",
                      (void **)&carry->id));
    RNND_TRY(rnnd_hdf_read(f, "/state/carry/id", 0, carry->count, RNND_I64, carry->id));
    RNND_TRY(load_floats(f, "/state/carry/h", carry->count, carry->width, &carry->h));
    if (!rnnd_hdf_has(f, "/state/carry/c"))
        return 0;
    return load_floats(f, "/state/carry/c", carry->count, carry->width, &carry->c);
}

/* ---- arrays under parameters' names ------------------------------------------------- */

static int shape_of(const struct rnnd_param *p, int64_t *dim)
{
    dim[0] = p->rows;
    dim[1] = p->cols;
    return p->cols ? 2 : 1;
}

/* One array a parameter, from an arena. */
static int save_arena(struct rnnd_hdf *f, const struct rnnd_params *par, const char *group,
                      struct rnnd_buf arena)
{
    float *host = NULL;
    int status = 0;
    RNND_TRY(rnnd_new((size_t)par->count, sizeof *host, "checkpoint", (void **)&host));
    RNND_TRY_GOTO(rnnd_device_download(par->be, host, arena, (size_t)par->count * 4));
    for (int i = 0; i < par->listed; i++) {
        const struct rnnd_param *p = &par->list[i];
        char object[128];
        int64_t dim[2];
        int rank = shape_of(p, dim);
        snprintf(object, sizeof object, "%s/%s", group, p->name);
        RNND_TRY_GOTO(rnnd_hdf_write(f, object, RNND_F32, rank, dim, true,
                                     host + p->offset));
    }
done:
    free(host);
    return status;
}

static void describe(const struct rnnd_hdf_shape *s, char *text, size_t size)
{
    int n = snprintf(text, size, "[");
    for (int d = 0; d < s->rank && n < (int)size; d++)
        n += snprintf(text + n, size - (size_t)n, "%s%lld", d ? "," : "",
                      (long long)s->dim[d]);
    snprintf(text + n, size - (size_t)n, "]");
}

/* EUSAGE where an array of the file has not the shape that the model has. */
static int check_shape(struct rnnd_hdf *f, const char *object, int rank, const int64_t *dim)
{
    struct rnnd_hdf_shape got, want = {.kind = RNND_HDF_FLOAT, .rank = rank};
    char a[96], b[96];
    memcpy(want.dim, dim, (size_t)rank * sizeof *dim);
    RNND_TRY(rnnd_hdf_shape(f, object, &got));
    if (got.rank == rank && memcmp(got.dim, want.dim, (size_t)rank * sizeof *dim) == 0)
        return 0;
    describe(&got, a, sizeof a);
    describe(&want, b, sizeof b);
    return rnnd_fail(RNND_EUSAGE, "%s: %s is %s, the model needs %s", rnnd_hdf_path(f),
                     object, a, b);
}

static int load_arena(struct rnnd_hdf *f, const struct rnnd_params *par, const char *group,
                      struct rnnd_buf arena)
{
    float *host = NULL;
    int status = 0;
    RNND_TRY(rnnd_new((size_t)par->count, sizeof *host, "checkpoint", (void **)&host));
    for (int i = 0; i < par->listed; i++) {
        const struct rnnd_param *p = &par->list[i];
        char object[128];
        int64_t dim[2];
        int rank = shape_of(p, dim);
        snprintf(object, sizeof object, "%s/%s", group, p->name);
        RNND_TRY_GOTO(check_shape(f, object, rank, dim));
        RNND_TRY_GOTO(rnnd_hdf_read(f, object, 0, p->rows, RNND_F32, host + p->offset));
    }
    par->be->ops->upload(par->be, arena, host, (size_t)par->count * 4);
    RNND_TRY_GOTO(rnnd_device_sync(par->be));
done:
    free(host);
    return status;
}

/* ---- model -------------------------------------------------------------------------- */

/* input.mean and input.std lie beside the parameters. */
static int save_moments(struct rnnd_hdf *f, struct rnnd_model *model)
{
    int64_t inputs = rnnd_model_spec(model)->inputs;
    if (!rnnd_model_mean(model))
        return 0;
    RNND_TRY(rnnd_hdf_write(f, "/model/input.mean", RNND_F32, 1, &inputs, true,
                            rnnd_model_mean(model)));
    return rnnd_hdf_write(f, "/model/input.std", RNND_F32, 1, &inputs, true,
                          rnnd_model_std(model));
}

static int load_moments(struct rnnd_hdf *f, struct rnnd_model *model)
{
    int64_t inputs = rnnd_model_spec(model)->inputs;
    if (!rnnd_model_mean(model))
        return 0;
    RNND_TRY(check_shape(f, "/model/input.mean", 1, &inputs));
    RNND_TRY(check_shape(f, "/model/input.std", 1, &inputs));
    RNND_TRY(rnnd_hdf_read(f, "/model/input.mean", 0, inputs, RNND_F32,
                           rnnd_model_mean(model)));
    return rnnd_hdf_read(f, "/model/input.std", 0, inputs, RNND_F32, rnnd_model_std(model));
}

static int save_classes(struct rnnd_hdf *f, const struct rnnd_model *model)
{
    int64_t count = rnnd_model_spec(model)->outputs;
    const char **text = NULL;
    if (!rnnd_model_class(model, 0))
        return 0;
    RNND_TRY(rnnd_new((size_t)count, sizeof *text, "classes", (void **)&text));
    for (int64_t k = 0; k < count; k++)
        text[k] = rnnd_model_class(model, k);
    int status = rnnd_hdf_write_strings(f, "/classes", text, count);
    free(text);
    return status;
}

static int load_classes(struct rnnd_hdf *f, struct rnnd_model *model)
{
    char **text = NULL;
    int64_t count;
    if (!rnnd_hdf_has(f, "/classes"))
        return 0;
    RNND_TRY(rnnd_hdf_read_strings(f, "/classes", &text, &count));
    int status = rnnd_model_set_classes(model, (const char *const *)text, count);
    free(text);
    return status;
}

/* What options do not tell of a model: that which came from its data. */
static int save_spec(struct rnnd_hdf *f, const struct rnnd_model_spec *spec)
{
    RNND_TRY(rnnd_hdf_set_string(f, "task", rnnd_task_name(spec->task)));
    RNND_TRY(rnnd_hdf_set_int(f, "inputs", spec->inputs));
    RNND_TRY(rnnd_hdf_set_int(f, "vocab_size", spec->vocab));
    return rnnd_hdf_set_int(f, "outputs", spec->outputs);
}

static int load_task(struct rnnd_hdf *f, enum rnnd_task *out)
{
    char *name = NULL;
    RNND_TRY(rnnd_hdf_get_string(f, "task", &name));
    for (int t = 0; t < RNND_NO_TASK; t++)
        if (strcmp(rnnd_task_name((enum rnnd_task)t), name) == 0) {
            *out = (enum rnnd_task)t;
            free(name);
            return 0;
        }
    int status = rnnd_fail(RNND_EFILE, "%s: attribute task is %s: no task of that name",
                           rnnd_hdf_path(f), name);
    free(name);
    return status;
}

static int load_spec(struct rnnd_hdf *f, const char *config, struct rnnd_model_spec *out)
{
    struct rnnd_dataset_info data = {.path = rnnd_hdf_path(f)};
    struct rnnd_options opt;
    int status = 0;
    RNND_TRY(load_task(f, &data.task));
    RNND_TRY(rnnd_hdf_get_int(f, "inputs", &data.inputs));
    RNND_TRY(rnnd_hdf_get_int(f, "vocab_size", &data.vocab));
    RNND_TRY(rnnd_hdf_get_int(f, "outputs", &data.outputs));
    RNND_TRY(rnnd_options_init(&opt));
    RNND_TRY_GOTO(rnnd_options_read_text(&opt, config, data.path, RNND_FROM_FILE));
    RNND_TRY_GOTO(rnnd_model_spec_from(&opt, &data, out));
done:
    rnnd_options_clear(&opt);
    return status;
}

/* ---- files -------------------------------------------------------------------------- */

/* Opens a checkpoint of a version that is known here. */
static int open_checked(const char *path, struct rnnd_hdf **out)
{
    struct rnnd_hdf *f = NULL;
    char *text = NULL;
    int64_t version;
    int status = 0;
    RNND_TRY_GOTO(rnnd_hdf_open(path, &f));
    RNND_TRY_GOTO(rnnd_hdf_get_string(f, "format", &text));
    if (strcmp(text, format) != 0)
        RNND_TRY_GOTO(rnnd_fail(RNND_EFILE, "%s: attribute format is %s, not %s", path, text,
                                format));
    RNND_TRY_GOTO(rnnd_hdf_get_int(f, "version", &version));
    if (version > VERSION)
        RNND_TRY_GOTO(rnnd_fail(RNND_EFILE, "%s: version %lld is newer than this program",
                                path, (long long)version));
    *out = f;
    f = NULL;
done:
    free(text);
    rnnd_hdf_close(f);
    /* Whatever is missing in a checkpoint, it is damaged. */
    return status == RNND_EDATA ? rnnd_fail(RNND_EFILE, "%s", rnnd_status_detail()) : status;
}

static int save_config(struct rnnd_hdf *f, const struct rnnd_options *opt)
{
    char *text = NULL;
    RNND_TRY(rnnd_options_text(opt, &text));
    int status = rnnd_hdf_set_string(f, "config", text);
    free(text);
    return status;
}

static int save_model(struct rnnd_hdf *f, struct rnnd_model *model,
                      const struct rnnd_options *opt)
{
    const struct rnnd_params *par = rnnd_model_params(model);
    RNND_TRY(rnnd_hdf_set_string(f, "format", format));
    RNND_TRY(rnnd_hdf_set_int(f, "version", VERSION));
    RNND_TRY(save_config(f, opt));
    RNND_TRY(save_spec(f, rnnd_model_spec(model)));
    RNND_TRY(save_arena(f, par, "/model", par->value));
    RNND_TRY(save_moments(f, model));
    return save_classes(f, model);
}

static int save_optimizer(struct rnnd_hdf *f, const struct rnnd_params *par,
                          const struct rnnd_optim *optim)
{
    const int64_t one = 1, steps = rnnd_optim_step_count(optim);
    for (int i = 0; i < rnnd_optim_moments(optim); i++) {
        char group[64];
        snprintf(group, sizeof group, "/optimizer/%s", rnnd_optim_moment_name(optim, i));
        RNND_TRY(save_arena(f, par, group, rnnd_optim_moment(optim, i)));
    }
    return rnnd_hdf_write(f, "/optimizer/step", RNND_I64, 1, &one, true, &steps);
}

static int load_optimizer(struct rnnd_hdf *f, const struct rnnd_params *par,
                          struct rnnd_optim *optim)
{
    int64_t steps;
    for (int i = 0; i < rnnd_optim_moments(optim); i++) {
        char group[64];
        snprintf(group, sizeof group, "/optimizer/%s", rnnd_optim_moment_name(optim, i));
        RNND_TRY(load_arena(f, par, group, rnnd_optim_moment(optim, i)));
    }
    RNND_TRY(rnnd_hdf_read(f, "/optimizer/step", 0, 1, RNND_I64, &steps));
    rnnd_optim_set_step_count(optim, steps);
    return 0;
}

int rnnd_checkpoint_save(const char *path, struct rnnd_model *model, struct rnnd_optim *optim,
                         const struct rnnd_options *opt, const struct rnnd_train_state *state)
{
    struct rnnd_hdf *f = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd_hdf_create(path, &f));
    RNND_TRY_GOTO(save_model(f, model, opt));
    RNND_TRY_GOTO(rnnd_hdf_set_int(f, "update", state ? state->update : 0));
    RNND_TRY_GOTO(rnnd_hdf_set_int(f, "epoch", state ? state->epoch : 0));
    if (state) {
        RNND_TRY_GOTO(save_optimizer(f, rnnd_model_params(model), optim));
        RNND_TRY_GOTO(save_numbers(f, state));
        RNND_TRY_GOTO(save_carry(f, &state->carry));
    }
    struct rnnd_hdf *whole = f;
    f = NULL; /* commit takes it in any case */
    RNND_TRY_GOTO(rnnd_hdf_commit(whole));
done:
    rnnd_hdf_close(f);
    return status;
}

int rnnd_checkpoint_save_model(const char *path, struct rnnd_model *model,
                               const struct rnnd_options *opt)
{
    return rnnd_checkpoint_save(path, model, NULL, opt, NULL);
}

int rnnd_checkpoint_load(const char *path, struct rnnd_model *model, struct rnnd_optim *optim,
                         struct rnnd_train_state *state)
{
    const struct rnnd_params *par = rnnd_model_params(model);
    struct rnnd_hdf *f = NULL;
    int status = 0;
    RNND_TRY_GOTO(open_checked(path, &f));
    RNND_TRY_GOTO(load_arena(f, par, "/model", par->value));
    RNND_TRY_GOTO(load_moments(f, model));
    RNND_TRY_GOTO(load_optimizer(f, par, optim));
    RNND_TRY_GOTO(load_numbers(f, state));
    RNND_TRY_GOTO(load_carry(f, &state->carry));
done:
    rnnd_hdf_close(f);
    return status;
}

static int read_info(struct rnnd_hdf *f, struct rnnd_checkpoint_info *out)
{
    struct rnnd_checkpoint_info info = {0, 0, NULL};
    RNND_TRY(rnnd_hdf_get_int(f, "update", &info.update));
    RNND_TRY(rnnd_hdf_get_int(f, "epoch", &info.epoch));
    RNND_TRY(rnnd_hdf_get_string(f, "config", &info.config));
    *out = info;
    return 0;
}

int rnnd_checkpoint_read_info(const char *path, struct rnnd_checkpoint_info *out)
{
    struct rnnd_hdf *f;
    RNND_TRY(open_checked(path, &f));
    int status = read_info(f, out);
    rnnd_hdf_close(f);
    return status;
}

int rnnd_checkpoint_load_model(const char *path, struct rnnd_backend *be,
                               struct rnnd_model **out, struct rnnd_checkpoint_info *info)
{
    struct rnnd_checkpoint_info own = {0, 0, NULL};
    struct rnnd_model_spec spec;
    struct rnnd_model *model = NULL;
    struct rnnd_hdf *f = NULL;
    int status = 0;
    RNND_TRY_GOTO(open_checked(path, &f));
    RNND_TRY_GOTO(read_info(f, &own));
    RNND_TRY_GOTO(load_spec(f, own.config, &spec));
    RNND_TRY_GOTO(rnnd_model_new(be, &spec, &model));
    const struct rnnd_params *par = rnnd_model_params(model);
    RNND_TRY_GOTO(load_arena(f, par, "/model", par->value));
    RNND_TRY_GOTO(load_moments(f, model));
    RNND_TRY_GOTO(load_classes(f, model));
    *out = model;
    model = NULL;
    if (info) {
        *info = own;
        own.config = NULL;
    }
done:
    free(own.config);
    rnnd_model_free(model);
    rnnd_hdf_close(f);
    return status;
}

/* Files of other tools may lack attributes: only the parameters matter here. */
int rnnd_checkpoint_init(const char *path, struct rnnd_model *model)
{
    const struct rnnd_params *par = rnnd_model_params(model);
    struct rnnd_hdf *f;
    RNND_TRY(rnnd_hdf_open(path, &f));
    int status = load_arena(f, par, "/model", par->value);
    rnnd_hdf_close(f);
    return status;
}
