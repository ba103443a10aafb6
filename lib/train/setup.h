/*
 * setup.h - what training, verify and bench begin with: data, back end, model,
 * optimizer and what feeds them, from the options.
 */
#ifndef RNND_SETUP_H
#define RNND_SETUP_H

#include "data/prefetch.h"
#include "data/shard.h"

struct rnnd__setup {
    /* borrowed */
    const struct rnnd_options *opt;
    /* borrowed */
    struct rnnd_comm *comm;
    /* to train on */
    struct rnnd_dataset *data;
    struct rnnd_model_spec spec;
    bool streams;
    struct rnnd_backend *be;
    struct rnnd_model *model;
    struct rnnd_optim *optim;
    struct rnnd_reducer *reducer;
    struct rnnd_batch *batch;
    struct rnnd_plan *plan;
    struct rnnd__shard *shard;
    struct rnnd__prefetch *prefetch;
};

/* Options with what the data settle of them: the task, and that steps are features.
   Borrows the texts of opt. */
struct rnnd_options rnnd__setup_settled(const struct rnnd_options *opt,
                                        const struct rnnd_dataset_info *data);
/* Opens the training data and checks them against the options. This rank only. */
RNND_CHECKED int rnnd__setup_data(struct rnnd__setup *s, const struct rnnd_options *opt,
                                  struct rnnd_comm *comm);
/* The rest, the model still without values. This rank only, but all ranks call it. */
RNND_CHECKED int rnnd__setup_model(struct rnnd__setup *s);
/* The initial values of the seed or of --init, and the statistics that --normalize asks
   for. This rank only. */
RNND_CHECKED int rnnd__setup_values(struct rnnd__setup *s);
/* A stream needs a pair for every lane: EDATA where data do not have them. */
RNND_CHECKED int rnnd__setup_check_lanes(const struct rnnd__setup *s,
                                         const struct rnnd_dataset *data);
void rnnd__setup_close(struct rnnd__setup *s);

#endif
