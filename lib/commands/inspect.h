/*
 * inspect.h - what a data set, checkpoint or run folder holds, and whether it is
 * intact.
 */
#ifndef RNND_INSPECT_H
#define RNND_INSPECT_H

#include "rnn_dist.h"

/* Reads all of a path and describes it, as text or as one JSON object; *text is
   malloc'ed and taken. *verdict is 0 where all is intact; EDATA: damaged data;
   EFILE: a damaged checkpoint, or a run folder without a valid one; FAULT: a run
   folder in which one of several is damaged. rnnd_status_detail() then tells of it.
   Fails where the path is none of the three, or cannot be read at all. */
RNND_CHECKED int rnnd__inspect(const char *path, bool json, char **text, int *verdict);

#endif
