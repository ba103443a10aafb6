/*
 * comm_mpi.c - the communicator over MPI: waiting, small collectives, start and end.
 *
 * Every operation is nonblocking and waited for with a timeout, so that a rank that
 * died, hangs or has left ends the job instead of blocking it; MPI's own start and end
 * block, and have a watch. Every operation begins with a message of one size that tells
 * whether all ranks begin the same one: none receives what was not meant for it.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "comm/comm_mpi.h"
#include "comm/comm_watch.h"

enum {
    /* largest message, because counts in MPI are int */
    PIECE_BYTES = 1 << 30,
    /* values that travel in the first message of an operation */
    FEW = 14,
    GATHER_TAG = 2
};

/* ---- waiting */

int rnnd__mpi_fail(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_ERR_TRUNCATE)
        return rnnd__fail(RNND_ECOMM,
                          "%s: another rank sent more than expected: the ranks are out "
                          "of step",
                          what);
    MPI_Error_string(code, text, &length);
    return rnnd__fail(RNND_ECOMM, "%s: MPI: %s", what, text);
}

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

/* MPI_Testall may report that the cause is in a status. */
static int cause(int code, int count, const MPI_Status *status)
{
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < count; i++)
        if (status[i].MPI_ERROR != MPI_SUCCESS &&
            status[i].MPI_ERROR != MPI_ERR_PENDING)
            code = status[i].MPI_ERROR;
    return code;
}

int rnnd__mpi_wait(struct rnnd_comm *comm, int count, MPI_Request *request,
                   int64_t bytes, const char *what)
{
    struct rnnd__comm_wait wait = rnnd__comm_wait_begin();
    MPI_Status status[2];
    for (;;) {
        int done, got = 0;
        int code = MPI_Testall(count, request, &done, status);
        if (code != MPI_SUCCESS)
            return rnnd__mpi_fail(cause(code, count, status), what);
        if (done && bytes >= 0)
            RNND_TRY_MPI(MPI_Get_count(&status[0], MPI_BYTE, &got), what);
        if (done && bytes >= 0 && got != bytes)
            return rnnd__fail(
                RNND_ECOMM,
                "%s: rank %d sent %d bytes, not %lld: the ranks are out of "
                "step",
                what, status[0].MPI_SOURCE, got, (long long)bytes);
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
    RNND_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, value, count, type, op,
                                rnnd__mpi_of(comm)->world, &r),
                 what);
    return rnnd__mpi_wait(comm, 1, &r, -1, what);
}

/* A number for an operation and its amount. */
static int64_t code_of(enum rnnd__mpi_kind kind, int64_t amount)
{
    return 1 + (int64_t)kind + RNND__MPI_KINDS * amount;
}

/* The largest of each of a few values, and of the code and its negative: they are equal
   on all ranks where the codes are. All operations but the sum of a few values begin
   so, with a message of one size. */
static int max_few(struct rnnd_comm *comm, const char *what, int64_t code,
                   int64_t value[FEW], bool *same)
{
    int64_t record[FEW + 2] = {code, -code};
    memcpy(record + 2, value, FEW * sizeof *value);
    RNND_TRY(reduce(comm, record, FEW + 2, MPI_INT64_T, MPI_MAX, what));
    memcpy(value, record + 2, FEW * sizeof *value);
    *same = record[0] == code && record[1] == -code;
    return 0;
}

int rnnd__mpi_same(struct rnnd_comm *comm, const char *what, enum rnnd__mpi_kind kind,
                   int64_t amount)
{
    int64_t none[FEW] = {0};
    bool same;
    RNND_TRY(max_few(comm, what, code_of(kind, amount), none, &same));
    return same ? 0 : rnnd__mpi_out_of_step(comm, what, amount);
}

/* As max_few(): the sum of the codes and of their squares are those of equal codes only
   where all are equal (Cauchy-Schwarz). Where others are in max_few(), they send
   integers that are next to 0 as doubles, and the sum is too small. */
static int sum_few(struct rnnd_comm *comm, double *value, int count)
{
    const double code = (double)code_of(RNND__MPI_SUM, count), ranks = comm->size;
    double record[FEW + 2] = {code, code * code};
    memcpy(record + 2, value, (size_t)count * sizeof *value);
    RNND_TRY(reduce(comm, record, FEW + 2, MPI_DOUBLE, MPI_SUM, "sum"));
    if (record[0] != ranks * code || record[1] != ranks * code * code)
        return rnnd__mpi_out_of_step(comm, "sum", count);
    memcpy(value, record + 2, (size_t)count * sizeof *value);
    return 0;
}

static int mpi_sum(struct rnnd_comm *comm, double *value, int count)
{
    if (count <= FEW)
        return sum_few(comm, value, count);
    RNND_TRY(rnnd__mpi_same(comm, "sum", RNND__MPI_SUM, count));
    return reduce(comm, value, count, MPI_DOUBLE, MPI_SUM, "sum");
}

static int mpi_max(struct rnnd_comm *comm, int64_t *value, int count)
{
    int64_t few[FEW] = {0};
    bool same;
    if (count > FEW) {
        RNND_TRY(rnnd__mpi_same(comm, "maximum", RNND__MPI_MAX, count));
        return reduce(comm, value, count, MPI_INT64_T, MPI_MAX, "maximum");
    }
    memcpy(few, value, (size_t)count * sizeof *value);
    RNND_TRY(max_few(comm, "maximum", code_of(RNND__MPI_MAX, count), few, &same));
    if (!same)
        return rnnd__mpi_out_of_step(comm, "maximum", count);
    memcpy(value, few, (size_t)count * sizeof *value);
    return 0;
}

static int piece_of(size_t left)
{
    return left < PIECE_BYTES ? (int)left : PIECE_BYTES;
}

static int mpi_broadcast(struct rnnd_comm *comm, void *data, size_t bytes)
{
    RNND_TRY(rnnd__mpi_same(comm, "broadcast", RNND__MPI_BROADCAST, (int64_t)bytes));
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        MPI_Request r;
        RNND_TRY_MPI(MPI_Ibcast((char *)data + at, piece_of(bytes - at), MPI_BYTE, 0,
                                rnnd__mpi_of(comm)->world, &r),
                     "broadcast");
        RNND_TRY(rnnd__mpi_wait(comm, 1, &r, -1, "broadcast"));
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
    RNND_TRY(rnnd__mpi_same(comm, "allgather", RNND__MPI_ALLGATHER, (int64_t)bytes));
    RNND_TRY_MPI(MPI_Iallgather(record, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                                rnnd__mpi_of(comm)->world, &r),
                 "allgather");
    return rnnd__mpi_wait(comm, 1, &r, -1, "allgather");
}

static int mpi_gather(struct rnnd_comm *comm, const void *data, const size_t *size,
                      void *all)
{
    MPI_Request r;
    if (comm->rank != 0) {
        for (size_t at = 0; at < size[comm->rank]; at += PIECE_BYTES) {
            RNND_TRY_MPI(MPI_Isend((const char *)data + at,
                                   piece_of(size[comm->rank] - at), MPI_BYTE, 0,
                                   GATHER_TAG, rnnd__mpi_of(comm)->world, &r),
                         "gather");
            RNND_TRY(rnnd__mpi_wait(comm, 1, &r, -1, "gather"));
        }
        return 0;
    }
    char *to = all;
    if (size[0])
        memcpy(to, data, size[0]);
    to += size[0];
    for (int from = 1; from < comm->size; to += size[from++])
        for (size_t at = 0; at < size[from]; at += PIECE_BYTES) {
            RNND_TRY_MPI(MPI_Irecv(to + at, piece_of(size[from] - at), MPI_BYTE, from,
                                   GATHER_TAG, rnnd__mpi_of(comm)->world, &r),
                         "gather");
            RNND_TRY(rnnd__mpi_wait(comm, 1, &r, piece_of(size[from] - at), "gather"));
        }
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

static int leave_together(struct rnnd__mpi *mc)
{
    MPI_Request r;
    int code = MPI_Ibarrier(mc->leave, &r);
    int status = code == MPI_SUCCESS ? rnnd__mpi_wait(&mc->base, 1, &r, -1, "end")
                                     : rnnd__mpi_fail(code, "end");
    if (status < 0)
        rnnd__log_error("%s", rnnd_status_detail());
    return status;
}

/* MPI_Finalize waits for all ranks without a timeout, so they first meet in a barrier
   with one. If that fails, or the communicator is broken, the job ends here. Where a
   rank stops behind the barrier, the watch ends the others. */
static void mpi_close(struct rnnd_comm *comm)
{
    struct rnnd__mpi *mc = rnnd__mpi_of(comm);
    struct rnnd__watch *watch = NULL;
    if (comm->broken.status < 0 || leave_together(mc) < 0)
        mpi_abort(comm, -RNND_ECOMM);
    if (rnnd__watch_begin(comm->timeout, "MPI did not end", &watch) < 0)
        rnnd__log_warn("%s", rnnd_status_detail());
    MPI_Comm_free(&mc->leave);
    MPI_Comm_free(&mc->sums);
    MPI_Comm_free(&mc->world);
    if (mc->owned)
        MPI_Finalize();
    if (watch)
        rnnd__watch_end(watch);
    for (int i = 0; i < mc->room; i++)
        free(mc->flight[i].stage);
    free(mc->flight);
    free(mc->segment);
    free(mc->roll);
    free(mc->roll_request);
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
    .sum_begin = rnnd__mpi_sum_begin,
    .sum_wait = rnnd__mpi_sum_wait,
    .ask = rnnd__mpi_ask,
    .answer = rnnd__mpi_answer,
};

static int initialize(double timeout, bool *owned)
{
    struct rnnd__watch *watch;
    int up, level;
    RNND_TRY_MPI(MPI_Initialized(&up), "start");
    *owned = !up;
    if (up)
        return 0;
    int over;
    RNND_TRY_MPI(MPI_Finalized(&over), "start");
    if (over)
        return rnnd__fail(RNND_ECOMM, "MPI was finalized and cannot be started again");
    /* ranks that wait inside MPI offer their core to others */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    RNND_TRY(rnnd__watch_begin(timeout, "MPI did not start", &watch));
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    rnnd__watch_end(watch);
    RNND_TRY_MPI(code, "start");
    return 0;
}

static int duplicate(struct rnnd_comm *comm, MPI_Comm *out)
{
    MPI_Request r;
    RNND_TRY_MPI(MPI_Comm_idup(MPI_COMM_WORLD, out, &r), "start");
    RNND_TRY(rnnd__mpi_wait(comm, 1, &r, -1, "start"));
    RNND_TRY_MPI(MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN), "start");
    return 0;
}

static int join_world(struct rnnd__mpi *mc)
{
    struct rnnd_comm *comm = &mc->base;
    if (mc->owned)
        RNND_TRY_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                     "start");
    RNND_TRY_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &comm->rank), "start");
    RNND_TRY_MPI(MPI_Comm_size(MPI_COMM_WORLD, &comm->size), "start");
    RNND_TRY(RNND_NEW(&mc->roll, comm->size, "what ranks wait for"));
    RNND_TRY(RNND_NEW(&mc->roll_request, 2 * comm->size, "what ranks wait for"));
    for (int i = 0; i < 2 * comm->size; i++)
        mc->roll_request[i] = MPI_REQUEST_NULL;
    RNND_TRY(duplicate(comm, &mc->world));
    RNND_TRY(duplicate(comm, &mc->sums));
    return duplicate(comm, &mc->leave);
}

struct rnnd__mpi *rnnd__mpi_lost;

int rnnd__comm_mpi_open(double timeout, struct rnnd_comm **out)
{
    struct rnnd__mpi *mc;
    RNND_TRY(RNND_NEW(&mc, 1, "communicator"));
    mc->base.ops = &mpi_ops;
    mc->base.timeout = timeout;
    mc->base.update = -1;
    mc->world = mc->sums = mc->leave = MPI_COMM_NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&mc->segment, RNND__SEGMENT, "gradient sums"));
    RNND_TRY_GOTO(initialize(timeout, &mc->owned));
    RNND_TRY_GOTO(join_world(mc));
    *out = &mc->base;
    return 0;
done:
    rnnd__mpi_lost = mc;
    return status;
}
