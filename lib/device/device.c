/*
 * device.c - opens the back end that the options ask for, and reports its failures.
 */
#include "device/device.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "device/device_cuda.h"

int rnnd__device_status(struct rnnd_backend *be, int status)
{
    if (be->warning[0])
        rnnd__log_warn("%s", be->warning);
    be->warning[0] = '\0';
    return status < 0 ? rnnd__fail(status, "%s", be->error) : 0;
}

bool rnnd__device_is_cpu(const struct rnnd_backend *be)
{
    return strcmp(be->ops->name, "cpu") == 0;
}

int rnnd__device_alloc(struct rnnd_backend *be, struct rnnd__buf *out, int64_t elements)
{
    size_t bytes = (size_t)elements * sizeof(float);
    return rnnd__device_status(be, be->ops->alloc(be, out, bytes));
}

void rnnd__device_free(struct rnnd_backend *be, struct rnnd__buf *buf)
{
    be->ops->free(be, *buf);
    buf->dev = NULL;
}

int rnnd__device_download(struct rnnd_backend *be, void *dst, struct rnnd__buf src,
                          size_t bytes)
{
    return rnnd__device_status(be, be->ops->download(be, dst, src, bytes));
}

int rnnd__device_sync(struct rnnd_backend *be)
{
    return rnnd__device_status(be, be->ops->sync(be));
}

/* mpirun binds each rank to one core by default, even if others are idle. */
static void warn_of_binding(int cores)
{
    const char *bound = getenv("OMPI_MCA_orte_bound_at_launch");
    const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (bound && ranks && atol(ranks) * cores < online)
        rnnd__log_warn("bound to %d of %ld cores, while others are idle; use "
                       "mpirun --bind-to none",
                       cores, online);
}

/* The threads asked for, or the cores this process may use, divided by the number of
   ranks on them. Collective even where threads are asked for: not every rank may be. */
static int own_threads(const struct rnnd_options *opt, struct rnnd_comm *comm,
                       int *threads)
{
    cpu_set_t mask;
    int cores = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
    int sharers = 1;
    if (comm)
        RNND_TRY(rnnd_comm_sharers(comm, &sharers));
    if (opt->threads <= 0)
        warn_of_binding(cores);
    *threads = opt->threads > 0      ? (int)opt->threads
               : cores / sharers > 1 ? cores / sharers
                                     : 1;
    return 0;
}

static int cpu_precision(const struct rnnd_options *opt)
{
    return opt->precision == RNND_PRECISION_AUTO ? RNND_FP32 : (int)opt->precision;
}

static int open_cpu(const struct rnnd_options *opt, struct rnnd_comm *comm,
                    struct rnnd_backend **out)
{
    struct rnnd__backend_config config = {.precision = cpu_precision(opt)};
    char error[256] = "";
    RNND_TRY(own_threads(opt, comm, &config.threads));
    int status = rnnd__cpu_open(&config, out, error);
    return status < 0 ? rnnd__fail(status, "%s", error) : 0;
}

/* Refuses options that the CPU does not support. */
static int check_cpu(const struct rnnd_options *opt)
{
    char error[256];
    int status = rnnd__cpu_check(cpu_precision(opt), error);
    if (status < 0)
        return rnnd__fail(status, "%s", error);
    if (opt->comm == RNND_COMM_NCCL)
        return rnnd__fail(RNND_EUSAGE,
                          "--comm nccl is for GPUs: ranks on CPUs use mpi");
    return 0;
}

/* Whether this process computes on a GPU. */
static int choose_kind(const struct rnnd_options *opt, bool *cuda)
{
    const struct rnnd__cuda_plugin *plugin;
    int count, status;
    *cuda = false;
    if (opt->device == RNND_DEVICE_CPU)
        return check_cpu(opt);
    status = rnnd__cuda_devices(&plugin, &count);
    if (status < 0 && opt->device == RNND_DEVICE_CUDA)
        return rnnd__fail(status, "--device cuda: %s; use --device cpu",
                          rnnd_status_detail());
    *cuda = status == 0;
    return *cuda ? 0 : check_cpu(opt);
}

/* Logs why --device auto took the CPU although there is a CUDA plug-in. */
static void explain_cpu(const struct rnnd_options *opt)
{
    const struct rnnd__cuda_plugin *plugin;
    int count;
    if (opt->device == RNND_DEVICE_AUTO && rnnd__cuda_plugin_exists() &&
        rnnd__cuda_devices(&plugin, &count) < 0)
        rnnd__log_info("using the CPU: %s", rnnd_status_detail());
    if (opt->device == RNND_DEVICE_AUTO && opt->rnn_path != RNND_PATH_AUTO)
        rnnd__log_warn("--rnn-path has no effect on the CPU");
}

/* Ranks with and without GPUs would use different collectives. */
static int agree_on_kind(struct rnnd_comm *comm, bool cuda)
{
    int64_t kind[2] = {cuda, -(int64_t)cuda};
    RNND_TRY(rnnd_comm_max(comm, kind, 2));
    if (kind[0] == -kind[1])
        return 0;
    return rnnd__fail(RNND_EDEVICE,
                      "--device auto: some ranks have a GPU, others have none; use "
                      "--device cpu, or hosts that all have GPUs");
}

int rnnd_backend_check(const struct rnnd_options *opt)
{
    bool cuda, asks = opt->device == RNND_DEVICE_CUDA || opt->comm == RNND_COMM_NCCL ||
                      opt->precision == RNND_TF32 || opt->precision == RNND_BF16;
    return asks ? choose_kind(opt, &cuda) : 0;
}

int rnnd_backend_open(const struct rnnd_options *opt, struct rnnd_comm *comm,
                      struct rnnd_backend **out)
{
    bool cuda;
    int status = choose_kind(opt, &cuda);
    if (comm && rnnd_comm_size(comm) > 1) {
        RNND_TRY(rnnd_comm_agree(comm, status));
        status = agree_on_kind(comm, cuda);
    }
    RNND_TRY(status);
    if (cuda)
        return rnnd__cuda_open(opt, comm, out);
    explain_cpu(opt);
    return open_cpu(opt, comm, out);
}

int rnnd_backend_devices(char why[256])
{
    const struct rnnd__cuda_plugin *plugin;
    int count;
    if (rnnd__cuda_devices(&plugin, &count) == 0)
        return count;
    snprintf(why, 256, "%s", rnnd_status_detail());
    return 0;
}

void rnnd_backend_explain(struct rnnd_backend *be, enum rnnd_cell cell, int64_t hidden,
                          int64_t sequences, char text[160])
{
    be->ops->rnn_explain(be, cell, hidden, sequences, text);
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
