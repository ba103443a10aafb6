/*
 * file.h - reading whole files, atomic writing of text files, and file errors.
 *
 * A file is written under a temporary name and renamed once all of it is on disk
 * (output.h). A device or pipe is written to directly: a new file must not replace it.
 */
#ifndef RNND_FILE_H
#define RNND_FILE_H

#include "base/output.h"

struct rnnd__file {
    FILE *stream;
    struct rnnd__output *output;
};

/* Opens a file for reading; *stream is NULL if it does not exist. EFILE if it is not a
   regular file: reading a pipe may block forever. */
RNND_CHECKED int rnnd__file_open(const char *path, FILE **stream);
/* Reads a whole file, or all that a pipe delivers. *text is malloc'ed, with a NUL after
   its *size bytes. EFILE if that fails. */
RNND_CHECKED int rnnd__file_read(const char *path, char **text, size_t *size);
/* EFILE: "cannot VERB PATH: " and the text of errno. */
int rnnd__file_fail(const char *verb, const char *path);
/* Appends all of it, with one write() where the file system can, so that a reader never
   sees half a record; on failure, nothing of it. */
RNND_CHECKED int rnnd__file_append(int fd, const char *path, const void *data,
                                   size_t size);
/* Makes the new name of a file in a folder durable. A file system that cannot sync
   folders is no failure. */
RNND_CHECKED int rnnd__file_sync_folder(const char *folder);
/* Creates a text file; kind: what it may replace, as in rnnd__output_open(). */
RNND_CHECKED int rnnd__file_create(const char *path, const struct rnnd__kind *kind,
                                   struct rnnd__file *out);
/* Flushes, syncs, renames to path and closes; EFILE also if an earlier write failed.
   Closes in any case. */
RNND_CHECKED int rnnd__file_commit(struct rnnd__file *file);
/* Closes and removes a file that was created but not committed; accepts all zeros. */
void rnnd__file_drop(struct rnnd__file *file);

#endif
