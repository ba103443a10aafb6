/*
 * comm_nccl.c - gradient sums by NCCL, in the CUDA plug-in; everything else is
 * forwarded to an underlying communicator.
 *
 * A sum runs on the device as soon as its bucket is final, during the rest of the
 * backward pass. Opening, sums and the end go on in the background; the host polls
 * until they are through or the timeout passes. A failure breaks the underlying
 * communicator too, because ranks are then out of step. NCCL is aborted at once then: a
 * sum that waits for a lost rank never ends, and freeing memory, or anything else that
 * waits for the device, would wait for it.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/comm.h"
#include "cuda/plugin.h"

struct nccl_comm {
    struct rnnd_comm base;
    struct rnnd_comm *under;
    const struct rnnd__cuda_plugin *plugin;
    struct rnnd__nccl *nccl;
    /* label of the latest sum */
    const char *label;
    /* sums were begun and not waited for */
    bool summing;
};

static struct nccl_comm *own(struct rnnd_comm *comm)
{
    return (struct nccl_comm *)comm;
}

/* ---- forwarded operations */

/* Where ranks are lost, the sums in progress are, too. */
static int after(struct nccl_comm *n, int status)
{
    if (n->under->broken.status < 0)
        n->plugin->nccl_abort(n->nccl);
    return status;
}

static void nccl_abort(struct rnnd_comm *comm, int code)
{
    rnnd__comm_abort(own(comm)->under, code);
}

static int nccl_sum(struct rnnd_comm *comm, double *value, int count)
{
    return after(own(comm), rnnd_comm_sum(own(comm)->under, value, count));
}

static int nccl_max(struct rnnd_comm *comm, int64_t *value, int count)
{
    return after(own(comm), rnnd_comm_max(own(comm)->under, value, count));
}

static int nccl_broadcast(struct rnnd_comm *comm, void *data, size_t bytes)
{
    return after(own(comm), rnnd_comm_broadcast(own(comm)->under, data, bytes));
}

static int nccl_allgather(struct rnnd_comm *comm, const void *record, size_t bytes,
                          void *all)
{
    return after(own(comm), rnnd__comm_allgather(own(comm)->under, record, bytes, all));
}

static int nccl_gather(struct rnnd_comm *comm, const void *data, const size_t *size,
                       void *all)
{
    struct rnnd_comm *under = own(comm)->under;
    int status = under->ops->gather(under, data, size, all);
    rnnd__failure_keep(&under->broken, status);
    return after(own(comm), status);
}

static void nccl_ask(struct rnnd_comm *comm, const char *what, char *text, size_t size)
{
    struct rnnd_comm *under = own(comm)->under;
    under->ops->ask(under, what, text, size);
}

static void nccl_answer(struct rnnd_comm *comm, const char *what)
{
    struct rnnd_comm *under = own(comm)->under;
    under->ops->answer(under, what);
}

/* ---- waiting */

/* At once, before anything else touches the device. */
static int give_up(struct nccl_comm *n, int status)
{
    rnnd__failure_keep(&n->under->broken, status);
    return after(n, status);
}

static int result_of(struct nccl_comm *n, int status, const char *error)
{
    return status < 0 ? give_up(n, rnnd__fail(status, "%s", error)) : 0;
}

typedef int poll_function(struct rnnd__nccl *, char *error);

/* Until poll says that it is through; `what` is for the message of a timeout. */
static int wait_for(struct nccl_comm *n, poll_function *poll, const char *what)
{
    const double busy = 200e-6;
    const struct timespec nap = {0, 20000};
    struct rnnd__comm_wait wait = rnnd__comm_wait_begin();
    char error[256];
    for (;;) {
        int status = poll(n->nccl, error);
        if (status != 0)
            return result_of(n, status, error);
        status = rnnd__comm_wait_on(n->under, &wait, what);
        if (status < 0)
            return give_up(n, status);
        if (wait.seconds > busy)
            nanosleep(&nap, NULL);
    }
}

/* ---- sums of gradients */

static int nccl_sum_begin(struct rnnd_comm *comm, struct rnnd_backend *be,
                          struct rnnd__buf buf, int64_t count, const char *label)
{
    struct nccl_comm *n = own(comm);
    char error[256];
    (void)be; /* the one that NCCL was opened for */
    RNND_TRY(rnnd__comm_intact(n->under));
    if (count <= 0)
        return 0;
    RNND_TRY(wait_for(n, n->plugin->nccl_poll, label));
    n->label = label;
    n->summing = true;
    return result_of(n, n->plugin->nccl_sum_begin(n->nccl, buf, count, error), error);
}

static int nccl_sum_wait(struct rnnd_comm *comm)
{
    struct nccl_comm *n = own(comm);
    RNND_TRY(rnnd__comm_intact(n->under));
    RNND_TRY(wait_for(n, n->plugin->nccl_sum_poll, n->label ? n->label : "sum"));
    n->summing = false;
    return 0;
}

/* ---- open and close */

/* All ranks leave together; one that had begun sums and did not wait for them is not
   with the others. */
static int leave(struct nccl_comm *n)
{
    char error[256];
    if (n->summing)
        RNND_TRY(wait_for(n, n->plugin->nccl_sum_poll, n->label));
    RNND_TRY(result_of(n, n->plugin->nccl_leave(n->nccl, error), error));
    return wait_for(n, n->plugin->nccl_poll, "end of NCCL");
}

static void nccl_close(struct rnnd_comm *comm)
{
    struct nccl_comm *n = own(comm);
    if (after(n, n->under->broken.status) == 0 && leave(n) < 0)
        rnnd__log_error("%s", rnnd_status_detail());
    n->plugin->nccl_close(n->nccl);
    free(n);
}

static const struct rnnd__comm_ops nccl_ops = {
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
    .ask = nccl_ask,
    .answer = nccl_answer,
};

/* Rank 0 creates the id of the NCCL communicator and broadcasts it. */
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

/* Where a rank cannot do its own part, all know before they wait for each other inside
   NCCL. There the others would wait for a rank that fails: it ends the job. */
static int join(struct nccl_comm *n, struct rnnd_backend *be)
{
    char id[RNND_NCCL_ID_BYTES] = "", error[256];
    int status = n->plugin->nccl_open(be, &n->nccl, error);
    if (status < 0)
        status = rnnd__fail(status, "%s", error);
    RNND_TRY(rnnd_comm_agree(n->under, status));
    RNND_TRY(share_id(n, id));
    status = n->plugin->nccl_join(n->nccl, id, n->base.rank, n->base.size, error);
    RNND_TRY(result_of(n, status, error));
    return wait_for(n, n->plugin->nccl_poll, "start of NCCL");
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
    n->base.host = NULL; /* owned by comm */
    n->under = comm;
    n->plugin = be->nccl;
    RNND_TRY_GOTO(join(n, be));
    *out = &n->base;
    return 0;
done:
    if (n)
        be->nccl->nccl_close(n->nccl);
    free(n);
    return status;
}
