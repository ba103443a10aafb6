/*
 * comm_mpi.c - the communicator over MPI; the only file that includes <mpi.h>.
 *
 * Every operation is nonblocking and waited for with a timeout, so that a rank that
 * died, hangs or has left ends the job instead of blocking it. Gradient sums use a ring
 * of point-to-point messages: measured twice as fast as MPI_Iallreduce, and as fast as
 * the blocking MPI_Allreduce, which cannot time out. Each element is summed on one rank
 * and copied from there, so all ranks have the same bits by construction.
 */
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/comm.h"

enum {
    /* largest message, because counts in MPI are int */
    PIECE_BYTES = 1 << 30,
    /* floats per message of the ring */
    SEGMENT = 1 << 17,
    /* up to this many floats latency dominates, and MPI_Iallreduce is faster */
    RING_FLOATS = 1 << 14,
    RING_TAG = 1,
    GATHER_TAG = 2
};

/* A sum that was begun. MPI would not progress it before the wait, so it is only
   recorded here. */
struct flight {
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

struct mpi_comm {
    struct rnnd_comm base;
    /* MPI was initialized here */
    bool owned;
    /* separate contexts: small collectives, gradient sums, the barrier before the
       end */
    MPI_Comm world;
    MPI_Comm sums, leave;
    /* [SEGMENT] receives what a neighbour sent */
    float *segment;
    /* [room] sums in progress, `flights` of them */
    struct flight *flight;
    int flights, room;
};

static struct mpi_comm *own(struct rnnd_comm *comm)
{
    return (struct mpi_comm *)comm;
}

/* ---- waiting */

static int fail_mpi(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return rnnd__fail(RNND_ECOMM, "%s: MPI: %s", what, text);
}

#define TRY_MPI(call, what)               \
    do {                                  \
        int code_ = (call);               \
        if (code_ != MPI_SUCCESS)         \
            return fail_mpi(code_, what); \
    } while (0)

/* MPI moves data only inside its calls, and a sleeping rank slows others down too:
   messages between processes of a host took ten times as long. So MPI is polled without
   pause at first, when a transfer may be in progress; after some microseconds the core
   is offered to other processes, and once another rank is really late, this one
   sleeps. */
static void pause_after(double waited)
{
    const double busy = 20e-6, patient = 2e-3, longest = 50e-6;
    if (waited < busy)
        return;
    if (waited < patient) {
        sched_yield();
        return;
    }
    double s = (waited - patient) / 64;
    struct timespec t = {0, (long)(1e9 * (s < 1e-6      ? 1e-6
                                          : s < longest ? s
                                                        : longest))};
    nanosleep(&t, NULL);
}

static int wait_all(struct rnnd_comm *comm, int count, MPI_Request *request,
                    const char *what)
{
    struct rnnd__comm_wait wait = rnnd__comm_wait_begin();
    for (;;) {
        int done;
        TRY_MPI(MPI_Testall(count, request, &done, MPI_STATUSES_IGNORE), what);
        if (done)
            return 0;
        RNND_TRY(rnnd__comm_wait_on(comm, &wait, what));
        pause_after(wait.seconds);
    }
}

/* ---- small collectives */

static int reduce(struct rnnd_comm *comm, void *value, int count, MPI_Datatype type,
                  MPI_Op op, const char *what)
{
    MPI_Request r;
    TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, value, count, type, op, own(comm)->world, &r),
            what);
    return wait_all(comm, 1, &r, what);
}

static int mpi_sum(struct rnnd_comm *comm, double *value, int count)
{
    return reduce(comm, value, count, MPI_DOUBLE, MPI_SUM, "sum");
}

static int mpi_max(struct rnnd_comm *comm, int64_t *value, int count)
{
    return reduce(comm, value, count, MPI_INT64_T, MPI_MAX, "maximum");
}

static int piece_of(size_t left)
{
    return left < PIECE_BYTES ? (int)left : PIECE_BYTES;
}

static int mpi_broadcast(struct rnnd_comm *comm, void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        MPI_Request r;
        TRY_MPI(MPI_Ibcast((char *)data + at, piece_of(bytes - at), MPI_BYTE, 0,
                           own(comm)->world, &r),
                "broadcast");
        RNND_TRY(wait_all(comm, 1, &r, "broadcast"));
    }
    return 0;
}

static int mpi_allgather(struct rnnd_comm *comm, const void *record, size_t bytes,
                         void *all)
{
    if (bytes > PIECE_BYTES)
        return rnnd__fail(RNND_ECOMM,
                          "allgather: a record of %zu bytes is too large; at most %d",
                          bytes, PIECE_BYTES);
    MPI_Request r;
    TRY_MPI(MPI_Iallgather(record, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                           own(comm)->world, &r),
            "allgather");
    return wait_all(comm, 1, &r, "allgather");
}

static int mpi_gather(struct rnnd_comm *comm, const void *data, const size_t *size,
                      void *all)
{
    MPI_Request r;
    if (comm->rank != 0) {
        for (size_t at = 0; at < size[comm->rank]; at += PIECE_BYTES) {
            TRY_MPI(MPI_Isend((const char *)data + at, piece_of(size[comm->rank] - at),
                              MPI_BYTE, 0, GATHER_TAG, own(comm)->world, &r),
                    "gather");
            RNND_TRY(wait_all(comm, 1, &r, "gather"));
        }
        return 0;
    }
    char *to = all;
    if (size[0])
        memcpy(to, data, size[0]);
    to += size[0];
    for (int from = 1; from < comm->size; to += size[from++])
        for (size_t at = 0; at < size[from]; at += PIECE_BYTES) {
            TRY_MPI(MPI_Irecv(to + at, piece_of(size[from] - at), MPI_BYTE, from,
                              GATHER_TAG, own(comm)->world, &r),
                    "gather");
            RNND_TRY(wait_all(comm, 1, &r, "gather"));
        }
    return 0;
}

/* ---- sums of floats */

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
    struct mpi_comm *mc = own(comm);
    int left = (comm->rank + comm->size - 1) % comm->size,
        right = (comm->rank + 1) % comm->size;
    int64_t at = part_begin(comm, n, give);
    MPI_Request r[2];
    TRY_MPI(MPI_Irecv(into,
                      (int)(part_begin(comm, n, take + 1) - part_begin(comm, n, take)),
                      MPI_FLOAT, left, RING_TAG, mc->sums, &r[0]),
            label);
    TRY_MPI(MPI_Isend(x + at, (int)(part_begin(comm, n, give + 1) - at), MPI_FLOAT,
                      right, RING_TAG, mc->sums, &r[1]),
            label);
    return wait_all(comm, 2, r, label);
}

/* Replaces x [n] by the sum over ranks, n <= size * SEGMENT. After round k of the first
   loop part rank-k-1 contains the sum of k+2 ranks; after the last round part rank+1 is
   complete on this rank. The second loop passes the complete parts around. */
static int ring_sum(struct rnnd_comm *comm, float *x, int64_t n, const char *label)
{
    struct mpi_comm *mc = own(comm);
    int size = comm->size, rank = comm->rank;
    for (int k = 0; k < size - 1; k++) {
        int take = (rank - k - 1 + size) % size;
        int64_t at = part_begin(comm, n, take);
        RNND_TRY(
            ring_round(comm, x, n, (rank - k + size) % size, take, mc->segment, label));
        TRY_MPI(MPI_Reduce_local(mc->segment, x + at,
                                 (int)(part_begin(comm, n, take + 1) - at), MPI_FLOAT,
                                 MPI_SUM),
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
        TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, x, (int)n, MPI_FLOAT, MPI_SUM,
                               own(comm)->sums, &r),
                label);
        return wait_all(comm, 1, &r, label);
    }
    int64_t piece = (int64_t)comm->size * SEGMENT;
    for (int64_t at = 0; at < n; at += piece)
        RNND_TRY(ring_sum(comm, x + at, n - at < piece ? n - at : piece, label));
    return 0;
}

/* Sets f->data: the buffer itself if the host can access it, else a copy. */
static int stage_down(struct flight *f)
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

static int mpi_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                         struct rnnd__buf buf, int64_t count, const char *label)
{
    struct mpi_comm *mc = own(comm);
    if (count <= 0 || comm->size == 1)
        return 0;
    if (mc->flights == mc->room) {
        int room = mc->room ? 2 * mc->room : 16;
        RNND_TRY(RNND_GROW(&mc->flight, room, "gradient sums"));
        memset(mc->flight + mc->room, 0,
               (size_t)(room - mc->room) * sizeof *mc->flight);
        mc->room = room;
    }
    struct flight *f = &mc->flight[mc->flights];
    f->be = be;
    f->buf = buf;
    f->count = count;
    f->label = label;
    RNND_TRY(stage_down(f));
    mc->flights++;
    return 0;
}

static int mpi_sum_wait(struct rnnd_comm *comm)
{
    struct mpi_comm *mc = own(comm);
    for (int i = 0; i < mc->flights; i++) {
        struct flight *f = &mc->flight[i];
        RNND_TRY(sum_floats(comm, f->data, f->count, f->label));
        if (f->data == f->stage)
            f->be->ops->upload(f->be, f->buf, f->stage,
                               (size_t)f->count * sizeof(float));
    }
    mc->flights = 0;
    return 0;
}

/* ---- open and close */

/* Open MPI finds its world by its own variables or by PMIx. Other MPIs use PMI, which
   srun may set also where Open MPI cannot use it. */
bool rnnd__comm_mpi_launched(void)
{
    int up;
    if (MPI_Initialized(&up) == MPI_SUCCESS && up)
        return true;
    if (getenv("OMPI_COMM_WORLD_SIZE") ||
        (getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE")))
        return true;
#ifdef OPEN_MPI
    return false;
#else
    return getenv("PMI_RANK") || getenv("PMI_FD") || getenv("MPI_LOCALRANKID");
#endif
}

static void mpi_abort(struct rnnd_comm *comm, int code)
{
    (void)comm;
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

static int leave_together(struct mpi_comm *mc)
{
    MPI_Request r;
    int code = MPI_Ibarrier(mc->leave, &r);
    int status =
        code == MPI_SUCCESS ? wait_all(&mc->base, 1, &r, "end") : fail_mpi(code, "end");
    if (status < 0)
        rnnd__log_error("%s", rnnd_status_detail());
    return status;
}

/* MPI_Finalize waits for all ranks without a timeout, so they first meet in a barrier
   with one. If that fails, or the communicator is broken, the job ends here. */
static void mpi_close(struct rnnd_comm *comm)
{
    struct mpi_comm *mc = own(comm);
    if (comm->broken.status < 0 || leave_together(mc) < 0)
        mpi_abort(comm, -RNND_ECOMM);
    MPI_Comm_free(&mc->leave);
    MPI_Comm_free(&mc->sums);
    MPI_Comm_free(&mc->world);
    if (mc->owned)
        MPI_Finalize();
    for (int i = 0; i < mc->room; i++)
        free(mc->flight[i].stage);
    free(mc->flight);
    free(mc->segment);
    free(mc);
}

static const struct rnnd__comm_ops mpi_ops = {
    .overlaps = false,
    .close = mpi_close,
    .abort = mpi_abort,
    .sum = mpi_sum,
    .max = mpi_max,
    .broadcast = mpi_broadcast,
    .allgather = mpi_allgather,
    .gather = mpi_gather,
    .sum_begin = mpi_sum_begin,
    .sum_wait = mpi_sum_wait,
};

static int initialize(bool *owned)
{
    int up, level;
    TRY_MPI(MPI_Initialized(&up), "start");
    *owned = !up;
    if (up)
        return 0;
    int over;
    TRY_MPI(MPI_Finalized(&over), "start");
    if (over)
        return rnnd__fail(RNND_ECOMM, "MPI was finalized and cannot be started again");
    /* ranks that wait inside MPI offer their core to others */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    TRY_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "start");
    return 0;
}

static int duplicate(struct rnnd_comm *comm, MPI_Comm *out)
{
    MPI_Request r;
    TRY_MPI(MPI_Comm_idup(MPI_COMM_WORLD, out, &r), "start");
    RNND_TRY(wait_all(comm, 1, &r, "start"));
    TRY_MPI(MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN), "start");
    return 0;
}

static int join_world(struct mpi_comm *mc)
{
    struct rnnd_comm *comm = &mc->base;
    if (mc->owned)
        TRY_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "start");
    TRY_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &comm->rank), "start");
    TRY_MPI(MPI_Comm_size(MPI_COMM_WORLD, &comm->size), "start");
    RNND_TRY(duplicate(comm, &mc->world));
    RNND_TRY(duplicate(comm, &mc->sums));
    return duplicate(comm, &mc->leave);
}

int rnnd__comm_mpi_open(double timeout, struct rnnd_comm **out)
{
    struct mpi_comm *mc;
    float *segment;
    RNND_TRY(RNND_NEW(&segment, SEGMENT, "gradient sums"));
    int status = RNND_NEW(&mc, 1, "communicator");
    if (status < 0) {
        free(segment);
        return status;
    }
    mc->segment = segment;
    mc->base.ops = &mpi_ops;
    mc->base.timeout = timeout;
    mc->base.update = -1;
    RNND_TRY_GOTO(initialize(&mc->owned));
    RNND_TRY_GOTO(join_world(mc));
    *out = &mc->base;
    return 0;
done:
    free(segment);
    free(mc);
    return status;
}
