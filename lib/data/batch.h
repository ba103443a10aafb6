/*
 * batch.h - what a packed batch is made of, for the model.
 */
#ifndef RNND_BATCH_H
#define RNND_BATCH_H

#include "backend.h"
#include "rnn_dist.h"

struct rnnd_batch {
    struct rnnd_backend *be;
    struct rnnd_dataset *data;
    const struct rnnd_dataset_info *info;
    struct rnnd_dataset_info own_info; /* where there is no data set behind it */
    bool with_targets;
    const float *mean, *std;       /* [I] or NULL */

    struct rnnd__packed packed;     /* views of the arrays below */
    int64_t *sequence;             /* host [N], data-set index; -1 for lanes */
    struct rnnd__buf inputs;        /* float [R,I] or int32 [R] */
    struct rnnd__buf targets;       /* [R or N] int32, or [R or N, O] float */
    struct rnnd__segments segments; /* of the last rnnd__batch_sort_tokens */

    struct rnnd_limits room;       /* what is allocated */
    int32_t *n, *len;
    int64_t *off, *id;
    char *host_inputs, *host_targets;   /* where the device's memory is out of reach */
    int32_t *host_tokens; /* token input: the same as inputs, kept for sorting */
    int32_t *rows, *segment, *token, *count_of; /* token sort */
    char *piece_inputs, *piece_targets; /* one piece as it lies in the file */
    int64_t piece_room;            /* steps */
};

/* A batch without a data set: tokens of a vocabulary, given from memory, without
   targets. */
RNND_CHECKED int rnnd__batch_new_tokens(struct rnnd_backend *be, int64_t vocab,
                                       struct rnnd_batch **out);
/* One sequence of tokens, each in 0 .. vocab-1. */
RNND_CHECKED int rnnd__batch_load_tokens(struct rnnd_batch *batch, const int32_t *token,
                                        int64_t count);

/* Sorts the rows of a token batch by token (stable), for the embedding's gradient. */
RNND_CHECKED int rnnd__batch_sort_tokens(struct rnnd_batch *batch);

#endif
