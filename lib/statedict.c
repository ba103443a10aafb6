/*
 * statedict.c - from named arrays to a model: what it must be, and its parameters.
 *
 * Takes arrays whose names are settled (statedict_names.c); knows of HDF5 and
 * safetensors only how to open and read an array. Nothing of a model changes unless all
 * of it fits.
 */
#include "statedict.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "hdf.h"
#include "log.h"
#include "options.h"
#include "params.h"
#include "status.h"

/* ---- open and close */

static int add_array(void *context, const char *object)
{
    struct rnnd_statedict *sd = context;
    struct rnnd_hdf_shape shape;
    RNND_TRY(rnnd_hdf_shape(sd->hdf, object, &shape));
    struct rnnd_tensor t = {.rank = shape.rank, .type = RNND_TENSOR_OTHER};
    const char *name = strstr(object, "model/");
    if (shape.kind == RNND_HDF_FLOAT || shape.kind == RNND_HDF_INT)
        t.type = RNND_TENSOR_F32; /* the library converts */
    if (shape.rank == 1 || shape.rank == 2) {
        t.rows = shape.dim[0];
        t.cols = shape.rank == 2 ? shape.dim[1] : 0;
    }
    t.name = strdup(name ? name + strlen("model/") : object);
    if (!t.name)
        return rnnd_fail_memory(strlen(object), "a name");
    int status = rnnd__statedict_add(sd, &t);
    if (status < 0)
        free(t.name);
    return status;
}

static int get_text(struct rnnd_hdf *file, const char *attribute, char **out)
{
    return rnnd_hdf_has_attribute(file, attribute)
               ? rnnd_hdf_get_string(file, attribute, out)
               : 0;
}

static int read_hdf(struct rnnd_statedict *sd)
{
    if (!rnnd_hdf_has(sd->hdf, "/model"))
        return rnnd_fail(RNND_EDATA, "%s: has no /model: not a checkpoint", sd->path);
    RNND_TRY(rnnd_hdf_each(sd->hdf, "/model", add_array, sd));
    RNND_TRY(get_text(sd->hdf, "task", &sd->task));
    RNND_TRY(get_text(sd->hdf, "config", &sd->config));
    if (rnnd_hdf_has(sd->hdf, "/classes"))
        RNND_TRY(
            rnnd_hdf_read_strings(sd->hdf, "/classes", &sd->classes, &sd->class_count));
    return rnnd__statedict_name(sd);
}

static int start(struct rnnd_statedict *sd, const char *path)
{
    *sd = (struct rnnd_statedict){.fd = -1};
    sd->path = strdup(path);
    return sd->path ? 0 : rnnd_fail_memory(strlen(path), "a file name");
}

int rnnd_statedict_of(struct rnnd_hdf *file, struct rnnd_statedict *out)
{
    struct rnnd_statedict sd;
    RNND_TRY(start(&sd, rnnd_hdf_path(file)));
    sd.hdf = file;
    sd.borrowed = true;
    int status = read_hdf(&sd);
    if (status < 0)
        rnnd_statedict_close(&sd);
    else
        *out = sd;
    return status;
}

/* HDF5 files begin with this; safetensors with a length that is never that large. */
static bool looks_like_hdf(int fd)
{
    static const char signature[8] = "\211HDF\r\n\032\n";
    char head[sizeof signature];
    return pread(fd, head, sizeof head, 0) == sizeof head &&
           memcmp(head, signature, sizeof head) == 0;
}

int rnnd_statedict_open(const char *path, struct rnnd_statedict *out)
{
    struct rnnd_statedict sd;
    int status = 0;
    RNND_TRY(start(&sd, path));
    sd.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (sd.fd < 0)
        RNND_TRY_GOTO(rnnd_fail(RNND_EFILE, "%s: %s", path, strerror(errno)));
    if (looks_like_hdf(sd.fd)) {
        RNND_TRY_GOTO(rnnd_hdf_open(path, &sd.hdf));
        RNND_TRY_GOTO(read_hdf(&sd));
    } else {
        RNND_TRY_GOTO(rnnd__safetensors_open(&sd));
        RNND_TRY_GOTO(rnnd__statedict_name(&sd));
    }
    *out = sd;
    return 0;
done:
    rnnd_statedict_close(&sd);
    return status;
}

void rnnd_statedict_close(struct rnnd_statedict *sd)
{
    if (!sd->borrowed)
        rnnd_hdf_close(sd->hdf);
    if (sd->fd >= 0)
        close(sd->fd);
    for (int i = 0; i < sd->count; i++)
        free(sd->tensor[i].name);
    free(sd->tensor);
    free(sd->task);
    free(sd->config);
    free(sd->classes);
    free(sd->path);
    *sd = (struct rnnd_statedict){.fd = -1};
}

/* ---- what model it is */

/* Widths, from the shapes of the arrays. */
static int measure(const struct rnnd_statedict *sd, struct rnnd_model_spec *spec,
                   int *gates)
{
    const struct rnnd_tensor *ih = rnnd__statedict_find(sd, "rnn.weight_ih_l0");
    const struct rnnd_tensor *hh = rnnd__statedict_find(sd, "rnn.weight_hh_l0");
    const struct rnnd_tensor *bias = rnnd__statedict_find(sd, "head.bias");
    const struct rnnd_tensor *embed = rnnd__statedict_find(sd, "embed.weight");
    if (!ih || !hh || !bias || hh->cols < 1 || hh->rows % hh->cols != 0) {
        char found[1200];
        rnnd__statedict_list(sd, found, sizeof found);
        return rnnd_fail(
            RNND_EUSAGE,
            "%s: a model needs at least rnn.weight_ih_l0 [G*H, I], "
            "rnn.weight_hh_l0 [G*H, H] and head.bias [O]; the file holds %s",
            sd->path, found);
    }
    *gates = (int)(hh->rows / hh->cols);
    spec->hidden = hh->cols;
    spec->outputs = bias->rows;
    spec->bidirectional = rnnd__statedict_find(sd, "rnn.weight_ih_l0_reverse") != NULL;
    spec->normalize = !embed && rnnd__statedict_find(sd, "input.mean") != NULL;
    spec->vocab = embed ? embed->rows : 0;
    spec->embed = embed ? embed->cols : 0;
    spec->inputs = embed ? 0 : ih->cols;
    char name[48];
    do
        snprintf(name, sizeof name, "rnn.weight_ih_l%d", (int)++spec->layers);
    while (rnnd__statedict_find(sd, name));
    return 0;
}

static int settle_cell(const struct rnnd_statedict *sd, const struct rnnd_options *o,
                       int gates, enum rnnd_cell *out)
{
    enum rnnd_cell cell = o->cell;
    if (!rnnd_options_given(o, "cell"))
        cell = gates == 4 ? RNND_LSTM : gates == 3 ? RNND_GRU : RNND_RNN_TANH;
    if (rnnd_cell_gates(cell) != gates)
        return rnnd_fail(RNND_EUSAGE,
                         "%s: arrays of %d gates, but --cell says otherwise", sd->path,
                         gates);
    *out = cell;
    return 0;
}

static int settle_task(const struct rnnd_statedict *sd, const struct rnnd_options *o,
                       const struct rnnd_model_spec *spec, enum rnnd_task *out)
{
    if (o->task >= 0) {
        *out = (enum rnnd_task)o->task;
        return 0;
    }
    if (spec->vocab == 0 || spec->vocab != spec->outputs)
        return rnnd_fail(RNND_EUSAGE,
                         "%s: does not say what task its model is for: an attribute "
                         "config with a line \"task = classify\", say, would",
                         sd->path);
    *out = RNND_LM;
    return 0;
}

/* What the file says, and over it what was given. */
static int read_told(const struct rnnd_statedict *sd, const struct rnnd_options *opt,
                     struct rnnd_options *o)
{
    if (sd->config)
        RNND_TRY(rnnd_options_read_text(o, sd->config, sd->path, RNND_FROM_FILE));
    if (sd->task)
        RNND_TRY(rnnd_options_set(o, "task", sd->task, RNND_FROM_FILE));
    return opt ? rnnd_options_overlay(o, opt) : 0;
}

int rnnd_statedict_spec(const struct rnnd_statedict *sd, const struct rnnd_options *opt,
                        struct rnnd_model_spec *out)
{
    struct rnnd_model_spec spec = {0};
    struct rnnd_options o;
    int gates = 0, status = 0;
    RNND_TRY(rnnd_options_init(&o));
    RNND_TRY_GOTO(read_told(sd, opt, &o));
    RNND_TRY_GOTO(measure(sd, &spec, &gates));
    RNND_TRY_GOTO(settle_cell(sd, &o, gates, &spec.cell));
    RNND_TRY_GOTO(settle_task(sd, &o, &spec, &spec.task));
    spec.tie_weights =
        spec.vocab && (o.tie_weights || !rnnd__statedict_find(sd, "head.weight"));
    spec.pool = o.pool;
    spec.dropout = spec.layers > 1 ? o.dropout : 0;
    spec.dropout_embed = spec.vocab ? o.dropout_embed : 0;
    spec.dropout_head = o.dropout_head;
    spec.dropout_kind = o.dropout_kind;
    *out = spec;
done:
    rnnd_options_clear(&o);
    return status;
}

int rnnd_statedict_config(const struct rnnd_model *model,
                          const struct rnnd_options *opt, char **text)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(model);
    struct rnnd_options defaults, o;
    RNND_TRY(rnnd_options_init(&defaults));
    o = opt ? *opt : defaults; /* borrows the texts */
    o.task = (int)spec->task;
    o.cell = spec->cell;
    o.hidden = spec->hidden;
    o.layers = spec->layers;
    o.bidirectional = spec->bidirectional;
    o.pool = spec->pool;
    o.tie_weights = spec->tie_weights;
    o.normalize = spec->normalize;
    if (spec->vocab)
        o.embed = spec->embed;
    if (!opt) {
        o.dropout = spec->dropout;
        o.dropout_embed = spec->dropout_embed;
        o.dropout_head = spec->dropout_head;
        o.dropout_kind = spec->dropout_kind;
    }
    int status = rnnd_options_text(&o, text);
    rnnd_options_clear(&defaults);
    return status;
}

/* ---- parameters */

static void describe(int64_t rows, int64_t cols, char text[64])
{
    if (cols)
        snprintf(text, 64, "[%lld, %lld]", (long long)rows, (long long)cols);
    else
        snprintf(text, 64, "[%lld]", (long long)rows);
}

static int fail_names(const struct rnnd_statedict *sd, const struct rnnd_model *model,
                      const char *verb, const char *name)
{
    char found[900], wanted[700] = "", one[96];
    const char *next;
    int64_t rows, cols;
    size_t n = 0;
    rnnd__statedict_list(sd, found, sizeof found);
    for (int i = 0; rnnd_model_parameter(model, i, &next, &rows, &cols); i++) {
        char shape[64];
        describe(rows, cols, shape);
        snprintf(one, sizeof one, "%s%s %s", i ? ", " : "", next, shape);
        if (n + strlen(one) + sizeof ", ..." > sizeof wanted) {
            strcpy(wanted + n, ", ...");
            break;
        }
        strcpy(wanted + n, one);
        n += strlen(one);
    }
    return rnnd_fail(RNND_EUSAGE, "%s: %s %s; it holds %s; the model needs %s",
                     sd->path, verb, name, found, wanted);
}

/* Of a tied matrix one name is enough. */
static const struct rnnd_tensor *find_for(const struct rnnd_statedict *sd,
                                          const struct rnnd_model *model,
                                          const char *name)
{
    const struct rnnd_tensor *t = rnnd__statedict_find(sd, name);
    if (t || !rnnd_model_spec(model)->tie_weights)
        return t;
    if (strcmp(name, "head.weight") == 0)
        return rnnd__statedict_find(sd, "embed.weight");
    return strcmp(name, "embed.weight") == 0 ? rnnd__statedict_find(sd, "head.weight")
                                             : NULL;
}

static bool is_normalization(const char *name)
{
    return strcmp(name, "input.mean") == 0 || strcmp(name, "input.std") == 0;
}

static int check_one(const struct rnnd_statedict *sd, const struct rnnd_tensor *t,
                     const char *name, int64_t rows, int64_t cols)
{
    char want[64], got[64];
    describe(rows, cols, want);
    describe(t->rows, t->cols, got);
    if (t->rank != (cols ? 2 : 1))
        return rnnd_fail(RNND_EUSAGE, "%s: %s has %d dimensions, the model's %s is %s",
                         sd->path, t->name, t->rank, name, want);
    if (t->rows != rows || t->cols != cols)
        return rnnd_fail(RNND_EUSAGE, "%s: %s is %s, the model's %s is %s", sd->path,
                         t->name, got, name, want);
    if (t->type == RNND_TENSOR_OTHER)
        return rnnd_fail(RNND_EUSAGE, "%s: %s is no array of floating-point numbers",
                         sd->path, t->name);
    return 0;
}

static int check_all(const struct rnnd_statedict *sd, const struct rnnd_model *model)
{
    const char *name;
    int64_t rows, cols;
    for (int i = 0; rnnd_model_parameter(model, i, &name, &rows, &cols); i++) {
        const struct rnnd_tensor *t = find_for(sd, model, name);
        if (!t && is_normalization(name))
            continue;
        if (!t)
            return fail_names(sd, model, "has no", name);
        RNND_TRY(check_one(sd, t, name, rows, cols));
    }
    const struct rnnd_params *par = rnnd_model_params(model);
    for (int i = 0; i < sd->count; i++) {
        const struct rnnd_tensor *t = &sd->tensor[i];
        if (!rnnd_params_find(par, t->ours) && !is_normalization(t->ours))
            return fail_names(sd, model, "the model has no place for", t->name);
    }
    return 0;
}

static int read_tensor(const struct rnnd_statedict *sd, const struct rnnd_tensor *t,
                       float *out)
{
    if (!sd->hdf)
        return rnnd__safetensors_read(sd, t, out);
    char object[256];
    snprintf(object, sizeof object, "/model/%s", t->name);
    return rnnd_hdf_read(sd->hdf, object, 0, t->rows, RNND_F32, out);
}

/* The second name of a tied matrix must not hold another one. */
static int check_tied(const struct rnnd_statedict *sd, const struct rnnd_params *par,
                      const float *host)
{
    const struct rnnd_param *p = rnnd_params_find(par, "embed.weight");
    const struct rnnd_tensor *t = rnnd__statedict_find(sd, "embed.weight");
    float *other = NULL;
    if (!p || !t || !rnnd__statedict_find(sd, "head.weight"))
        return 0;
    size_t size = (size_t)rnnd_param_size(p);
    RNND_TRY(rnnd_new(size, sizeof *other, "embed.weight", (void **)&other));
    int status = read_tensor(sd, t, other);
    if (status == 0 && memcmp(other, host + p->offset, size * sizeof *other) != 0)
        status = rnnd_fail(RNND_EUSAGE,
                           "%s: embed.weight and head.weight differ, but the "
                           "model ties them",
                           sd->path);
    free(other);
    return status;
}

static int read_moments(const struct rnnd_statedict *sd, struct rnnd_model *model)
{
    const struct rnnd_tensor *mean = rnnd__statedict_find(sd, "input.mean");
    const struct rnnd_tensor *std = rnnd__statedict_find(sd, "input.std");
    if (!rnnd_model_mean(model) || !mean || !std)
        return 0;
    RNND_TRY(read_tensor(sd, mean, rnnd_model_mean(model)));
    return read_tensor(sd, std, rnnd_model_std(model));
}

int rnnd_statedict_load(struct rnnd_statedict *sd, struct rnnd_model *model)
{
    const struct rnnd_params *par = rnnd_model_params(model);
    float *host = NULL;
    int status = 0;
    RNND_TRY(check_all(sd, model));
    RNND_TRY(rnnd_new((size_t)par->count, sizeof *host, "parameters", (void **)&host));
    for (int i = 0; i < par->listed; i++) {
        const struct rnnd_param *p = &par->list[i];
        RNND_TRY_GOTO(read_tensor(sd, find_for(sd, model, p->name), host + p->offset));
    }
    if (rnnd_model_spec(model)->tie_weights)
        RNND_TRY_GOTO(check_tied(sd, par, host));
    RNND_TRY_GOTO(read_moments(sd, model));
    par->be->ops->upload(par->be, par->value, host, (size_t)par->count * sizeof *host);
    RNND_TRY_GOTO(rnnd_device_sync(par->be));
done:
    free(host);
    return status;
}

int rnnd_statedict_model(struct rnnd_statedict *sd, const struct rnnd_options *opt,
                         struct rnnd_backend *be, struct rnnd_model **out)
{
    struct rnnd_model_spec spec;
    struct rnnd_model *model = NULL;
    int status = 0;
    RNND_TRY(rnnd_statedict_spec(sd, opt, &spec));
    RNND_TRY_GOTO(rnnd_model_new(be, &spec, &model));
    RNND_TRY_GOTO(rnnd_statedict_load(sd, model));
    if (sd->classes)
        RNND_TRY_GOTO(rnnd_model_set_classes(model, (const char *const *)sd->classes,
                                             sd->class_count));
    *out = model;
    model = NULL;
done:
    rnnd_model_free(model);
    return status;
}
