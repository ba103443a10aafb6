/*
 * comm_mpi_sum.c - gradient sums over MPI.
 *
 * They use a ring of point-to-point messages: measured twice as fast as MPI_Iallreduce,
 * and as fast as the blocking MPI_Allreduce, which cannot time out. Each element is
 * summed on one rank and copied from there, so all ranks have the same bits by
 * construction.
 */
#include <stdlib.h>
#include <string.h>

#include "comm/comm_mpi.h"

enum {
    /* up to this many floats latency dominates, and MPI_Iallreduce is faster */
    RING_FLOATS = 1 << 14,
    RING_TAG = 1
};

/* The begin of part p if n floats are cut into `size` parts, of equal length except the
   last ones. */
static int64_t part_begin(const struct rnnd_comm *comm, int64_t n, int p)
{
    int64_t each = (n + comm->size - 1) / comm->size;
    return each * p < n ? each * p : n;
}

/* One round: sends part `give` to the right neighbour and receives part `take` from the
   left one in `into`. */
static int ring_round(struct rnnd_comm *comm, float *x, int64_t n, int give, int take,
                      float *into, const char *label)
{
    struct rnnd__mpi *mc = rnnd__mpi_of(comm);
    int left = (comm->rank + comm->size - 1) % comm->size,
        right = (comm->rank + 1) % comm->size;
    int64_t at = part_begin(comm, n, give);
    MPI_Request r[2];
    RNND_TRY_MPI(
        MPI_Irecv(into,
                  (int)(part_begin(comm, n, take + 1) - part_begin(comm, n, take)),
                  MPI_FLOAT, left, RING_TAG, mc->sums, &r[0]),
        label);
    RNND_TRY_MPI(MPI_Isend(x + at, (int)(part_begin(comm, n, give + 1) - at), MPI_FLOAT,
                           right, RING_TAG, mc->sums, &r[1]),
                 label);
    return rnnd__mpi_wait(
        comm, 2, r,
        sizeof *x * (part_begin(comm, n, take + 1) - part_begin(comm, n, take)), label);
}

/* Replaces x [n] by the sum over ranks, n <= size * RNND__SEGMENT. After round k of the
   first loop part rank-k-1 contains the sum of k+2 ranks; after the last round part
   rank+1 is complete on this rank. The second loop passes the complete parts around. */
static int ring_sum(struct rnnd_comm *comm, float *x, int64_t n, const char *label)
{
    struct rnnd__mpi *mc = rnnd__mpi_of(comm);
    int size = comm->size, rank = comm->rank;
    for (int k = 0; k < size - 1; k++) {
        int take = (rank - k - 1 + size) % size;
        int64_t at = part_begin(comm, n, take);
        RNND_TRY(
            ring_round(comm, x, n, (rank - k + size) % size, take, mc->segment, label));
        RNND_TRY_MPI(MPI_Reduce_local(mc->segment, x + at,
                                      (int)(part_begin(comm, n, take + 1) - at),
                                      MPI_FLOAT, MPI_SUM),
                     label);
    }
    for (int k = 0; k < size - 1; k++) {
        int take = (rank - k + size) % size;
        RNND_TRY(ring_round(comm, x, n, (rank - k + 1 + size) % size, take,
                            x + part_begin(comm, n, take), label));
    }
    return 0;
}

static int sum_floats(struct rnnd_comm *comm, float *x, int64_t n, const char *label)
{
    if (n <= RING_FLOATS) {
        MPI_Request r;
        RNND_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, x, (int)n, MPI_FLOAT, MPI_SUM,
                                    rnnd__mpi_of(comm)->sums, &r),
                     label);
        return rnnd__mpi_wait(comm, 1, &r, -1, label);
    }
    int64_t piece = (int64_t)comm->size * RNND__SEGMENT;
    for (int64_t at = 0; at < n; at += piece)
        RNND_TRY(ring_sum(comm, x + at, n - at < piece ? n - at : piece, label));
    return 0;
}

/* Sets f->data: the buffer itself if the host can access it, else a copy. */
static int stage_down(struct rnnd__flight *f)
{
    const struct rnnd__backend_ops *ops = f->be->ops;
    f->data = ops->host(f->be, f->buf);
    if (f->data)
        return ops->sync(f->be) < 0 ? rnnd__fail(RNND_EDEVICE, "%s", f->be->error) : 0;
    if (f->room < f->count) {
        RNND_TRY(RNND_GROW(&f->stage, f->count, "a copy of gradients"));
        f->room = f->count;
    }
    f->data = f->stage;
    if (ops->download(f->be, f->stage, f->buf, (size_t)f->count * sizeof(float)) < 0)
        return rnnd__fail(RNND_EDEVICE, "%s", f->be->error);
    return 0;
}

int rnnd__mpi_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                        struct rnnd__buf buf, int64_t count, const char *label)
{
    struct rnnd__mpi *mc = rnnd__mpi_of(comm);
    if (count <= 0 || comm->size == 1)
        return 0;
    if (mc->flights == mc->room) {
        int room = mc->room ? 2 * mc->room : 16;
        RNND_TRY(RNND_GROW(&mc->flight, room, "gradient sums"));
        memset(mc->flight + mc->room, 0,
               (size_t)(room - mc->room) * sizeof *mc->flight);
        mc->room = room;
    }
    struct rnnd__flight *f = &mc->flight[mc->flights];
    f->be = be;
    f->buf = buf;
    f->count = count;
    f->label = label;
    RNND_TRY(stage_down(f));
    mc->flights++;
    return 0;
}

/* A weighted sum of the counts, so that the same floats in other sums differ too. */
static int same_sums(struct rnnd__mpi *mc)
{
    int64_t amount = 0;
    for (int i = 0; i < mc->flights; i++)
        amount += (2 * i + 1) * mc->flight[i].count;
    return rnnd__mpi_same(&mc->base, mc->flight[0].label, RNND__MPI_GRADIENTS, amount);
}

int rnnd__mpi_sum_wait(struct rnnd_comm *comm)
{
    struct rnnd__mpi *mc = rnnd__mpi_of(comm);
    if (mc->flights)
        RNND_TRY(same_sums(mc));
    for (int i = 0; i < mc->flights; i++) {
        struct rnnd__flight *f = &mc->flight[i];
        RNND_TRY(sum_floats(comm, f->data, f->count, f->label));
        if (f->data == f->stage)
            f->be->ops->upload(f->be, f->buf, f->stage,
                               (size_t)f->count * sizeof(float));
    }
    mc->flights = 0;
    return 0;
}
