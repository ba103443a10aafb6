/*
 * trainer_save.c - saves and restores a run: parameters, moments, position, and the
 * carried states of all ranks.
 *
 * Rank 0 writes the files, while all go on, and reads them and broadcasts what it read.
 * A checkpoint is recorded when it is durable, which may be a few updates later.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/timeline.h"
#include "checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "model/params.h"
#include "train/trainer.h"

/* Collects the carried states of all ranks on rank 0, if a plan entry or a stream is in
   progress; else there are none to save. */
static int gather_carry(struct rnnd__trainer *t)
{
    rnnd__carry_clear(&t->at.carry);
    if (!t->step.carried.state || t->at.entry_updates == 0)
        return 0;
    return rnnd__carried_gather(&t->step.carried, t->setup.shard, t->comm,
                                &t->at.carry);
}

/* ---- saving */

static const char saves[] = "writes a checkpoint";

/* Records that could not be written, so that a resumed run can. */
static int take_records(struct rnnd__trainer *t)
{
    const char *text = rnnd__metrics_unwritten(t->log);
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return rnnd__fail_memory(strlen(text), "records");
    free(t->at.records);
    t->at.records = copy;
    return 0;
}

int rnnd__trainer_finish_save(struct rnnd__trainer *t)
{
    int64_t update;
    if (!t->writer)
        return 0;
    int status = rnnd__writer_wait(t->writer, &update);
    if (update >= 0)
        rnnd__trainer_report_save(t, update);
    return status;
}

int rnnd__trainer_settle(struct rnnd__trainer *t)
{
    struct rnnd__moment mark = rnnd__timeline_now();
    int status = rnnd__comm_agree_while(t->comm, rnnd__trainer_finish_save(t), saves);
    rnnd__timeline_mark(RNND_WORK_SAVE, false, -1, mark);
    return status;
}

bool rnnd__trainer_save_has_failed(struct rnnd__trainer *t)
{
    enum rnnd__writing state =
        t->writer ? rnnd__writer_state(t->writer) : RNND_WRITING_NOTHING;
    return state == RNND_NOT_WRITTEN ||
           (state == RNND_WRITTEN && rnnd__trainer_finish_save(t) < 0);
}

int rnnd__trainer_save(struct rnnd__trainer *t, unsigned files)
{
    if (t->saved_at == t->at.update)
        files &= ~(unsigned)RNND_WRITE_NEWEST;
    if (!files)
        return 0;
    struct rnnd__moment mark = rnnd__timeline_now();
    RNND_TRY(rnnd__comm_agree_while(t->comm, rnnd__trainer_finish_save(t), saves));
    int status = gather_carry(t);
    if (status == 0 && t->lead)
        status = take_records(t);
    if (status == 0 && t->lead)
        status = rnnd__writer_start(t->writer, files, &t->at);
    RNND_TRY(rnnd_comm_agree(t->comm, status));
    rnnd__timeline_mark(RNND_WORK_SAVE, false, -1, mark);
    if (files & RNND_WRITE_NEWEST) {
        t->saved_at = t->at.update;
        t->last_save = rnnd__clock();
    }
    return 0;
}

/* ---- restoring */

/* An arena of parameters or moments on the host: *host [count], owned by the caller. */
static int download(struct rnnd__trainer *t, struct rnnd__buf arena, float **host)
{
    const struct rnnd__params *p = rnnd__model_params(t->setup.model);
    float *values = NULL;
    RNND_TRY(RNND_NEW(&values, p->count, "parameters"));
    int status = rnnd__params_download(p, arena, values);
    if (status < 0)
        free(values);
    else
        *host = values;
    return status;
}

static int broadcast_arena(struct rnnd__trainer *t, struct rnnd__buf arena)
{
    const struct rnnd__params *p = rnnd__model_params(t->setup.model);
    float *host = NULL;
    int status = rnnd_comm_agree(t->comm, download(t, arena, &host));
    if (status == 0)
        status = rnnd_comm_broadcast(t->comm, host, (size_t)p->count * sizeof *host);
    if (status == 0)
        status = rnnd__params_upload(p, arena, host);
    free(host);
    return status;
}

int rnnd__trainer_broadcast(struct rnnd__trainer *t)
{
    size_t bytes = (size_t)rnnd_model_spec(t->setup.model)->inputs * sizeof(float);
    if (rnnd_comm_size(t->comm) == 1)
        return 0;
    if (t->opt->normalize) {
        RNND_TRY(rnnd_comm_broadcast(t->comm, rnnd_model_mean(t->setup.model), bytes));
        RNND_TRY(rnnd_comm_broadcast(t->comm, rnnd_model_std(t->setup.model), bytes));
    }
    return broadcast_arena(t, rnnd__model_params(t->setup.model)->value);
}

/* Without best.h5, the next validation is the best that the run has. */
static int check_best(struct rnnd__trainer *t)
{
    char *best;
    bool intact;
    if (isinf(t->at.best_cost))
        return 0;
    RNND_TRY(rnnd__run_dir_file(t->opt->run_dir, "best.h5", &best));
    int status = rnnd__checkpoint_is_intact(best, &intact);
    if (status == 0 && !intact) {
        rnnd__log_warn("--resume: %s is lost: the next validation counts as the best "
                       "so far",
                       best);
        t->at.best_cost = INFINITY;
    }
    free(best);
    return status;
}

static int load(struct rnnd__trainer *t, const char *path)
{
    RNND_TRY(rnnd__checkpoint_load(path, t->setup.model, t->setup.optim, &t->at));
    return check_best(t);
}

int rnnd__trainer_restore(struct rnnd__trainer *t, const char *path)
{
    int status = t->lead ? load(t, path) : 0;
    RNND_TRY(rnnd__comm_agree_while(t->comm, status, "reads the checkpoint"));
    struct rnnd__carry own = t->at.carry;
    char *records = t->at.records;
    RNND_TRY(rnnd_comm_broadcast(t->comm, &t->at, sizeof t->at));
    t->at.carry = own; /* its pointers are this rank's */
    t->at.records = records;
    RNND_TRY(rnnd__carry_broadcast(&t->at.carry, t->comm));
    RNND_TRY(rnnd__trainer_broadcast(t));
    int64_t steps = rnnd__optim_step_count(t->setup.optim);
    RNND_TRY(rnnd_comm_broadcast(t->comm, &steps, sizeof steps));
    rnnd__optim_set_step_count(t->setup.optim, steps);
    for (int i = 0; i < rnnd__optim_moments(t->setup.optim); i++)
        RNND_TRY(broadcast_arena(t, rnnd__optim_moment(t->setup.optim, i)));
    t->saved_at = t->at.update;
    t->step.resumes_entry = t->at.entry_updates > 0;
    return 0;
}

/* ---- comparing */

int rnnd__trainer_compare(struct rnnd__trainer *t)
{
    int ranks = rnnd_comm_size(t->comm), n = 0;
    uint64_t own = 0, *all = NULL;
    char names[256] = "";
    if (ranks == 1)
        return 0;
    const struct rnnd__params *p = rnnd__model_params(t->setup.model);
    RNND_TRY(rnnd_comm_agree(t->comm, rnnd__params_hash(p, p->value, &own)));
    RNND_TRY(rnnd_comm_agree(t->comm, RNND_NEW(&all, ranks, "hashes")));
    int status = rnnd__comm_allgather(t->comm, &own, sizeof own, all);
    for (int r = 1; status == 0 && r < ranks; r++)
        if (all[r] != all[0] && n < (int)sizeof names - 16)
            n += snprintf(names + n, sizeof names - (size_t)n, " %d", r);
    free(all);
    if (status == 0 && n)
        return rnnd__fail(RNND_ECOMM,
                          "update %lld: parameters differ from rank 0's on ranks%s",
                          (long long)t->at.update, names);
    return status;
}
