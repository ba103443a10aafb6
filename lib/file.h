/*
 * file.h - text files that appear whole or not at all.
 */
#ifndef RNND_FILE_H
#define RNND_FILE_H

#include "rnn_dist.h"

struct rnnd_file {
    FILE *stream;
    char *path, *temp;             /* owned */
};

/* A new file beside path, under a temporary name. */
RNND_CHECKED int rnnd_file_create(const char *path, struct rnnd_file *out);
/* Flush, fsync, rename to path; EFILE also where any write before failed. Closed in any case. */
RNND_CHECKED int rnnd_file_commit(struct rnnd_file *file);
/* Drops a file that was created and not committed; all zero is accepted. */
void rnnd_file_drop(struct rnnd_file *file);

#endif
