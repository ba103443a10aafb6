/*
 * cmd_export.c - `rnn_dist export MODEL OUT`: writes a model for other programs: its
 * parameters under PyTorch's names, or a graph that computes it. Runs on rank 0.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "bin.h"
#include "checkpoint/checkpoint.h"
#include "exchange/export.h"

/* The model, the options of its training as text, and the file that they come from; all
   owned by the caller. */
struct source {
    struct rnnd_model *model;
    struct rnnd_checkpoint_info info;
    char *path;
};

static int open_source(const struct rnnd_options *given, const char *name,
                       const char *output, struct rnnd_backend *be, struct source *s)
{
    if (!rnnd__options_given(given, "average")) {
        RNND_TRY(rnnd_checkpoint_find(name, &s->path));
        RNND_TRY(bin_refuse_same(output, s->path));
        return rnnd_checkpoint_load_model(s->path, be, &s->model, &s->info);
    }
    s->path = strdup(name);
    if (!s->path)
        return rnnd__fail_memory(strlen(name), "a file name");
    return rnnd__checkpoint_average(name, given->average, be, &s->model, &s->info);
}

/* Exports the options of the training with the model, so that eval uses them. */
static int export(const struct rnnd_options *given, const char *name,
                  const char *output)
{
    bool fold = given->fold || !rnnd__options_given(given, "fold");
    struct source s = {.model = NULL};
    struct rnnd_backend *be = NULL;
    struct rnnd_options opt;
    int status = 0;
    RNND_TRY(rnnd_options_init(&opt));
    RNND_TRY_GOTO(bin_open_cpu(&be));
    RNND_TRY_GOTO(open_source(given, name, output, be, &s));
    RNND_TRY_GOTO(rnnd__options_read_text(&opt, s.info.config, s.path, RNND_FROM_FILE));
    RNND_TRY_GOTO(rnnd__export(output, s.model, &opt, fold));
done:
    rnnd_model_free(s.model);
    free(s.info.config);
    free(s.path);
    rnnd_backend_close(be);
    rnnd_options_clear(&opt);
    return status;
}

int cmd_export(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc;
    RNND_TRY(rnnd__export_check(argv[1]));
    return rnnd_comm_agree(
        comm, rnnd_comm_rank(comm) == 0 ? export(opt, argv[0], argv[1]) : 0);
}
