/*
 * predict_out.h - the files that predictions go to: HDF5, CSV or both, whole or not at
 * all.
 *
 * Rank 0 only. Takes pools of sequences in the data set's order; knows no model but the
 * names of its classes.
 */
#ifndef RNND_PREDICT_OUT_H
#define RNND_PREDICT_OUT_H

#include "rnn_dist.h"

struct rnnd__predict_out;

struct rnnd__predict_layout {
    /* rows are steps, else sequences */
    bool stepwise;
    /* O floats a row */
    int64_t outputs;
    /* T of [N,T,O], 0 = ragged */
    int64_t pad;
    /* 0, 1 (h) or 2 (h, c) */
    int states;
    /* of a state: L*D, H */
    int64_t places, hidden;
};

/* EUSAGE where pad does not fit the task or the data. */
RNND_CHECKED int rnnd__predict_out_check(const struct rnnd__predict_layout *layout,
                                         const struct rnnd_dataset_info *info);
/* Files under temporary names beside opt->out and opt->csv. */
RNND_CHECKED int rnnd__predict_out_open(const struct rnnd_options *opt,
                                        const struct rnnd_dataset *data,
                                        struct rnnd_model *model,
                                        const struct rnnd__predict_layout *layout,
                                        struct rnnd__predict_out **out);
/* Sequences first .. end-1: their rows, and their states h and c [end-first, L*D,
   H]. */
RNND_CHECKED int rnnd__predict_out_pool(struct rnnd__predict_out *out, int64_t first,
                                        int64_t end, const float *rows,
                                        float *const *state);
/* Gives the files their names; what is not committed is dropped by close. */
RNND_CHECKED int rnnd__predict_out_commit(struct rnnd__predict_out *out);
void rnnd__predict_out_close(struct rnnd__predict_out *out);

#endif
