/*
 * statedict.c - loads named arrays into the parameters of a model.
 *
 * Takes arrays that have their names (statedict_names.c) and the model they make
 * (statedict_spec.c). Knows of HDF5 and safetensors only how to open a file and read an
 * array. A model stays unchanged unless everything fits.
 */
#include "checkpoint/statedict.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "hdf/hdf.h"
#include "model/params.h"
#include "options/options.h"

/* ---- open and close */

static int start(struct rnnd__statedict *sd, const char *path)
{
    *sd = (struct rnnd__statedict){.fd = -1, .prefix = ""};
    sd->path = strdup(path);
    return sd->path ? 0 : rnnd__fail_memory(strlen(path), "a file name");
}

int rnnd__statedict_of(struct rnnd__hdf *file, struct rnnd__statedict *out)
{
    struct rnnd__statedict sd;
    RNND_TRY(start(&sd, rnnd__hdf_path(file)));
    sd.hdf = file;
    sd.borrowed = true;
    int status = rnnd__statedict_hdf_read(&sd);
    if (status < 0)
        rnnd__statedict_close(&sd);
    else
        *out = sd;
    return status;
}

/* By HDF5's signature; safetensors begin with a length, never as large as that. */
static bool looks_like_hdf(int fd)
{
    static const char signature[8] = "\211HDF\r\n\032\n";
    char head[sizeof signature];
    return pread(fd, head, sizeof head, 0) == sizeof head &&
           memcmp(head, signature, sizeof head) == 0;
}

int rnnd__statedict_open(const char *path, struct rnnd__statedict *out)
{
    return rnnd__statedict_open_part(path, NULL, out);
}

int rnnd__statedict_open_part(const char *path, const char *prefix,
                              struct rnnd__statedict *out)
{
    struct rnnd__statedict sd;
    int status = 0;
    RNND_TRY(start(&sd, path));
    sd.prefix = prefix ? prefix : "";
    sd.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (sd.fd < 0)
        RNND_TRY_GOTO(rnnd__fail(RNND_EFILE, "%s: %s", path, strerror(errno)));
    if (looks_like_hdf(sd.fd)) {
        status = rnnd__hdf_open(path, &sd.hdf);
        RNND_TRY_GOTO(status == RNND_EDATA ? RNND_EFILE : status);
        RNND_TRY_GOTO(rnnd__statedict_hdf_read(&sd));
    } else {
        RNND_TRY_GOTO(rnnd__safetensors_open(&sd));
        RNND_TRY_GOTO(rnnd__statedict_name(&sd));
    }
    *out = sd;
    return 0;
done:
    rnnd__statedict_close(&sd);
    return status;
}

void rnnd__statedict_close(struct rnnd__statedict *sd)
{
    if (!sd->borrowed)
        rnnd__hdf_close(sd->hdf);
    if (sd->fd >= 0)
        close(sd->fd);
    for (int i = 0; i < sd->count; i++)
        free(sd->tensor[i].name);
    free(sd->tensor);
    free(sd->task);
    free(sd->config);
    rnnd__names_clear(&sd->names);
    free(sd->path);
    *sd = (struct rnnd__statedict){.fd = -1};
}

/* ---- parameters */

/* Parameter i of a model, as an array; false past the last. */
static bool parameter_at(const struct rnnd_model *model, int i, const char **name,
                         struct rnnd__tensor *out)
{
    if (!rnnd_model_parameter(model, i, name, &out->rows, &out->cols))
        return false;
    out->rank = out->cols ? 2 : 1;
    return true;
}

static int fail_names(const struct rnnd__statedict *sd, const struct rnnd_model *model,
                      const char *problem, const char *name)
{
    char found[900], wanted[700] = "";
    const char *next;
    struct rnnd__tensor want;
    rnnd__statedict_list(sd, found, sizeof found);
    for (int i = 0; parameter_at(model, i, &next, &want); i++)
        rnnd__statedict_list_add(wanted, sizeof wanted, next, &want);
    return rnnd__fail(RNND_EUSAGE, "%s: %s %s; the file has %s; the model needs %s",
                      sd->path, problem, name, found, wanted);
}

/* A tied matrix may have either of its names. */
static const struct rnnd__tensor *find_for(const struct rnnd__statedict *sd,
                                           const struct rnnd_model *model,
                                           const char *name)
{
    const struct rnnd__tensor *t = rnnd__statedict_find(sd, name);
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

static int check_one(const struct rnnd__statedict *sd, const struct rnnd__tensor *t,
                     const char *name, const struct rnnd__tensor *want)
{
    char expected[64], found[64];
    rnnd__statedict_shape(want, expected);
    rnnd__statedict_shape(t, found);
    if (t->rank != want->rank || t->rows != want->rows || t->cols != want->cols)
        return rnnd__fail(RNND_EUSAGE, "%s: %s is %s, the model's %s is %s", sd->path,
                          t->name, found, name, expected);
    if (t->type == RNND_TENSOR_OTHER)
        return rnnd__fail(RNND_EUSAGE,
                          "%s: %s is not an array of floating-point numbers", sd->path,
                          t->name);
    return 0;
}

static int check_all(const struct rnnd__statedict *sd, const struct rnnd_model *model)
{
    const char *name;
    struct rnnd__tensor want;
    for (int i = 0; parameter_at(model, i, &name, &want); i++) {
        const struct rnnd__tensor *t = find_for(sd, model, name);
        if (!t && is_normalization(name))
            continue;
        if (!t)
            return fail_names(sd, model, "has no", name);
        RNND_TRY(check_one(sd, t, name, &want));
    }
    const struct rnnd__params *par = rnnd__model_params(model);
    for (int i = 0; i < sd->count; i++) {
        const struct rnnd__tensor *t = &sd->tensor[i];
        if (!t->is_part && !rnnd__params_find(par, t->ours) &&
            !is_normalization(t->ours))
            return fail_names(sd, model, "the model has no parameter", t->name);
    }
    return 0;
}

static int read_array(const struct rnnd__statedict *sd, const struct rnnd__tensor *t,
                      float *out)
{
    if (!sd->hdf)
        return rnnd__safetensors_read(sd, t, out);
    char *object;
    if (asprintf(&object, "%s%s", sd->group, t->name) < 0)
        return rnnd__fail_memory(strlen(t->name), "a name");
    int status = rnnd__hdf_read(sd->hdf, object, 0, t->rows, RNND_F32, out);
    free(object);
    return status;
}

static int read_tensor(const struct rnnd__statedict *sd, const struct rnnd__tensor *t,
                       float *out)
{
    float *gain = NULL;
    if (!t->gain)
        return read_array(sd, t, out);
    const struct rnnd__tensor *g = &sd->tensor[t->gain - 1];
    RNND_TRY(RNND_NEW(&gain, g->rows * g->cols, g->name));
    int status = read_array(sd, g, gain);
    if (status == 0)
        status = read_array(sd, &sd->tensor[t->direction - 1], out);
    if (status == 0)
        status = rnnd__statedict_scale(sd, t, gain, out);
    free(gain);
    return status;
}

/* Where a tied matrix has both names, the arrays must be equal. */
static int check_tied(const struct rnnd__statedict *sd, const struct rnnd__params *par,
                      const float *host)
{
    const struct rnnd__param *p = rnnd__params_find(par, "embed.weight");
    const struct rnnd__tensor *t = rnnd__statedict_find(sd, "embed.weight");
    float *other = NULL;
    if (!p || !t || !rnnd__statedict_find(sd, "head.weight"))
        return 0;
    size_t size = (size_t)rnnd__param_size(p);
    RNND_TRY(RNND_NEW(&other, size, "embed.weight"));
    int status = read_tensor(sd, t, other);
    if (status == 0 && memcmp(other, host + p->offset, size * sizeof *other) != 0)
        status = rnnd__fail(RNND_EUSAGE,
                            "%s: embed.weight and head.weight differ, but the "
                            "model ties them",
                            sd->path);
    free(other);
    return status;
}

static int read_moments(const struct rnnd__statedict *sd, struct rnnd_model *model)
{
    const struct rnnd__tensor *mean = rnnd__statedict_find(sd, "input.mean");
    const struct rnnd__tensor *std = rnnd__statedict_find(sd, "input.std");
    if (!rnnd_model_mean(model) || !mean || !std)
        return 0;
    RNND_TRY(read_tensor(sd, mean, rnnd_model_mean(model)));
    return read_tensor(sd, std, rnnd_model_std(model));
}

int rnnd__statedict_load(struct rnnd__statedict *sd, struct rnnd_model *model)
{
    const struct rnnd__params *par = rnnd__model_params(model);
    float *host = NULL;
    int status = 0;
    RNND_TRY(check_all(sd, model));
    RNND_TRY(RNND_NEW(&host, par->count, "parameters"));
    for (int i = 0; i < par->listed; i++) {
        const struct rnnd__param *p = &par->list[i];
        RNND_TRY_GOTO(read_tensor(sd, find_for(sd, model, p->name), host + p->offset));
    }
    if (rnnd_model_spec(model)->tie_weights)
        RNND_TRY_GOTO(check_tied(sd, par, host));
    RNND_TRY_GOTO(read_moments(sd, model));
    par->be->ops->upload(par->be, par->value, host, (size_t)par->count * sizeof *host);
    RNND_TRY_GOTO(rnnd__device_sync(par->be));
done:
    free(host);
    return status;
}

/* Mean and standard deviation must be usable. Not for --init, which measures them
   again. */
static int check_moments(const struct rnnd__statedict *sd, struct rnnd_model *model)
{
    const float *mean = rnnd_model_mean(model), *std = rnnd_model_std(model);
    for (int64_t i = 0; mean && i < rnnd_model_spec(model)->inputs; i++) {
        if (!isfinite(mean[i]))
            return rnnd__fail(RNND_EDATA,
                              "%s: input.mean: element %lld is %g, expected a finite "
                              "number",
                              sd->path, (long long)i, (double)mean[i]);
        if (!isfinite(std[i]) || !(std[i] > 0))
            return rnnd__fail(RNND_EDATA,
                              "%s: input.std: element %lld is %g, expected a finite "
                              "positive number",
                              sd->path, (long long)i, (double)std[i]);
    }
    return 0;
}

int rnnd__statedict_model(struct rnnd__statedict *sd, const struct rnnd_options *opt,
                          struct rnnd_backend *be, struct rnnd_model **out)
{
    struct rnnd_model_spec spec;
    struct rnnd_model *model = NULL;
    int status = 0;
    RNND_TRY(rnnd__statedict_spec(sd, opt, &spec));
    RNND_TRY_GOTO(rnnd_model_new(be, &spec, &model));
    RNND_TRY_GOTO(rnnd__statedict_load(sd, model));
    RNND_TRY_GOTO(check_moments(sd, model));
    RNND_TRY_GOTO(rnnd__statedict_name_model(sd, model));
    *out = model;
    model = NULL;
done:
    rnnd_model_free(model);
    return status;
}
