/*
 * comm_mpi_ask.c - where are the others? After a wait in vain, or where ranks are out
 * of step, every rank tells all others what it waits for, and names those that say
 * nothing or something else.
 *
 * Ranks that wait without having lost patience yet answer from within their wait.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "comm/comm_mpi.h"

enum { ROLL_TAG = 3 };

/* The context that ranks ask each other in: there before any other. A program that has
   started MPI itself may use the world for messages of its own. */
static MPI_Comm common(const struct rnnd__mpi *mc)
{
    return mc->owned ? MPI_COMM_WORLD : mc->leave;
}

static void tell(struct rnnd__mpi *mc, int rank, const char *what)
{
    struct rnnd__roll *own = &mc->roll[mc->base.rank];
    snprintf(own->what, sizeof own->what, "%s", what);
    MPI_Isend(own, sizeof *own, MPI_BYTE, rank, ROLL_TAG, common(mc),
              &mc->roll_request[2 * rank + 1]);
}

void rnnd__mpi_answer(struct rnnd_comm *comm, const char *what)
{
    struct rnnd__mpi *mc = rnnd__mpi_of(comm);
    MPI_Status asked;
    int yes = 0;
    if (common(mc) == MPI_COMM_NULL ||
        MPI_Iprobe(MPI_ANY_SOURCE, ROLL_TAG, common(mc), &yes, &asked) != MPI_SUCCESS ||
        !yes)
        return;
    int rank = asked.MPI_SOURCE;
    MPI_Recv(&mc->roll[rank], sizeof *mc->roll, MPI_BYTE, rank, ROLL_TAG, common(mc),
             MPI_STATUS_IGNORE);
    tell(mc, rank, what);
}

/* Tells all ranks `what` and listens to them for at most `seconds`, except those that
   have asked before. A rank that says nothing leaves its entry of mc->roll empty. */
static void call_roll(struct rnnd__mpi *mc, const char *what, double seconds)
{
    const struct timespec nap = {0, 50000};
    const int ranks = mc->base.size;
    double begun = rnnd__clock();
    for (int r = 0; r < ranks; r++) {
        if (r == mc->base.rank || mc->roll[r].what[0])
            continue;
        MPI_Irecv(&mc->roll[r], sizeof *mc->roll, MPI_BYTE, r, ROLL_TAG, common(mc),
                  &mc->roll_request[2 * r]);
        tell(mc, r, what);
    }
    for (int done = 0; done < 2 * ranks && rnnd__clock() - begun < seconds;) {
        nanosleep(&nap, NULL);
        done = 0;
        for (int i = 0; i < 2 * ranks; i++) {
            int one = 0;
            if (MPI_Test(&mc->roll_request[i], &one, MPI_STATUS_IGNORE) == MPI_SUCCESS)
                done += one;
        }
    }
}

/* Appends "rank 3 on host" and what it waits for, up to a number of ranks. */
static void list_rank(const struct rnnd__mpi *mc, int rank, int listed, char *text,
                      size_t size)
{
    const int most = 5;
    size_t used = strlen(text);
    if (listed < most)
        snprintf(text + used, size - used, "%srank %d%s%s", listed ? ", " : "", rank,
                 mc->base.host ? " on " : "", mc->base.host ? mc->base.host[rank] : "");
    else if (listed == most)
        snprintf(text + used, size - used, ", and more");
}

void rnnd__mpi_ask(struct rnnd_comm *comm, const char *what, char *text, size_t size)
{
    struct rnnd__mpi *mc = rnnd__mpi_of(comm);
    double patience = comm->timeout < 4 ? comm->timeout / 2 : 2;
    int silent = 0, other = -1;
    snprintf(text, size, "another rank died, hangs or is late");
    if (common(mc) == MPI_COMM_NULL || mc->asked)
        return;
    mc->asked = true;
    call_roll(mc, what, patience);
    for (int r = comm->size - 1; r >= 0; r--)
        if (mc->roll[r].what[0] && strcmp(mc->roll[r].what, mc->roll[comm->rank].what))
            other = r;
    snprintf(text, size, "no answer from ");
    for (int r = 0; r < comm->size; r++)
        if (!mc->roll[r].what[0])
            list_rank(mc, r, silent++, text, size);
    size_t used = strlen(text);
    if (silent) {
        snprintf(text + used, size - used, ": dead, hanging or late");
        return;
    }
    text[0] = '\0';
    if (other < 0) {
        snprintf(text, size, "all ranks wait for it");
        return;
    }
    list_rank(mc, other, 0, text, size);
    used = strlen(text);
    snprintf(text + used, size - used, " waits for the %s", mc->roll[other].what);
}

int rnnd__mpi_out_of_step(struct rnnd_comm *comm, const char *what, int64_t amount)
{
    char own[sizeof((struct rnnd__roll *)0)->what], others[700];
    snprintf(own, sizeof own, "%s of %lld", what, (long long)amount);
    rnnd__mpi_ask(comm, own, others, sizeof others);
    return rnnd__fail(
        RNND_ECOMM, "rank %d on %s: the ranks are out of step: here is the %s, but %s",
        comm->rank, comm->host ? comm->host[comm->rank] : "this host", own, others);
}
