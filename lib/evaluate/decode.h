/*
 * decode.h - from the scores of steps to strings of labels (ctc), and how far two
 * strings are apart.
 */
#ifndef RNND_DECODE_H
#define RNND_DECODE_H

#include "rnn_dist.h"

/* From the scores of a sequence to its string, by the best path or by a beam. */
struct rnnd__decoder;

/* opt->beam prefixes; 0: the best path. *out is NULL for other tasks than ctc. EUSAGE:
   a beam for another task, or fewer prefixes than opt->top strings. */
RNND_CHECKED int rnnd__decoder_new(const struct rnnd_options *opt,
                                   const struct rnnd_model_spec *spec,
                                   struct rnnd__decoder **out);
void rnnd__decoder_free(struct rnnd__decoder *d);
/* Where the scores of T steps are to be put: [T] pointers, each to a row. */
RNND_CHECKED int rnnd__decoder_rows(struct rnnd__decoder *d, int64_t T,
                                    const float ***row);
/* The string of the rows that were put there: *label [*count], classes from 0 on, until
   the next call. */
RNND_CHECKED int rnnd__decoder_string(struct rnnd__decoder *d, int64_t T,
                                      const int32_t **label, int64_t *count);
/* The same string again (rank 0) or a less probable one that the beam has found, and
   the logarithm of its probability, NaN without a beam; false after the last. */
bool rnnd__decoder_ranked(struct rnnd__decoder *d, int64_t rank, const int32_t **label,
                          int64_t *count, double *log_p);

/* The output with the highest score, of equal ones the first, as in the loss; -1 if no
   score is a number. */
int64_t rnnd__decode_step(const float *score, int64_t outputs);

/* The logarithm of the sum of exp(score) over the outputs. */
double rnnd__decode_total(const float *score, int64_t outputs);

/* The string of the best path: the best output of every step, repeats merged, and
   blanks removed. row [T] points to the scores of each step. label [T] receives the
   classes, from 0 on; returns their number. */
int64_t rnnd__decode_best(const float *const *row, int64_t T, int64_t outputs,
                          int32_t *label);

/* The fewest labels to insert, remove or replace that make one string of the other.
   work [n+1]. */
int64_t rnnd__decode_distance(const int32_t *a, int64_t m, const int32_t *b, int64_t n,
                              int64_t *work);

#endif
