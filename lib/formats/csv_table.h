/*
 * csv_table.h - shared by the parts of the table reader: csv_columns.c chooses the
 * columns, csv_steps.c reads the rows, csv_files.c what files and a second table say of
 * sequences, csv.c does the classes and the rest.
 */
#ifndef RNND_FORMATS_CSV_TABLE_H
#define RNND_FORMATS_CSV_TABLE_H

#include "formats/csv.h"

/* The columns that the options name. */
struct rnnd__csv_wanted {
    /* NULL where each file is a sequence */
    const char *sequence;
    /* char * */
    struct rnnd__list features, targets;
    const char *label;
    /* label or targets belong to steps */
    bool by_step;
    /* they are no columns of the inputs, but of a table or of the files' folders */
    bool elsewhere;
    /* --labels or --labels-from, NULL = none */
    const char *table;
};

struct rnnd__csv_table {
    const struct rnnd_options *opt;
    struct rnnd__csv_wanted want;
    /* struct column of csv_columns.c */
    struct rnnd__list columns;
    /* names of these columns, and of those that only later files have */
    struct rnnd__csv_names known, strangers;
    struct rnnd__contents *out;
    struct rnnd__dictionary names, classes;
    /* char *, the sequence of each input where each file is one */
    struct rnnd__list file_names;
    /* the name of the second column of --labels, where it is the label; owned */
    char *second;
    /* int64_t, the sequence of each row */
    struct rnnd__list row_sequence;
    /* int32_t, the file of each sequence's last row */
    struct rnnd__list last_file;
    /* a sequence has rows in several files */
    bool continues;
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
/* The class in a cell, which is added if it is new; -1 if it is missing. */
RNND_CHECKED int rnnd__csv_read_class(struct rnnd__csv_table *t,
                                      const struct rnnd__csv *csv, int64_t column,
                                      int32_t *out);
/* Adds the classes in a cell, separated by blanks, to a list of int32_t. */
RNND_CHECKED int rnnd__csv_read_string(struct rnnd__csv_table *t,
                                       const struct rnnd__csv *csv, int64_t column,
                                       struct rnnd__list *out);
/* The target values in the given columns of a row. A missing one is NaN. */
RNND_CHECKED int rnnd__csv_read_targets(struct rnnd__csv_table *t,
                                        const struct rnnd__csv *csv,
                                        const int64_t *column, float *out);
/* The number of a class, which is added unless classes are fixed: then -1 for one that
   is none of them. */
RNND_CHECKED int rnnd__csv_class(struct rnnd__csv_table *t, const char *name,
                                 size_t length, int64_t *out);
/* Groups the rows by sequence. */
RNND_CHECKED int rnnd__csv_group_rows(struct rnnd__csv_table *t);

/* Names the sequences after their files. */
RNND_CHECKED int rnnd__csv_name_files(struct rnnd__csv_table *t, char *const *inputs,
                                      int count);
/* The column of --labels that holds the classes, where no option names it. EUSAGE if an
   input is that table. */
RNND_CHECKED int rnnd__csv_choose_label(struct rnnd__csv_table *t, char *const *inputs,
                                        int count);
/* Labels or targets of all sequences from --labels or from the files' folders. */
RNND_CHECKED int rnnd__csv_label_sequences(struct rnnd__csv_table *t,
                                           char *const *inputs, int count);

/* The number of a column in this file, by its name, which must be unique. */
RNND_CHECKED int rnnd__csv_locate(const struct rnnd__csv *csv, const char *name,
                                  int64_t *out);

#endif
