/*
 * output.h - which existing files a new one may replace, and the temporary files that
 * new ones are until they are complete.
 *
 * Every file that the program writes as a whole comes from here: text (file.h) and HDF5
 * (hdf/hdf.h). It is written as TARGET.tmp-PID and renamed once all of it is on disk.
 * What a killed process left is removed when the same file is written again.
 */
#ifndef RNND_OUTPUT_H
#define RNND_OUTPUT_H

#include <sys/types.h>

#include "rnn_dist.h"

/* A kind of file that the program writes, told by its bytes. */
struct rnnd__kind {
    /* with its article, for messages: "a data file" */
    const char *name;
    /* how such a file begins: in one of these ways; none = in any way */
    const char *start[8];
    /* what its first or last MiB contains; NULL = anything */
    const char *holds;
};

struct rnnd__output {
    /* as given, for messages; owned, as are the next two */
    char *path;
    /* path with links followed, and the name until commit; NULL where path is a device,
       a pipe or a folder, which a new file must not replace */
    char *target, *temp;
    /* of the temporary file, for reading and writing; -1 = none */
    int fd;
    /* among the outputs of this process */
    dev_t device;
    ino_t inode;
    struct rnnd__output *next;
};

/* Creates the temporary file. An existing file is replaced only if it is empty or of
   this kind: EUSAGE otherwise, and where this process is already writing it. NULL: a
   file of any kind, for folders that belong to the program. EFILE where it cannot be
   created. Where path is a device or the like, nothing is created. */
RNND_CHECKED int rnnd__output_open(const char *path, const struct rnnd__kind *kind,
                                   struct rnnd__output **out);
/* Syncs the file, gives it its name and syncs the folder. EFILE on failure; releases it
   in any case. */
RNND_CHECKED int rnnd__output_commit(struct rnnd__output *output);
/* Removes the temporary file, and releases it; NULL is accepted. */
void rnnd__output_drop(struct rnnd__output *output);
/* Checks, long before the file is written, whether rnnd__output_open() would succeed;
   leaves nothing behind. */
RNND_CHECKED int rnnd__output_check(const char *path, const struct rnnd__kind *kind);

/* Removes the temporary files of this process, which is about to end, and lets no other
   be created or committed. */
void rnnd__output_abandon(void);
/* Whether a name is STEM.tmp-PID of a process that has ended. *stem: its length. */
bool rnnd__output_is_leftover(const char *name, size_t *stem);

/* Whether the first or last MiB of an open file of this size contains a text. */
bool rnnd__output_mentions(int fd, off_t size, const char *text);

#endif
