/*
 * checkpoint_dir.c - the checkpoints of a run directory: finds the newest intact one or
 * the best, and removes old ones.
 */
#include "checkpoint/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "base/status.h"
#include "checkpoint/run_dir.h"
#include "checkpoint/statedict.h"
#include "hdf/hdf.h"

/* Updates of the checkpoints in a folder, newest first. */
struct found {
    int64_t *update;
    size_t count, room;
};

bool rnnd__checkpoint_name(const char *name, int64_t *update)
{
    static const char head[] = "ckpt-", tail[] = ".h5";
    const char *digits = name + strlen(head);
    if (strncmp(name, head, strlen(head)) != 0)
        return false;
    size_t n = strspn(digits, "0123456789");
    if (n < 10 || n > 18 || strcmp(digits + n, tail) != 0)
        return false;
    *update = strtoll(digits, NULL, 10);
    return true;
}

static int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static int add_found(struct found *found, int64_t update)
{
    if (found->count == found->room) {
        found->room = found->room ? 2 * found->room : 16;
        RNND_TRY(RNND_GROW(&found->update, found->room, "checkpoints"));
    }
    found->update[found->count++] = update;
    return 0;
}

static int list(const char *run_dir, struct found *found)
{
    DIR *d = opendir(run_dir);
    int status = 0;
    memset(found, 0, sizeof *found);
    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return rnnd__fail(RNND_EFILE, "%s: %s", run_dir, strerror(errno));
    for (struct dirent *e; status == 0 && (e = readdir(d));) {
        int64_t update;
        if (rnnd__checkpoint_name(e->d_name, &update))
            status = add_found(found, update);
    }
    closedir(d);
    if (found->count)
        qsort(found->update, found->count, sizeof *found->update, falling);
    return status;
}

int rnnd__checkpoint_any(const char *run_dir, bool *out)
{
    struct found found;
    struct stat info;
    char *best;
    RNND_TRY(rnnd__run_dir_file(run_dir, "best.h5", &best));
    bool has_best = lstat(best, &info) == 0;
    free(best);
    int status = list(run_dir, &found);
    *out = has_best || found.count > 0;
    free(found.update);
    return status;
}

int rnnd__checkpoint_path(const char *run_dir, int64_t update, char **path)
{
    char name[32];
    snprintf(name, sizeof name, "ckpt-%010lld.h5", (long long)update);
    return rnnd__run_dir_file(run_dir, name, path);
}

/* ---- intact or not */

/* Reads everything, and checks that it makes a model. */
static int verify(struct rnnd__hdf *f)
{
    struct rnnd__statedict sd;
    struct rnnd_model_spec spec;
    RNND_TRY(rnnd__hdf_read_all(f));
    RNND_TRY(rnnd__statedict_of(f, &sd));
    int status = rnnd__statedict_spec(&sd, NULL, &spec);
    rnnd__statedict_close(&sd);
    return status;
}

/* Lack of memory and a signal say nothing about the file. */
static bool tells_of_damage(int status)
{
    return status < 0 && status != RNND_EDEVICE && status != RNND_STOPPED;
}

int rnnd__checkpoint_verify(const char *path, bool of_run)
{
    struct rnnd__hdf *f;
    RNND_TRY(rnnd__checkpoint_open(path, of_run, &f));
    int status = verify(f);
    rnnd__hdf_close(f);
    return tells_of_damage(status) ? RNND_EFILE : status;
}

bool rnnd__checkpoint_has_gone(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && errno == ENOENT;
}

int rnnd__checkpoint_is_intact(const char *path, bool *out)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    *out = false;
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return rnnd__fail(RNND_EFILE, "%s: %s", path, strerror(errno));
    close(fd);
    int status = rnnd__checkpoint_verify(path, true);
    if (tells_of_damage(status) && !rnnd__checkpoint_has_gone(path))
        rnnd__log_warn("%s; skipping it", rnnd_status_detail());
    *out = status == 0;
    return tells_of_damage(status) ? 0 : status;
}

/* Whether a training that goes on has written or removed one since `found`. */
static int has_changed(const char *run_dir, const struct found *found, bool *out)
{
    struct found now;
    int status = list(run_dir, &now);
    *out = now.count != found->count ||
           (now.count &&
            memcmp(now.update, found->update, now.count * sizeof *now.update) != 0);
    free(now.update);
    return status;
}

/* *changed: there are fewer than `most`, and others now. */
static int try_last(const char *run_dir, int64_t most, char **path, int64_t *count,
                    bool *changed)
{
    struct found found;
    int64_t n = 0;
    int status = list(run_dir, &found);
    for (size_t i = 0; status == 0 && n < most && i < found.count; i++) {
        char *one = NULL;
        bool intact = false;
        status = rnnd__checkpoint_path(run_dir, found.update[i], &one);
        if (status == 0)
            status = rnnd__checkpoint_is_intact(one, &intact);
        if (intact)
            path[n++] = one;
        else
            free(one);
    }
    *changed = false;
    if (status == 0 && n < most)
        status = has_changed(run_dir, &found, changed);
    free(found.update);
    while (n > 0 && (status < 0 || *changed))
        free(path[--n]);
    *count = n;
    return status;
}

int rnnd__checkpoint_last(const char *run_dir, int64_t most, char **path,
                          int64_t *count)
{
    enum { TRIES = 20 };
    bool changed = true;
    for (int k = 0; changed && k < TRIES; k++)
        RNND_TRY(try_last(run_dir, most, path, count, &changed));
    return changed ? rnnd__fail(RNND_EFILE,
                                "%s: its checkpoints change faster than they can be "
                                "read; a running training does so: see --save-every",
                                run_dir)
                   : 0;
}

int rnnd__checkpoint_newest(const char *run_dir, char **path)
{
    char *newest = NULL;
    int64_t count;
    RNND_TRY(rnnd__checkpoint_last(run_dir, 1, &newest, &count));
    *path = newest;
    return 0;
}

int rnnd_checkpoint_find(const char *model_path, char **path)
{
    struct stat st;
    char *found = NULL;
    bool intact;
    if (stat(model_path, &st) != 0)
        return rnnd__fail(RNND_EFILE, "%s: %s", model_path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        if (!(*path = strdup(model_path)))
            return rnnd__fail_memory(strlen(model_path), "a file name");
        return 0;
    }
    RNND_TRY(rnnd__run_dir_file(model_path, "best.h5", &found));
    int status = rnnd__checkpoint_is_intact(found, &intact);
    if (status < 0 || !intact) {
        free(found);
        found = NULL;
    }
    RNND_TRY(status);
    if (!found)
        RNND_TRY(rnnd__checkpoint_newest(model_path, &found));
    if (!found)
        return rnnd__fail(RNND_EFILE, "%s: contains no intact checkpoint", model_path);
    *path = found;
    return 0;
}

/* ---- removing old ones */

/* A checkpoint that was being written when its process ended. */
static bool is_leftover(const char *name)
{
    char target[64];
    size_t stem;
    int64_t update;
    if (!rnnd__output_is_leftover(name, &stem) || stem >= sizeof target)
        return false;
    snprintf(target, sizeof target, "%.*s", (int)stem, name);
    return strcmp(target, "best.h5") == 0 || rnnd__checkpoint_name(target, &update);
}

static int remove_file(char *path)
{
    int status = 0;
    if (unlink(path) != 0 && errno != ENOENT)
        status =
            rnnd__fail(RNND_EFILE, "%s: cannot be removed: %s", path, strerror(errno));
    free(path);
    return status;
}

static int remove_leftovers(const char *run_dir)
{
    DIR *d = opendir(run_dir);
    int status = 0;
    if (!d)
        return rnnd__fail(RNND_EFILE, "%s: %s", run_dir, strerror(errno));
    for (struct dirent *e; status == 0 && (e = readdir(d));) {
        char *file;
        if (!is_leftover(e->d_name))
            continue;
        status = rnnd__run_dir_file(run_dir, e->d_name, &file);
        if (status == 0)
            status = remove_file(file);
    }
    closedir(d);
    return status;
}

/* A run that resumed from an older checkpoint, because newer ones were damaged, still
   has those in its folder. If they counted, intact ones would be removed. No clock
   takes part: it may have been set back. */
int rnnd__checkpoint_prune(const char *run_dir, int64_t keep, int64_t written)
{
    struct found found;
    int64_t counted = 0;
    RNND_TRY(remove_leftovers(run_dir));
    if (keep == 0)
        return 0;
    int status = list(run_dir, &found);
    for (size_t i = 0; status == 0 && i < found.count; i++) {
        char *path;
        if (found.update[i] > written || ++counted <= keep)
            continue;
        status = rnnd__checkpoint_path(run_dir, found.update[i], &path);
        if (status == 0)
            status = remove_file(path);
    }
    free(found.update);
    return status;
}
