/*
 * signals.h - signals that make a run save and exit: SIGUSR1, SIGUSR2, SIGTERM, SIGINT,
 * and SIGHUP unless it is ignored, as under nohup.
 */
#ifndef RNND_SIGNALS_H
#define RNND_SIGNALS_H

#include "base/status.h"

/* Blocks these signals in this thread and in threads that it creates later; they stay
   pending until polled. Call it before opening the back end; calling it again is
   harmless. */
void rnnd__signals_install(void);
/* The last signal received, 0 = none. */
int rnnd__signals_received(void);
/* STOPPED if one was received, while `path` is being read. */
RNND_CHECKED int rnnd__signals_check(const char *path);

#endif
