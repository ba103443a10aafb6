/*
 * npy.h - one array of NumPy's .npy format, in memory.
 */
#ifndef RNND_FORMATS_NPY_H
#define RNND_FORMATS_NPY_H

#include "formats/text.h"

struct rnnd__npy {
    /* the whole file, owned; NULL = no array */
    char *bytes;
    /* after the header */
    const char *data;
    /* 'b', 'i', 'u', 'f' */
    char kind;
    /* bytes per element */
    int size;
    /* byte order differs from this machine's */
    bool swapped;
    /* column-major (fortran_order) */
    bool columns;
    int rank;
    int64_t dim[4];
    /* elements */
    int64_t count;
};

/* Parses the header of bytes, which the array then owns. name is for messages: "f.npz:
   inputs". */
RNND_CHECKED int rnnd__npy_parse(const char *name, char *bytes, size_t size,
                                 struct rnnd__npy *out);
void rnnd__npy_clear(struct rnnd__npy *array);
/* Element i in row-major order; the first without rounding where long double has 64
   bits of precision, the second rounds integers beyond 2^53. */
long double rnnd__npy_exact(const struct rnnd__npy *array, int64_t i);
double rnnd__npy_at(const struct rnnd__npy *array, int64_t i);

#endif
