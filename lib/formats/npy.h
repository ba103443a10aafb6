/*
 * npy.h - one array of NumPy's .npy format, in memory.
 */
#ifndef RNND_FORMATS_NPY_H
#define RNND_FORMATS_NPY_H

#include "formats/text.h"

struct rnnd__npy {
    char *bytes;      /* the whole member, owned; NULL = there is none */
    const char *data; /* behind the header */
    char kind;        /* 'b', 'i', 'u', 'f' */
    int size;         /* bytes an element */
    bool swapped;     /* of the other byte order than this machine's */
    bool columns;     /* stored by columns (fortran_order) */
    int rank;
    int64_t dim[4];
    int64_t count; /* elements */
};

/* Reads the header of bytes, which the array takes. name is for messages: "f.npz:
   inputs". */
RNND_CHECKED int rnnd__npy_parse(const char *name, char *bytes, size_t size,
                                struct rnnd__npy *out);
void rnnd__npy_clear(struct rnnd__npy *array);
/* Element i, counted by rows; integers beyond 2^53 are rounded. */
double rnnd__npy_at(const struct rnnd__npy *array, int64_t i);

#endif
