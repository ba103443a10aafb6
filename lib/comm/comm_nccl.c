/*
 * comm_nccl.c - gradient sums by NCCL, in the CUDA plug-in; the rest goes to the
 * communicator under it.
 *
 * A sum runs on the device as soon as its bucket is final, beside the rest of the
 * backward pass. The host asks whether all are done, and gives up when the deadline
 * passes: then the communicator under it counts as broken too, since ranks are out of
 * step.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "comm/comm.h"
#include "cuda/plugin.h"

struct nccl_comm {
    struct rnnd_comm base;
    struct rnnd_comm *under;
    const struct rnnd__cuda_plugin *plugin;
    struct rnnd__nccl *nccl;
    /* of the latest sum */
    const char *label;
};

static struct nccl_comm *own(struct rnnd_comm *comm)
{
    return (struct nccl_comm *)comm;
}

/* ---- what the one under it does */

static void nccl_abort(struct rnnd_comm *comm, int code)
{
    rnnd__comm_abort(own(comm)->under, code);
}

static int nccl_sum(struct rnnd_comm *comm, double *value, int count)
{
    return rnnd_comm_sum(own(comm)->under, value, count);
}

static int nccl_max(struct rnnd_comm *comm, int64_t *value, int count)
{
    return rnnd_comm_max(own(comm)->under, value, count);
}

static int nccl_broadcast(struct rnnd_comm *comm, void *data, size_t bytes)
{
    return rnnd_comm_broadcast(own(comm)->under, data, bytes);
}

static int nccl_allgather(struct rnnd_comm *comm, const void *record, size_t bytes,
                          void *all)
{
    return rnnd__comm_allgather(own(comm)->under, record, bytes, all);
}

static int nccl_gather(struct rnnd_comm *comm, const void *data, const size_t *size,
                       void *all)
{
    struct rnnd_comm *under = own(comm)->under;
    return under->ops->gather(under, data, size, all);
}

/* ---- sums of gradients */

/* Nobody waits for these peers again. */
static int give_up(struct nccl_comm *n, int status)
{
    n->under->broken = true;
    snprintf(n->under->why, sizeof n->under->why, "%s", rnnd_status_detail());
    return status;
}

static int intact(const struct nccl_comm *n)
{
    return n->under->broken ? rnnd__fail(RNND_ECOMM, "%s", n->under->why) : 0;
}

static int nccl_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                          struct rnnd__buf buf, int64_t count, const char *label)
{
    struct nccl_comm *n = own(comm);
    char error[256];
    (void)be; /* the one it was opened for */
    RNND_TRY(intact(n));
    if (count <= 0)
        return 0;
    n->label = label;
    int status = n->plugin->nccl_sum_begin(n->nccl, buf, count, error);
    return status < 0 ? give_up(n, rnnd__fail(status, "%s", error)) : 0;
}

static int fail_late(const struct nccl_comm *n)
{
    const struct rnnd_comm *u = n->under;
    char when[48] = "before the first update";
    if (u->update >= 0)
        snprintf(when, sizeof when, "in update %lld", (long long)u->update);
    return rnnd__fail(RNND_ECOMM,
                      "rank %d on %s waited %g s (--comm-timeout) for the %s %s: a "
                      "peer died, hangs or is late",
                      u->rank, u->host[u->rank], u->timeout,
                      n->label ? n->label : "sum", when);
}

/* As in comm_mpi.c: time that this process stood still counts little. */
static int nccl_sum_wait(struct rnnd_comm *comm)
{
    const double longest_step = 1.0, busy = 200e-6;
    const struct timespec nap = {0, 20000};
    struct nccl_comm *n = own(comm);
    double waited = 0, last = rnnd__clock();
    char error[256];
    RNND_TRY(intact(n));
    for (;;) {
        int status = n->plugin->nccl_sum_poll(n->nccl, error);
        if (status < 0)
            return give_up(n, rnnd__fail(status, "%s", error));
        if (status > 0)
            return 0;
        double t = rnnd__clock(), step = t - last;
        waited += step < longest_step ? step : longest_step;
        last = t;
        if (waited > n->under->timeout)
            return give_up(n, fail_late(n));
        if (waited > busy)
            nanosleep(&nap, NULL);
    }
}

/* ---- open and close */

static void nccl_close(struct rnnd_comm *comm)
{
    struct nccl_comm *n = own(comm);
    if (n->under->broken)
        n->plugin->nccl_abort(n->nccl);
    else
        n->plugin->nccl_close(n->nccl);
    free(n);
}

static const struct rnnd__comm_ops nccl_ops = {
    .name = "nccl",
    .overlaps = true,
    .close = nccl_close,
    .abort = nccl_abort,
    .sum = nccl_sum,
    .max = nccl_max,
    .broadcast = nccl_broadcast,
    .allgather = nccl_allgather,
    .gather = nccl_gather,
    .sum_begin = nccl_sum_begin,
    .sum_wait = nccl_sum_wait,
};

/* Rank 0's id to all. */
static int share_id(struct nccl_comm *n, void *id)
{
    char error[256];
    int status = 0;
    if (n->base.rank == 0)
        status = n->plugin->nccl_id(id, error);
    if (status < 0)
        status = rnnd__fail(status, "%s", error);
    RNND_TRY(rnnd_comm_agree(n->under, status));
    return rnnd_comm_broadcast(n->under, id, RNND_NCCL_ID_BYTES);
}

static int join(struct nccl_comm *n, struct rnnd_backend *be)
{
    char id[RNND_NCCL_ID_BYTES] = "", error[256];
    RNND_TRY(share_id(n, id));
    int status =
        n->plugin->nccl_open(be, id, n->base.rank, n->base.size, &n->nccl, error);
    return rnnd_comm_agree(n->under, status < 0 ? rnnd__fail(status, "%s", error) : 0);
}

int rnnd__comm_open_sums(struct rnnd_comm *comm, struct rnnd_backend *be,
                         struct rnnd_comm **out)
{
    struct nccl_comm *n = NULL;
    *out = NULL;
    if (!be->nccl || comm->size == 1)
        return 0;
    int status = RNND_NEW(&n, 1, "communicator");
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    n->base = *comm;
    n->base.ops = &nccl_ops;
    n->base.host = NULL; /* the other's, which frees them */
    n->under = comm;
    n->plugin = be->nccl;
    RNND_TRY_GOTO(join(n, be));
    *out = &n->base;
    return 0;
done:
    if (n && n->nccl)
        n->plugin->nccl_abort(n->nccl);
    free(n);
    return status;
}
