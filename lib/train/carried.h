/*
 * carried.h - hidden states that this rank carries from update to update, and their way
 * into a checkpoint and back.
 *
 * States live on the rank that runs the sequence or lane: they are gathered on rank 0
 * before a save and handed out after a load, by id, so that a resumed run may have
 * another number of ranks.
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
    /* sequences that it has room for */
    int64_t rows;
};

/* Room for the states of so many sequences; what was carried is lost if it grows. */
RNND_CHECKED int rnnd__carried_reserve(struct rnnd__carried *c,
                                       struct rnnd_model *model, int64_t sequences);
void rnnd__carried_free(struct rnnd__carried *c);
/* The states of all ranks' pieces, on rank 0; elsewhere *out is empty. Collective. */
RNND_CHECKED int rnnd__carried_gather(struct rnnd__carried *c,
                                      const struct rnnd__shard *shard,
                                      struct rnnd_comm *comm, struct rnnd__carry *out);
/* Puts states into the rows of this rank's pieces; the others start from zero. */
RNND_CHECKED int rnnd__carried_put(struct rnnd__carried *c,
                                   const struct rnnd__shard *shard,
                                   const struct rnnd__carry *carry);
/* Rank 0's states to all ranks. Collective. */
RNND_CHECKED int rnnd__carry_broadcast(struct rnnd__carry *carry,
                                       struct rnnd_comm *comm);

#endif
