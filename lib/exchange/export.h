/*
 * export.h - writes the parameters of a model for other programs.
 */
#ifndef RNND_EXPORT_H
#define RNND_EXPORT_H

#include "rnn_dist.h"

/* The suffix of a path says which kind of file it is; without one it is safetensors.
   EUSAGE, with the kinds that there are, where no writer has this suffix, or this build
   lacks it. */
RNND_CHECKED int rnnd__export_check(const char *path);
/* Writes a file of that kind. Atomic; the same model gives the same bytes. fold: the
   normalization of features goes into the first layer, which changes the model; files
   that compute (ONNX) keep it apart. opt may be NULL. */
RNND_CHECKED int rnnd__export(const char *path, struct rnnd_model *model,
                              const struct rnnd_options *opt, bool fold);

/* ---- writers for export.c, and for tests */

RNND_CHECKED int rnnd__npz_write(const char *path, struct rnnd_model *model,
                                 const struct rnnd_options *opt);
RNND_CHECKED int rnnd__onnx_export(const char *path, struct rnnd_model *model,
                                   const struct rnnd_options *opt);
/* EUSAGE where so many parameters do not fit into an ONNX file. */
RNND_CHECKED int rnnd__onnx_check_size(const char *path, int64_t parameters);

#endif
