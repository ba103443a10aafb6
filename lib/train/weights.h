/*
 * weights.h - the weights of classes in the training loss, from --class-weight.
 */
#ifndef RNND_WEIGHTS_H
#define RNND_WEIGHTS_H

#include "rnn_dist.h"

/* The weights [O] that a text asks for: "balanced" takes them from the targets of data,
   a list has them in the order of the classes, and another text names a file of lines
   "class weight". Classes are those of data, by name where they have names. *out is
   malloc'ed and owned by the caller. EFILE: the file cannot be read; EUSAGE: a list or
   file that does not fit the classes. */
RNND_CHECKED int rnnd__weights_read(const char *text, struct rnnd_dataset *data,
                                    float **out);
/* Weights as a list, which reads as the same numbers; malloc'ed. */
RNND_CHECKED int rnnd__weights_list(const float *weight, int64_t count, char **text);
/* Whether a text is "balanced"; whether it is a list of numbers, good or bad. */
bool rnnd__weights_balance(const char *text);
bool rnnd__weights_is_list(const char *text);
/* Tells the user which class has which weight. */
void rnnd__weights_log(const float *weight, const struct rnnd_dataset *data);

#endif
