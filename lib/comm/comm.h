/*
 * comm.h - the communicator inside the library: its table of operations, sums of
 * gradients, and what is known of the peers.
 *
 * comm.c holds the public functions and the world of one; comm_mpi.c is the
 * only file that knows MPI. A further communicator (NCCL) brings its own table and
 * forwards to another what it leaves to it. Knows memory of back ends, but no model and
 * no training.
 */
#ifndef RNND_COMM_H
#define RNND_COMM_H

#include "backend.h"
#include "rnn_dist.h"

enum { RNND_HOST_NAME = 65 };

/* All ranks call the same operations in the same order. 0 or a negative status; after a
   failure the communicator is broken, and none of these but close and abort is called
   again. */
struct rnnd__comm_ops {
    const char *name;
    /* Whether sums make progress on their own, so that it pays to begin them early. */
    bool overlaps;
    void (*close)(struct rnnd_comm *);
    void (*abort)(struct rnnd_comm *, int code);

    /* host memory, small; each waits */
    int (*sum)(struct rnnd_comm *, double *value, int count);
    int (*max)(struct rnnd_comm *, int64_t *value, int count);
    int (*broadcast)(struct rnnd_comm *, void *data, size_t bytes);
    int (*allgather)(struct rnnd_comm *, const void *record, size_t bytes, void *all);
    /* size [ranks] is known to all; all: rank 0 only, room for every rank's bytes in
       order */
    int (*gather)(struct rnnd_comm *, const void *data, const size_t *size, void *all);

    /* floats of a back end, in place */
    int (*sum_begin)(struct rnnd_comm *, struct rnnd_backend *, struct rnnd__buf,
                     int64_t count, const char *label);
    int (*sum_wait)(struct rnnd_comm *);
};

/* Head of every communicator's own struct. */
struct rnnd_comm {
    const struct rnnd__comm_ops *ops;
    int rank, size;
    /* seconds that one wait may take */
    double timeout;
    /* under way; -1 = none yet */
    int64_t update;
    /* [size], owned */
    char (*host)[RNND_HOST_NAME];
    /* an operation failed: peers are out of step */
    bool broken;
    /* and its text */
    char why[512];
};

/* MPI's; launched: whether a launcher of this MPI started the process (or the caller
   has initialised MPI). */
bool rnnd__comm_mpi_launched(void);
RNND_CHECKED int rnnd__comm_mpi_open(double timeout, struct rnnd_comm **out);

/* Starts the sum over all ranks of buf [count] floats, in place. Several may be under
   way, started in the same order with the same counts on all ranks; buf is not to be
   touched until sum_wait. label names it in a time-out message and is borrowed until
   then. Every rank gets the same bits. */
RNND_CHECKED int rnnd__comm_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                                      struct rnnd__buf buf, int64_t count,
                                      const char *label);
/* Waits for all of them. */
RNND_CHECKED int rnnd__comm_sum_wait(struct rnnd_comm *comm);
bool rnnd__comm_overlaps(const struct rnnd_comm *comm);

/* A communicator for the gradient sums of a back end: NCCL's where the back end was
   opened for it, which leaves the rest to comm; NULL where comm's own sums serve. All
   ranks call it. Close it before both. */
RNND_CHECKED int rnnd__comm_open_sums(struct rnnd_comm *comm, struct rnnd_backend *be,
                                      struct rnnd_comm **out);

/* Every rank's record to every rank: all [size * bytes], in rank order. */
RNND_CHECKED int rnnd__comm_allgather(struct rnnd_comm *comm, const void *record,
                                      size_t bytes, void *all);
/* The host that a rank runs on. */
const char *rnnd__comm_host(const struct rnnd_comm *comm, int rank);
const char *rnnd__comm_name(const struct rnnd_comm *comm);

/* Ends all ranks with this exit status without waiting for any: for a rank that must
   leave while others may be inside a collective. Returns only in a world of one. */
void rnnd__comm_abort(struct rnnd_comm *comm, int code);

#endif
