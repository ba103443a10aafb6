/*
 * trainer_save.c - checkpoints of a run, and the carried states of all ranks in them.
 *
 * Rank 0 writes and reads; states of hidden units live on the rank that runs the
 * sequence or lane, so they are gathered before a save and dealt out again after a
 * load, by id.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/timeline.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/params.h"
#include "train/trainer.h"

/* ---- carried states */

/* Floats of one row: L*D*H. */
static int64_t row_width(const struct rnnd__trainer *t)
{
    const struct rnnd_model_spec *s = rnnd_model_spec(t->setup.model);
    return s->layers * (s->bidirectional ? 2 : 1) * s->hidden;
}

static bool has_cells(const struct rnnd__trainer *t)
{
    return rnnd_model_spec(t->setup.model)->cell == RNND_LSTM;
}

/* [L*D, rows, H] against [row, L*D, H]. */
static void copy_row(const struct rnnd__trainer *t, float *device, float *row,
                     int64_t j, bool to_device)
{
    int64_t H = rnnd_model_spec(t->setup.model)->hidden, places = row_width(t) / H;
    for (int64_t k = 0; k < places; k++) {
        float *d = device + (k * t->carried_rows + j) * H, *r = row + k * H;
        memcpy(to_device ? d : r, to_device ? r : d, (size_t)H * sizeof(float));
    }
}

/* A rank's record of one row: its id as 8 bytes, then h, then c. */
static size_t record_size(const struct rnnd__trainer *t)
{
    return sizeof(int64_t) +
           (size_t)((1 + has_cells(t)) * row_width(t)) * sizeof(float);
}

static int pack_records(struct rnnd__trainer *t, char **out, size_t *bytes)
{
    size_t size = (size_t)(row_width(t) * t->carried_rows), each = record_size(t);
    float *h = NULL, *c;
    char *records = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&h, 2 * size, "carried states"));
    RNND_TRY_GOTO(
        rnnd__new((size_t)t->setup.shard->count, each, "carried states", &records));
    c = h + size;
    RNND_TRY_GOTO(rnnd_state_get(t->carried, h, c));
    for (int64_t j = 0; j < t->setup.shard->count; j++) {
        char *record = records + (size_t)j * each;
        float *row = (float *)(record + sizeof(int64_t));
        memcpy(record, &t->setup.shard->piece[j].id, sizeof(int64_t));
        copy_row(t, h, row, j, false);
        if (has_cells(t))
            copy_row(t, c, row + row_width(t), j, false);
    }
    *out = records;
    *bytes = (size_t)t->setup.shard->count * each;
    records = NULL;
done:
    free(h);
    free(records);
    return status;
}

/* Rank 0: the records of all ranks as at.carry. */
static int unpack_records(struct rnnd__trainer *t, const char *records, size_t bytes)
{
    struct rnnd__carry *carry = &t->at.carry;
    size_t each = record_size(t), width = (size_t)row_width(t);
    size_t count = bytes / each;
    rnnd__carry_clear(carry);
    RNND_TRY(RNND_NEW(&carry->id, count, "carried states"));
    RNND_TRY(RNND_NEW(&carry->h, count * width, "carried states"));
    if (has_cells(t))
        RNND_TRY(RNND_NEW(&carry->c, count * width, "carried states"));
    for (size_t i = 0; i < count; i++, records += each) {
        const char *values = records + sizeof(int64_t);
        memcpy(&carry->id[i], records, sizeof(int64_t));
        memcpy(carry->h + i * width, values, width * sizeof(float));
        if (has_cells(t))
            memcpy(carry->c + i * width, values + width * sizeof(float),
                   width * sizeof(float));
    }
    carry->count = (int64_t)count;
    carry->width = (int64_t)width;
    return 0;
}

/* Rank 0 ends up with the states of all ranks, where an entry or a stream is under
   way. */
static int gather_carry(struct rnnd__trainer *t)
{
    char *own = NULL, *all = NULL;
    size_t bytes = 0, total = 0, *size = NULL;
    int status = 0, ranks = rnnd_comm_size(t->comm);
    rnnd__carry_clear(&t->at.carry);
    if (!t->carried || t->at.entry_updates == 0)
        return 0;
    RNND_TRY_GOTO(RNND_NEW(&size, ranks, "sizes"));
    RNND_TRY_GOTO(rnnd_comm_agree(t->comm, pack_records(t, &own, &bytes)));
    RNND_TRY_GOTO(rnnd_comm_gather(t->comm, own, bytes, (void **)&all, size));
    for (int r = 0; t->lead && r < ranks; r++)
        total += size[r];
    if (t->lead)
        status = unpack_records(t, all, total);
done:
    free(own);
    free(all);
    free(size);
    return status;
}

int rnnd__trainer_put_carry(struct rnnd__trainer *t)
{
    const struct rnnd__carry *carry = &t->at.carry;
    size_t size = (size_t)(row_width(t) * t->carried_rows);
    float *h = NULL;
    RNND_TRY(RNND_NEW(&h, 2 * size, "carried states"));
    for (int64_t i = 0; i < carry->count; i++)
        for (int64_t j = 0; j < t->setup.shard->count; j++) {
            if (t->setup.shard->piece[j].id != carry->id[i])
                continue;
            copy_row(t, h, carry->h + i * carry->width, j, true);
            if (carry->c)
                copy_row(t, h + size, carry->c + i * carry->width, j, true);
        }
    int status = rnnd_state_set(t->carried, h, h + size);
    free(h);
    return status;
}

/* ---- saving */

static int write_newest(struct rnnd__trainer *t)
{
    char *path = NULL;
    RNND_TRY(rnnd__checkpoint_path(t->opt->run_dir, t->at.update, &path));
    int status =
        rnnd__checkpoint_save(path, t->setup.model, t->setup.optim, t->opt, &t->at);
    if (status == 0)
        rnnd__trainer_report_save(t, path);
    free(path);
    RNND_TRY(status);
    return rnnd__checkpoint_prune(t->opt->run_dir, t->opt->keep);
}

int rnnd__trainer_save(struct rnnd__trainer *t)
{
    double mark = rnnd__timeline_now();
    if (t->saved_at == t->at.update)
        return 0;
    int status = gather_carry(t);
    if (status == 0 && t->lead)
        status = write_newest(t);
    RNND_TRY(rnnd_comm_agree(t->comm, status));
    rnnd__timeline_mark(RNND_WORK_SAVE, false, -1, mark);
    t->saved_at = t->at.update;
    t->last_save = rnnd__clock();
    return 0;
}

int rnnd__trainer_save_best(struct rnnd__trainer *t)
{
    char *path = NULL;
    int status = gather_carry(t);
    if (status == 0 && t->lead)
        status = rnnd__run_dir_file(t->opt->run_dir, "best.h5", &path);
    if (status == 0 && t->lead)
        status =
            rnnd__checkpoint_save(path, t->setup.model, t->setup.optim, t->opt, &t->at);
    free(path);
    return rnnd_comm_agree(t->comm, status);
}

/* ---- the same on all ranks */

static int broadcast_arena(struct rnnd__trainer *t, struct rnnd__buf arena)
{
    const struct rnnd__params *p = rnnd__model_params(t->setup.model);
    size_t bytes = (size_t)p->count * sizeof(float);
    void *host = NULL;
    RNND_TRY(rnnd__new((size_t)p->count, sizeof(float), "parameters", &host));
    int status = rnnd__device_download(p->be, host, arena, bytes);
    if (status == 0)
        status = rnnd_comm_broadcast(t->comm, host, bytes);
    if (status == 0)
        p->be->ops->upload(p->be, arena, host, bytes);
    if (status == 0)
        status = rnnd__device_sync(p->be);
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

static int broadcast_carry(struct rnnd__trainer *t)
{
    struct rnnd__carry *c = &t->at.carry;
    int64_t shape[] = {c->count, c->width, c->c != NULL};
    RNND_TRY(rnnd_comm_broadcast(t->comm, shape, sizeof shape));
    size_t count = (size_t)shape[0], floats = count * (size_t)shape[1];
    if (!t->lead) {
        *c = (struct rnnd__carry){.count = shape[0], .width = shape[1]};
        RNND_TRY(RNND_NEW(&c->id, count, "carried states"));
        RNND_TRY(RNND_NEW(&c->h, floats, "carried states"));
        if (shape[2])
            RNND_TRY(RNND_NEW(&c->c, floats, "carried states"));
    }
    if (count == 0)
        return 0;
    RNND_TRY(rnnd_comm_broadcast(t->comm, c->id, count * sizeof *c->id));
    RNND_TRY(rnnd_comm_broadcast(t->comm, c->h, floats * sizeof(float)));
    return shape[2] ? rnnd_comm_broadcast(t->comm, c->c, floats * sizeof(float)) : 0;
}

int rnnd__trainer_restore(struct rnnd__trainer *t, const char *path)
{
    int status =
        t->lead ? rnnd__checkpoint_load(path, t->setup.model, t->setup.optim, &t->at)
                : 0;
    RNND_TRY(rnnd_comm_agree(t->comm, status));
    struct rnnd__carry own = t->at.carry;
    RNND_TRY(rnnd_comm_broadcast(t->comm, &t->at, sizeof t->at));
    t->at.carry = own; /* its pointers are this rank's */
    RNND_TRY(broadcast_carry(t));
    RNND_TRY(rnnd__trainer_broadcast(t));
    int64_t steps = rnnd__optim_step_count(t->setup.optim);
    RNND_TRY(rnnd_comm_broadcast(t->comm, &steps, sizeof steps));
    rnnd__optim_set_step_count(t->setup.optim, steps);
    for (int i = 0; i < rnnd__optim_moments(t->setup.optim); i++)
        RNND_TRY(broadcast_arena(t, rnnd__optim_moment(t->setup.optim, i)));
    t->saved_at = t->at.update;
    t->mid_entry = t->at.entry_updates > 0;
    return 0;
}

/* The sum of the parameters' words, as integers: it sees every bit. */
static int hash_parameters(struct rnnd__trainer *t, uint64_t *out)
{
    const struct rnnd__params *p = rnnd__model_params(t->setup.model);
    uint32_t *word = NULL;
    uint64_t hash = 0;
    RNND_TRY(RNND_NEW(&word, p->count, "parameters"));
    int status = rnnd__device_download(p->be, word, p->value, (size_t)p->count * 4);
    for (int64_t i = 0; i < p->count; i++)
        hash += (uint64_t)word[i] * (2 * (uint64_t)i + 1);
    free(word);
    *out = hash;
    return status;
}

int rnnd__trainer_compare(struct rnnd__trainer *t)
{
    int ranks = rnnd_comm_size(t->comm), n = 0;
    uint64_t own = 0, *all = NULL;
    char names[256] = "";
    if (ranks == 1)
        return 0;
    RNND_TRY(rnnd_comm_agree(t->comm, hash_parameters(t, &own)));
    RNND_TRY(RNND_NEW(&all, ranks, "hashes"));
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
