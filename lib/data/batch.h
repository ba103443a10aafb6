/*
 * batch.h - the parts of a packed batch, for the model.
 */
#ifndef RNND_BATCH_H
#define RNND_BATCH_H

#include "backend.h"
#include "rnn_dist.h"

struct rnnd_batch {
    /* both borrowed; data is NULL for a batch of given steps */
    struct rnnd_backend *be;
    struct rnnd_dataset *data;
    /* of the data set, or own_info */
    const struct rnnd_dataset_info *info;
    struct rnnd_dataset_info own_info;
    /* loading reads targets as well */
    bool with_targets;
    /* [I] borrowed, NULL = features are used as they are */
    const float *mean, *std;

    /* ---- what was loaded last: sizes and row numbers, views of the arrays below */
    struct rnnd__packed packed;
    /* host [N], number in the data set; -1 for lanes */
    int64_t *sequence;
    /* float [R,I] or int32 [R] */
    struct rnnd__buf inputs;
    /* [R or N] int32, or [R or N, O] float; none for strings */
    struct rnnd__buf targets;
    /* ctc: the strings that are targets */
    struct rnnd__strings strings;
    /* of the last rnnd__batch_sort_tokens */
    struct rnnd__segments segments;

    /* ---- memory, owned */

    /* sizes it is allocated for */
    struct rnnd_limits room;
    /* n [T], off [T+1], len and id [N] */
    int32_t *n, *len;
    int64_t *off, *id;
    /* host copies of inputs and targets; NULL where the host can reach the device's
       memory */
    char *host_inputs, *host_targets;
    /* token input: [R] host copy of inputs, for sorting */
    int32_t *host_tokens;
    /* token sort: rows, token [R], segment [R+1], count_of [V+1] */
    int32_t *rows, *segment, *token, *count_of;
    /* host copies of the strings: label [R], first and count [N] */
    int32_t *label, *first, *count;
    /* rows of one piece, as in the file; room for piece_room steps */
    char *piece_inputs, *piece_targets;
    int64_t piece_room;
};

/* A batch for rnnd_batch_load_steps() alone: of I features, normalized as by
   rnnd_batch_new(), or of tokens where vocab is not 0. Freed by rnnd_batch_free. */
RNND_CHECKED int rnnd__batch_new_steps(struct rnnd_backend *be, int64_t inputs,
                                       int64_t vocab, const float *mean,
                                       const float *std, struct rnnd_batch **out);

/* Sorts the rows of a batch of tokens by token, stably, into batch->segments: for the
   gradient of the embedding. */
RNND_CHECKED int rnnd__batch_sort_tokens(struct rnnd_batch *batch);

#endif
