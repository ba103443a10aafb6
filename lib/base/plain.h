/*
 * plain.h - texts from files as they are shown: names in a data file must not send
 * control characters to a terminal, nor begin a line of their own.
 */
#ifndef RNND_PLAIN_H
#define RNND_PLAIN_H

#include "rnn_dist.h"

/* Bytes of the control character that a text begins with: of ASCII, or U+0080 to U+009F
   in UTF-8; 0 = it begins with another. */
int rnnd__plain_control(const char *text);
/* Writes a text with its control characters as \n, \t, \r or \xHH. Returns the columns
   that it takes, one for each character of UTF-8; out NULL: only counts them. */
int rnnd__plain_put(FILE *out, const char *text);

#endif
