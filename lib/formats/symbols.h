/*
 * symbols.h - tables of names and their numbers, as Kaldi's words.txt, where the names
 * of classes or tokens of another data set may stand.
 */
#ifndef RNND_FORMATS_SYMBOLS_H
#define RNND_FORMATS_SYMBOLS_H

#include "base/list.h"

/* Whether a file can be read and is not of HDF5. */
bool rnnd__symbols_in(const char *path);
/* Appends the names of a table to a list of char *, in the order of their numbers. */
RNND_CHECKED int rnnd__symbols_read(const char *path, struct rnnd__list *out);

#endif
