/*
 * cmd_export.c - `rnn_dist export MODEL OUT`: writes the parameters of a model for
 * other programs, as safetensors or HDF5 under PyTorch's names. Runs on rank 0.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "bin.h"
#include "checkpoint/statedict.h"

/* Rejects names of formats that export does not write. */
static int check_name(const char *path)
{
    static const char *const others[] = {".pt", ".pth", ".pkl", ".bin", ".ckpt"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof others / sizeof *others; i++)
        if (strcmp(dot, others[i]) == 0)
            return rnnd__fail(RNND_EUSAGE,
                              "%s: export does not write torch.save files; use a "
                              "name ending in .safetensors or .h5",
                              path);
    return 0;
}

/* Exports the options of the training with the model, so that eval uses them. */
static int export_checkpoint(const char *path, const char *output,
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
    RNND_TRY_GOTO(rnnd__statedict_export(output, model, &opt));
done:
    rnnd_model_free(model);
    free(info.config);
    rnnd_options_clear(&opt);
    return status;
}

static int export(const char *name, const char *output)
{
    struct rnnd_backend *be = NULL;
    char *path = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd_checkpoint_find(name, &path));
    RNND_TRY_GOTO(bin_open_cpu(&be));
    RNND_TRY_GOTO(export_checkpoint(path, output, be));
done:
    rnnd_backend_close(be);
    free(path);
    return status;
}

int cmd_export(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)opt, (void)argc;
    RNND_TRY(check_name(argv[1]));
    return rnnd_comm_agree(comm,
                           rnnd_comm_rank(comm) == 0 ? export(argv[0], argv[1]) : 0);
}
