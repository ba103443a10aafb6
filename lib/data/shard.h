/*
 * shard.h - one rank's shard of a plan entry, cut into windows and micro-batches.
 *
 * From the sequences of an entry (or the lanes of a stream) and the number of ranks it
 * determines the pieces that this rank runs, in order: window after window, and within
 * a window micro-batch by micro-batch. Every rank computes the same sharding, without
 * communication. Knows only lengths and offsets.
 */
#ifndef RNND_SHARD_H
#define RNND_SHARD_H

#include "rnn_dist.h"

struct rnnd__shard {
    /* ---- how to cut, set by rnnd__shard_new() */
    /* offsets of the data set, borrowed */
    const int64_t *offsets;
    /* lm: n tokens make n-1 steps */
    bool pairs;
    /* steps stored in the data set */
    int64_t tokens;
    /* which part of how many: a rank of all ranks, or a block of all blocks */
    int part, parts;
    /* steps per window, 0 = whole sequences; windows per update, 0 = all */
    int64_t window, windows_per_update;
    /* most steps per micro-batch, 0 = no limit */
    int64_t bound;
    /* labels of the longest string, 0 where targets are none */
    int64_t longest_string;
    /* cost of a step, see plan.h */
    int64_t step_cost;

    /* ---- the current entry, the same on all ranks */
    /* [members] steps of each sequence or lane */
    int64_t *length;
    int64_t members;
    /* windows of the longest one, at least 1 */
    int64_t windows;
    /* load imbalance: largest over mean cost of the parts */
    double straggler;

    /* ---- this part of the entry */
    /* [count] pieces over all windows, by falling length */
    struct rnnd_piece *piece;
    int64_t count;
    /* [cuts+1] micro-batch m is pieces cut[m] .. cut[m+1]-1 */
    int64_t *cut;
    int64_t cuts;

    /* ---- scratch, [room] as the arrays above */
    struct rnnd_piece *all, *slice;
    int32_t *mine;
    int64_t room;
};

/* A shard: part 0 .. parts-1 of entries of this data set, which is borrowed. */
RNND_CHECKED int rnnd__shard_new(const struct rnnd_options *opt,
                                 const struct rnnd_dataset *data, int part, int parts,
                                 struct rnnd__shard **out);
void rnnd__shard_free(struct rnnd__shard *shard);
/* Takes the sequences ids [count] of a plan entry. */
RNND_CHECKED int rnnd__shard_sequences(struct rnnd__shard *shard, const int32_t *ids,
                                       int64_t count);
/* Takes all sequences, joined and cut into lanes (lm). EDATA: too few tokens. */
RNND_CHECKED int rnnd__shard_lanes(struct rnnd__shard *shard, int64_t lanes);
/* The number of updates of an entry whose longest sequence has this many steps. */
int64_t rnnd__shard_updates(const struct rnnd__shard *shard, int64_t longest);
/* The windows of update k of the entry: returns the first, and *end is past the
   last. */
int64_t rnnd__shard_windows(const struct rnnd__shard *shard, int64_t k, int64_t *end);
/* The steps of all ranks in windows first .. end-1. */
int64_t rnnd__shard_steps(const struct rnnd__shard *shard, int64_t first, int64_t end);
/* The pieces of micro-batch m in window w, valid until the next call; returns their
   number. Sequences that have ended are left out. */
int64_t rnnd__shard_slice(struct rnnd__shard *shard, int64_t w, int64_t m,
                          const struct rnnd_piece **pieces);
/* Raises *limits to an upper bound for the batches of any rank in the entry ids
   [count]; ids NULL: in the current entry, count = members. */
void rnnd__shard_limits(const struct rnnd__shard *shard, const int32_t *ids,
                        int64_t count, struct rnnd_limits *limits);

#endif
