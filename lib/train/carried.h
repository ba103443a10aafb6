/*
 * carried.h - the hidden states that this rank carries from update to update, saved to
 * and restored from a checkpoint.
 *
 * A state is kept on the rank that runs its sequence or lane. States are gathered on
 * rank 0 before a save and distributed after a load, by id, so that a run can be
 * resumed on another number of ranks.
 */
#ifndef RNND_CARRIED_H
#define RNND_CARRIED_H

#include "checkpoint/train_state.h"
#include "data/shard.h"

struct rnnd__carried {
    /* borrowed */
    struct rnnd_model *model;
    /* owned; NULL without truncated BPTT */
    struct rnnd_state *state;
    /* capacity in sequences */
    int64_t rows;
};

/* Allocates room for the states of this many sequences; growing discards the states. */
RNND_CHECKED int rnnd__carried_reserve(struct rnnd__carried *c,
                                       struct rnnd_model *model, int64_t sequences);
void rnnd__carried_free(struct rnnd__carried *c);
/* Collects the states of all ranks' sequences on rank 0, owned by *out; elsewhere *out
   is empty. Collective. */
RNND_CHECKED int rnnd__carried_gather(struct rnnd__carried *c,
                                      const struct rnnd__shard *shard,
                                      struct rnnd_comm *comm, struct rnnd__carry *out);
/* Sets the states of this rank's sequences; those not in carry become zero. */
RNND_CHECKED int rnnd__carried_put(struct rnnd__carried *c,
                                   const struct rnnd__shard *shard,
                                   const struct rnnd__carry *carry);
/* Broadcasts rank 0's states; *carry is owned by each rank. Collective. */
RNND_CHECKED int rnnd__carry_broadcast(struct rnnd__carry *carry,
                                       struct rnnd_comm *comm);

#endif
