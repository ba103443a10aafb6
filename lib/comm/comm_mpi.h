/*
 * comm_mpi.h - the communicator over MPI, for its files: comm_mpi.c has the small
 * collectives and the start and end, comm_mpi_sum.c the gradient sums, comm_mpi_ask.c
 * what ranks say when they wait in vain.
 *
 * These are the only files that include <mpi.h>.
 */
#ifndef RNND_COMM_MPI_H
#define RNND_COMM_MPI_H

#include <mpi.h>

#include "base/status.h"
#include "comm/comm.h"

enum {
    /* floats per message of the ring */
    RNND__SEGMENT = 1 << 17
};

/* A sum that was begun. MPI would not progress it before the wait, so it is only
   recorded here. */
struct rnnd__flight {
    struct rnnd_backend *be;
    struct rnnd__buf buf;
    int64_t count;
    const char *label;
    /* the values: host memory of the back end, or stage */
    float *data;
    /* [room] owned, kept for the next update */
    float *stage;
    int64_t room;
};

/* What a rank that waits in vain tells all others: what it waits for. */
struct rnnd__roll {
    char what[64];
};

struct rnnd__mpi {
    struct rnnd_comm base;
    /* MPI was initialized here */
    bool owned;
    /* separate contexts: small collectives, gradient sums, the barrier before the
       end */
    MPI_Comm world, sums, leave;
    /* [RNND__SEGMENT] receives what a neighbour sent */
    float *segment;
    /* [room] sums in progress, `flights` of them */
    struct rnnd__flight *flight;
    int flights, room;
    /* whether the others were asked where they are: once, since MPI may write into what
       follows from then on */
    bool asked;
    /* [size] what ranks wait for; [2 * size] messages from and to each */
    struct rnnd__roll *roll;
    MPI_Request *roll_request;
};

static inline struct rnnd__mpi *rnnd__mpi_of(struct rnnd_comm *comm)
{
    return (struct rnnd__mpi *)comm;
}

/* ECOMM with MPI's text for its code; `what` names the operation. */
int rnnd__mpi_fail(int code, const char *what);

#define RNND_TRY_MPI(call, what)                \
    do {                                        \
        int code_ = (call);                     \
        if (code_ != MPI_SUCCESS)               \
            return rnnd__mpi_fail(code_, what); \
    } while (0)

/* Waits until all requests are done; ECOMM after comm->timeout. bytes: size of the
   message that request[0] is to receive, which no other size may take the place of; -1
   = it receives none. */
RNND_CHECKED int rnnd__mpi_wait(struct rnnd_comm *comm, int count, MPI_Request *request,
                                int64_t bytes, const char *what);
/* The operations, for rnnd__mpi_same(). */
enum rnnd__mpi_kind {
    RNND__MPI_SUM,
    RNND__MPI_MAX,
    RNND__MPI_BROADCAST,
    RNND__MPI_ALLGATHER,
    RNND__MPI_GATHER,
    RNND__MPI_GRADIENTS,
    RNND__MPI_KINDS
};

/* What every operation begins with: fails on all ranks unless all begin the same one,
   with the same amount. Always a message of one size, so that ranks which are out of
   step notice it. */
RNND_CHECKED int rnnd__mpi_same(struct rnnd_comm *comm, const char *what,
                                enum rnnd__mpi_kind kind, int64_t amount);

/* Operations `ask` and `answer` of comm.h. */
void rnnd__mpi_ask(struct rnnd_comm *comm, const char *what, char *text, size_t size);
void rnnd__mpi_answer(struct rnnd_comm *comm, const char *what);
/* ECOMM: other ranks have begun another operation than this one, `what` of an amount;
   the message names one and its operation. All ranks call it. */
RNND_CHECKED int rnnd__mpi_out_of_step(struct rnnd_comm *comm, const char *what,
                                       int64_t amount);

/* A communicator that could not be opened: messages may be in progress, and MPI may
   write into it until the process ends. */
extern struct rnnd__mpi *rnnd__mpi_lost;

RNND_CHECKED int rnnd__mpi_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                                     struct rnnd__buf buf, int64_t count,
                                     const char *label);
RNND_CHECKED int rnnd__mpi_sum_wait(struct rnnd_comm *comm);

#endif
