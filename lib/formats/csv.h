/*
 * csv.h - rows and cells of comma-separated text as RFC 4180 has it.
 */
#ifndef RNND_FORMATS_CSV_H
#define RNND_FORMATS_CSV_H

#include "formats/text.h"

/* Names of columns, found by hash: tables may have very many. Zeroed, it is empty. */
struct rnnd__csv_names {
    struct rnnd__dictionary texts;
    /* int64_t, where each text stood first */
    struct rnnd__list first;
};

struct rnnd__csv {
    struct rnnd__text text;
    /* of the header; 0 before it */
    int64_t columns;
    struct rnnd__csv_names names;
    /* where the row under way begins, from 1 */
    int64_t line;
    /* of the row under way */
    int64_t cells;
    /* int64_t, where each cell begins in `room` */
    struct rnnd__list start;
    /* char: the cells' texts, each with a NUL */
    struct rnnd__list room;
};

/* Close it only if this succeeded. */
RNND_CHECKED int rnnd__csv_open(const char *path, struct rnnd__csv *out);
void rnnd__csv_close(struct rnnd__csv *csv);
/* The first row, which names the columns. */
RNND_CHECKED int rnnd__csv_header(struct rnnd__csv *csv);
/* The next row, which must have as many cells as the header; empty lines are
   skipped. *more is false behind the last. */
RNND_CHECKED int rnnd__csv_row(struct rnnd__csv *csv, bool *more);
/* The column of that name; -1 where there is none, -2 where there are several. */
int64_t rnnd__csv_column(const struct rnnd__csv *csv, const char *name);
/* Text of a cell, without its quotes; lasts until the next row. */
const char *rnnd__csv_cell(const struct rnnd__csv *csv, int64_t i);

/* Adds the name of the column i. */
RNND_CHECKED int rnnd__csv_names_add(struct rnnd__csv_names *names, const char *name,
                                     int64_t i);
/* The first column of that name, -1 = none. */
int64_t rnnd__csv_names_find(const struct rnnd__csv_names *names, const char *name);
void rnnd__csv_names_clear(struct rnnd__csv_names *names);

#endif
