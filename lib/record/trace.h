/*
 * trace.h - the timeline of all ranks as a file, for --trace.
 */
#ifndef RNND_TRACE_H
#define RNND_TRACE_H

#include "rnn_dist.h"

/* Writes the spans of all ranks (base/timeline.h) as a Chrome trace: a process per
   rank, with threads for computation, communication and input. Atomic, by rank 0.
   EFILE, on all ranks, where it cannot be written. Collective. */
RNND_CHECKED int rnnd__trace_write(struct rnnd_comm *comm, const char *path);
/* Whether it could be written there: EUSAGE where it would replace another file than a
   trace, EFILE where none can be created. */
RNND_CHECKED int rnnd__trace_check(const char *path);

#endif
