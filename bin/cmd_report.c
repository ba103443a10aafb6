/*
 * cmd_report.c - `rnn_dist report RUN... --out F`: writes an HTML page about some runs.
 */
#include <stdlib.h>

#include "base/status.h"
#include "bin.h"
#include "checkpoint/run_dir.h"
#include "record/report.h"

/* The page must not overwrite the records it is made from. */
static int refuse_records(const char *out, int runs, char **run)
{
    for (int i = 0; i < runs; i++) {
        char *records;
        RNND_TRY(rnnd__run_dir_file(run[i], "metrics.jsonl", &records));
        int status = bin_refuse_same(out, records);
        free(records);
        RNND_TRY(status);
    }
    return 0;
}

int cmd_report(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)comm;
    if (!opt->out)
        return rnnd__fail(RNND_EUSAGE,
                          "report needs --out FILE; see rnn_dist help report");
    RNND_TRY(refuse_records(opt->out, argc, argv));
    return rnnd__report((const char *const *)argv, argc, opt->out);
}
