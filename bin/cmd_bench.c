/*
 * cmd_bench.c - `rnn_dist bench`: measures the speed of training.
 */
#include "bin.h"
#include "commands/bench.h"

struct line {
    const char *name;
    double value;
};

static void print(const struct line *line, int count, bool json)
{
    for (int i = 0; i < count; i++)
        if (json)
            printf("%s\"%s\": %.6g", i ? ", " : "{", line[i].name, line[i].value);
        else
            printf("%s %.6g\n", line[i].name, line[i].value);
    if (json)
        puts("}");
}

int cmd_bench(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct rnnd__bench_result r;
    int status = rnnd__bench(opt, comm, &r);
    if (status < 0 || rnnd_comm_rank(comm) != 0)
        return status;
    double known = r.embedding + r.recurrent + r.head + r.optimizer + r.input +
                   r.waiting + r.exposed;
    const struct line line[] = {
        {"ranks", rnnd_comm_size(comm)},
        {"updates", (double)r.updates},
        {"seconds", r.seconds},
        {"steps_per_s", r.steps / r.seconds},
        {"loss", r.loss},
        {"embedding_share", r.embedding / r.seconds},
        {"recurrent_share", r.recurrent / r.seconds},
        {"gemm_share", (r.recurrent - r.cell) / r.seconds},
        {"cell_share", r.cell / r.seconds},
        {"head_share", r.head / r.seconds},
        {"optimizer_share", r.optimizer / r.seconds},
        {"input_share", r.input / r.seconds},
        {"waiting_share", r.waiting / r.seconds},
        {"communication_share", r.exposed / r.seconds},
        {"other_share", 1 - known / r.seconds},
        {"communication_exposed_s", r.exposed},
        {"communication_hidden_s", r.hidden},
        {"gemm_gflops", 1e-9 * r.gemm_rate},
        {"roofline_share", r.gemm_flops / r.gemm_rate / r.seconds},
        {"straggler_predicted", r.straggler_predicted},
        {"straggler_measured", r.straggler_measured},
    };
    print(line, sizeof line / sizeof *line, opt->json);
    return 0;
}
