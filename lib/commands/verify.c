/*
 * verify.c - checks the program on the user's own data.
 *
 * Computes the gradient of one update in several ways and compares it tensor by tensor.
 * The reference is the whole update on one rank, which every rank computes for itself.
 */
#include "commands/verify.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_dir.h"
#include "device/device.h"
#include "model/params.h"
#include "options/options.h"
#include "train/step.h"

/* Tolerance for rounding: largest difference over largest value of a tensor. */
static const double tolerance = 2e-5;

enum { PARTS_OF_ONE = 3, UPDATES = 3 };

struct verifier {
    struct rnnd__setup setup;
    const struct rnnd_options *opt;
    struct rnnd_comm *comm;
    /* NULL except on rank 0 */
    FILE *out;
    const struct rnnd__params *params;
    /* arenas on the host: the reference, and what is compared with it */
    float *one, *other;
    /* a comparison has failed */
    bool failed;
};

/* ---- gradients */

/* Which part of the first update is computed, and how. */
struct way {
    int part, parts;
    /* steps per micro-batch, 0 = no bound */
    int64_t bound;
};

static const struct way whole = {0, 1, 0};

/* Adds the gradient sums of a part of the first update to the model's. */
static int add_part(struct verifier *v, const struct way *way)
{
    struct rnnd__train_state start = {.update = 0};
    struct rnnd__stepper step;
    struct rnnd__shard *shard = v->setup.shard;
    int status = 0;
    shard->part = way->part;
    shard->parts = way->parts;
    shard->bound = way->bound;
    RNND_TRY(rnnd__stepper_open(&step, &v->setup, &start));
    RNND_TRY_GOTO(rnnd__stepper_begin_epoch(&step));
    RNND_TRY_GOTO(rnnd__stepper_accumulate(&step));
done:
    rnnd__stepper_close(&step);
    return status;
}

/* Copies the gradient sums to the host and resets them. */
static int take_gradient(struct verifier *v, float *out)
{
    RNND_TRY(rnnd__params_download(v->params, v->params->grad, out));
    rnnd_model_zero_gradient(v->setup.model);
    return 0;
}

static double largest(const float *a, const float *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (b ? b[i] : 0));
        most = d > most || isnan(d) ? d : most;
    }
    return most;
}

/* The largest difference of any tensor, relative to the tensor's largest value (or to a
   thousandth of the largest value of all, if that is more). */
static double difference(const struct verifier *v)
{
    double floor = 1e-3 * largest(v->one, NULL, v->params->count), most = 0;
    for (int i = 0; i < v->params->listed; i++) {
        const struct rnnd__param *p = &v->params->list[i];
        int64_t n = rnnd__param_size(p);
        const float *one = v->one + p->offset, *other = v->other + p->offset;
        double scale = fmax(largest(one, NULL, n), floor);
        double d = largest(other, one, n) / (scale > 0 ? scale : 1);
        most = d > most || isnan(d) ? d : most;
    }
    return most;
}

static void judge(struct verifier *v, const char *what, double difference, double most)
{
    bool ok = difference <= most;
    v->failed = v->failed || !ok;
    if (v->out)
        fprintf(v->out, "%-44s largest difference %-9.3g (tolerance %g): %s\n", what,
                difference, most, ok ? "ok" : "FAILED");
}

/* A reducer may sum gradients over ranks during a pass; the reference is of one
   rank. */
static void drop_reducer(struct verifier *v)
{
    rnnd_reducer_free(v->setup.reducer);
    v->setup.reducer = NULL;
}

static int compare_ranks(struct verifier *v)
{
    int size = rnnd_comm_size(v->comm), rank = rnnd_comm_rank(v->comm), status = 0;
    struct rnnd_loss none = {0, 0, 0, 0};
    char what[64];
    RNND_TRY(rnnd_reducer_new(v->setup.model, v->comm, v->opt->bucket_mb,
                              &v->setup.reducer));
    if (size > 1)
        status = add_part(v, &(struct way){rank, size, 0});
    for (int r = 0; size == 1 && status == 0 && r < PARTS_OF_ONE; r++)
        status = add_part(v, &(struct way){r, PARTS_OF_ONE, 0});
    RNND_TRY(rnnd_reducer_finish(v->setup.reducer, status, NULL, &none));
    drop_reducer(v);
    RNND_TRY(take_gradient(v, v->other));
    if (size > 1)
        snprintf(what, sizeof what, "%d ranks == 1 rank", size);
    else
        snprintf(what, sizeof what, "%d shards == 1 rank", PARTS_OF_ONE);
    judge(v, what, difference(v), tolerance);
    return 0;
}

static int compare_micro(struct verifier *v, const char *what, int64_t bound_steps)
{
    RNND_TRY(add_part(v, &(struct way){0, 1, bound_steps}));
    RNND_TRY(take_gradient(v, v->other));
    judge(v, what, difference(v), tolerance);
    return 0;
}

/* ---- stop and resume */

/* Trains up to this many updates in the run directory where/name. */
static int train(struct verifier *v, const char *where, const char *name,
                 int64_t updates, bool resume)
{
    struct rnnd_options opt;
    struct rnnd_train_result result;
    char *dir = NULL;
    int status = 0;
    RNND_TRY(rnnd_options_init(&opt));
    RNND_TRY_GOTO(rnnd__options_overlay(&opt, v->opt));
    RNND_TRY_GOTO(rnnd__run_dir_file(where, name, &dir));
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)updates);
    RNND_TRY_GOTO(rnnd__options_set(&opt, "run-dir", dir, RNND_FROM_COMMAND_LINE));
    RNND_TRY_GOTO(
        rnnd__options_set(&opt, "max-updates", number, RNND_FROM_COMMAND_LINE));
    RNND_TRY_GOTO(rnnd__options_set(&opt, "progress", "none", RNND_FROM_COMMAND_LINE));
    free(opt.trace); /* a file of the user's: only train and bench write it */
    opt.trace = NULL;
    opt.resume = resume;
    RNND_TRY_GOTO(rnnd_train(&opt, v->comm, &result));
done:
    free(dir);
    rnnd_options_clear(&opt);
    return status;
}

/* Rank 0: copies the final parameters of the run in where/name, an arena, to out. */
static int final_values(struct verifier *v, const char *where, const char *name,
                        float *out)
{
    char *dir = NULL, *path = NULL;
    struct rnnd_model *model = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd__run_dir_file(where, name, &dir));
    RNND_TRY_GOTO(rnnd__checkpoint_newest(dir, &path));
    if (!path)
        RNND_TRY_GOTO(rnnd__fail(RNND_EFILE, "%s: no checkpoint", dir));
    RNND_TRY_GOTO(rnnd_checkpoint_load_model(path, v->setup.be, &model, NULL));
    const struct rnnd__params *p = rnnd__model_params(model);
    RNND_TRY_GOTO(rnnd__params_download(p, p->value, out));
done:
    rnnd_model_free(model);
    free(path);
    free(dir);
    return status;
}

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char *file;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            asprintf(&file, "%s/%s", path, e->d_name) < 0)
            continue;
        if (e->d_type == DT_DIR)
            remove_folder(file);
        else
            unlink(file);
        free(file);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static int compare_resumed_in(struct verifier *v, const char *where)
{
    rnnd__log_mute(true);
    int status = train(v, where, "whole", 2 * UPDATES, false);
    if (status == 0)
        status = train(v, where, "parts", UPDATES, false);
    if (status == 0)
        status = train(v, where, "parts", 2 * UPDATES, true);
    rnnd__log_mute(false);
    RNND_TRY(status);
    if (v->out)
        status = final_values(v, where, "whole", v->one);
    if (v->out && status == 0)
        status = final_values(v, where, "parts", v->other);
    RNND_TRY(rnnd_comm_agree(v->comm, status));
    if (v->out)
        judge(v, "resumed == uninterrupted",
              largest(v->other, v->one, v->params->count), 0);
    return 0;
}

static int compare_resumed(struct verifier *v)
{
    const char *tmp = getenv("TMPDIR");
    char where[512];
    int status = 0;
    snprintf(where, sizeof where, "%s/rnn_dist-verify-XXXXXX", tmp ? tmp : "/tmp");
    if (v->out && !mkdtemp(where))
        status = rnnd__fail(RNND_EFILE, "%s: %s", where, strerror(errno));
    RNND_TRY(rnnd_comm_agree(v->comm, status));
    RNND_TRY(rnnd_comm_broadcast(v->comm, where, sizeof where));
    status = compare_resumed_in(v, where);
    if (v->out)
        remove_folder(where);
    return status;
}

/* ---- the flow */

static int open_all(struct verifier *v)
{
    RNND_TRY(rnnd__setup_data(&v->setup, v->opt, v->comm, NULL));
    RNND_TRY(rnnd__setup_model(&v->setup));
    drop_reducer(v);
    RNND_TRY(rnnd__setup_values(&v->setup));
    v->params = rnnd__model_params(v->setup.model);
    size_t n = (size_t)v->params->count;
    RNND_TRY(RNND_NEW(&v->one, n, "gradients"));
    return RNND_NEW(&v->other, n, "gradients");
}

static void close_all(struct verifier *v)
{
    rnnd__setup_close(&v->setup);
    free(v->one);
    free(v->other);
}

/* On another device than the CPU: compares with the gradient on the CPU. */
static int compare_device(struct verifier *v)
{
    struct rnnd_options opt;
    struct verifier cpu = {.opt = &opt, .comm = v->comm};
    int status = 0;
    if (rnnd__device_is_cpu(v->setup.be))
        return 0;
    RNND_TRY(rnnd_options_init(&opt));
    RNND_TRY_GOTO(rnnd__options_overlay(&opt, v->opt));
    opt.device = RNND_DEVICE_CPU;
    opt.precision = RNND_FP32;
    opt.comm = RNND_COMM_AUTO;
    RNND_TRY_GOTO(rnnd_comm_agree(v->comm, open_all(&cpu)));
    RNND_TRY_GOTO(add_part(&cpu, &whole));
    RNND_TRY_GOTO(take_gradient(&cpu, v->other));
    judge(v, "this device == the CPU", difference(v), tolerance);
done:
    close_all(&cpu);
    rnnd_options_clear(&opt);
    return status;
}

static int check_signals(struct verifier *v)
{
    return rnnd_comm_agree(
        v->comm,
        rnnd__signals_received() ? rnnd__fail(RNND_STOPPED, "stopped by a signal") : 0);
}

static int compare_all(struct verifier *v)
{
    RNND_TRY(add_part(v, &whole));
    RNND_TRY(take_gradient(v, v->one));
    /* of all sequences, in the first window */
    int64_t steps = rnnd__shard_steps(v->setup.shard, 0, 1);
    RNND_TRY(compare_ranks(v));
    RNND_TRY(check_signals(v));
    RNND_TRY(compare_device(v));
    RNND_TRY(check_signals(v));
    RNND_TRY(compare_micro(v, "packed == one sequence at a time", 1));
    RNND_TRY(compare_micro(v, "micro-batches == whole", steps / 3 + 1));
    return compare_resumed(v);
}

int rnnd__verify(const struct rnnd_options *opt, struct rnnd_comm *comm, FILE *out)
{
    struct verifier v = {
        .opt = opt, .comm = comm, .out = rnnd_comm_rank(comm) == 0 ? out : NULL};
    int status = rnnd_comm_agree(comm, open_all(&v));
    if (status == 0)
        status = rnnd__setup_same(&v.setup, NULL);
    if (status == 0)
        status = compare_all(&v);
    int64_t failed = v.failed;
    if (status == 0)
        status = rnnd_comm_max(comm, &failed, 1);
    if (status == 0 && failed)
        status =
            rnnd__fail(RNND_FAULT, "a comparison failed: see the lines marked FAILED");
    close_all(&v);
    return status;
}
