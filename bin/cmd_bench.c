/*
 * cmd_bench.c - `rnn_dist bench`: measures the speed of training.
 */
#include <inttypes.h>

#include "bin.h"
#include "commands/bench.h"

/* Fractions of the time of rank 0, which add up to 1 with `other`. */
struct share {
    const char *member, *label;
    double value;
};
enum { SHARES = 10 };

static void find_shares(const struct rnnd__bench_result *r, struct share share[SHARES])
{
    double known = r->embedding + r->recurrent + r->head + r->optimizer + r->input +
                   r->waiting + r->exposed;
    const struct share all[SHARES] = {
        {"embedding_share", "embedding", r->embedding},
        {"recurrent_share", "recurrent layers", r->recurrent},
        {"gemm_share", "  matrix products", r->recurrent - r->cell},
        {"cell_share", "  cells", r->cell},
        {"head_share", "output layer and loss", r->head},
        {"optimizer_share", "optimizer", r->optimizer},
        {"input_share", "reading and packing", r->input},
        {"waiting_share", "waiting for ranks", r->waiting},
        {"communication_share", "gradient sums", r->exposed},
        {"other_share", "other", r->seconds - known},
    };
    for (int i = 0; i < SHARES; i++) {
        share[i] = all[i];
        share[i].value /= r->seconds;
    }
}

static double roofline(const struct rnnd__bench_result *r)
{
    return r->gemm_flops / r->gemm_rate / r->seconds;
}

static void print_json(const struct rnnd__bench_result *r, int ranks)
{
    struct share share[SHARES];
    find_shares(r, share);
    printf("{\"ranks\": %d, \"updates\": %" PRId64 ", \"seconds\": %.6g, "
           "\"steps_per_s\": %.6g, \"loss\": %.6g",
           ranks, r->updates, r->seconds, r->steps / r->seconds, r->loss);
    for (int i = 0; i < SHARES; i++)
        printf(", \"%s\": %.6g", share[i].member, share[i].value);
    printf(", \"communication_exposed_s\": %.6g, \"communication_hidden_s\": %.6g, "
           "\"gemm_gflops\": %.6g, \"roofline_share\": %.6g, "
           "\"straggler_predicted\": %.6g, \"straggler_measured\": %.6g}\n",
           r->exposed, r->hidden, 1e-9 * r->gemm_rate, roofline(r),
           r->straggler_predicted, r->straggler_measured);
}

static void print_text(const struct rnnd__bench_result *r, int ranks)
{
    struct share share[SHARES];
    find_shares(r, share);
    printf("%.0f steps/s: %" PRId64 " updates in %.2f s on %d rank%s, loss %.6g\n",
           r->steps / r->seconds, r->updates, r->seconds, ranks, ranks == 1 ? "" : "s",
           r->loss);
    puts("time of rank 0");
    for (int i = 0; i < SHARES; i++)
        printf("  %-22s %5.1f %%\n", share[i].label, 100 * share[i].value);
    printf("matrix products: %.1f %% of the %.1f GFLOP/s that large ones reach\n",
           100 * roofline(r), 1e-9 * r->gemm_rate);
    if (ranks == 1)
        return;
    printf("load imbalance (max/mean): %.3f predicted, %.3f measured\n",
           r->straggler_predicted, r->straggler_measured);
    printf("gradient sums: %.3g s exposed, %.3g s hidden\n", r->exposed, r->hidden);
}

int cmd_bench(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct rnnd__bench_result r;
    int status = rnnd__bench(opt, comm, &r);
    if (status < 0 || rnnd_comm_rank(comm) != 0)
        return status;
    if (opt->json)
        print_json(&r, rnnd_comm_size(comm));
    else
        print_text(&r, rnnd_comm_size(comm));
    return 0;
}
