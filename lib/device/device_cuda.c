/*
 * device_cuda.c - finds the CUDA plug-in and assigns a device to each rank.
 *
 * The plug-in is a shared object that is loaded when a device is asked for: on the CPU
 * the program needs nothing of CUDA. Ranks of a host take its devices in turn. Where
 * the launcher makes a different device visible to each rank, every rank takes its
 * first; identities show that these are different devices.
 */
#include "device/device_cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/comm.h"

/* ---- the plug-in */

static const char *plugin_path(void)
{
    const char *path = getenv("RNND_CUDA_PLUGIN");
    return path && *path ? path : RNND_PKGLIBDIR "/rnn_dist_cuda.so";
}

bool rnnd__cuda_plugin_exists(void)
{
    return access(plugin_path(), F_OK) == 0;
}

/* Loaded once. EDEVICE: there is none, or it cannot be used. */
static int find_plugin(const struct rnnd__cuda_plugin **out)
{
    static const struct rnnd__cuda_plugin *found;
    const char *path = plugin_path();
    if (!found) {
        if (!rnnd__cuda_plugin_exists())
            return rnnd__fail(RNND_EDEVICE,
                              "there is no CUDA plug-in %s (it is built where "
                              "configure finds CUDA; RNND_CUDA_PLUGIN names another)",
                              path);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            return rnnd__fail(RNND_EDEVICE, "cannot load the CUDA plug-in: %s",
                              dlerror());
        const struct rnnd__cuda_plugin *p = dlsym(library, RNND_CUDA_PLUGIN_SYMBOL);
        if (!p || p->abi != RNND_CUDA_PLUGIN_ABI ||
            p->ops_size != sizeof(struct rnnd__backend_ops))
            return rnnd__fail(RNND_EDEVICE,
                              "the CUDA plug-in %s is of another version of rnn_dist",
                              path);
        found = p;
    }
    *out = found;
    return 0;
}

int rnnd__cuda_devices(const struct rnnd__cuda_plugin **plugin, int *count)
{
    char error[256];
    RNND_TRY(find_plugin(plugin));
    int status = (*plugin)->device_count(count, error);
    return status < 0 ? rnnd__fail(status, "%s", error) : 0;
}

/* ---- which rank takes which device */

/* The identity of a rank's device, as ranks exchange it. */
struct claim {
    char identity[64];
    /* of matrix products, resolved */
    int precision;
};

static int size_of(const struct rnnd_comm *comm)
{
    return comm ? rnnd_comm_size(comm) : 1;
}

/* The number of lower ranks on this rank's host. */
static int local_rank(const struct rnnd_comm *comm)
{
    int n = 0, rank = comm ? rnnd_comm_rank(comm) : 0;
    for (int r = 0; r < rank; r++)
        n += strcmp(rnnd__comm_host(comm, r), rnnd__comm_host(comm, rank)) == 0;
    return n;
}

/* Two ranks have the same device: a warning, or a failure with NCCL. */
static int judge_pair(const struct rnnd_comm *comm, bool nccl, int a, int b)
{
    const char *host = rnnd__comm_host(comm, a);
    int ranks = 0;
    for (int r = 0; r < rnnd_comm_size(comm); r++)
        ranks += strcmp(rnnd__comm_host(comm, r), host) == 0;
    if (nccl)
        return rnnd__fail(
            RNND_EDEVICE,
            "ranks %d and %d of the %d on %s have the same GPU, but NCCL needs one per "
            "rank: start fewer ranks per host, or use --comm mpi",
            a, b, ranks, host);
    rnnd__log_warn("ranks %d and %d of the %d on %s share a GPU", a, b, ranks, host);
    return 0;
}

static int judge_claims(const struct rnnd_comm *comm, bool nccl,
                        const struct claim *all)
{
    for (int r = 1; r < rnnd_comm_size(comm); r++)
        if (all[r].precision != all[0].precision)
            return rnnd__fail(
                RNND_EDEVICE,
                "--precision auto: the GPUs of rank %d on %s and of rank 0 "
                "on %s would compute in different precisions; choose one",
                r, rnnd__comm_host(comm, r), rnnd__comm_host(comm, 0));
    for (int b = 1; b < rnnd_comm_size(comm); b++)
        for (int a = 0; a < b; a++)
            if (strcmp(all[a].identity, all[b].identity) == 0)
                return judge_pair(comm, nccl, a, b);
    return 0;
}

static int compare_claims(struct rnnd_comm *comm, bool nccl, const struct claim *own)
{
    void *all = NULL;
    int status = rnnd__new((size_t)rnnd_comm_size(comm), sizeof *own, "devices", &all);
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd__comm_allgather(comm, own, sizeof *own, all));
    status = judge_claims(comm, nccl, all);
done:
    free(all);
    return status;
}

/* ---- opening */

/* The default is tf32 where the device has it, as for recurrent layers in PyTorch. */
static enum rnnd_precision resolve_precision(enum rnnd_precision asked, int arch)
{
    if (asked != RNND_PRECISION_AUTO)
        return asked;
    return arch >= 80 ? RNND_TF32 : RNND_FP32;
}

static int choose(const struct rnnd_options *opt, const struct rnnd_comm *comm,
                  struct rnnd__backend_config *config, struct claim *claim)
{
    const struct rnnd__cuda_plugin *plugin;
    struct rnnd__cuda_device info;
    char error[256];
    int count;
    RNND_TRY(rnnd__cuda_devices(&plugin, &count));
    config->device = local_rank(comm) % count;
    int status = plugin->device_info(config->device, &info, error);
    if (status < 0)
        return rnnd__fail(status, "%s", error);
    memcpy(claim->identity, info.identity, sizeof claim->identity);
    config->precision = (int)resolve_precision(opt->precision, info.arch);
    claim->precision = config->precision;
    config->rnn_path = (int)opt->rnn_path;
    return 0;
}

int rnnd__cuda_open(const struct rnnd_options *opt, struct rnnd_comm *comm,
                    struct rnnd_backend **out)
{
    const struct rnnd__cuda_plugin *plugin;
    struct rnnd__backend_config config = {0};
    struct claim claim;
    char error[256];
    bool nccl = size_of(comm) > 1 && opt->comm != RNND_COMM_MPI;
    int status = choose(opt, comm, &config, &claim);
    if (size_of(comm) > 1) {
        RNND_TRY(rnnd_comm_agree(comm, status));
        status = compare_claims(comm, nccl, &claim);
    }
    RNND_TRY(status);
    RNND_TRY(find_plugin(&plugin));
    status = plugin->open(&config, out, error);
    if (status < 0)
        return rnnd__fail(status, "%s", error);
    (*out)->cuda = plugin;
    (*out)->nccl = nccl ? plugin : NULL;
    return 0;
}
