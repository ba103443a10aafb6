/*
 * run_dir.h - the folder of a run: made, locked, looked into. Rank 0 only.
 */
#ifndef RNND_RUN_DIR_H
#define RNND_RUN_DIR_H

#include "rnn_dist.h"

struct rnnd__run_dir;

/* EUSAGE where the folder holds a run; writes nothing. A missing folder holds none. */
RNND_CHECKED int rnnd__run_dir_unused(const char *path);
/* Makes the folder where it is missing and locks it. EFILE where it cannot be made or
   written, or is locked by a running job; EUSAGE where it holds a run and resume is
   false. */
RNND_CHECKED int rnnd__run_dir_open(const char *path, bool resume,
                                    struct rnnd__run_dir **out);
/* As that with resume, but makes no folder: NULL where there is none. */
RNND_CHECKED int rnnd__run_dir_open_old(const char *path, struct rnnd__run_dir **out);
void rnnd__run_dir_close(struct rnnd__run_dir *dir);
/* Whether a file is one of those that a run keeps in its folder, which is there. */
bool rnnd__run_dir_keeps(const char *path, const char *file);

/* path/name, malloc'ed, taken. */
RNND_CHECKED int rnnd__run_dir_file(const char *path, const char *name, char **out);
/* A small text file, atomically. */
RNND_CHECKED int rnnd__run_dir_write(const char *path, const char *name,
                                     const char *text);
/* The whole of a text file, malloc'ed, taken; NULL where there is none or it is
   empty. */
RNND_CHECKED int rnnd__run_dir_read(const char *path, const char *name, char **text);

#endif
