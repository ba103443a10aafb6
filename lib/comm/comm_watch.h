/*
 * comm_watch.h - a deadline for calls of MPI that have none: its start and its end.
 */
#ifndef RNND_COMM_WATCH_H
#define RNND_COMM_WATCH_H

#include "rnn_dist.h"

struct rnnd__watch;

/* Unless rnnd__watch_end() is called in `timeout` seconds, prints that `what`, such as
   "MPI did not start", and which ranks of this host have stopped or ended, and ends the
   process with the status of ECOMM. */
RNND_CHECKED int rnnd__watch_begin(double timeout, const char *what,
                                   struct rnnd__watch **out);
void rnnd__watch_end(struct rnnd__watch *watch);

#endif
