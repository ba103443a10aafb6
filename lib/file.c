/*
 * file.c - text files that appear whole or not at all.
 */
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "status.h"

static void forget(struct rnnd_file *f)
{
    free(f->path);
    free(f->temp);
    memset(f, 0, sizeof *f);
}

int rnnd_file_create(const char *path, struct rnnd_file *out)
{
    struct rnnd_file f = {.path = strdup(path)};
    if (!f.path || asprintf(&f.temp, "%s.tmp-%ld", path, (long)getpid()) < 0) {
        free(f.path);
        return rnnd_fail_memory(strlen(path), "file name");
    }
    f.stream = fopen(f.temp, "w");
    if (!f.stream) {
        int status = rnnd_fail(RNND_EFILE, "%s: %s", path, strerror(errno));
        forget(&f);
        return status;
    }
    *out = f;
    return 0;
}

int rnnd_file_commit(struct rnnd_file *f)
{
    errno = EIO; /* of a write that failed before */
    bool good = !ferror(f->stream) && fflush(f->stream) == 0 && fsync(fileno(f->stream)) == 0;
    int cause = errno;
    if (fclose(f->stream) != 0 && good) {
        good = false;
        cause = errno;
    }
    f->stream = NULL;
    if (good && rename(f->temp, f->path) != 0) {
        good = false;
        cause = errno;
    }
    int status = good ? 0 : rnnd_fail(RNND_EFILE, "%s: %s", f->path, strerror(cause));
    if (!good)
        unlink(f->temp);
    forget(f);
    return status;
}

void rnnd_file_drop(struct rnnd_file *f)
{
    if (f->stream) {
        fclose(f->stream);
        unlink(f->temp);
    }
    forget(f);
}
