/*
 * statedict_hdf.c - named arrays in HDF5: below /model, as in a checkpoint, or at the
 * root, as a script writes a state_dict ("for name, x in state.items(): f[name] = x").
 *
 * Files written here are of the second kind, so the reverse loop reads them. The texts
 * that describe the model are attributes of the root group.
 */
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/status.h"
#include "checkpoint/statedict.h"
#include "hdf/hdf.h"

static const char in_checkpoint[] = "/model/", at_root[] = "/";

/* ---- reading */

static int add_array(void *context, const char *object)
{
    struct rnnd__statedict *sd = context;
    struct rnnd__hdf_shape shape;
    RNND_TRY(rnnd__hdf_shape(sd->hdf, object, &shape));
    struct rnnd__tensor t = {.rank = shape.rank, .type = RNND_TENSOR_OTHER};
    if (shape.kind == RNND_HDF_FLOAT || shape.kind == RNND_HDF_INT)
        t.type = RNND_TENSOR_F32; /* the library converts */
    if (shape.rank == 1 || shape.rank == 2) {
        t.rows = shape.dim[0];
        t.cols = shape.rank == 2 ? shape.dim[1] : 0;
    }
    return rnnd__statedict_add(sd, object + strlen(sd->group), &t);
}

static int get_text(void *file, const char *attribute, char **out)
{
    return rnnd__hdf_has_attribute(file, attribute)
               ? rnnd__hdf_get_string(file, attribute, out)
               : 0;
}

static int read_checkpoint(struct rnnd__statedict *sd)
{
    RNND_TRY(get_text(sd->hdf, "task", &sd->task));
    RNND_TRY(get_text(sd->hdf, "config", &sd->config));
    return rnnd__statedict_read_axes(sd);
}

static int read_export(struct rnnd__statedict *sd)
{
    RNND_TRY(get_text(sd->hdf, RNND_KEY_TASK, &sd->task));
    RNND_TRY(get_text(sd->hdf, RNND_KEY_CONFIG, &sd->config));
    return rnnd__statedict_take_axes(sd, get_text, sd->hdf);
}

int rnnd__statedict_hdf_read(struct rnnd__statedict *sd)
{
    bool checkpoint = rnnd__hdf_has(sd->hdf, "/model");
    if (!checkpoint && rnnd__hdf_has_attribute(sd->hdf, "format"))
        return rnnd__fail(RNND_EDATA, "%s: not a checkpoint: has no /model", sd->path);
    sd->group = checkpoint ? in_checkpoint : at_root;
    RNND_TRY(rnnd__hdf_each(sd->hdf, checkpoint ? "/model" : at_root, add_array, sd));
    RNND_TRY(checkpoint ? read_checkpoint(sd) : read_export(sd));
    return rnnd__statedict_name(sd);
}

/* ---- writing */

static int put_text(void *file, const char *key, const char *text)
{
    return rnnd__hdf_set_string(file, key, text);
}

static int write_arrays(struct rnnd__hdf *f, struct rnnd_model *model)
{
    const char *name;
    int64_t dim[2];
    float *values = NULL;
    int status = 0;
    for (int i = 0; rnnd_model_parameter(model, i, &name, &dim[0], &dim[1]); i++) {
        char object[96];
        size_t count = (size_t)(dim[0] * (dim[1] ? dim[1] : 1));
        snprintf(object, sizeof object, "%s%s", at_root, name);
        RNND_TRY_GOTO(RNND_GROW(&values, count, name));
        RNND_TRY_GOTO(rnnd_model_get(model, name, values));
        RNND_TRY_GOTO(
            rnnd__hdf_write(f, object, RNND_F32, dim[1] ? 2 : 1, dim, true, values));
    }
done:
    free(values);
    return status;
}

static const struct rnnd__kind kind = {
    "an HDF5 export of rnn_dist", {RNND_HDF_START}, RNND_KEY_TASK};

int rnnd__statedict_hdf_write(const char *path, struct rnnd_model *model,
                              const struct rnnd_options *opt)
{
    struct rnnd__hdf *f;
    RNND_TRY(rnnd__hdf_create_as(path, &kind, &f));
    int status = rnnd__statedict_describe(model, opt, put_text, f);
    if (status == 0)
        status = write_arrays(f, model);
    if (status < 0) {
        rnnd__hdf_close(f);
        return status;
    }
    return rnnd__hdf_commit(f);
}
