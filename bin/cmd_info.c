/*
 * cmd_info.c - `rnn_dist info`: shows version, build, devices and placement of ranks.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "bin.h"

/* What each rank sends to rank 0. */
struct place {
    char host[65];
    char device[191];
    char plan[160];
};

static void print_build(void)
{
    printf("rnn_dist %s\n", rnnd_version());
#if defined __clang__
    printf("compiler   clang %s\n", __clang_version__);
#else
    printf("compiler   gcc %s\n", __VERSION__);
#endif
#if defined RNND_GEMM_ONEDNN
    puts("products   oneDNN");
#elif defined RNND_GEMM_CBLAS
    puts("products   CBLAS");
#endif
    char why[256];
    int devices = rnnd_backend_devices(why);
    if (devices > 0)
        printf("back ends  cpu; cuda, %d device%s here\n", devices,
               devices == 1 ? "" : "s");
    else
        printf("back ends  cpu; no cuda: %s\n", why);
}

static void print_map(const struct place *place, int ranks)
{
    printf("ranks      %d\n", ranks);
    for (int r = 0; r < ranks; r++)
        printf("  rank %d  %s  %s\n", r, place[r].host, place[r].device);
}

static int find_place(const struct rnnd_options *opt, struct rnnd_comm *comm,
                      struct place *place)
{
    struct rnnd_backend *be;
    memset(place, 0, sizeof *place);
    if (gethostname(place->host, sizeof place->host - 1) < 0)
        strcpy(place->host, "?");
    RNND_TRY(rnnd_backend_open(opt, comm, &be));
    snprintf(place->device, sizeof place->device, "%s", rnnd_backend_describe(be));
    int64_t ranks = rnnd_comm_size(comm), share = (opt->batch + ranks - 1) / ranks;
    rnnd_backend_explain(be, opt->cell, opt->hidden, share, place->plan);
    rnnd_backend_close(be);
    return 0;
}

int cmd_info(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct place place;
    void *all = NULL;
    size_t *size = NULL;
    int ranks = rnnd_comm_size(comm);
    int status = find_place(opt, comm, &place);
    if (status == 0)
        status = RNND_NEW(&size, ranks, "sizes");
    status = rnnd_comm_agree(comm, status);
    if (status == 0)
        status = rnnd_comm_gather(comm, &place, sizeof place, &all, size);
    if (status == 0 && rnnd_comm_rank(comm) == 0) {
        print_build();
        print_map(all, ranks);
        if (opt->plan)
            printf("plan       %s\n", ((struct place *)all)->plan);
    }
    free(all);
    free(size);
    return status;
}
