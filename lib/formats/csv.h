/*
 * csv.h - rows and cells of comma-separated text as RFC 4180 has it.
 */
#ifndef RNND_FORMATS_CSV_H
#define RNND_FORMATS_CSV_H

#include "formats/text.h"

/* Names of columns, found by hash: tables may have very many. Zeroed, it is empty. */
struct rnnd_csv_names {
    struct rnnd_dictionary texts;
    struct rnnd_list first; /* int64_t, where each text stood first */
};

struct rnnd_csv {
    struct rnnd_text text;
    int64_t columns;        /* of the header; 0 before it */
    struct rnnd_csv_names names;
    int64_t line;           /* where the row under way begins, from 1 */
    int64_t cells;          /* of the row under way */
    struct rnnd_list start; /* int64_t, where each cell begins in `room` */
    struct rnnd_list room;  /* char: the cells' texts, each with a NUL */
};

/* Close it only if this succeeded. */
RNND_CHECKED int rnnd_csv_open(const char *path, struct rnnd_csv *out);
void rnnd_csv_close(struct rnnd_csv *csv);
/* The first row, which names the columns. */
RNND_CHECKED int rnnd_csv_header(struct rnnd_csv *csv);
/* The next row, which must have as many cells as the header; empty lines are
   skipped. *more is false behind the last. */
RNND_CHECKED int rnnd_csv_row(struct rnnd_csv *csv, bool *more);
/* The column of that name; -1 where there is none, -2 where there are several. */
int64_t rnnd_csv_column(const struct rnnd_csv *csv, const char *name);
/* Text of a cell, without its quotes; lasts until the next row. */
const char *rnnd_csv_cell(const struct rnnd_csv *csv, int64_t i);

/* Adds the name of the column i. */
RNND_CHECKED int rnnd_csv_names_add(struct rnnd_csv_names *names, const char *name,
                                    int64_t i);
/* The first column of that name, -1 = none. */
int64_t rnnd_csv_names_find(const struct rnnd_csv_names *names, const char *name);
void rnnd_csv_names_clear(struct rnnd_csv_names *names);

#endif
