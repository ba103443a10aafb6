/*
 * setup.h - what training, verify and bench start with: data, back end, model,
 * optimizer and batches, as the options ask.
 */
#ifndef RNND_SETUP_H
#define RNND_SETUP_H

#include "base/names.h"
#include "data/prefetch.h"
#include "data/shard.h"

struct rnnd__setup {
    /* borrowed */
    const struct rnnd_options *opt;
    struct rnnd_comm *comm;
    /* owned, as everything below: the training data */
    struct rnnd_dataset *data;
    struct rnnd_model_spec spec;
    /* weights of classes in the loss, [O], and the same as a list; NULL = 1 */
    float *class_weight;
    char *class_weights;
    /* the data are trained as a stream of lanes */
    bool streams;
    struct rnnd_backend *be;
    struct rnnd_model *model;
    struct rnnd_optim *optim;
    struct rnnd_reducer *reducer;
    struct rnnd_batch *batch;
    struct rnnd_plan *plan;
    struct rnnd__shard *shard;
    /* NULL if the data are in memory */
    struct rnnd__prefetch *prefetch;
};

/* The options with what the data determine: the task, and whether steps are features.
   Borrows the strings of opt. */
struct rnnd_options rnnd__setup_settled(const struct rnnd_options *opt,
                                        const struct rnnd_dataset_info *data);
/* Opens the training data and checks them against the options. They are numbered by
   names, those of the run that is resumed; NULL: by those of --init, or else by their
   own. Not collective. EUSAGE, EDATA: they do not fit together. */
RNND_CHECKED int rnnd__setup_data(struct rnnd__setup *s, const struct rnnd_options *opt,
                                  struct rnnd_comm *comm,
                                  const struct rnnd__names *names);
/* Fails on all ranks unless they have the same options, training data and, unless NULL,
   validation data. Collective. */
RNND_CHECKED int rnnd__setup_same(const struct rnnd__setup *s,
                                  const struct rnnd_dataset *valid);
/* Opens the rest; all parameters are zero. All ranks call it, and agree on the returned
   status afterwards. */
RNND_CHECKED int rnnd__setup_model(struct rnnd__setup *s);
/* Sets initial values from the seed or --init, and the statistics for --normalize. Not
   collective. */
RNND_CHECKED int rnnd__setup_values(struct rnnd__setup *s);
/* Checks that a stream has enough tokens for every lane. EDATA: it has not. */
RNND_CHECKED int rnnd__setup_check_lanes(const struct rnnd__setup *s,
                                         const struct rnnd_dataset *data);
/* Also closes what was opened before a failure. */
void rnnd__setup_close(struct rnnd__setup *s);

#endif
