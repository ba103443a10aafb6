/*
 * shard.h - one rank's shard of a plan entry, cut into windows and micro-batches.
 *
 * Takes the sequences of an entry (or the lanes of a stream) and the number of ranks;
 * gives the pieces that this rank runs, in the order in which it runs them: windows one
 * after the other, within a window micro-batch by micro-batch. Computes the same on
 * every rank, without talking. Knows lengths and offsets only.
 */
#ifndef RNND_SHARE_H
#define RNND_SHARE_H

#include "rnn_dist.h"

struct rnnd__shard {
    /* how to cut; set by rnnd__shard_new */

    /* of the data set, borrowed */
    const int64_t *offsets;
    /* lm: n tokens make n-1 steps */
    bool pairs;
    /* steps stored in the data set */
    int64_t tokens;
    /* which part of how many: a rank's of all ranks, or a block's of all blocks */
    int part, parts;
    /* steps, 0 = whole sequences */
    int64_t window;
    /* windows an update, 0 = all */
    int64_t windows_per_update;
    /* steps of a micro-batch, 0 = none */
    int64_t bound;
    /* of the model, as in plan.h */
    int64_t step_cost;

    /* the entry as all ranks see it */

    /* [members] steps of each sequence or lane */
    int64_t *length;
    int64_t members;
    /* of the longest, at least 1 */
    int64_t windows;
    /* longest over mean cost of the ranks */
    double straggler;

    /* this rank's part */

    /* [count] whole, by falling length */
    struct rnnd_piece *piece;
    int64_t count;
    /* [cuts+1] micro-batch m is pieces cut[m] .. cut[m+1]-1 */
    int64_t *cut;
    int64_t cuts;

    /* scratch */
    struct rnnd_piece *all, *slice;
    int32_t *mine;
    int64_t room;
};

/* Part 0 .. parts-1 of what entries of this data set hold. */
RNND_CHECKED int rnnd__shard_new(const struct rnnd_options *opt,
                                 const struct rnnd_dataset *data, int part, int parts,
                                 struct rnnd__shard **out);
void rnnd__shard_free(struct rnnd__shard *shard);
/* The sequences of a plan entry. */
RNND_CHECKED int rnnd__shard_sequences(struct rnnd__shard *shard, const int32_t *ids,
                                       int64_t count);
/* All sequences joined and cut into lanes (lm); EDATA where there are fewer pairs. */
RNND_CHECKED int rnnd__shard_lanes(struct rnnd__shard *shard, int64_t lanes);
/* Updates that an entry with this longest sequence makes. */
int64_t rnnd__shard_updates(const struct rnnd__shard *shard, int64_t longest);
/* Windows of the entry's update k: first .. *end-1. */
int64_t rnnd__shard_windows(const struct rnnd__shard *shard, int64_t k, int64_t *end);
/* Steps that all ranks run in windows first .. end-1. */
int64_t rnnd__shard_steps(const struct rnnd__shard *shard, int64_t first, int64_t end);
/* The pieces of micro-batch m in window w, borrowed until the next call; returns how
   many: sequences that have ended are left out. */
int64_t rnnd__shard_slice(struct rnnd__shard *shard, int64_t w, int64_t m,
                          const struct rnnd_piece **pieces);
/* What the batches of an entry need at most, whatever rank runs what: enlarges *limits.
   ids NULL: of the members taken last. */
void rnnd__shard_limits(const struct rnnd__shard *shard, const int32_t *ids,
                        int64_t count, struct rnnd_limits *limits);

#endif
