/*
 * average.c - the mean of the last checkpoints of a run: training moves around a
 * minimum, and this is the middle of its path.
 *
 * Sums are in double, from the newest checkpoint to the oldest. A training that goes on
 * may remove one of them before it is read; then all begins anew, with those that are
 * the last now.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "model/params.h"

struct mean {
    struct rnnd_backend *be;
    /* the newest, which becomes the mean */
    struct rnnd_model *model;
    /* [count] of its arena */
    double *sum;
    float *values;
};

/* Whether two models have the same parameters and read features in the same way. */
static bool are_alike(struct rnnd_model *a, struct rnnd_model *b)
{
    const char *x, *y;
    int64_t rows[2], cols[2];
    bool more;
    int i = 0;
    do {
        more = rnnd_model_parameter(a, i, &x, &rows[0], &cols[0]);
        if (more != rnnd_model_parameter(b, i, &y, &rows[1], &cols[1]))
            return false;
        if (more && (strcmp(x, y) != 0 || rows[0] != rows[1] || cols[0] != cols[1]))
            return false;
        i++;
    } while (more);
    size_t bytes = (size_t)rnnd_model_spec(a)->inputs * sizeof(float);
    return !rnnd_model_mean(a) ||
           (memcmp(rnnd_model_mean(a), rnnd_model_mean(b), bytes) == 0 &&
            memcmp(rnnd_model_std(a), rnnd_model_std(b), bytes) == 0);
}

static int add(struct mean *m, struct rnnd_model *model)
{
    const struct rnnd__params *par = rnnd__model_params(model);
    RNND_TRY(rnnd__params_download(par, par->value, m->values));
    for (int64_t i = 0; i < par->count; i++)
        m->sum[i] += (double)m->values[i];
    return 0;
}

static int add_file(struct mean *m, const char *path)
{
    struct rnnd_model *model;
    RNND_TRY(rnnd_checkpoint_load_model(path, m->be, &model, NULL));
    int status = are_alike(m->model, model)
                     ? add(m, model)
                     : rnnd__fail(RNND_EDATA,
                                  "%s: is another model than the newest checkpoint, so "
                                  "there is no average of them",
                                  path);
    rnnd_model_free(model);
    return status;
}

static int average(struct mean *m, char **path, int64_t count)
{
    const struct rnnd__params *par = rnnd__model_params(m->model);
    RNND_TRY(RNND_NEW(&m->sum, par->count, "an average"));
    RNND_TRY(RNND_NEW(&m->values, par->count, "an average"));
    RNND_TRY(add(m, m->model));
    for (int64_t i = 1; i < count; i++)
        RNND_TRY(add_file(m, path[i]));
    for (int64_t i = 0; i < par->count; i++)
        m->values[i] = (float)(m->sum[i] / (double)count);
    return rnnd__params_upload(par, par->value, m->values);
}

/* The paths [count] of as many checkpoints. */
static int find(const char *run_dir, int64_t count, char **path, int64_t *found)
{
    struct stat st;
    if (stat(run_dir, &st) == 0 && !S_ISDIR(st.st_mode))
        return rnnd__fail(
            RNND_EUSAGE,
            "%s: an average is of the checkpoints of a run directory, not "
            "of one file",
            run_dir);
    RNND_TRY(rnnd__checkpoint_last(run_dir, count, path, found));
    if (*found < count)
        return rnnd__fail(
            RNND_EFILE,
            "%s: has %lld intact checkpoints, not %lld; train --keep sets "
            "how many are kept",
            run_dir, (long long)*found, (long long)count);
    return 0;
}

/* *gone: on failure, whether it may be for lack of a checkpoint that was listed. */
static int try_average(const char *run_dir, int64_t count, struct mean *m,
                       struct rnnd_checkpoint_info *info, bool *gone)
{
    int64_t found = 0;
    char **path = NULL;
    int status = 0;
    RNND_TRY(RNND_NEW(&path, count, "checkpoints"));
    RNND_TRY_GOTO(find(run_dir, count, path, &found));
    RNND_TRY_GOTO(rnnd_checkpoint_load_model(path[0], m->be, &m->model, info));
    RNND_TRY_GOTO(average(m, path, count));
done:
    *gone = false;
    for (int64_t i = 0; i < found; i++) {
        *gone |= rnnd__checkpoint_has_gone(path[i]);
        free(path[i]);
    }
    free(path);
    return status;
}

int rnnd__checkpoint_average(const char *run_dir, int64_t count,
                             struct rnnd_backend *be, struct rnnd_model **out,
                             struct rnnd_checkpoint_info *info)
{
    enum { TRIES = 20 };
    bool gone = true;
    int status = 0;
    for (int k = 0; gone && k < TRIES; k++) {
        struct mean m = {.be = be};
        struct rnnd_checkpoint_info newest = {0, 0, NULL};
        status = try_average(run_dir, count, &m, &newest, &gone);
        free(m.sum);
        free(m.values);
        if (status == 0) {
            *out = m.model;
            *info = newest;
            return 0;
        }
        rnnd_model_free(m.model);
        free(newest.config);
    }
    return gone ? rnnd__fail(RNND_EFILE,
                             "%s: training removes checkpoints faster than %lld of "
                             "them can be read; see train --keep and --save-every",
                             run_dir, (long long)count)
                : status;
}
