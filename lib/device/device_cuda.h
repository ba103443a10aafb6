/*
 * device_cuda.h - the CUDA plug-in, and which of its devices a rank takes.
 */
#ifndef RNND_DEVICE_CUDA_H
#define RNND_DEVICE_CUDA_H

#include "cuda/plugin.h"
#include "rnn_dist.h"

/* The plug-in that RNND_CUDA_PLUGIN names, else the installed one; opened once. EDEVICE
   where there is none, or none that this program can use. */
RNND_CHECKED int rnnd__cuda_plugin_find(const struct rnnd__cuda_plugin **out);
/* Whether there is one at all, usable or not: then it is worth a word that no device
   is. */
bool rnnd__cuda_plugin_exists(void);
/* The plug-in and how many devices it sees, at least 1; else EDEVICE with the
   reason. */
RNND_CHECKED int rnnd__cuda_devices(const struct rnnd__cuda_plugin **plugin,
                                    int *count);

/* Opens this rank's device; all ranks call it. comm may be NULL: a world of one. */
RNND_CHECKED int rnnd__cuda_open(const struct rnnd_options *opt, struct rnnd_comm *comm,
                                 struct rnnd_backend **out);

#endif
