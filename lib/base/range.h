/*
 * range.h - the values of a column before they become 32-bit floats, and whether these
 * still tell them apart.
 */
#ifndef RNND_RANGE_H
#define RNND_RANGE_H

#include <stdbool.h>

struct rnnd__range {
    double low, high;
    /* no value has a fraction */
    bool integers;
    /* of integers the first that becomes another in a 32-bit float, 0 = none */
    double rounded;
};

/* Without values. */
extern const struct rnnd__range rnnd__range_none;
/* Values that are not finite are left out. */
void rnnd__range_add(struct rnnd__range *range, double value);
/* Warns if values that differ, and are not integers, lie so close together, far from 0,
   that 32-bit floats have only a few steps between them; the format says whose they
   are, as in "column x". */
void rnnd__range_warn(const struct rnnd__range *range, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Warns of an integer that becomes `value`; `which` says where it is, and its
   digits. */
void rnnd__range_warn_rounded(const char *which, float value);

#endif
