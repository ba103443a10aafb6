/*
 * output.c - new files: what they may replace, their temporary names, and what becomes
 * of those where a process ends early.
 *
 * The temporary file is made with O_EXCL, so that a link planted under its name is
 * never followed. All that are under way are listed, for the end of the process by a
 * signal.
 */
#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

static int fail_system(const char *path, int cause)
{
    return rnnd__fail(RNND_EFILE, "%s: cannot be written: %s", path, strerror(cause));
}

/* ---- which file is meant */

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

/* The file that a new file called path would replace; NULL: path is none. */
static int find_target(const char *path, char **out)
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

/* ---- what may be replaced */

bool rnnd__output_mentions(int fd, off_t size, const char *text)
{
    enum { PART = 1 << 20 };
    char *part = malloc(PART);
    bool found = false;
    for (int last = 0; part && last < 2 && !found; last++) {
        ssize_t n = pread(fd, part, PART, last && size > PART ? size - PART : 0);
        found = n > 0 && memmem(part, (size_t)n, text, strlen(text));
    }
    free(part);
    return found;
}

static bool is_of_kind(int fd, off_t size, const struct rnnd__kind *kind)
{
    enum { STARTS = sizeof kind->start / sizeof *kind->start };
    char start[64] = "";
    bool begins = !kind->start[0];
    if (pread(fd, start, sizeof start, 0) < 0)
        return false;
    for (int i = 0; i < STARTS && kind->start[i]; i++)
        begins |= memcmp(start, kind->start[i], strlen(kind->start[i])) == 0;
    return begins && (!kind->holds || rnnd__output_mentions(fd, size, kind->holds));
}

static int check_kind(const char *path, const char *target,
                      const struct rnnd__kind *kind)
{
    struct stat info;
    int fd = kind ? open(target, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (!kind || (fd < 0 && errno == ENOENT))
        return 0;
    if (fd < 0)
        return fail_system(path, errno);
    int cause = fstat(fd, &info) != 0 ? errno : 0;
    bool fits = !cause && (info.st_size == 0 || is_of_kind(fd, info.st_size, kind));
    close(fd);
    if (cause)
        return fail_system(path, cause);
    return fits ? 0
                : rnnd__fail(RNND_EUSAGE,
                             "%s: exists and is not %s, and so is not replaced; choose "
                             "another output, or remove it first",
                             path, kind->name);
}

/* ---- temporary files of this process, and of those that have ended */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rnnd__output *under_way;
static const char mark[] = ".tmp-";

static void take_in(struct rnnd__output *o, const struct stat *info)
{
    pthread_mutex_lock(&lock);
    o->device = info->st_dev;
    o->inode = info->st_ino;
    o->next = under_way;
    under_way = o;
    pthread_mutex_unlock(&lock);
}

static void take_out(struct rnnd__output *o)
{
    pthread_mutex_lock(&lock);
    for (struct rnnd__output **at = &under_way; *at; at = &(*at)->next)
        if (*at == o) {
            *at = o->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static bool is_under_way(const struct stat *info)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct rnnd__output *o = under_way; o; o = o->next)
        found |= o->device == info->st_dev && o->inode == info->st_ino;
    pthread_mutex_unlock(&lock);
    return found;
}

void rnnd__output_abandon(void)
{
    pthread_mutex_lock(&lock); /* for good */
    for (const struct rnnd__output *o = under_way; o; o = o->next)
        unlink(o->temp);
}

/* The process id at the end of STEM.tmp-PID; 0 for other names. */
static long process_of(const char *name, size_t *stem)
{
    const char *at = NULL;
    char *end;
    for (const char *next = name; (next = strstr(next, mark)); next++)
        at = next;
    if (!at || at[strlen(mark)] < '0' || at[strlen(mark)] > '9')
        return 0;
    long pid = strtol(at + strlen(mark), &end, 10);
    *stem = (size_t)(at - name);
    return *end ? 0 : pid;
}

bool rnnd__output_is_leftover(const char *name, size_t *stem)
{
    long pid = process_of(name, stem);
    /* Another live process may still be writing. */
    return pid > 0 &&
           (pid == (long)getpid() || (kill((pid_t)pid, 0) != 0 && errno == ESRCH));
}

/* Removes what an earlier process left of the same file. stem: its name, as in
   temporary names. */
static void sweep(const char *folder, const char *stem)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat info;
        size_t length;
        if (rnnd__output_is_leftover(e->d_name, &length) && length == strlen(stem) &&
            memcmp(e->d_name, stem, length) == 0 &&
            fstatat(dirfd(d), e->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            !is_under_way(&info))
            (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
}

/* The name of the target in temporary names: cut where they would be too long, and then
   told apart by a hash of all of it. */
static void make_stem(const char *name, char stem[NAME_MAX + 1])
{
    enum { TAIL = sizeof ".tmp-" + 10, HASH = 9 };
    size_t length = strlen(name), most = NAME_MAX - TAIL;
    struct rnnd__hash hash;
    if (length <= most) {
        memcpy(stem, name, length + 1);
        return;
    }
    rnnd__hash_start(&hash);
    rnnd__hash_add(&hash, name, length);
    length = most - HASH;
    while (length && ((unsigned char)name[length] & 0xC0) == 0x80)
        length--; /* not within a character of UTF-8 */
    snprintf(stem, NAME_MAX + 1, "%.*s~%08x", (int)length, name,
             (unsigned)rnnd__hash_end(&hash));
}

/* ---- create and commit */

static void release(struct rnnd__output *o)
{
    if (!o)
        return;
    if (o->fd >= 0)
        close(o->fd);
    free(o->path);
    free(o->target);
    free(o->temp);
    free(o);
}

/* "a/b" is in "a", "/b" in "/", "b" in "."; malloc'ed. *name points into path. */
static int folder_of(const char *path, char **folder, const char **name)
{
    const char *slash = strrchr(path, '/');
    size_t length = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    *name = slash ? slash + 1 : path;
    *folder = slash ? strndup(path, length) : strdup(".");
    return *folder ? 0 : rnnd__fail_memory(length, "a file name");
}

static int make_temp(struct rnnd__output *o)
{
    enum { FLAGS = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
    char stem[NAME_MAX + 1], *folder;
    const char *name;
    struct stat info;
    RNND_TRY(folder_of(o->target, &folder, &name));
    make_stem(name, stem);
    sweep(folder, stem);
    int length = (int)(name - o->target);
    free(folder);
    if (asprintf(&o->temp, "%.*s%s%s%ld", length, o->target, stem, mark,
                 (long)getpid()) < 0) {
        o->temp = NULL;
        return rnnd__fail_memory(strlen(name), "a file name");
    }
    o->fd = open(o->temp, FLAGS, 0666);
    if (o->fd < 0 && errno == EEXIST && lstat(o->temp, &info) == 0 &&
        is_under_way(&info))
        return rnnd__fail(RNND_EUSAGE,
                          "%s would be written twice; choose another output", o->path);
    if (o->fd < 0 || fstat(o->fd, &info) != 0)
        return fail_system(o->path, errno);
    take_in(o, &info);
    return 0;
}

int rnnd__output_open(const char *path, const struct rnnd__kind *kind,
                      struct rnnd__output **out)
{
    struct rnnd__output *o;
    int status = 0;
    RNND_TRY(RNND_NEW(&o, 1, "a file"));
    o->fd = -1;
    o->path = strdup(path);
    if (!o->path)
        RNND_TRY_GOTO(rnnd__fail_memory(strlen(path), "a file name"));
    RNND_TRY_GOTO(find_target(path, &o->target));
    if (o->target) {
        RNND_TRY_GOTO(check_kind(path, o->target, kind));
        RNND_TRY_GOTO(make_temp(o));
    }
    *out = o;
    o = NULL;
done:
    release(o);
    return status;
}

static int settle(struct rnnd__output *o)
{
    char *folder;
    const char *name;
    if (fsync(o->fd) != 0)
        return rnnd__fail(RNND_EFILE, "%s: cannot be synced: %s", o->path,
                          strerror(errno));
    if (rename(o->temp, o->target) != 0)
        return rnnd__fail(RNND_EFILE, "%s: cannot be renamed: %s", o->path,
                          strerror(errno));
    RNND_TRY(folder_of(o->target, &folder, &name));
    int status = rnnd__file_sync_folder(folder);
    free(folder);
    return status;
}

int rnnd__output_commit(struct rnnd__output *o)
{
    int status = o->target ? settle(o) : 0;
    rnnd__output_drop(o);
    return status;
}

/* After a rename, there is no temporary file to remove. */
void rnnd__output_drop(struct rnnd__output *o)
{
    struct stat info;
    if (o && o->fd >= 0) {
        if (lstat(o->temp, &info) == 0 && info.st_dev == o->device &&
            info.st_ino == o->inode)
            unlink(o->temp);
        take_out(o);
    }
    release(o);
}

int rnnd__output_check(const char *path, const struct rnnd__kind *kind)
{
    struct rnnd__output *o;
    struct stat info;
    RNND_TRY(rnnd__output_open(path, kind, &o));
    bool writes = o->target;
    rnnd__output_drop(o);
    if (writes)
        return 0;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return fail_system(path, EISDIR);
    /* not opened: a pipe may have no reader yet */
    return access(path, W_OK) == 0 ? 0 : fail_system(path, errno);
}
