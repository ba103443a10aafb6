/*
 * predict_strings.h - what is predicted of the label strings of sequences (ctc): the
 * most probable ones, and where given labels are. A rank writes a record of each
 * sequence, which rank 0 reads; records are int32_t, one after another.
 */
#ifndef RNND_PREDICT_STRINGS_H
#define RNND_PREDICT_STRINGS_H

#include "base/list.h"

struct rnnd__predict_strings;

/* *out is NULL for other tasks. EUSAGE: options for another task, or that do not go
   together; alignments without strings in the data set. */
RNND_CHECKED int rnnd__predict_strings_new(const struct rnnd_options *opt,
                                           const struct rnnd_model_spec *spec,
                                           const struct rnnd_dataset *data,
                                           struct rnnd__predict_strings **out);
void rnnd__predict_strings_free(struct rnnd__predict_strings *p);
/* Forgets all records. */
void rnnd__predict_strings_begin(struct rnnd__predict_strings *p);
/* Adds the record of a sequence by the scores of its T steps, [T, outputs]. */
RNND_CHECKED int rnnd__predict_strings_add(struct rnnd__predict_strings *p,
                                           int64_t sequence, int64_t T,
                                           const float *score);
/* int32_t, the records. */
const struct rnnd__list *rnnd__predict_strings_all(
    const struct rnnd__predict_strings *p);

/* The record behind this one. */
const int32_t *rnnd__record_next(const int32_t *record);

/* A record, read string by string. */
struct rnnd__record {
    const int32_t *next;
    /* strings that are to be read; there is at least one */
    int64_t strings;
};

void rnnd__record_open(const int32_t *record, struct rnnd__record *out);
/* A string of the record, the most probable first, and the logarithm of its
   probability, NaN where it was not searched for. */
const int32_t *rnnd__record_string(struct rnnd__record *r, int64_t *count,
                                   double *log_p);
/* After all strings: of each step the place of its label in the given string, as in
   align.h; NULL where it was not aligned. Only where alignments were asked for. */
const int32_t *rnnd__record_places(struct rnnd__record *r, double *log_p);

#endif
