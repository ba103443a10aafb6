/*
 * cmd_eval.c - `rnn_dist eval MODEL`: loss and figures of a model on a data set.
 */
#include <stdlib.h>

#include "base/status.h"
#include "bin.h"
#include "record/result.h"

static int print(const struct rnnd_metrics *result, bool json)
{
    char *text;
    RNND_TRY(rnnd__result_text(result, json, &text));
    fputs(text, stdout);
    free(text);
    return 0;
}

int cmd_eval(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc;
    struct bin_scorer s;
    struct rnnd_metrics result = {.loss = 0};
    int status = bin_scorer_open(&s, opt, comm, argv[0], true);
    if (status == 0)
        status = rnnd_evaluate(s.model, s.data, comm, &s.opt, &result);
    if (status == 0 && rnnd_comm_rank(comm) == 0)
        status = print(&result, opt->json);
    rnnd_metrics_clear(&result);
    bin_scorer_close(&s);
    return status;
}
