/*
 * signals.h - signals that make a run save and exit: SIGUSR1, SIGUSR2, SIGTERM, SIGINT,
 * and SIGHUP unless it is ignored, as under nohup.
 */
#ifndef RNND_SIGNALS_H
#define RNND_SIGNALS_H

#include "base/status.h"

/* Blocks these signals in this thread and in threads that it creates later: they stay
   pending until one of the next two. To be called before anything else. */
void rnnd__signals_block(void);
/* Takes that back: a signal, even a pending one, ends the process. */
void rnnd__signals_unblock(void);
/* For a command that polls. Call it before opening the back end; calling it again is
   harmless. */
void rnnd__signals_install(void);
/* For a command that does not: on a signal that is not ignored, calls `first` in a
   thread of its own, and then lets the signal end the process. EDEVICE without a
   thread. */
RNND_CHECKED int rnnd__signals_end(void (*first)(void));
/* The last signal received, 0 = none. */
int rnnd__signals_received(void);
/* For a call that has ended with STOPPED: the next one is not stopped by the same
   signals, unless one of them arrives again. */
void rnnd__signals_forget(void);
/* STOPPED if one was received, while `path` is being read. */
RNND_CHECKED int rnnd__signals_check(const char *path);

#endif
