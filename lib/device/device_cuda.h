/*
 * device_cuda.h - the CUDA plug-in, and the device that each rank takes.
 */
#ifndef RNND_DEVICE_CUDA_H
#define RNND_DEVICE_CUDA_H

#include "cuda/plugin.h"
#include "rnn_dist.h"

/* Whether the file of the plug-in exists: the one named by RNND_CUDA_PLUGIN, else the
   installed one; usable or not. */
bool rnnd__cuda_plugin_exists(void);
/* The plug-in and the number of its devices, at least 1. EDEVICE: there is none. */
RNND_CHECKED int rnnd__cuda_devices(const struct rnnd__cuda_plugin **plugin,
                                    int *count);

/* Opens the device of this rank. comm may be NULL: a world of one. Collective. */
RNND_CHECKED int rnnd__cuda_open(const struct rnnd_options *opt, struct rnnd_comm *comm,
                                 struct rnnd_backend **out);

#endif
