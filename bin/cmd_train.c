/*
 * cmd_train.c - `rnn_dist train`: trains a model and prints the result.
 */
#include <inttypes.h>
#include <math.h>
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

/* Why the run ended: "30 of 30 epochs". */
static void say_end(const struct rnnd_train_result *r, char *text, size_t size)
{
    long long bound = r->bound;
    if (r->end == RNND_END_PATIENCE)
        snprintf(text, size, "%s: no gain in %lld epoch%s",
                 r->idle ? "nothing left" : "stopped early", bound,
                 bound == 1 ? "" : "s");
    else
        snprintf(text, size, "%s: %lld of %lld %s",
                 r->idle ? "nothing left" : "finished",
                 (long long)(r->end == RNND_END_EPOCHS ? r->epochs : r->updates), bound,
                 r->end == RNND_END_EPOCHS ? "epochs" : "updates");
}

/* What came out: the best validation, else the last training loss. */
static void say_outcome(const struct rnnd__outcome *o, char *text, size_t size)
{
    text[0] = '\0';
    char metric[64] = "";
    if (*o->metric)
        snprintf(metric, sizeof metric, " (%s %.4g)", o->metric, o->value);
    if (o->by_metric && !isnan(o->value))
        snprintf(text, size, "; best validation %s %.4g (loss %.4g) at epoch %" PRId64,
                 o->metric, o->value, o->valid_loss, o->epoch);
    else if (!isnan(o->valid_loss))
        snprintf(text, size, "; best validation loss %.4g%s at epoch %" PRId64,
                 o->valid_loss, metric, o->epoch);
    else if (!isnan(o->train_loss))
        snprintf(text, size, "; training loss %.4g", o->train_loss);
}

static int print_summary(const struct rnnd_options *opt,
                         const struct rnnd_train_result *result)
{
    struct rnnd__outcome outcome;
    char end[96], came[160];
    RNND_TRY(rnnd__metrics_outcome(opt->run_dir, &outcome));
    say_end(result, end, sizeof end);
    say_outcome(&outcome, came, sizeof came);
    rnnd__log_info("%s%s; %" PRId64 " updates, %.1f s; see %s", end, came,
                   result->updates, result->seconds, opt->run_dir);
    return 0;
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
        return print_summary(opt, &result);
    return status;
}
