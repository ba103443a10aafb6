/*
 * data.h - data sets that tests make up, written as a user of HDF5 would write them.
 *
 * Takes lengths and widths; values that are not given are drawn, the same for the same
 * seed.
 */
#ifndef CASES_DATA_H
#define CASES_DATA_H

#include <stdint.h>

struct case_data {
    const char *task;
    /* [sequences] */
    const double *length;
    int64_t sequences;
    /* one of them is 0 */
    int64_t features, vocab;
    int64_t outputs;
    uint64_t seed;
    /* row by row, NULL = drawn */
    const double *inputs, *targets;
    /* [outputs] names, NULL = none */
    const char *const *classes;
};

/* Values that an array of the data set holds. */
int64_t case_data_inputs(const struct case_data *d);
int64_t case_data_targets(const struct case_data *d);
/* 0, or a negative rnnd_status. */
int case_data_write(const char *path, const struct case_data *d);

#endif
