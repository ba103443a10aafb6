/*
 * strings.h - the label strings of a data set, for connectionist temporal
 * classification: which of them are targets.
 *
 * They are always in memory. A string of labels needs a step for each of them, and one
 * more between two that are equal, where the blank must be; one that needs more steps
 * than its sequence has is unreachable.
 */
#ifndef RNND_STRINGS_H
#define RNND_STRINGS_H

#include "rnn_dist.h"

/* The string of a sequence: its labels, *count of them; -1 for a class that the model
   does not know. */
const int32_t *rnnd__string_of(const struct rnnd_dataset *data, int64_t sequence,
                               int64_t *count);

enum rnnd__string_kind {
    RNND__STRING_TARGET,
    RNND__STRING_UNREACHABLE,
    /* reachable, but the model does not know all of its classes */
    RNND__STRING_UNKNOWN
};
enum rnnd__string_kind rnnd__string_kind(const struct rnnd_dataset *data,
                                         int64_t sequence);

#endif
