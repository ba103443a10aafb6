/*
 * cmd_sample.c - `rnn_dist sample MODEL`: generates text with a language model, on
 * rank 0.
 */
#include <stdlib.h>

#include "base/status.h"
#include "bin.h"
#include "commands/sample.h"

static int sample(const struct rnnd_options *opt, struct rnnd_backend *be,
                  const char *name)
{
    struct rnnd_model *model = NULL;
    char *path = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd_checkpoint_find(name, &path));
    RNND_TRY_GOTO(rnnd_checkpoint_load_model(path, be, &model, NULL));
    RNND_TRY_GOTO(rnnd__sample(model, opt, stdout));
done:
    rnnd_model_free(model);
    free(path);
    return status;
}

int cmd_sample(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc;
    struct rnnd_backend *be;
    RNND_TRY(rnnd_comm_agree(comm, rnnd_backend_open(opt, comm, &be)));
    int status = rnnd_comm_rank(comm) == 0 ? sample(opt, be, argv[0]) : 0;
    rnnd_backend_close(be);
    return rnnd_comm_agree(comm, status);
}
