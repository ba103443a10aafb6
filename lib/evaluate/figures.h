/*
 * figures.h - what an evaluation says besides the loss: counts of classes, rankings,
 * errors of values.
 *
 * Takes the scores and targets of batches as they pass by. Counts are whole numbers,
 * rankings see the multiset of all scores, and errors are sums by part (evaluate.c)
 * that are added in one order: no bit of a figure depends on the ranks. Knows no model
 * and no file.
 */
#ifndef RNND_FIGURES_H
#define RNND_FIGURES_H

#include "rnn_dist.h"

struct rnnd__figures;

/* Scores and answers that are kept for rankings, at most; with more there are none. */
extern int64_t rnnd__figures_most_ranked;

/* targets: how many the data set has. */
RNND_CHECKED int rnnd__figures_new(enum rnnd_task task, int64_t outputs,
                                   int64_t targets, struct rnnd__figures **out);
void rnnd__figures_free(struct rnnd__figures *f);
/* Whether scores are wanted: not for lm, whose figures follow from the loss. */
bool rnnd__figures_need_scores(const struct rnnd__figures *f);
/* Doubles that a part leaves, to be summed over ranks: 0 but for values. */
int64_t rnnd__figures_width(const struct rnnd__figures *f);
/* Sees score [rows,O] with its targets, as in a batch. part [width] is the part they
   belong to, zero before its first rows. */
RNND_CHECKED int rnnd__figures_add(struct rnnd__figures *f, int64_t rows,
                                   const float *score, const void *target,
                                   double *part);
/* The same for strings: sees one, so many edits away from its target of so many
   labels. */
void rnnd__figures_add_string(struct rnnd__figures *f, int64_t edits, int64_t labels);
/* Adds a part; all ranks, in the order of parts. */
void rnnd__figures_add_part(struct rnnd__figures *f, const double *part);
/* As rnnd_comm_sum(), for any number of values. Collective. */
RNND_CHECKED int rnnd__figures_sum(struct rnnd_comm *comm, double *value,
                                   int64_t count);
/* The figures over all ranks; sum: the loss of all parts; unknown: targets of classes
   that the model does not know, which its accuracy counts as wrong. Clear *out.
   Collective. */
RNND_CHECKED int rnnd__figures_finish(struct rnnd__figures *f, struct rnnd_comm *comm,
                                      const struct rnnd_loss *sum, int64_t unknown,
                                      struct rnnd_metrics *out);

#endif
