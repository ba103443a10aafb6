/*
 * cmd_export.c - `rnn_dist export MODEL OUT`: writes a model for other programs: its
 * parameters under PyTorch's names, or a graph that computes it. Runs on rank 0.
 */
#include <stdlib.h>

#include "base/status.h"
#include "bin.h"
#include "exchange/export.h"

/* Exports the options of the training with the model, so that eval uses them. */
static int export_checkpoint(const char *path, const char *output, bool fold,
                             struct rnnd_backend *be)
{
    struct rnnd_checkpoint_info info = {0, 0, NULL};
    struct rnnd_model *model = NULL;
    struct rnnd_options opt;
    int status = 0;
    RNND_TRY(rnnd_options_init(&opt));
    RNND_TRY_GOTO(bin_refuse_same(output, path));
    RNND_TRY_GOTO(rnnd_checkpoint_load_model(path, be, &model, &info));
    RNND_TRY_GOTO(rnnd__options_read_text(&opt, info.config, path, RNND_FROM_FILE));
    RNND_TRY_GOTO(rnnd__export(output, model, &opt, fold));
done:
    rnnd_model_free(model);
    free(info.config);
    rnnd_options_clear(&opt);
    return status;
}

static int export(const char *name, const char *output, bool fold)
{
    struct rnnd_backend *be = NULL;
    char *path = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd_checkpoint_find(name, &path));
    RNND_TRY_GOTO(bin_open_cpu(&be));
    RNND_TRY_GOTO(export_checkpoint(path, output, fold, be));
done:
    rnnd_backend_close(be);
    free(path);
    return status;
}

int cmd_export(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    bool fold = opt->fold || !rnnd__options_given(opt, "fold");
    (void)argc;
    RNND_TRY(rnnd__export_check(argv[1]));
    return rnnd_comm_agree(
        comm, rnnd_comm_rank(comm) == 0 ? export(argv[0], argv[1], fold) : 0);
}
