/*
 * run_dir.c - the folder of a run: creates, locks and inspects it.
 */
#include "checkpoint/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/status.h"

struct rnnd__run_dir {
    /* descriptor that holds the lock */
    int lock;
    /* path of the lock; owned */
    char *file;
};

/* mkdir -p. */
static int make(const char *path)
{
    char *part = strdup(path);
    int status = 0;
    if (!part)
        return rnnd__fail_memory(strlen(path), "a file name");
    for (char *slash = part + 1; status == 0; slash++) {
        slash = strchrnul(slash, '/');
        char was = *slash;
        *slash = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            status = rnnd__file_fail("create run directory", part);
        *slash = was;
        if (!was)
            break;
    }
    free(part);
    return status;
}

static bool is_run_file(const char *name)
{
    return strcmp(name, "config.ini") == 0 || strcmp(name, "metrics.jsonl") == 0 ||
           strcmp(name, "best.h5") == 0 || strncmp(name, "ckpt-", 5) == 0;
}

int rnnd__run_dir_unused(const char *path)
{
    DIR *d = opendir(path);
    int status = 0;
    if (!d)
        return errno == ENOENT ? 0 : rnnd__file_fail("read run directory", path);
    for (struct dirent *e; status == 0 && (e = readdir(d));)
        if (is_run_file(e->d_name))
            status = rnnd__fail(RNND_EUSAGE,
                                "%s: already contains a run (%s): continue it with "
                                "--resume, or use another --run-dir",
                                path, e->d_name);
    closedir(d);
    return status;
}

int rnnd__run_dir_file(const char *path, const char *name, char **out)
{
    char *file;
    if (asprintf(&file, "%s/%s", path, name) < 0)
        return rnnd__fail_memory(strlen(path), "a file name");
    *out = file;
    return 0;
}

bool rnnd__run_dir_has(const char *path, const char *name)
{
    char *file;
    if (rnnd__run_dir_file(path, name, &file) < 0)
        return false;
    bool has = access(file, F_OK) == 0;
    free(file);
    return has;
}

/* Some file systems of clusters, such as NFS and Lustre as they are often mounted, have
   no locks: a run is possible there, only unprotected. */
static int lock(int fd, const char *path)
{
    int result;
    do
        result = flock(fd, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return rnnd__fail(RNND_EFILE, "%s: another run is using this folder", path);
    rnnd__log_warn("%s: cannot be locked (%s): make sure that no other run uses it",
                   path, strerror(errno));
    return 0;
}

static int take_lock(struct rnnd__run_dir *dir, const char *path)
{
    int status = 0;
    RNND_TRY(rnnd__run_dir_file(path, ".lock", &dir->file));
    dir->lock = open(dir->file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (dir->lock < 0)
        status = rnnd__file_fail("write to run directory", path);
    else
        status = lock(dir->lock, path);
    return status;
}

int rnnd__run_dir_check(const struct rnnd__run_dir *dir)
{
    struct stat held, named;
    if (stat(dir->file, &named) != 0)
        return rnnd__fail(RNND_EFILE,
                          "%s: %s: this run's folder was removed or renamed while it "
                          "was in use; nothing more is saved",
                          dir->file, strerror(errno));
    if (fstat(dir->lock, &held) != 0)
        return rnnd__file_fail("check", dir->file);
    if (held.st_dev != named.st_dev || held.st_ino != named.st_ino)
        return rnnd__fail(RNND_EFILE,
                          "%s: not the file that this run has locked: its folder was "
                          "removed and made anew, perhaps by another run; nothing more "
                          "is saved",
                          dir->file);
    return 0;
}

int rnnd__run_dir_open(const char *path, bool resume, struct rnnd__run_dir **out)
{
    struct rnnd__run_dir *dir = NULL;
    int status = 0;
    RNND_TRY(make(path));
    RNND_TRY_GOTO(RNND_NEW(&dir, 1, "a run directory"));
    dir->lock = -1;
    RNND_TRY_GOTO(take_lock(dir, path));
    if (!resume)
        RNND_TRY_GOTO(rnnd__run_dir_unused(path));
    *out = dir;
    return 0;
done:
    rnnd__run_dir_close(dir);
    return status;
}

int rnnd__run_dir_open_old(const char *path, struct rnnd__run_dir **out)
{
    struct stat info;
    *out = NULL;
    if (stat(path, &info) != 0 && errno == ENOENT)
        return 0;
    return rnnd__run_dir_open(path, true, out);
}

bool rnnd__run_dir_keeps(const char *path, const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    struct stat own, other;
    if (!is_run_file(name) && strcmp(name, ".lock") != 0 &&
        strcmp(name, "paths") != 0 && strcmp(name, "tensorboard") != 0)
        return false;
    char *folder = slash ? strndup(file, (size_t)(slash - file + 1)) : strdup(".");
    bool same = folder && stat(folder, &other) == 0 && stat(path, &own) == 0 &&
                own.st_dev == other.st_dev && own.st_ino == other.st_ino;
    free(folder);
    return same;
}

void rnnd__run_dir_close(struct rnnd__run_dir *dir)
{
    if (!dir)
        return;
    if (dir->lock >= 0)
        close(dir->lock);
    free(dir->file);
    free(dir);
}

int rnnd__run_dir_write(const char *path, const char *name, const char *text)
{
    struct rnnd__file file;
    char *full;
    RNND_TRY(rnnd__run_dir_file(path, name, &full));
    int status = rnnd__file_create(full, NULL, &file);
    free(full);
    RNND_TRY(status);
    fputs(text, file.stream);
    return rnnd__file_commit(&file);
}

int rnnd__run_dir_read(const char *path, const char *name, char **text)
{
    char *file = NULL, *all = NULL;
    size_t room = 0;
    int status = 0;
    RNND_TRY(rnnd__run_dir_file(path, name, &file));
    FILE *f;
    status = rnnd__file_open(file, &f);
    if (f && getdelim(&all, &room, 0, f) < 0) {
        status = ferror(f) ? rnnd__file_fail("read", file) : 0;
        free(all);
        all = NULL;
    }
    if (f)
        fclose(f);
    free(file);
    if (status == 0)
        *text = all;
    return status;
}
