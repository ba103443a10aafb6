/*
 * file.c - reading whole files, writing text files, and file errors.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

static int fail_system(const char *path, int cause)
{
    return rnnd__fail(RNND_EFILE, "%s: %s", path, strerror(cause));
}

int rnnd__file_fail(const char *verb, const char *path)
{
    return rnnd__fail(RNND_EFILE, "cannot %s %s: %s", verb, path, strerror(errno));
}

int rnnd__file_append(int fd, const char *path, const void *data, size_t size)
{
    struct stat info;
    size_t done = 0;
    errno = 0;
    while (done < size) {
        ssize_t n = write(fd, (const char *)data + done, size - done);
        if (n <= 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    if (done == size)
        return 0;
    int cause = errno ? errno : ENOSPC;
    if (done && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        (void)!ftruncate(fd, info.st_size - (off_t)done);
    errno = cause;
    return rnnd__file_fail("write", path);
}

int rnnd__file_open(const char *path, FILE **stream)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    *stream = NULL;
    if (fd < 0)
        return errno == ENOENT ? 0 : fail_system(path, errno);
    bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (regular && (*stream = fdopen(fd, "r")))
        return 0;
    int cause = regular ? errno : 0;
    close(fd);
    return cause ? fail_system(path, cause)
                 : rnnd__fail(RNND_EFILE, "%s: not a regular file", path);
}

static int read_all(int fd, const char *path, char **text, size_t *size)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail_system(path, errno);
    if (S_ISDIR(info.st_mode))
        return fail_system(path, EISDIR);
    size_t room = info.st_size > 0 ? (size_t)info.st_size + 2 : 65536;
    for (;; room *= 2) { /* a pipe, or a file that grows */
        RNND_TRY(RNND_GROW(text, room, path));
        while (*size < room - 1) {
            ssize_t n = read(fd, *text + *size, room - 1 - *size);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                return fail_system(path, errno);
            if (n == 0)
                return 0;
            *size += (size_t)n;
        }
    }
}

int rnnd__file_read(const char *path, char **text, size_t *size)
{
    char *bytes = NULL;
    size_t count = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_system(path, errno);
    int status = read_all(fd, path, &bytes, &count);
    close(fd);
    if (status < 0) {
        free(bytes);
        return status;
    }
    bytes[count] = '\0';
    *text = bytes;
    *size = count;
    return 0;
}

static void forget(struct rnnd__file *f)
{
    rnnd__output_drop(f->output);
    memset(f, 0, sizeof *f);
}

/* A stream of its own descriptor: the output keeps the other. */
static FILE *stream_of(const struct rnnd__output *output)
{
    if (!output->target)
        return fopen(output->path, "we");
    int fd = fcntl(output->fd, F_DUPFD_CLOEXEC, 0);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
    int cause = errno;
    if (!stream && fd >= 0)
        close(fd);
    errno = cause;
    return stream;
}

int rnnd__file_create(const char *path, const struct rnnd__kind *kind,
                      struct rnnd__file *out)
{
    struct rnnd__file f = {.stream = NULL};
    RNND_TRY(rnnd__output_open(path, kind, &f.output));
    f.stream = stream_of(f.output);
    if (!f.stream) {
        int status = fail_system(path, errno);
        forget(&f);
        return status;
    }
    *out = f;
    return 0;
}

int rnnd__file_sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: a file system that cannot sync folders. */
    bool failed = fd < 0 || (fsync(fd) != 0 && errno != EINVAL);
    int status = failed ? rnnd__file_fail("sync", folder) : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

/* Returns 0 or an errno. */
static int flush(FILE *stream)
{
    errno = 0;
    bool failed = fflush(stream) != 0 || ferror(stream);
    return !failed ? 0 : errno ? errno : EIO; /* of an earlier write, it may be lost */
}

int rnnd__file_commit(struct rnnd__file *f)
{
    int cause = flush(f->stream);
    if (fclose(f->stream) != 0 && !cause)
        cause = errno;
    int status = cause ? fail_system(f->output->path, cause) : 0;
    if (!cause) {
        status = rnnd__output_commit(f->output);
        f->output = NULL;
    }
    forget(f);
    return status;
}

void rnnd__file_drop(struct rnnd__file *f)
{
    if (f->stream)
        fclose(f->stream);
    forget(f);
}
