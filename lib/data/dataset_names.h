/*
 * dataset_names.h - names of features, tokens and classes, and how a data set comes to
 * number them as a model does.
 */
#ifndef RNND_DATASET_NAMES_H
#define RNND_DATASET_NAMES_H

#include "base/names.h"

/* The names in the file, or those that it was matched with. Borrowed. */
const struct rnnd__names *rnnd__dataset_names(const struct rnnd_dataset *data);

/* Numbers features, tokens and, if targets, classes as `names` does; see
   rnnd_model_match(). Once per data set, before any batch is made of it. */
RNND_CHECKED int rnnd__dataset_match(struct rnnd_dataset *data,
                                     const struct rnnd__names *names, bool targets,
                                     bool strict);

/* Whether the match numbered the classes otherwise than the file does. */
bool rnnd__dataset_renumbers_classes(const struct rnnd_dataset *data);

#endif
