/*
 * probe.c - reads HDF5 files of unknown origin in a child process before MPI starts;
 * hdf/hdf.h says why. What is wrong with one is reported where it is opened.
 *
 * Every rank does so: what its child reads, it takes over.
 */
#include <stdlib.h>

#include "base/status.h"
#include "bin.h"
#include "checkpoint/run_dir.h"
#include "hdf/hdf.h"

static void probe(const char *path)
{
    (void)!(path && rnnd__hdf_probe(path) < 0);
}

/* The data of a run that is resumed. What is wrong with its options is said later. */
static void probe_stored(const struct rnnd_options *opt)
{
    struct rnnd_options stored;
    char *text = NULL;
    if (rnnd_options_init(&stored) < 0)
        return;
    if (rnnd__run_dir_read(opt->run_dir, "config.ini", &text) == 0 && text &&
        rnnd__options_read_text(&stored, text, "config.ini", RNND_FROM_FILE) == 0) {
        probe(stored.data);
        probe(stored.valid);
    }
    free(text);
    rnnd_options_clear(&stored);
}

void bin_probe(const struct rnnd_options *opt, int operands, char **argv)
{
    const char *named[] = {opt->data, opt->valid, opt->init, opt->classes_from,
                           opt->vocab_from};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        probe(named[i]);
    for (int i = 0; i < operands; i++)
        probe(argv[i]);
    if (opt->resume)
        probe_stored(opt);
}
