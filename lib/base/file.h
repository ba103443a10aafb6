/*
 * file.h - files that appear whole or not at all.
 *
 * What is written gets its name only when all of it is on disk. A name that is a device
 * or a pipe already is written to as it is: a new file must not take its place.
 */
#ifndef RNND_FILE_H
#define RNND_FILE_H

#include "rnn_dist.h"

struct rnnd__file {
    FILE *stream;
    /* as given, for messages; owned, as both below */
    char *path;
    /* NULL where the stream writes in place */
    char *target, *temp;
};

/* What a new file called path takes the place of: path, with links followed, also one
   that leads nowhere yet; malloc'ed, taken. NULL where a device, a pipe or a folder has
   that name. */
RNND_CHECKED int rnnd__file_target(const char *path, char **out);
/* A file to be read; *stream is NULL where there is none. EFILE where it is no regular
   file: a pipe may wait for ever. */
RNND_CHECKED int rnnd__file_open(const char *path, FILE **stream);
/* EFILE: "cannot VERB PATH: " and what errno says. */
int rnnd__file_fail(const char *verb, const char *path);
/* All of it by one write, so that a reader never sees half a record. */
RNND_CHECKED int rnnd__file_append(int fd, const char *path, const void *data,
                                   size_t size);
/* A new text file beside path, under a temporary name. */
RNND_CHECKED int rnnd__file_create(const char *path, struct rnnd__file *out);
/* Flush, fsync, rename to path; EFILE also where any write before failed. Closed in any
   case. */
RNND_CHECKED int rnnd__file_commit(struct rnnd__file *file);
/* Drops a file that was created and not committed; all zero is accepted. */
void rnnd__file_drop(struct rnnd__file *file);
/* Whether rnnd__file_create would do, asked hours before; leaves nothing behind. */
RNND_CHECKED int rnnd__file_check(const char *path);

#endif
