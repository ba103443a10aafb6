/*
 * ark.h - matrices in Kaldi's archives: keys, each with a matrix behind it, in binary
 * form of single or double precision or compressed, or as text.
 *
 * Reads a file from any place on, without taking it into memory. Messages name the file
 * and the byte where something is wrong. What a header claims is held against the
 * file's size before memory is asked for.
 */
#ifndef RNND_FORMATS_ARK_H
#define RNND_FORMATS_ARK_H

#include <stdio.h>

#include "base/list.h"

struct rnnd__ark {
    const char *path;
    FILE *stream;
    /* bytes */
    int64_t at, size;
};

/* EFILE: there is no such file, or none that can be read. */
RNND_CHECKED int rnnd__ark_open(const char *path, struct rnnd__ark *out);
/* Accepts one that is all zeros. */
void rnnd__ark_close(struct rnnd__ark *ark);
/* EDATA: the byte is not in the file. */
RNND_CHECKED int rnnd__ark_seek(struct rnnd__ark *ark, int64_t at);
/* The next key, a list of char that is ended by a NUL; *more is false at the end of the
   file. */
RNND_CHECKED int rnnd__ark_key(struct rnnd__ark *ark, struct rnnd__list *key,
                               bool *more);
/* Appends the matrix that begins here to a list of float, row by row. */
RNND_CHECKED int rnnd__ark_matrix(struct rnnd__ark *ark, struct rnnd__list *values,
                                  int64_t *rows, int64_t *columns);

#endif
