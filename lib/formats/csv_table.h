/*
 * csv_table.h - shared by the parts of the table reader: csv_columns.c chooses the
 * columns, csv_steps.c reads the rows, csv.c does the classes and the rest.
 */
#ifndef RNND_FORMATS_CSV_TABLE_H
#define RNND_FORMATS_CSV_TABLE_H

#include "formats/csv.h"

/* The columns that the options name. */
struct rnnd__csv_wanted {
    const char *sequence;
    /* char * */
    struct rnnd__list features, targets;
    const char *label;
    /* a table of label strings, NULL = none */
    const char *strings;
    /* label or targets belong to steps */
    bool by_step;
};

struct rnnd__csv_table {
    const struct rnnd_options *opt;
    struct rnnd__csv_wanted want;
    /* struct column of csv_columns.c */
    struct rnnd__list columns;
    /* names of these columns */
    struct rnnd__csv_names known;
    struct rnnd__contents *out;
    struct rnnd__dictionary names, classes;
    /* --classes-from: no class is added */
    bool fixed_classes;
    /* int64_t, the sequence of each row */
    struct rnnd__list row_sequence;
    /* int32_t, the file of each sequence's last row */
    struct rnnd__list last_file;
    /* a sequence has rows in several files */
    bool continues;
    /* an integer was rounded, and a warning given */
    bool rounded;
};

/* Reads the options: names of columns, and task and outputs of the contents. */
RNND_CHECKED int rnnd__csv_read_wants(struct rnnd__csv_table *t);
/* Reads one file to find out which columns are numeric. */
RNND_CHECKED int rnnd__csv_survey(struct rnnd__csv_table *t, struct rnnd__csv *csv,
                                  int file);
/* Without --features: takes all numeric columns that no option names, and warns of the
   others. */
RNND_CHECKED int rnnd__csv_choose_features(struct rnnd__csv_table *t,
                                           char *const *inputs);
void rnnd__csv_clear_columns(struct rnnd__csv_table *t);

/* Appends the rows of one file. */
RNND_CHECKED int rnnd__csv_read_rows(struct rnnd__csv_table *t, struct rnnd__csv *csv,
                                     int file);
/* The number of a class, which is added unless classes are fixed: then -1 for one that
   is none of them. */
RNND_CHECKED int rnnd__csv_class(struct rnnd__csv_table *t, const char *name,
                                 size_t length, int64_t *out);
/* Reads the label strings of all sequences from their own table. */
RNND_CHECKED int rnnd__csv_read_strings(struct rnnd__csv_table *t);
/* Groups the rows by sequence. */
RNND_CHECKED int rnnd__csv_group_rows(struct rnnd__csv_table *t);

/* The number of a column in this file, by its name, which must be unique. */
RNND_CHECKED int rnnd__csv_locate(const struct rnnd__csv *csv, const char *name,
                                  int64_t *out);

#endif
