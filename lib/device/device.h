/*
 * device.h - the operations of a back end that can fail, with errors as the library
 * reports them. Each can fail with EDEVICE.
 */
#ifndef RNND_DEVICE_H
#define RNND_DEVICE_H

#include "backend.h"
#include "rnn_dist.h"

bool rnnd__device_is_cpu(const struct rnnd_backend *be);
/* Allocates elements of 4 bytes. */
RNND_CHECKED int rnnd__device_alloc(struct rnnd_backend *be, struct rnnd__buf *out,
                                    int64_t elements);
/* Frees *buf and sets it to NULL. */
void rnnd__device_free(struct rnnd_backend *be, struct rnnd__buf *buf);
/* Waits for the device and copies [bytes] to host memory. */
RNND_CHECKED int rnnd__device_download(struct rnnd_backend *be, void *dst,
                                       struct rnnd__buf src, size_t bytes);
/* Waits for the device. */
RNND_CHECKED int rnnd__device_sync(struct rnnd_backend *be);
/* Passes on a status that an operation of the back end returned, with its message;
   logs what it warns of. */
RNND_CHECKED int rnnd__device_status(struct rnnd_backend *be, int status);

#endif
