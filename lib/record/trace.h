/*
 * trace.h - the timeline of all ranks as one file, for --trace.
 */
#ifndef RNND_TRACE_H
#define RNND_TRACE_H

#include "rnn_dist.h"

/* Writes the spans of all ranks as a Chrome trace: a process a rank, a thread for each
   of computation, communication and input. Collective; rank 0 writes, atomically. */
RNND_CHECKED int rnnd__trace_write(struct rnnd_comm *comm, const char *path);

#endif
