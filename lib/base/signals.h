/*
 * signals.h - signals that ask a run to save and end: SIGUSR1, SIGUSR2, SIGTERM, SIGINT.
 */
#ifndef RNND_STOP_H
#define RNND_STOP_H

#include "rnn_dist.h"

/* From now on these signals only wait to be asked for, in this thread and in those it
   makes afterwards. To be called before the back end is opened; may be called again. */
void rnnd__signals_install(void);
/* The signal that came last, 0 = none. */
int rnnd__signals_received(void);

#endif
