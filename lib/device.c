/*
 * device.c - opens the back end that the options ask for, and hands its failures on.
 */
#include "device.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"
#include "status.h"

int rnnd_device_status(struct rnnd_backend *be, int status)
{
    return status < 0 ? rnnd_fail(status, "%s", be->error) : 0;
}

int rnnd_device_alloc(struct rnnd_backend *be, struct rnnd_buf *out, int64_t elements)
{
    return rnnd_device_status(be, be->ops->alloc(be, out, 4 * (size_t)elements));
}

void rnnd_device_free(struct rnnd_backend *be, struct rnnd_buf *buf)
{
    be->ops->free(be, *buf);
    buf->dev = NULL;
}

int rnnd_device_download(struct rnnd_backend *be, void *dst, struct rnnd_buf src, size_t bytes)
{
    return rnnd_device_status(be, be->ops->download(be, dst, src, bytes));
}

int rnnd_device_sync(struct rnnd_backend *be)
{
    return rnnd_device_status(be, be->ops->sync(be));
}

/* mpirun binds a rank to one core by default, whatever else the machine has. */
static void warn_of_binding(int cores)
{
    const char *bound = getenv("OMPI_MCA_orte_bound_at_launch");
    const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (bound && ranks && atol(ranks) * cores < online)
        rnnd_log_warn("bound to %d of %ld cores while others are idle: start with "
                      "mpirun --bind-to none", cores, online);
}

/* The cores this process may use, divided by the ranks that share them. */
static int own_threads(struct rnnd_comm *comm, int *threads)
{
    cpu_set_t mask;
    int cores = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
    int sharers = 1;
    if (comm)
        RNND_TRY(rnnd_comm_sharers(comm, &sharers));
    warn_of_binding(cores);
    *threads = cores / sharers > 1 ? cores / sharers : 1;
    return 0;
}

int rnnd_backend_open(const struct rnnd_options *opt, struct rnnd_comm *comm,
                      struct rnnd_backend **out)
{
    struct rnnd_backend_config config = {.precision = RNND_FP32,
                                         .rnn_path = (int)opt->rnn_path};
    char error[256] = "";
    if (opt->device == RNND_DEVICE_CUDA)
        return rnnd_fail(RNND_EDEVICE, "--device cuda: this build has no CUDA back end; "
                         "use --device cpu or auto");
    if (opt->threads > 0)
        config.threads = (int)opt->threads;
    else
        RNND_TRY(own_threads(comm, &config.threads));
    int status = rnnd_cpu_open(&config, out, error);
    return status < 0 ? rnnd_fail(status, "%s", error) : 0;
}

void rnnd_backend_close(struct rnnd_backend *be)
{
    if (be)
        be->ops->close(be);
}

const char *rnnd_backend_describe(const struct rnnd_backend *be)
{
    return be->ops->describe(be);
}
