/*
 * cmd_predict.c - `rnn_dist predict MODEL`: writes predictions to an HDF5 file, a CSV
 * table, or both.
 */
#include "base/status.h"
#include "bin.h"

static int check_outputs(const struct bin_scorer *s)
{
    const char *output[] = {s->opt.out, s->opt.csv};
    for (int i = 0; i < 2; i++) {
        RNND_TRY(bin_refuse_same(output[i], s->opt.data));
        RNND_TRY(bin_refuse_same(output[i], s->path));
    }
    return 0;
}

int cmd_predict(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc;
    struct bin_scorer s;
    if (!opt->out && !opt->csv)
        return rnnd__fail(RNND_EUSAGE, "predict needs --out FILE or --csv FILE");
    int status = bin_scorer_open(&s, opt, comm, argv[0], false);
    if (status == 0)
        status = rnnd_comm_agree(comm, check_outputs(&s));
    if (status == 0)
        status = rnnd_predict(s.model, s.data, comm, &s.opt);
    bin_scorer_close(&s);
    return status;
}
