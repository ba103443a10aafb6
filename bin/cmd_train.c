/*
 * cmd_train.c - `rnn_dist train`: trains a model and prints the result.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "bin.h"
#include "record/metrics.h"

static int print_json(const char *run_dir)
{
    char *line;
    RNND_TRY(rnnd__metrics_result(run_dir, &line));
    puts(line);
    free(line);
    return 0;
}

static void print_summary(const struct rnnd_options *opt,
                          const struct rnnd_train_result *result)
{
    char valid[128] = "";
    const struct rnnd_metrics *v = &result->valid;
    if (result->validated)
        snprintf(valid, sizeof valid, ", validation loss %.6g, %s %.6g", v->loss,
                 v->metric, v->value);
    rnnd__log_info("finished at update %" PRId64 " after %.1f s%s; see %s",
                   result->updates, result->seconds, valid, opt->run_dir);
}

/* The trace is the only file that train writes outside the run directory. */
static int check_trace(const struct rnnd_options *opt)
{
    const char *input[] = {opt->data, opt->valid, opt->init, opt->config};
    for (size_t i = 0; i < sizeof input / sizeof *input; i++)
        RNND_TRY(bin_refuse_same(opt->trace, input[i]));
    return 0;
}

int cmd_train(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct rnnd_train_result result;
    /* training continues when the reader of its output exits */
    signal(SIGPIPE, SIG_IGN);
    RNND_TRY(rnnd_comm_agree(comm, check_trace(opt)));
    int status = rnnd_train(opt, comm, &result);
    if (rnnd_comm_rank(comm) != 0)
        return status;
    bool ended = status == 0 || status == RNND_STOPPED || status == RNND_ENONFINITE;
    if (opt->json && ended) {
        struct rnnd__failure cause;
        rnnd__failure_save(&cause, status);
        int printed = print_json(opt->run_dir);
        return status < 0 ? rnnd__failure_restore(&cause) : printed;
    }
    if (status == 0 && opt->progress != RNND_PROGRESS_NONE)
        print_summary(opt, &result);
    return status;
}
