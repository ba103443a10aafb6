/*
 * predict_out.h - writes predictions to HDF5, CSV or both; files appear whole or not at
 * all.
 *
 * Rank 0 only. Takes pools of sequences in the data set's order, and reads their
 * targets for the table. Of the model, uses only the shape and the names of classes.
 */
#ifndef RNND_PREDICT_OUT_H
#define RNND_PREDICT_OUT_H

#include <stdio.h>

#include "rnn_dist.h"

struct rnnd__predict_out;

struct rnnd__predict_layout {
    /* one row per step, else one per sequence */
    bool stepwise;
    /* a string of labels per sequence, besides its rows */
    bool strings;
    /* O: floats per row */
    int64_t outputs;
    /* rows are padded to [N,pad,O]; 0: ragged rows */
    int64_t pad;
    /* final states: 0 none, 1 h, 2 h and c; each [N, places, hidden], places = L*D */
    int states;
    int64_t places, hidden;
};

/* EUSAGE: pad does not fit the task or the data. */
RNND_CHECKED int rnnd__predict_out_check(const struct rnnd__predict_layout *layout,
                                         const struct rnnd_dataset_info *info);
/* Creates files under temporary names next to opt->out and opt->csv; either may be
   NULL. EFILE: they cannot be created. */
RNND_CHECKED int rnnd__predict_out_open(const struct rnnd_options *opt,
                                        struct rnnd_dataset *data,
                                        struct rnnd_model *model,
                                        const struct rnnd__predict_layout *layout,
                                        struct rnnd__predict_out **out);
/* A pool of sequences in the data set's order. */
struct rnnd__predict_pool {
    /* sequences first .. end-1 */
    int64_t first, end;
    /* their rows; h and c, each [end-first, places, hidden] */
    const float *rows;
    float *const *state;
    /* [end-first] records of predict_strings.h */
    const int32_t *const *string;
};

/* Writes a pool. EFILE: it cannot be written; EFILE, EDATA: targets
   cannot be read. */
RNND_CHECKED int rnnd__predict_out_pool(struct rnnd__predict_out *out,
                                        const struct rnnd__predict_pool *pool);
/* Gives the files their names; close discards files that are not committed. EFILE: a
   file could not be written. */
RNND_CHECKED int rnnd__predict_out_commit(struct rnnd__predict_out *out);
void rnnd__predict_out_close(struct rnnd__predict_out *out);

/* ---- for strings_out.c */

/* Writes a text field, quoted as in RFC 4180; a formula becomes text by a "'". */
void rnnd__predict_put_text(FILE *f, const char *text);
/* The name of a sequence, or its number. */
void rnnd__predict_put_name(FILE *f, const struct rnnd_dataset *data, int64_t sequence);

#endif
