/*
 * file.c - files that appear whole or not at all.
 */
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "status.h"

int rnnd_file_target(const char *path, char **out)
{
    struct stat info;
    bool there = stat(path, &info) == 0;
    if (there && !S_ISREG(info.st_mode)) {
        *out = NULL;
        return 0;
    }
    char *target = there ? realpath(path, NULL) : NULL;
    if (!target)
        target = strdup(path);
    if (!target)
        return rnnd_fail_memory(strlen(path), "a file name");
    *out = target;
    return 0;
}

static void forget(struct rnnd_file *f)
{
    free(f->path);
    free(f->target);
    free(f->temp);
    memset(f, 0, sizeof *f);
}

static int fail_system(const char *path, int cause)
{
    return rnnd_fail(RNND_EFILE, "%s: %s", path, strerror(cause));
}

int rnnd_file_create(const char *path, struct rnnd_file *out)
{
    struct rnnd_file f = {.path = strdup(path)};
    int status = f.path ? rnnd_file_target(path, &f.target)
                        : rnnd_fail_memory(strlen(path), "a file name");
    if (status == 0 && f.target
        && asprintf(&f.temp, "%s.tmp-%ld", f.target, (long)getpid()) < 0) {
        f.temp = NULL;
        status = rnnd_fail_memory(strlen(path), "a file name");
    }
    if (status == 0 && !(f.stream = fopen(f.temp ? f.temp : path, "we")))
        status = fail_system(path, errno);
    if (status < 0)
        forget(&f);
    else
        *out = f;
    return status;
}

/* All that was written is on disk; a device or a pipe has no disk to be on. 0 or an
   errno. */
static int settle(struct rnnd_file *f)
{
    errno = 0;
    bool failed = fflush(f->stream) != 0 || ferror(f->stream);
    if (failed) /* a write before may have failed, and its cause be forgotten */
        return errno ? errno : EIO;
    return f->temp && fsync(fileno(f->stream)) != 0 ? errno : 0;
}

int rnnd_file_commit(struct rnnd_file *f)
{
    int cause = settle(f);
    if (fclose(f->stream) != 0 && !cause)
        cause = errno;
    f->stream = NULL;
    if (!cause && f->temp && rename(f->temp, f->target) != 0)
        cause = errno;
    int status = cause ? fail_system(f->path, cause) : 0;
    if (cause && f->temp)
        unlink(f->temp);
    forget(f);
    return status;
}

void rnnd_file_drop(struct rnnd_file *f)
{
    if (f->stream) {
        fclose(f->stream);
        if (f->temp)
            unlink(f->temp);
    }
    forget(f);
}

int rnnd_file_check(const char *path)
{
    struct rnnd_file f;
    char *target;
    RNND_TRY(rnnd_file_target(path, &target));
    if (!target) { /* not opened: a pipe may have no reader yet */
        struct stat info;
        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            return fail_system(path, EISDIR);
        return access(path, W_OK) == 0 ? 0 : fail_system(path, errno);
    }
    free(target);
    RNND_TRY(rnnd_file_create(path, &f));
    rnnd_file_drop(&f);
    return 0;
}
