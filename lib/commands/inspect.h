/*
 * inspect.h - describes a data set, checkpoint or run directory, and checks it for
 * damage.
 */
#ifndef RNND_INSPECT_H
#define RNND_INSPECT_H

#include "rnn_dist.h"

/* Reads everything at path and describes it, as text or as one JSON object. *text is
   malloc'ed and owned by the caller. *verdict: 0 if all is intact; EDATA: damaged data;
   EFILE: a damaged checkpoint, or a run directory without an intact one; FAULT: a run
   folder where some checkpoints are damaged; rnnd_status_detail() then says what is
   wrong. The function fails with EDATA or EFILE if the path is none of the three or
   cannot be read. */
RNND_CHECKED int rnnd__inspect(const char *path, bool json, char **text, int *verdict);

#endif
