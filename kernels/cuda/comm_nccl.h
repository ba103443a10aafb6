/*
 * comm_nccl.h - sums over the devices of all ranks, for the plug-in's table.
 *
 * What the entries mean is in plugin.h.
 */
#ifndef RNND_COMM_NCCL_H
#define RNND_COMM_NCCL_H

#include "plugin.h"

int rnnd__nccl_id(void *id, char *error);
int rnnd__nccl_open(struct rnnd_backend *be, struct rnnd__nccl **out, char *error);
int rnnd__nccl_join(struct rnnd__nccl *comm, const void *id, int rank, int size,
                    char *error);
int rnnd__nccl_poll(struct rnnd__nccl *comm, char *error);
int rnnd__nccl_sum_begin(struct rnnd__nccl *comm, struct rnnd__buf buf, int64_t count,
                         char *error);
int rnnd__nccl_sum_poll(struct rnnd__nccl *comm, char *error);
int rnnd__nccl_leave(struct rnnd__nccl *comm, char *error);
void rnnd__nccl_abort(struct rnnd__nccl *comm);
void rnnd__nccl_close(struct rnnd__nccl *comm);

#endif
