/*
 * names.h - what the indices of a data set or a model mean: the names of its features,
 * tokens and classes.
 *
 * Knows neither data sets nor models. Two files that number the same names differently
 * are matched by them (data/dataset_names.c).
 */
#ifndef RNND_NAMES_H
#define RNND_NAMES_H

#include "base/list.h"

/* The names of each axis, in the order of their indices; none where the count is 0.
   All zero, there are no names. */
struct rnnd__names {
    struct rnnd__dictionary of[RNND_AXES];
};

void rnnd__names_clear(struct rnnd__names *names);
/* Replaces the names of an axis by copies of text [count]; text NULL: by none. EDATA
   where a name is listed twice: then the axis has no names. */
RNND_CHECKED int rnnd__names_set(struct rnnd__names *names, enum rnnd_axis axis,
                                 char *const *text, int64_t count);
/* Replaces all names by copies of those of another. */
RNND_CHECKED int rnnd__names_copy(struct rnnd__names *names,
                                  const struct rnnd__names *from);
/* Name i; NULL where the axis has no names or i is out of range. */
const char *rnnd__names_text(const struct rnnd__names *names, enum rnnd_axis axis,
                             int64_t i);
/* The strings of an axis, [count]. */
char *const *rnnd__names_texts(const struct rnnd__names *names, enum rnnd_axis axis,
                               int64_t *count);
/* The strings of an axis, one after another, each with its final 0. *block is malloc'ed
   and owned by the caller; size: their number, and the bytes. */
RNND_CHECKED int rnnd__names_join(const struct rnnd__names *names, enum rnnd_axis axis,
                                  char **block, int64_t size[2]);
/* The index of a name, -1 where there is no such name. */
int64_t rnnd__names_find(const struct rnnd__names *names, enum rnnd_axis axis,
                         const char *text);
/* A hash of all names. */
uint64_t rnnd__names_fingerprint(const struct rnnd__names *names);
bool rnnd__names_equal(const struct rnnd__names *a, const struct rnnd__names *b,
                       enum rnnd_axis axis);
/* What an axis is called in messages: "features", "tokens" or "classes". */
const char *rnnd__names_word(enum rnnd_axis axis);
/* Writes a list for messages: the names in quotes, with "..." and the count if it is
   long. */
enum { RNND__NAMES_LIST = 320 };
void rnnd__names_list(const struct rnnd__names *names, enum rnnd_axis axis,
                      char text[RNND__NAMES_LIST]);

#endif
