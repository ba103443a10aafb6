/*
 * cmd_verify.c - `rnn_dist verify`: proofs on the user's own data and options.
 */
#include "bin.h"
#include "commands/verify.h"

int cmd_verify(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (opt->precision == RNND_PRECISION_AUTO) /* what is exact is proved exactly */
        opt->precision = RNND_FP32;
    return rnnd__verify(opt, comm, stdout);
}
