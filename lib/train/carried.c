/*
 * carried.c - moves carried hidden states between the device and a checkpoint.
 */
#include "train/carried.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

int rnnd__carried_reserve(struct rnnd__carried *c, struct rnnd_model *model,
                          int64_t sequences)
{
    if (c->state && sequences <= c->rows)
        return 0;
    rnnd__carried_free(c);
    c->model = model;
    c->rows = sequences;
    return rnnd_state_new(model, sequences, &c->state);
}

void rnnd__carried_free(struct rnnd__carried *c)
{
    rnnd_state_free(c->state);
    *c = (struct rnnd__carried){NULL, NULL, 0};
}

/* ---- rows */

/* Floats of one row: L*D*H. */
static int64_t row_width(const struct rnnd__carried *c)
{
    const struct rnnd_model_spec *s = rnnd_model_spec(c->model);
    return s->layers * (s->bidirectional ? 2 : 1) * s->hidden;
}

static bool has_cells(const struct rnnd__carried *c)
{
    return rnnd_model_spec(c->model)->cell == RNND_LSTM;
}

/* Copies sequence j between the device layout, [L*D, rows, H], and `row`, [L*D, H]. */
static void copy_row(const struct rnnd__carried *c, float *device, float *row,
                     int64_t j, bool to_device)
{
    int64_t H = rnnd_model_spec(c->model)->hidden, places = row_width(c) / H;
    for (int64_t k = 0; k < places; k++) {
        float *d = device + (k * c->rows + j) * H, *r = row + k * H;
        memcpy(to_device ? d : r, to_device ? r : d, (size_t)H * sizeof(float));
    }
}

/* ---- to rank 0 */

/* Bytes of what a rank sends for one sequence: its id (8 bytes), h, and for LSTM c. */
static size_t record_size(const struct rnnd__carried *c)
{
    return sizeof(int64_t) +
           (size_t)((1 + has_cells(c)) * row_width(c)) * sizeof(float);
}

static int pack_records(struct rnnd__carried *c, const struct rnnd__shard *shard,
                        char **out, size_t *bytes)
{
    size_t size = (size_t)(row_width(c) * c->rows), each = record_size(c);
    float *h = NULL, *cells;
    char *records = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&h, 2 * size, "carried states"));
    RNND_TRY_GOTO(rnnd__new((size_t)shard->count, each, "carried states", &records));
    cells = h + size;
    RNND_TRY_GOTO(rnnd_state_get(c->state, h, cells));
    for (int64_t j = 0; j < shard->count; j++) {
        char *record = records + (size_t)j * each;
        float *row = (float *)(record + sizeof(int64_t));
        memcpy(record, &shard->piece[j].id, sizeof(int64_t));
        copy_row(c, h, row, j, false);
        if (has_cells(c))
            copy_row(c, cells, row + row_width(c), j, false);
    }
    *out = records;
    *bytes = (size_t)shard->count * each;
    records = NULL;
done:
    free(h);
    free(records);
    return status;
}

/* Replaces *carry by zero states of `width` floats each, which are freed with it. */
static int alloc_carry(struct rnnd__carry *carry, int64_t count, int64_t width,
                       bool cells)
{
    *carry = (struct rnnd__carry){.count = count, .width = width};
    RNND_TRY(RNND_NEW(&carry->id, count, "carried states"));
    RNND_TRY(RNND_NEW(&carry->h, count * width, "carried states"));
    return cells ? RNND_NEW(&carry->c, count * width, "carried states") : 0;
}

static int unpack_records(const struct rnnd__carried *c, const char *records,
                          size_t bytes, struct rnnd__carry *carry)
{
    size_t each = record_size(c), width = (size_t)row_width(c);
    size_t count = bytes / each;
    RNND_TRY(alloc_carry(carry, (int64_t)count, (int64_t)width, has_cells(c)));
    for (size_t i = 0; i < count; i++, records += each) {
        const char *values = records + sizeof(int64_t);
        memcpy(&carry->id[i], records, sizeof(int64_t));
        memcpy(carry->h + i * width, values, width * sizeof(float));
        if (has_cells(c))
            memcpy(carry->c + i * width, values + width * sizeof(float),
                   width * sizeof(float));
    }
    return 0;
}

int rnnd__carried_gather(struct rnnd__carried *c, const struct rnnd__shard *shard,
                         struct rnnd_comm *comm, struct rnnd__carry *out)
{
    char *own = NULL;
    void *all = NULL;
    size_t bytes = 0, total = 0, *size = NULL;
    int status = 0, ranks = rnnd_comm_size(comm);
    bool lead = rnnd_comm_rank(comm) == 0;
    rnnd__carry_clear(out);
    status = RNND_NEW(&size, ranks, "sizes");
    if (status == 0)
        status = pack_records(c, shard, &own, &bytes);
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd_comm_gather(comm, own, bytes, &all, size));
    for (int r = 0; lead && r < ranks; r++)
        total += size[r];
    if (lead)
        status = unpack_records(c, all, total, out);
done:
    free(own);
    free(all);
    free(size);
    return status;
}

/* ---- from rank 0 */

int rnnd__carried_put(struct rnnd__carried *c, const struct rnnd__shard *shard,
                      const struct rnnd__carry *carry)
{
    size_t size = (size_t)(row_width(c) * c->rows);
    float *h = NULL;
    RNND_TRY(RNND_NEW(&h, 2 * size, "carried states"));
    for (int64_t i = 0; i < carry->count; i++)
        for (int64_t j = 0; j < shard->count; j++) {
            if (shard->piece[j].id != carry->id[i])
                continue;
            copy_row(c, h, carry->h + i * carry->width, j, true);
            if (carry->c)
                copy_row(c, h + size, carry->c + i * carry->width, j, true);
        }
    int status = rnnd_state_set(c->state, h, h + size);
    free(h);
    return status;
}

int rnnd__carry_broadcast(struct rnnd__carry *c, struct rnnd_comm *comm)
{
    int64_t shape[] = {c->count, c->width, c->c != NULL};
    RNND_TRY(rnnd_comm_broadcast(comm, shape, sizeof shape));
    size_t count = (size_t)shape[0], floats = count * (size_t)shape[1];
    int status = 0;
    if (rnnd_comm_rank(comm) != 0)
        status = alloc_carry(c, shape[0], shape[1], shape[2]);
    RNND_TRY(rnnd_comm_agree(comm, status));
    if (count == 0)
        return 0;
    RNND_TRY(rnnd_comm_broadcast(comm, c->id, count * sizeof *c->id));
    RNND_TRY(rnnd_comm_broadcast(comm, c->h, floats * sizeof(float)));
    return shape[2] ? rnnd_comm_broadcast(comm, c->c, floats * sizeof(float)) : 0;
}
