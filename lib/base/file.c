/*
 * file.c - reading whole files, atomic writing of text files, and file errors.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

static int fail_system(const char *path, int cause)
{
    return rnnd__fail(RNND_EFILE, "%s: %s", path, strerror(cause));
}

/* The target of the symbolic link `at`, relative to the directory of the link; NULL if
   `at` is not a link. */
static int read_link(const char *at, char **out)
{
    char text[PATH_MAX], *next;
    ssize_t n = readlink(at, text, sizeof text - 1);
    *out = NULL;
    if (n < 0)
        return 0;
    text[n] = 0;
    const char *slash = text[0] == '/' ? NULL : strrchr(at, '/');
    int folder = slash ? (int)(slash + 1 - at) : 0;
    if (asprintf(&next, "%.*s%s", folder, at, text) < 0)
        return rnnd__fail_memory((size_t)n, "a file name");
    *out = next;
    return 0;
}

/* Follows a dangling link to the file it names, as a shell's redirection does. Renaming
   to the link's own name would replace the link. */
static int follow(const char *path, char **out)
{
    enum { MOST = 40 }; /* the kernel's limit */
    char *at = strdup(path), *next;
    if (!at)
        return rnnd__fail_memory(strlen(path), "a file name");
    for (int hop = 0; hop < MOST; hop++) {
        int status = read_link(at, &next);
        if (status == 0 && !next) {
            *out = at;
            return 0;
        }
        free(at);
        RNND_TRY(status);
        at = next;
    }
    free(at);
    return fail_system(path, ELOOP);
}

int rnnd__file_fail(const char *verb, const char *path)
{
    return rnnd__fail(RNND_EFILE, "cannot %s %s: %s", verb, path, strerror(errno));
}

int rnnd__file_append(int fd, const char *path, const void *data, size_t size)
{
    ssize_t written = write(fd, data, size);
    if (written == (ssize_t)size)
        return 0;
    if (written >= 0)
        errno = ENOSPC; /* the only cause of a short write to a file */
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

int rnnd__file_target(const char *path, char **out)
{
    struct stat info;
    bool there = stat(path, &info) == 0;
    if (there && !S_ISREG(info.st_mode)) {
        *out = NULL;
        return 0;
    }
    char *target = there ? realpath(path, NULL) : NULL;
    if (!target)
        RNND_TRY(follow(path, &target));
    *out = target;
    return 0;
}

static void forget(struct rnnd__file *f)
{
    free(f->path);
    free(f->target);
    free(f->temp);
    memset(f, 0, sizeof *f);
}

int rnnd__file_create(const char *path, struct rnnd__file *out)
{
    struct rnnd__file f = {.path = strdup(path)};
    int status = f.path ? rnnd__file_target(path, &f.target)
                        : rnnd__fail_memory(strlen(path), "a file name");
    if (status == 0 && f.target &&
        asprintf(&f.temp, "%s.tmp-%ld", f.target, (long)getpid()) < 0) {
        f.temp = NULL;
        status = rnnd__fail_memory(strlen(path), "a file name");
    }
    if (status == 0 && !(f.stream = fopen(f.temp ? f.temp : path, "we")))
        status = fail_system(path, errno);
    if (status < 0)
        forget(&f);
    else
        *out = f;
    return status;
}

/* Flushes, and syncs unless the file is a device or pipe. Returns 0 or an errno. */
static int flush_to_disk(struct rnnd__file *f)
{
    errno = 0;
    bool failed = fflush(f->stream) != 0 || ferror(f->stream);
    if (failed) /* if an earlier write failed, its errno may be lost */
        return errno ? errno : EIO;
    return f->temp && fsync(fileno(f->stream)) != 0 ? errno : 0;
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

int rnnd__file_commit(struct rnnd__file *f)
{
    int cause = flush_to_disk(f);
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

void rnnd__file_drop(struct rnnd__file *f)
{
    if (f->stream) {
        fclose(f->stream);
        if (f->temp)
            unlink(f->temp);
    }
    forget(f);
}

int rnnd__file_check(const char *path)
{
    struct rnnd__file f;
    char *target;
    RNND_TRY(rnnd__file_target(path, &target));
    if (!target) { /* do not open it: a pipe may have no reader yet */
        struct stat info;
        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            return fail_system(path, EISDIR);
        return access(path, W_OK) == 0 ? 0 : fail_system(path, errno);
    }
    free(target);
    RNND_TRY(rnnd__file_create(path, &f));
    rnnd__file_drop(&f);
    return 0;
}
