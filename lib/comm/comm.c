/*
 * comm.c - the public functions of the communicator, and the world of one.
 *
 * Chooses MPI or a world of one by the environment of the launcher, makes a broken
 * communicator fail at once instead of waiting again, and implements agreement and the
 * table of hosts with the operations of comm.h. Does not use MPI itself.
 */
#include "comm/comm.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

/* ---- the world of one */

static void self_close(struct rnnd_comm *comm)
{
    free(comm);
}

static void self_abort(struct rnnd_comm *comm, int code)
{
    (void)comm, (void)code; /* no other rank waits */
}

static int self_sum(struct rnnd_comm *comm, double *value, int count)
{
    (void)comm, (void)value, (void)count;
    return 0;
}

static int self_max(struct rnnd_comm *comm, int64_t *value, int count)
{
    (void)comm, (void)value, (void)count;
    return 0;
}

static int self_broadcast(struct rnnd_comm *comm, void *data, size_t bytes)
{
    (void)comm, (void)data, (void)bytes;
    return 0;
}

static int self_allgather(struct rnnd_comm *comm, const void *record, size_t bytes,
                          void *all)
{
    (void)comm;
    if (bytes)
        memcpy(all, record, bytes);
    return 0;
}

static int self_gather(struct rnnd_comm *comm, const void *data, const size_t *size,
                       void *all)
{
    return self_allgather(comm, data, size[0], all);
}

static int self_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                          struct rnnd__buf buf, int64_t count, const char *label)
{
    (void)comm, (void)be, (void)buf, (void)count, (void)label;
    return 0;
}

static int self_sum_wait(struct rnnd_comm *comm)
{
    (void)comm;
    return 0;
}

static void self_ask(struct rnnd_comm *comm, const char *what, char *text, size_t size)
{
    (void)comm, (void)what;
    snprintf(text, size, "there is no other rank");
}

static void self_answer(struct rnnd_comm *comm, const char *what)
{
    (void)comm, (void)what;
}

static const struct rnnd__comm_ops self_ops = {
    .overlaps = false,
    .close = self_close,
    .abort = self_abort,
    .sum = self_sum,
    .max = self_max,
    .broadcast = self_broadcast,
    .allgather = self_allgather,
    .gather = self_gather,
    .sum_begin = self_sum_begin,
    .sum_wait = self_sum_wait,
    .ask = self_ask,
    .answer = self_answer,
};

static int self_open(struct rnnd_comm **out)
{
    struct rnnd_comm *comm;
    RNND_TRY(RNND_NEW(&comm, 1, "communicator"));
    comm->ops = &self_ops;
    comm->size = 1;
    *out = comm;
    return 0;
}

/* ---- open and close */

/* srun without PMIx starts independent processes: each would train alone and write to
   the same folder. SLURM_STEP_NUM_TASKS is set only in a step of srun, not in a batch
   script or a shell of salloc. */
static int refuse_single_copies(void)
{
    const char *rank = getenv("SLURM_PROCID"), *tasks = getenv("SLURM_STEP_NUM_TASKS");
    if (rank && tasks && atoi(tasks) > 1)
        return rnnd__fail(RNND_ECOMM,
                          "task %s of %s of a Slurm step was started without MPI: "
                          "use `srun --mpi=pmix`",
                          rank, tasks);
    return 0;
}

static int exchange_hosts(struct rnnd_comm *comm)
{
    char own[RNND_HOST_NAME] = "";
    if (gethostname(own, sizeof own - 1) != 0)
        strcpy(own, "?");
    void *all;
    RNND_TRY(rnnd__new((size_t)comm->size, sizeof own, "host names", &all));
    comm->host = all;
    memcpy(comm->host[comm->rank], own, sizeof own);
    return rnnd__comm_allgather(comm, own, sizeof own, all);
}

int rnnd_comm_open(double timeout, struct rnnd_comm **out)
{
    struct rnnd_comm *comm;
    if (rnnd__comm_mpi_launched()) {
        RNND_TRY(rnnd__comm_mpi_open(timeout, &comm));
    } else {
        RNND_TRY(refuse_single_copies());
        RNND_TRY(self_open(&comm));
    }
    comm->timeout = timeout;
    comm->update = -1;
    rnnd__log_rank(comm->rank, comm->size);
    int status = exchange_hosts(comm);
    if (status < 0) {
        rnnd__failure_keep(&comm->broken, status); /* others may wait for this rank */
        rnnd_comm_close(comm);
        return status;
    }
    *out = comm;
    return 0;
}

void rnnd_comm_close(struct rnnd_comm *comm)
{
    if (!comm)
        return;
    char(*host)[RNND_HOST_NAME] = comm->host; /* messages while closing may use it */
    comm->ops->close(comm);
    free(host);
}

void rnnd__comm_abort(struct rnnd_comm *comm, int code)
{
    comm->ops->abort(comm, code);
}

int rnnd_comm_rank(const struct rnnd_comm *comm)
{
    return comm->rank;
}

int rnnd_comm_size(const struct rnnd_comm *comm)
{
    return comm->size;
}

const char *rnnd__comm_host(const struct rnnd_comm *comm, int rank)
{
    return comm->host[rank];
}

bool rnnd__comm_overlaps(const struct rnnd_comm *comm)
{
    return comm->ops->overlaps;
}

void rnnd_comm_at_update(struct rnnd_comm *comm, int64_t update)
{
    comm->update = update;
}

/* ---- collectives */

/* Other ranks are lost: waiting for them again would only cost another timeout. */
int rnnd__comm_intact(const struct rnnd_comm *comm)
{
    return comm->broken.status < 0 ? rnnd__fail(RNND_ECOMM, "%s", comm->broken.text)
                                   : 0;
}

static int keep(struct rnnd_comm *comm, int status)
{
    rnnd__failure_keep(&comm->broken, status);
    return status;
}

int rnnd_comm_sum(struct rnnd_comm *comm, double *value, int count)
{
    RNND_TRY(rnnd__comm_intact(comm));
    return keep(comm, comm->ops->sum(comm, value, count));
}

int rnnd_comm_max(struct rnnd_comm *comm, int64_t *value, int count)
{
    RNND_TRY(rnnd__comm_intact(comm));
    return keep(comm, comm->ops->max(comm, value, count));
}

int rnnd_comm_broadcast(struct rnnd_comm *comm, void *data, size_t bytes)
{
    RNND_TRY(rnnd__comm_intact(comm));
    return keep(comm, comm->ops->broadcast(comm, data, bytes));
}

int rnnd__comm_allgather(struct rnnd_comm *comm, const void *record, size_t bytes,
                         void *all)
{
    RNND_TRY(rnnd__comm_intact(comm));
    return keep(comm, comm->ops->allgather(comm, record, bytes, all));
}

int rnnd__comm_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                         struct rnnd__buf buf, int64_t count, const char *label)
{
    RNND_TRY(rnnd__comm_intact(comm));
    return keep(comm, comm->ops->sum_begin(comm, be, buf, count, label));
}

int rnnd__comm_sum_wait(struct rnnd_comm *comm)
{
    RNND_TRY(rnnd__comm_intact(comm));
    return keep(comm, comm->ops->sum_wait(comm));
}

/* Before anything is sent all ranks know the sizes and whether rank 0 has the memory:
   no rank is left sending to one that gave up. */
int rnnd_comm_gather(struct rnnd_comm *comm, const void *data, size_t bytes, void **all,
                     size_t *size)
{
    void *sizes = NULL, *joined = NULL;
    int status =
        rnnd__new((size_t)comm->size, sizeof(size_t), "sizes to gather", &sizes);
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd__comm_allgather(comm, &bytes, sizeof bytes, sizes));
    const size_t *each = sizes;
    if (comm->rank == 0) {
        size_t total = 0;
        for (int r = 0; r < comm->size; r++)
            total += each[r];
        status = rnnd__new(total, 1, "gathered data", &joined);
    }
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(keep(comm, comm->ops->gather(comm, data, each, joined)));
    *all = joined;
    joined = NULL;
    if (comm->rank == 0)
        memcpy(size, sizes, (size_t)comm->size * sizeof *size);
done:
    free(sizes);
    free(joined);
    return status;
}

/* A larger code means a lower failing rank; 0 means that none failed. A rank that only
   knows of another's failure comes behind all that have one of their own, whose message
   says more. */
int rnnd_comm_agree(struct rnnd_comm *comm, int status)
{
    const int64_t own = (int64_t)1 << 40;
    struct rnnd__failure last;
    int64_t code = 0;
    rnnd__failure_save(&last, status);
    if (status < 0)
        code = (last.elsewhere ? 0 : own) | ((int64_t)(INT32_MAX - comm->rank) << 8) |
               (-status & 255);
    if (comm->broken.status < 0 && status < 0)
        return status;
    RNND_TRY(rnnd_comm_max(comm, &code, 1));
    if (code == 0)
        return 0;
    int failed = INT32_MAX - (int)((code & (own - 1)) >> 8);
    int common = -(int)(code & 255);
    if (failed == comm->rank)
        return status;
    return rnnd__fail_elsewhere((enum rnnd_status)common, failed);
}

int rnnd__comm_agree_while(struct rnnd_comm *comm, int status, const char *does)
{
    comm->lead_does = does;
    status = rnnd_comm_agree(comm, status);
    comm->lead_does = NULL;
    return status;
}

/* ---- waiting for other ranks */

struct rnnd__comm_wait rnnd__comm_wait_begin(void)
{
    return (struct rnnd__comm_wait){0, rnnd__clock()};
}

/* Between two calls at most a second is counted: while this process itself was stopped
   or suspended, no other rank was late. */
int rnnd__comm_wait_on(struct rnnd_comm *comm, struct rnnd__comm_wait *wait,
                       const char *what)
{
    const double longest_step = 1.0, suspicious = 0.1;
    double now = rnnd__clock(), step = now - wait->last;
    char when[48] = "before the first update", missing[700];
    const char *does = comm->lead_does;
    wait->seconds += step < longest_step ? step : longest_step;
    wait->last = now;
    if (wait->seconds > suspicious)
        comm->ops->answer(comm, what);
    if (wait->seconds <= comm->timeout)
        return 0;
    if (comm->update >= 0)
        snprintf(when, sizeof when, "in update %lld", (long long)comm->update);
    comm->ops->ask(comm, what, missing, sizeof missing);
    return rnnd__fail(
        RNND_ECOMM,
        "rank %d on %s timed out after %g s (--comm-timeout) waiting for the %s "
        "%s%s%s: %s",
        comm->rank, comm->host ? comm->host[comm->rank] : "this host", comm->timeout,
        what, when, does ? ", while rank 0 " : "", does ? does : "", missing);
}

/* ---- cores */

/* Bits for 8192 processors, the most that Linux supports. */
enum { MASK_BYTES = 1024 };

struct cores {
    unsigned long mask[MASK_BYTES / sizeof(long)];
    char host[RNND_HOST_NAME];
};

int rnnd_comm_sharers(struct rnnd_comm *comm, int *sharers)
{
    struct cores own;
    memset(&own, 0, sizeof own);
    memcpy(own.host, comm->host[comm->rank], sizeof own.host);
    if (sched_getaffinity(0, sizeof own.mask, (cpu_set_t *)own.mask) != 0)
        memset(own.mask, 0, sizeof own.mask); /* as if ranks of a host shared cores */
    void *all = NULL;
    int status = rnnd__new((size_t)comm->size, sizeof own, "affinity masks", &all);
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd__comm_allgather(comm, &own, sizeof own, all));
    const struct cores *each = all;
    int n = 0;
    for (int r = 0; r < comm->size; r++)
        n += memcmp(&each[r], &own, sizeof own) == 0;
    *sharers = n;
done:
    free(all);
    return status;
}
