/*
 * backend.c - opens the CPU for commands that hold a model but do not compute with it.
 */
#include "base/status.h"
#include "bin.h"

int bin_open_cpu(struct rnnd_backend **out)
{
    struct rnnd_options opt;
    RNND_TRY(rnnd_options_init(&opt));
    opt.device = RNND_DEVICE_CPU;
    opt.threads = 1;
    int status = rnnd_backend_open(&opt, NULL, out);
    rnnd_options_clear(&opt);
    return status;
}
