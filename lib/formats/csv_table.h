/*
 * csv_table.h - what the parts of the table reader share: csv_columns.c decides which
 * columns are what, csv_steps.c takes the rows, csv.c the classes and the whole.
 */
#ifndef RNND_FORMATS_CSV_TABLE_H
#define RNND_FORMATS_CSV_TABLE_H

#include "formats/csv.h"

/* What the options say, as names. */
struct rnnd__csv_wanted {
    const char *sequence;
    /* char * */
    struct rnnd__list features, targets;
    const char *label;
    /* label or targets belong to steps */
    bool by_step;
};

struct rnnd__csv_table {
    const struct rnnd_options *opt;
    struct rnnd__csv_wanted want;
    /* struct column of csv_columns.c, */
    struct rnnd__list columns;
    /* and their names */
    struct rnnd__csv_names known;
    struct rnnd__contents *out;
    struct rnnd__dictionary names, classes;
    /* --classes-from: nothing is added */
    bool fixed_classes;
    /* int64_t, one a step, as the rows come */
    struct rnnd__list row_sequence;
    /* int32_t, one a sequence: where its last row was */
    struct rnnd__list last_file;
    /* a sequence goes on in another file */
    bool continues;
};

/* From the options: names of columns, and task and outputs of the contents. */
RNND_CHECKED int rnnd__csv_read_wants(struct rnnd__csv_table *t);
/* One file's cells, looked at to see which columns are numbers. */
RNND_CHECKED int rnnd__csv_survey(struct rnnd__csv_table *t, struct rnnd__csv *csv,
                                  int file);
/* Without --features: all columns of numbers that no option names; the others are
   told of. */
RNND_CHECKED int rnnd__csv_choose_features(struct rnnd__csv_table *t,
                                           char *const *inputs);
void rnnd__csv_clear_columns(struct rnnd__csv_table *t);

/* One file's rows, appended as they come. */
RNND_CHECKED int rnnd__csv_read_rows(struct rnnd__csv_table *t, struct rnnd__csv *csv,
                                     int file);
/* Brings the rows of each sequence together. */
RNND_CHECKED int rnnd__csv_group_rows(struct rnnd__csv_table *t);

/* Number of a column in this file, by name; it must stand there once. */
RNND_CHECKED int rnnd__csv_locate(const struct rnnd__csv *csv, const char *name,
                                  int64_t *out);

#endif
