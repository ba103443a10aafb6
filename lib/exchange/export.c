/*
 * export.c - which kind of file a name asks for, and what is done to a model before it
 * is written.
 */
#include "exchange/export.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/status.h"
#include "checkpoint/statedict.h"
#include "model/params.h"

typedef int (*writer)(const char *path, struct rnnd_model *model,
                      const struct rnnd_options *opt);

static const struct {
    const char *suffix;
    writer write;
    /* the file computes the model, so normalization need not be folded */
    bool computes;
} kinds[] = {
    {".safetensors", rnnd__safetensors_write, false},
    {".h5", rnnd__statedict_hdf_write, false},
    {".hdf5", rnnd__statedict_hdf_write, false},
    {".hdf", rnnd__statedict_hdf_write, false},
    {".npz", rnnd__npz_write, false},
    {".onnx", rnnd__onnx_export, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The suffix of the last component, with its dot; "" where there is none. */
static const char *suffix_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? dot : "";
}

/* The row of a path; -1 = none. */
static int kind_of(const char *path)
{
    const char *suffix = suffix_of(path);
    for (int i = 0; i < KINDS; i++)
        if (*suffix == 0 || strcasecmp(suffix, kinds[i].suffix) == 0)
            return i;
    return -1;
}

static bool is_torch(const char *suffix)
{
    static const char *const names[] = {".pt", ".pth", ".pkl", ".bin", ".ckpt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(suffix, names[i]) == 0)
            return true;
    return false;
}

int rnnd__export_check(const char *path)
{
    int kind = kind_of(path);
    if (kind < 0)
        return rnnd__fail(
            RNND_EUSAGE,
            "%s: %s; use a name ending in .safetensors or .h5 (for PyTorch), .npz "
            "(NumPy) or .onnx",
            path,
            is_torch(suffix_of(path)) ? "export does not write torch.save files"
                                      : "export knows no files of this suffix");
#ifndef HAVE_LIBZIP
    if (kinds[kind].write == rnnd__npz_write)
        return rnnd__fail(RNND_EUSAGE,
                          "%s: this build cannot write .npz files: it was configured "
                          "without libzip",
                          path);
#endif
#ifndef HAVE_ONNX
    if (kinds[kind].write == rnnd__onnx_export)
        return rnnd__fail(RNND_EUSAGE,
                          "%s: this build cannot write ONNX files: it was configured "
                          "without protobuf-c or the schema onnx.proto",
                          path);
#endif
    return 0;
}

/* Where a mean is much larger than its deviation, the first layer subtracts large
   numbers from each other. */
static int fold_normalization(struct rnnd_model *model, const char *path)
{
    double ratio;
    RNND_TRY(rnnd__model_fold(model, &ratio));
    if (ratio > 100)
        rnnd__log_warn("%s: the mean of a feature is %.3g times its deviation, so with "
                       "normalization folded into the first layer, float32 loses "
                       "about %d digits of it; --no-fold keeps them",
                       path, ratio, (int)log10(ratio));
    return 0;
}

int rnnd__export(const char *path, struct rnnd_model *model,
                 const struct rnnd_options *opt, bool fold)
{
    RNND_TRY(rnnd__export_check(path));
    int kind = kind_of(path);
    if (fold && !kinds[kind].computes && rnnd_model_spec(model)->normalize)
        RNND_TRY(fold_normalization(model, path));
    return kinds[kind].write(path, model, opt);
}
