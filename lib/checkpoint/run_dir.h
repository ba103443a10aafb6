/*
 * run_dir.h - the folder of a run: creates, locks and inspects it. Rank 0 only.
 */
#ifndef RNND_RUN_DIR_H
#define RNND_RUN_DIR_H

#include "rnn_dist.h"

/* A locked run directory. */
struct rnnd__run_dir;

/* EUSAGE where the folder contains a run. Writes nothing; a missing folder contains
   none. */
RNND_CHECKED int rnnd__run_dir_unused(const char *path);
/* Creates the folder if necessary, and locks it until close; a warning where the file
   system has no locks. EFILE where it cannot be created or written, or another run has
   locked it; EUSAGE where it contains a run and resume is false. */
RNND_CHECKED int rnnd__run_dir_open(const char *path, bool resume,
                                    struct rnnd__run_dir **out);
/* The same with resume, but creates no folder: *out is NULL where there is none. */
RNND_CHECKED int rnnd__run_dir_open_old(const char *path, struct rnnd__run_dir **out);
/* Whether the folder is still the one that was locked: EFILE where it was removed, or
   removed and made anew. To be called before anything in it is written or removed. */
RNND_CHECKED int rnnd__run_dir_check(const struct rnnd__run_dir *dir);
/* Unlocks the folder; NULL is accepted. */
void rnnd__run_dir_close(struct rnnd__run_dir *dir);
/* Whether a path names one of the files that a run keeps in this folder. */
bool rnnd__run_dir_keeps(const char *path, const char *file);

/* path/name; malloc'ed and freed by the caller. */
RNND_CHECKED int rnnd__run_dir_file(const char *path, const char *name, char **out);
/* Whether a run directory has a file of this name. */
bool rnnd__run_dir_has(const char *path, const char *name);
/* Writes a text file atomically. */
RNND_CHECKED int rnnd__run_dir_write(const char *path, const char *name,
                                     const char *text);
/* Reads a text file as a whole; malloc'ed and freed by the caller. *text is NULL where
   the file is missing or empty. */
RNND_CHECKED int rnnd__run_dir_read(const char *path, const char *name, char **text);

/* Notes where these files are, absolute and relative to the folder; NULL entries are
   skipped. */
RNND_CHECKED int rnnd__run_dir_keep_paths(const char *path, const char *const *file,
                                          int count);
/* Finds a file of an earlier start by the path `given` then: beside the folder as it
   was then, else at its absolute place, else at that path itself. *found is malloc'ed
   and freed by the caller; the path as given where it leads to the same file. EFILE
   where the file is at none of these places. */
RNND_CHECKED int rnnd__run_dir_find(const char *path, const char *given, char **found);

#endif
