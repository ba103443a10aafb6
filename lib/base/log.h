/*
 * log.h - diagnostics on standard error: "rnn_dist: [rank R: ]message".
 */
#ifndef RNND_LOG_H
#define RNND_LOG_H

#include "rnn_dist.h"

/* Which rank speaks; of a world of one no rank is named. */
void rnnd__log_rank(int rank, int size);
/* Called before each message, such as to take a progress bar away; NULL = nothing. */
void rnnd__log_before(void (*clear)(void));
/* While muted, news and warnings are not said. */
void rnnd__log_mute(bool muted);
/* Rank 0 only: news for the user. */
void rnnd__log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Rank 0 only: "warning: …". */
void rnnd__log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* This rank: an error's text. */
void rnnd__log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
