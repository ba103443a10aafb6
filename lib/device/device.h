/*
 * device.h - which device a back end is, and its memory with failures as the library
 * reports them.
 */
#ifndef RNND_DEVICE_H
#define RNND_DEVICE_H

#include "backend.h"
#include "rnn_dist.h"

bool rnnd__device_is_cpu(const struct rnnd_backend *be);
RNND_CHECKED int rnnd__device_alloc(struct rnnd_backend *be, struct rnnd__buf *out,
                                    int64_t elements);
/* Frees and forgets. */
void rnnd__device_free(struct rnnd_backend *be, struct rnnd__buf *buf);
RNND_CHECKED int rnnd__device_download(struct rnnd_backend *be, void *dst,
                                       struct rnnd__buf src, size_t bytes);
RNND_CHECKED int rnnd__device_sync(struct rnnd_backend *be);
/* Turns a status of the back end into one with its text as the detail. */
RNND_CHECKED int rnnd__device_status(struct rnnd_backend *be, int status);

#endif
