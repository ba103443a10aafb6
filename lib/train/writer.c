/*
 * writer.c - the thread that writes a checkpoint. It lives as long as one save.
 *
 * HDF5 need not be thread-safe: the room hdf lets one thread in at a time.
 */
#include "train/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/status.h"
#include "checkpoint/checkpoint.h"

struct rnnd__writer {
    /* borrowed */
    const struct rnnd_options *opt;
    const struct rnnd__run_dir *dir;
    struct rnnd__snapshot *snapshot;

    /* the save on its way; the thread reads these, and writes `failure` and, last,
       `state`. update: of the checkpoint; durable: the same once it is, -1 before */
    unsigned files;
    int64_t update, durable;
    struct rnnd__failure failure;
    /* enum rnnd__writing */
    atomic_int state;
    pthread_t thread;
    bool has_thread;
};

int rnnd__writer_new(const struct rnnd_options *opt, const struct rnnd__run_dir *dir,
                     struct rnnd_model *model, struct rnnd_optim *optim,
                     struct rnnd__writer **out)
{
    struct rnnd__writer *w;
    RNND_TRY(RNND_NEW(&w, 1, "a checkpoint"));
    w->opt = opt;
    w->dir = dir;
    int status = rnnd__snapshot_new(model, optim, opt, &w->snapshot);
    if (status == 0) /* the system finds the pages now, not at the first save */
        status = rnnd__snapshot_take(w->snapshot, NULL);
    if (status < 0)
        rnnd__writer_free(w);
    else
        *out = w;
    return status;
}

void rnnd__writer_free(struct rnnd__writer *w)
{
    if (!w)
        return;
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    rnnd__snapshot_free(w->snapshot);
    free(w);
}

/* ---- the thread */

static int write_best(struct rnnd__writer *w)
{
    char *path = NULL;
    RNND_TRY(rnnd__run_dir_check(w->dir));
    RNND_TRY(rnnd__run_dir_file(w->opt->run_dir, "best.h5", &path));
    int status = rnnd__snapshot_write(w->snapshot, path);
    free(path);
    return status;
}

static int write_newest(struct rnnd__writer *w)
{
    char *path = NULL;
    RNND_TRY(rnnd__run_dir_check(w->dir));
    RNND_TRY(rnnd__checkpoint_path(w->opt->run_dir, w->update, &path));
    int status = rnnd__snapshot_write(w->snapshot, path);
    free(path);
    RNND_TRY(status);
    w->durable = w->update;
    RNND_TRY(rnnd__run_dir_check(w->dir));
    return rnnd__checkpoint_prune(w->opt->run_dir, w->opt->keep, w->update);
}

static void *write_files(void *writer)
{
    struct rnnd__writer *w = writer;
    int status = 0;
    if (w->files & RNND_WRITE_BEST)
        status = write_best(w);
    if (status == 0 && w->files & RNND_WRITE_NEWEST)
        status = write_newest(w);
    rnnd__failure_keep(&w->failure, status); /* messages are of one thread */
    atomic_store(&w->state, status < 0 ? RNND_NOT_WRITTEN : RNND_WRITTEN);
    return NULL;
}

/* ---- the run */

int rnnd__writer_start(struct rnnd__writer *w, unsigned files,
                       const struct rnnd__train_state *state)
{
    RNND_TRY(rnnd__snapshot_take(w->snapshot, state));
    w->files = files;
    w->update = state->update;
    w->durable = -1;
    w->failure = (struct rnnd__failure){0};
    atomic_store(&w->state, RNND_WRITING);
    /* It inherits that signals are blocked. Where there can be no thread, the run waits
       for its save. */
    w->has_thread = pthread_create(&w->thread, NULL, write_files, w) == 0;
    if (!w->has_thread)
        write_files(w);
    return 0;
}

enum rnnd__writing rnnd__writer_state(struct rnnd__writer *w)
{
    return (enum rnnd__writing)atomic_load(&w->state);
}

int rnnd__writer_wait(struct rnnd__writer *w, int64_t *update)
{
    *update = -1;
    if (rnnd__writer_state(w) == RNND_WRITING_NOTHING)
        return 0;
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    w->has_thread = false;
    atomic_store(&w->state, RNND_WRITING_NOTHING);
    *update = w->durable;
    return rnnd__failure_restore(&w->failure);
}
