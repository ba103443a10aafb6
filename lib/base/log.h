/*
 * log.h - messages on standard error: "rnn_dist: [rank R: ]message".
 */
#ifndef RNND_LOG_H
#define RNND_LOG_H

#include "rnn_dist.h"

/* This process's rank; messages name it where there are several. */
void rnnd__log_rank(int rank, int size);
/* Called before each message, for example to clear a progress bar; NULL = nothing. */
void rnnd__log_before(void (*clear)(void));
/* Suppresses information and warnings. */
void rnnd__log_mute(bool muted);
/* Information for the user, on rank 0 only. */
void rnnd__log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "warning: ...", on rank 0 only. */
void rnnd__log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* An error, on any rank. */
void rnnd__log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
