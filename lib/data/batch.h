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
    /* where there is no data set behind it */
    struct rnnd_dataset_info own_info;
    bool with_targets;
    /* [I] or NULL */
    const float *mean, *std;

    /* views of the arrays below */
    struct rnnd__packed packed;
    /* host [N], data-set index; -1 for lanes */
    int64_t *sequence;
    /* float [R,I] or int32 [R] */
    struct rnnd__buf inputs;
    /* [R or N] int32, or [R or N, O] float */
    struct rnnd__buf targets;
    /* of the last rnnd__batch_sort_tokens */
    struct rnnd__segments segments;

    /* what is allocated */
    struct rnnd_limits room;
    int32_t *n, *len;
    int64_t *off, *id;
    /* where the device's memory is out of reach */
    char *host_inputs, *host_targets;
    /* token input: the same as inputs, kept for sorting */
    int32_t *host_tokens;
    /* token sort */
    int32_t *rows, *segment, *token, *count_of;
    /* one piece as it lies in the file */
    char *piece_inputs, *piece_targets;
    /* steps */
    int64_t piece_room;
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
