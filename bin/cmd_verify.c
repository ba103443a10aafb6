/*
 * cmd_verify.c - `rnn_dist verify`: checks on the user's data and options that
 * splitting and packing the work do not change the result.
 */
#include "bin.h"
#include "commands/verify.h"

int cmd_verify(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (opt->precision == RNND_PRECISION_AUTO) /* the most exact comparison */
        opt->precision = RNND_FP32;
    return rnnd__verify(opt, comm, stdout);
}
