/*
 * cmd_inspect.c - `rnn_dist inspect FILE`: checks a data set, checkpoint or run
 * directory and shows what it holds.
 */
#include <stdlib.h>

#include "base/status.h"
#include "bin.h"
#include "commands/inspect.h"

int cmd_inspect(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    char *text;
    int verdict;
    (void)argc;
    if (rnnd_comm_rank(comm) != 0)
        return 0;
    RNND_TRY(rnnd__inspect(argv[0], opt->json, &text, &verdict));
    fputs(text, stdout);
    free(text);
    return verdict;
}
