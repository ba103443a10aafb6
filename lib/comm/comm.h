/*
 * comm.h - the communicator inside the library: its table of operations, gradient sums,
 * and what is known about the other ranks.
 *
 * comm.c has the public functions and the world of one; comm_same.c compares ranks;
 * only comm_mpi*.c use MPI; comm_watch.c sets its start and end a deadline; comm_nccl.c
 * has gradient sums by NCCL and forwards everything else. Knows device memory, but no
 * model and no training.
 */
#ifndef RNND_COMM_H
#define RNND_COMM_H

#include "backend.h"
#include "base/status.h"
#include "rnn_dist.h"

enum { RNND_HOST_NAME = 65 };

/* The operations of a communicator. All ranks call the same ones in the same order.
   They return 0 or a negative status; after a failure the communicator is broken, and
   only close and abort are called. */
struct rnnd__comm_ops {
    /* whether gradient sums progress in the background, so that it pays to start
       early */
    bool overlaps;
    void (*close)(struct rnnd_comm *);
    void (*abort)(struct rnnd_comm *, int code);

    /* small arrays in host memory; each waits for its result */
    int (*sum)(struct rnnd_comm *, double *value, int count);
    int (*max)(struct rnnd_comm *, int64_t *value, int count);
    int (*broadcast)(struct rnnd_comm *, void *data, size_t bytes);
    int (*allgather)(struct rnnd_comm *, const void *record, size_t bytes, void *all);
    /* size [ranks] is the same on all ranks; rank 0 receives the data of all ranks, in
       order, in `all`, which is NULL elsewhere */
    int (*gather)(struct rnnd_comm *, const void *data, const size_t *size, void *all);

    /* device memory, in place: as rnnd__comm_sum_begin() and rnnd__comm_sum_wait() */
    int (*sum_begin)(struct rnnd_comm *, struct rnnd_backend *, struct rnnd__buf,
                     int64_t count, const char *label);
    int (*sum_wait)(struct rnnd_comm *);

    /* asks all ranks, after a wait in vain for `what`, where they are, and writes down
       which do not answer, or which wait for something else */
    void (*ask)(struct rnnd_comm *, const char *what, char *text, size_t size);
    /* answers a rank that asks, if any, while this one waits for `what` itself */
    void (*answer)(struct rnnd_comm *, const char *what);
};

/* The first member of the struct of every communicator. */
struct rnnd_comm {
    const struct rnnd__comm_ops *ops;
    int rank, size;
    /* longest time, in seconds, that one wait may take */
    double timeout;
    /* the current update, -1 before the first */
    int64_t update;
    /* what rank 0 does while the others wait for it, such as "writes a checkpoint";
       borrowed, else NULL */
    const char *lead_does;
    /* [size] host name of each rank, owned */
    char (*host)[RNND_HOST_NAME];
    /* the first failure of an operation: from then on ranks are out of step */
    struct rnnd__failure broken;
};

/* Whether a launcher of this MPI started the process, or MPI is initialized already. */
bool rnnd__comm_mpi_launched(void);
/* Joins the world of MPI. Collective. */
RNND_CHECKED int rnnd__comm_mpi_open(double timeout, struct rnnd_comm **out);

/* Starts to sum buf, float [count], over all ranks, in place; every rank gets the same
   bits. Several sums may be in progress, started in the same order and with the same
   counts on all ranks. buf must not be used until sum_wait. label, borrowed until then,
   names the sum in the message of a timeout. */
RNND_CHECKED int rnnd__comm_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                                      struct rnnd__buf buf, int64_t count,
                                      const char *label);
/* Waits for all sums in progress. */
RNND_CHECKED int rnnd__comm_sum_wait(struct rnnd_comm *comm);
/* Whether sums run in the background between begin and wait. */
bool rnnd__comm_overlaps(const struct rnnd_comm *comm);

/* A communicator for the gradient sums of a back end: by NCCL if the back end was
   opened for it, with comm for everything else; NULL if comm's own sums are to be used.
   Close it before comm and be. Collective. */
RNND_CHECKED int rnnd__comm_open_sums(struct rnnd_comm *comm, struct rnnd_backend *be,
                                      struct rnnd_comm **out);

/* rnnd_comm_agree() after what rank 0 alone may have done: a rank that waits in vain
   tells that rank 0 `does` it, as in "writes a checkpoint". Collective. */
RNND_CHECKED int rnnd__comm_agree_while(struct rnnd_comm *comm, int status,
                                        const char *does);
/* Copies every rank's record [bytes] to every rank: all [size * bytes], in rank order.
   Collective. */
RNND_CHECKED int rnnd__comm_allgather(struct rnnd_comm *comm, const void *record,
                                      size_t bytes, void *all);
/* Fails on all ranks, with status `code`, unless the text is the same on all. The text
   is lines, such as "--seed 1"; what follows a tab in a line may differ, and is shown.
   The message is that of the lowest rank that differs from rank 0: it names both ranks,
   their hosts and their first differing lines. Collective. */
RNND_CHECKED int rnnd__comm_same(struct rnnd_comm *comm, enum rnnd_status code,
                                 const char *text);
/* The same for the contents of a file, by their fingerprint; hosts may have it under
   different paths. EDATA; `what` is an option or operand. Collective. */
RNND_CHECKED int rnnd__comm_same_file(struct rnnd_comm *comm, const char *what,
                                      uint64_t fingerprint, const char *path);
/* The same for a data set, by its values and by its names. */
RNND_CHECKED int rnnd__comm_same_data(struct rnnd_comm *comm, const char *what,
                                      const struct rnnd_dataset_info *info);
/* The name of the host that a rank runs on. */
const char *rnnd__comm_host(const struct rnnd_comm *comm, int rank);

/* Ends all ranks with this exit status without waiting for them: for a rank that must
   end while others may be in a collective. Returns only in a world of one. */
void rnnd__comm_abort(struct rnnd_comm *comm, int code);

/* ---- for the files of this room */

/* ECOMM, with the message of the first failure, if the communicator is broken. */
RNND_CHECKED int rnnd__comm_intact(const struct rnnd_comm *comm);

/* Seconds that a wait for other ranks has taken so far, and the time of the last look
   at the clock. */
struct rnnd__comm_wait {
    double seconds, last;
};

struct rnnd__comm_wait rnnd__comm_wait_begin(void);
/* Adds the time since the last call, and answers ranks that ask. ECOMM if comm->timeout
   has passed; the message names the operation, `what`, and the ranks that are
   missing. */
RNND_CHECKED int rnnd__comm_wait_on(struct rnnd_comm *comm,
                                    struct rnnd__comm_wait *wait, const char *what);

#endif
