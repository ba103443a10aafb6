/*
 * strings_out.h - the part of a file of predictions that is about label strings (ctc),
 * in HDF5 and CSV: the strings, the most probable ones of a beam, and where the labels
 * of the data set are.
 */
#ifndef RNND_STRINGS_OUT_H
#define RNND_STRINGS_OUT_H

#include <stdio.h>

#include "evaluate/predict_out.h"
#include "hdf/hdf.h"

struct rnnd__strings_out;

RNND_CHECKED int rnnd__strings_out_new(const struct rnnd_options *opt,
                                       const struct rnnd_dataset *data,
                                       const struct rnnd_model *model,
                                       struct rnnd__strings_out **out);
void rnnd__strings_out_free(struct rnnd__strings_out *o);
/* Creates what has a size that is known. */
RNND_CHECKED int rnnd__strings_out_create(struct rnnd__strings_out *o,
                                          struct rnnd__hdf *file);
/* Writes the strings of a pool, or keeps them until the end. */
RNND_CHECKED int rnnd__strings_out_keep(struct rnnd__strings_out *o,
                                        struct rnnd__hdf *file,
                                        const struct rnnd__predict_pool *pool);
/* Writes what was kept. */
RNND_CHECKED int rnnd__strings_out_end(struct rnnd__strings_out *o,
                                       struct rnnd__hdf *file);

/* The header of a table. targets: the data set has strings of this model. */
void rnnd__strings_out_header(struct rnnd__strings_out *o, FILE *f, bool targets);
/* The lines of a pool. */
RNND_CHECKED int rnnd__strings_out_lines(struct rnnd__strings_out *o, FILE *f,
                                         const struct rnnd__predict_pool *pool);

#endif
