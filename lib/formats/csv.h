/*
 * csv.h - rows and cells of comma-separated text, as in RFC 4180.
 */
#ifndef RNND_FORMATS_CSV_H
#define RNND_FORMATS_CSV_H

#include "formats/text.h"

/* Column names, looked up by hash since tables may have very many. All zero, it is
   empty. */
struct rnnd__csv_names {
    struct rnnd__dictionary texts;
    /* int64_t, the first column of each name */
    struct rnnd__list first;
};

struct rnnd__csv {
    struct rnnd__text text;
    /* of cells */
    char separator;
    /* columns of the header; 0 before it is read */
    int64_t columns;
    struct rnnd__csv_names names;
    /* line where the current row starts, from 1 */
    int64_t line;
    /* cells of the current row */
    int64_t cells;
    /* int64_t, the start of each cell in `room` */
    struct rnnd__list start;
    /* char: the text of the cells, each ended by a NUL */
    struct rnnd__list room;
};

/* Close it only if this succeeds. */
RNND_CHECKED int rnnd__csv_open(const char *path, struct rnnd__csv *out);
void rnnd__csv_close(struct rnnd__csv *csv);
/* Reads the first row, which names the columns. */
RNND_CHECKED int rnnd__csv_header(struct rnnd__csv *csv);
/* Reads the next row, which must have as many cells as the header; skips empty lines.
   *more is false after the last. */
RNND_CHECKED int rnnd__csv_row(struct rnnd__csv *csv, bool *more);
/* The column of this name; -1 = none, -2 = several. */
int64_t rnnd__csv_column(const struct rnnd__csv *csv, const char *name);
/* Fails because there is no such column; names the one that may be meant, or all. */
RNND_CHECKED int rnnd__csv_no_column(const struct rnnd__csv *csv, const char *name);
/* The text of a cell, without quotes; valid until the next row. */
const char *rnnd__csv_cell(const struct rnnd__csv *csv, int64_t i);

/* Adds the name of column i. */
RNND_CHECKED int rnnd__csv_names_add(struct rnnd__csv_names *names, const char *name,
                                     int64_t i);
/* The first column of this name, -1 = none. */
int64_t rnnd__csv_names_find(const struct rnnd__csv_names *names, const char *name);
void rnnd__csv_names_clear(struct rnnd__csv_names *names);

#endif
