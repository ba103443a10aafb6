/*
 * classes.h - the numbers of classes that have names, which a reader first numbers as
 * they come.
 */
#ifndef RNND_FORMATS_CLASSES_H
#define RNND_FORMATS_CLASSES_H

#include "formats/formats.h"

/* The number of a class, by its n bytes: that of a known one or, unless the classes are
   given by another data set, the next; -1 if there is none. */
RNND_CHECKED int rnnd__classes_number(const struct rnnd_options *opt,
                                      struct rnnd__dictionary *known, const char *name,
                                      size_t n, int64_t *out);
/* Numbers the classes by value if all are numbers, else in byte order: the names in
   out->class, and all labels. */
RNND_CHECKED int rnnd__classes_sort(const struct rnnd__dictionary *known,
                                    struct rnnd__contents *out);
/* Takes the classes of another data set, in their order: into out->class and the empty
   dictionary. */
RNND_CHECKED int rnnd__classes_take(const char *path, struct rnnd__dictionary *known,
                                    struct rnnd__contents *out);

#endif
