/*
 * checkpoint_dir.c - the checkpoints of a run folder: the newest that is intact, the best, and
 * which of them to keep.
 */
#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf.h"
#include "log.h"
#include "run_dir.h"
#include "status.h"

/* Updates of the checkpoints in a folder, by falling number. */
struct found {
    int64_t *update;
    size_t count, room;
};

static bool parse_name(const char *name, int64_t *update)
{
    long long u;
    int end = 0;
    if (sscanf(name, "ckpt-%10lld.h5%n", &u, &end) != 1 || end != 18 || name[end])
        return false;
    *update = u;
    return true;
}

static int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static int remember(struct found *found, int64_t update)
{
    if (found->count == found->room) {
        found->room = found->room ? 2 * found->room : 16;
        RNND_TRY(rnnd_grow(found->room, sizeof *found->update, "checkpoints",
                           (void **)&found->update));
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
        return rnnd_fail(RNND_EFILE, "%s: %s", run_dir, strerror(errno));
    for (struct dirent *e; status == 0 && (e = readdir(d));) {
        int64_t update;
        if (parse_name(e->d_name, &update))
            status = remember(found, update);
    }
    closedir(d);
    if (found->count)
        qsort(found->update, found->count, sizeof *found->update, falling);
    return status;
}

int rnnd_checkpoint_path(const char *run_dir, int64_t update, char **path)
{
    char name[32];
    snprintf(name, sizeof name, "ckpt-%010lld.h5", (long long)update);
    return rnnd_run_dir_file(run_dir, name, path);
}

/* ---- intact or not ------------------------------------------------------------------ */

static int read_all(void *context, const char *object)
{
    struct rnnd_hdf *f = context;
    struct rnnd_hdf_shape shape;
    RNND_TRY(rnnd_hdf_shape(f, object, &shape));
    if (shape.kind == RNND_HDF_STRING) {
        char **text = NULL;
        int64_t count;
        RNND_TRY(rnnd_hdf_read_strings(f, object, &text, &count));
        free(text);
        return 0;
    }
    int64_t size = 1;
    for (int d = 0; d < shape.rank; d++)
        size *= shape.dim[d];
    void *all = NULL;
    RNND_TRY(rnnd_new((size_t)size, 8, object, &all));
    int status = rnnd_hdf_read(f, object, 0, shape.rank ? shape.dim[0] : 1,
                               shape.kind == RNND_HDF_INT ? RNND_I64 : RNND_F64, all);
    free(all);
    return status;
}

int rnnd_checkpoint_verify(const char *path)
{
    struct rnnd_checkpoint_info info = {0, 0, NULL};
    struct rnnd_hdf *f = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd_checkpoint_read_info(path, &info));
    RNND_TRY_GOTO(rnnd_hdf_open(path, &f));
    RNND_TRY_GOTO(rnnd_hdf_each(f, "/", read_all, f));
done:
    rnnd_hdf_close(f);
    free(info.config);
    return status;
}

/* Whether a file is an intact checkpoint; a damaged one is named. */
static bool is_intact(const char *path)
{
    if (access(path, F_OK) != 0)
        return false;
    if (rnnd_checkpoint_verify(path) == 0)
        return true;
    rnnd_log_warn("%s; it is passed over", rnnd_status_detail());
    return false;
}

int rnnd_checkpoint_newest(const char *run_dir, char **path)
{
    struct found found;
    char *newest = NULL;
    int status = list(run_dir, &found);
    for (size_t i = 0; status == 0 && !newest && i < found.count; i++) {
        status = rnnd_checkpoint_path(run_dir, found.update[i], &newest);
        if (status == 0 && !is_intact(newest)) {
            free(newest);
            newest = NULL;
        }
    }
    free(found.update);
    if (status == 0)
        *path = newest;
    return status;
}

int rnnd_checkpoint_find(const char *model_path, char **path)
{
    struct stat st;
    char *found = NULL;
    if (stat(model_path, &st) != 0)
        return rnnd_fail(RNND_EFILE, "%s: %s", model_path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        if (!(*path = strdup(model_path)))
            return rnnd_fail_memory(strlen(model_path), "file name");
        return 0;
    }
    RNND_TRY(rnnd_run_dir_file(model_path, "best.h5", &found));
    if (!is_intact(found)) {
        free(found);
        found = NULL;
        RNND_TRY(rnnd_checkpoint_newest(model_path, &found));
    }
    if (!found)
        return rnnd_fail(RNND_EFILE, "%s: holds no intact checkpoint", model_path);
    *path = found;
    return 0;
}

/* ---- keeping few -------------------------------------------------------------------- */

/* A file of ours that was being written when its program ended. */
static bool is_left_over(const char *name)
{
    const char *tmp = strstr(name, ".h5.tmp-");
    return tmp && (strncmp(name, "ckpt-", 5) == 0 || strncmp(name, "best", 4) == 0);
}

static int remove_left_overs(const char *run_dir)
{
    DIR *d = opendir(run_dir);
    int status = 0;
    if (!d)
        return rnnd_fail(RNND_EFILE, "%s: %s", run_dir, strerror(errno));
    for (struct dirent *e; status == 0 && (e = readdir(d));) {
        char *file;
        if (!is_left_over(e->d_name))
            continue;
        status = rnnd_run_dir_file(run_dir, e->d_name, &file);
        if (status == 0)
            unlink(file);
        free(status == 0 ? file : NULL);
    }
    closedir(d);
    return status;
}

int rnnd_checkpoint_prune(const char *run_dir, int64_t keep)
{
    struct found found;
    RNND_TRY(remove_left_overs(run_dir));
    int status = list(run_dir, &found);
    for (size_t i = (size_t)keep; keep && status == 0 && i < found.count; i++) {
        char *path;
        status = rnnd_checkpoint_path(run_dir, found.update[i], &path);
        if (status == 0 && unlink(path) != 0 && errno != ENOENT)
            status = rnnd_fail(RNND_EFILE, "%s: %s", path, strerror(errno));
        free(status == 0 ? path : NULL);
    }
    free(found.update);
    return status;
}
