/*
 * batch.c - packs pieces of sequences into a batch on the device.
 *
 * Takes pieces by falling length; makes time-major rows without padding. Knows the
 * arrays of the data set, but no model. Where the host can reach the device's memory,
 * rows are packed in place.
 */
#include "data/batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/dataset.h"
#include "data/strings.h"
#include "device/device.h"

static bool token_input(const struct rnnd_batch *b)
{
    return b->info->vocab != 0;
}

/* Whether it has strings of labels, apart from its rows. */
static bool has_strings(const struct rnnd_batch *b)
{
    return b->with_targets && rnnd__task_has_strings(b->info->task);
}

/* Rows of targets of the packed batch; strings have none. */
static int64_t target_rows(const struct rnnd_batch *b, int64_t steps, int64_t sequences)
{
    if (has_strings(b))
        return 0;
    return rnnd_task_is_stepwise(b->info->task) ? steps : sequences;
}

int rnnd_batch_new(struct rnnd_backend *be, struct rnnd_dataset *data, bool targets,
                   const float *mean, const float *std, struct rnnd_batch **out)
{
    struct rnnd_batch *b = NULL;
    if (rnnd_dataset_info(data)->missing && !mean)
        return rnnd__fail(
            RNND_EDATA,
            "%s: /inputs: values are missing, for which only the mean can "
            "stand",
            rnnd_dataset_info(data)->path);
    RNND_TRY(RNND_NEW(&b, 1, "batch"));
    b->be = be;
    b->data = data;
    b->info = rnnd_dataset_info(data);
    b->with_targets = targets && b->info->task != RNND_NO_TASK;
    b->mean = mean;
    b->std = std;
    *out = b;
    return 0;
}

int rnnd__batch_new_steps(struct rnnd_backend *be, int64_t inputs, int64_t vocab,
                          const float *mean, const float *std, struct rnnd_batch **out)
{
    struct rnnd_batch *b = NULL;
    RNND_TRY(RNND_NEW(&b, 1, "batch"));
    b->be = be;
    b->own_info = (struct rnnd_dataset_info){
        .task = RNND_NO_TASK, .inputs = inputs, .vocab = vocab};
    b->info = &b->own_info;
    b->mean = mean;
    b->std = std;
    *out = b;
    return 0;
}

static void free_device(struct rnnd_batch *b)
{
    struct rnnd__buf all[] = {b->packed.d_n,    b->packed.d_off,     b->packed.d_len,
                              b->packed.d_id,   b->inputs,           b->targets,
                              b->segments.rows, b->segments.segment, b->segments.token,
                              b->strings.label, b->strings.first,    b->strings.count};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        b->be->ops->free(b->be, all[i]);
}

static void free_host(struct rnnd_batch *b)
{
    void *all[] = {b->n,        b->len,         b->off,          b->id,
                   b->sequence, b->host_inputs, b->host_targets, b->host_tokens,
                   b->rows,     b->segment,     b->token,        b->label,
                   b->first,    b->count};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

void rnnd_batch_free(struct rnnd_batch *b)
{
    if (!b)
        return;
    free_device(b);
    free_host(b);
    free(b->count_of);
    free(b->piece_inputs);
    free(b->piece_targets);
    free(b);
}

/* Device memory, and a host copy of it only where the host cannot reach it. */
static int alloc_pair(struct rnnd_batch *b, struct rnnd__buf *dev, char **host,
                      int64_t elements)
{
    RNND_TRY(rnnd__device_alloc(b->be, dev, elements));
    if (!b->be->ops->host(b->be, *dev))
        RNND_TRY(rnnd__new((size_t)elements, RNND__ELEMENT, "batch", host));
    return 0;
}

/* Device memory for 64-bit integers. */
static int alloc_int64(struct rnnd_batch *b, struct rnnd__buf *dev, int64_t count)
{
    return rnnd__device_alloc(b->be, dev,
                              count * (int64_t)(sizeof(int64_t) / RNND__ELEMENT));
}

static int alloc_shape(struct rnnd_batch *b, const struct rnnd_limits *room)
{
    struct rnnd__packed *p = &b->packed;
    size_t N = (size_t)room->sequences, T = (size_t)room->steps;
    RNND_TRY(RNND_NEW(&b->n, T, "batch"));
    RNND_TRY(RNND_NEW(&b->off, T + 1, "batch"));
    RNND_TRY(RNND_NEW(&b->len, N, "batch"));
    RNND_TRY(RNND_NEW(&b->id, N, "batch"));
    RNND_TRY(RNND_NEW(&b->sequence, N, "batch"));
    RNND_TRY(rnnd__device_alloc(b->be, &p->d_n, room->steps));
    RNND_TRY(alloc_int64(b, &p->d_off, room->steps + 1));
    RNND_TRY(rnnd__device_alloc(b->be, &p->d_len, room->sequences));
    RNND_TRY(alloc_int64(b, &p->d_id, room->sequences));
    return 0;
}

/* The labels of a string that is a target are no more than its steps. */
static int alloc_strings(struct rnnd_batch *b, const struct rnnd_limits *room)
{
    struct rnnd__strings *s = &b->strings;
    if (!has_strings(b))
        return 0;
    RNND_TRY(RNND_NEW(&b->label, room->rows, "batch"));
    RNND_TRY(RNND_NEW(&b->first, room->sequences, "batch"));
    RNND_TRY(RNND_NEW(&b->count, room->sequences, "batch"));
    RNND_TRY(rnnd__device_alloc(b->be, &s->label, room->rows));
    RNND_TRY(rnnd__device_alloc(b->be, &s->first, room->sequences));
    return rnnd__device_alloc(b->be, &s->count, room->sequences);
}

static int alloc_contents(struct rnnd_batch *b, const struct rnnd_limits *room)
{
    size_t R = (size_t)room->rows;
    RNND_TRY(alloc_pair(b, &b->inputs, &b->host_inputs,
                        room->rows * rnnd__input_width(b->info)));
    if (b->with_targets)
        RNND_TRY(alloc_pair(b, &b->targets, &b->host_targets,
                            target_rows(b, room->rows, room->sequences) *
                                rnnd__target_width(b->info)));
    if (!token_input(b))
        return 0;
    struct rnnd__segments *s = &b->segments;
    RNND_TRY(RNND_NEW(&b->host_tokens, R, "batch"));
    RNND_TRY(RNND_NEW(&b->rows, R, "batch"));
    RNND_TRY(RNND_NEW(&b->segment, R + 1, "batch"));
    RNND_TRY(RNND_NEW(&b->token, R, "batch"));
    RNND_TRY(rnnd__device_alloc(b->be, &s->rows, room->rows));
    RNND_TRY(rnnd__device_alloc(b->be, &s->segment, room->rows + 1));
    RNND_TRY(rnnd__device_alloc(b->be, &s->token, room->rows));
    if (!b->count_of)
        RNND_TRY(RNND_NEW(&b->count_of, b->info->vocab + 1, "batch"));
    return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int rnnd_batch_reserve(struct rnnd_batch *b, const struct rnnd_limits *limits)
{
    struct rnnd_limits room = {larger(limits->sequences, b->room.sequences),
                               larger(limits->steps, b->room.steps),
                               larger(limits->rows, b->room.rows), 0};
    if (memcmp(&room, &b->room, sizeof room) == 0 && b->off)
        return 0;
    free_device(b);
    free_host(b);
    /* Forget what was freed before anything may fail. */
    struct rnnd_batch fresh = {.be = b->be,
                               .data = b->data,
                               .info = b->info,
                               .own_info = b->own_info,
                               .with_targets = b->with_targets,
                               .mean = b->mean,
                               .std = b->std,
                               .count_of = b->count_of,
                               .piece_inputs = b->piece_inputs,
                               .piece_targets = b->piece_targets,
                               .piece_room = b->piece_room};
    *b = fresh;
    RNND_TRY(alloc_shape(b, &room));
    RNND_TRY(alloc_contents(b, &room));
    RNND_TRY(alloc_strings(b, &room));
    b->room = room;
    return 0;
}

static int reserve_piece(struct rnnd_batch *b, int64_t steps)
{
    if (steps <= b->piece_room && b->piece_inputs)
        return 0;
    RNND_TRY(rnnd__grow((size_t)steps, rnnd__input_bytes(b->info), "a sequence",
                        &b->piece_inputs));
    RNND_TRY(rnnd__grow((size_t)steps, rnnd__target_bytes(b->info), "a sequence",
                        &b->piece_targets));
    b->piece_room = steps;
    return 0;
}

/* n, off, len and id of the pieces, on the host and on the device. */
static void pack_shape(struct rnnd_batch *b, const struct rnnd_piece *piece,
                       int64_t count, int64_t first)
{
    struct rnnd__packed *p = &b->packed;
    const struct rnnd__backend_ops *op = b->be->ops;
    p->N = count;
    p->T = count ? piece[0].length : 0;
    p->first = first;
    for (int64_t j = 0; j < count; j++) {
        b->len[j] = (int32_t)piece[j].length;
        b->id[j] = piece[j].id;
        b->sequence[j] = piece[j].sequence;
    }
    int64_t alive = count;
    b->off[0] = 0;
    for (int64_t t = 0; t < p->T; t++) {
        while (b->len[alive - 1] <= t)
            alive--;
        b->n[t] = (int32_t)alive;
        b->off[t + 1] = b->off[t] + alive;
    }
    p->R = b->off[p->T];
    p->n = b->n;
    p->off = b->off;
    p->len = b->len;
    p->id = b->id;
    op->upload(b->be, p->d_n, b->n, (size_t)p->T * sizeof *b->n);
    op->upload(b->be, p->d_off, b->off, (size_t)(p->T + 1) * sizeof *b->off);
    op->upload(b->be, p->d_len, b->len, (size_t)count * sizeof *b->len);
    op->upload(b->be, p->d_id, b->id, (size_t)count * sizeof *b->id);
}

static void normalise(const struct rnnd_batch *b, float *row)
{
    for (int64_t i = 0; i < b->info->inputs; i++)
        row[i] = (row[i] - b->mean[i]) / b->std[i];
    for (int64_t i = 0; b->info->missing && i < b->info->inputs; i++)
        row[i] = isnan(row[i]) ? 0 : row[i]; /* missing: the mean */
}

/* Row t of piece j, of so many bytes, becomes packed row off[t] + j. */
static void scatter(const struct rnnd_batch *b, int64_t j, size_t bytes, int64_t steps,
                    const char *from, char *to)
{
    for (int64_t t = 0; t < steps; t++)
        memcpy(to + (size_t)(b->off[t] + j) * bytes, from + (size_t)t * bytes, bytes);
}

/* Where to pack: the device's own memory, or the host's copy. */
static char *packing_place(const struct rnnd_batch *b, struct rnnd__buf dev, char *host)
{
    char *own = b->be->ops->host(b->be, dev);
    return own ? own : host;
}

static int pack_inputs(struct rnnd_batch *b, const struct rnnd_piece *piece, int64_t j,
                       char *inputs, char *targets)
{
    bool lm = b->info->task == RNND_LM && b->with_targets;
    int64_t steps = piece->length;
    if (steps == 0)
        return 0;
    RNND_TRY(rnnd_dataset_inputs(b->data, piece->begin, steps + lm, b->piece_inputs));
    if (b->mean)
        for (int64_t t = 0; t < steps; t++)
            normalise(b, (float *)b->piece_inputs + t * b->info->inputs);
    size_t row = rnnd__input_bytes(b->info);
    scatter(b, j, row, steps, b->piece_inputs, inputs);
    if (lm) /* the next token */
        scatter(b, j, row, steps, b->piece_inputs + row, targets);
    return 0;
}

static int pack_targets(struct rnnd_batch *b, const struct rnnd_piece *piece, int64_t j,
                        char *targets)
{
    size_t row = rnnd__target_bytes(b->info);
    if (!b->with_targets || has_strings(b) || b->info->task == RNND_LM)
        return 0;
    if (!rnnd_task_is_stepwise(b->info->task))
        return rnnd_dataset_targets(b->data, piece->sequence, 1,
                                    targets + (size_t)j * row);
    if (piece->length == 0)
        return 0;
    RNND_TRY(
        rnnd_dataset_targets(b->data, piece->begin, piece->length, b->piece_targets));
    scatter(b, j, row, piece->length, b->piece_targets, targets);
    return 0;
}

/* Class k is output k+1, since output 0 is the blank. */
static void pack_strings(struct rnnd_batch *b)
{
    const struct rnnd__backend_ops *op = b->be->ops;
    struct rnnd__strings *s = &b->strings;
    int32_t at = 0;
    s->longest = 0;
    if (!has_strings(b))
        return;
    for (int64_t j = 0; j < b->packed.N; j++) {
        int64_t count;
        const int32_t *label = rnnd__string_of(b->data, b->sequence[j], &count);
        b->first[j] = at;
        b->count[j] = -1;
        if (rnnd__string_kind(b->data, b->sequence[j]) != RNND__STRING_TARGET)
            continue;
        b->count[j] = (int32_t)count;
        for (int64_t i = 0; i < count; i++)
            b->label[at++] = label[i] + 1;
        s->longest = larger(s->longest, count);
    }
    size_t sequences = (size_t)b->packed.N;
    op->upload(b->be, s->label, b->label, (size_t)at * sizeof *b->label);
    op->upload(b->be, s->first, b->first, sequences * sizeof *b->first);
    op->upload(b->be, s->count, b->count, sequences * sizeof *b->count);
}

static void upload_contents(struct rnnd_batch *b, const char *inputs,
                            const char *targets)
{
    const struct rnnd__backend_ops *op = b->be->ops;
    size_t R = (size_t)b->packed.R;
    size_t targets_of = (size_t)target_rows(b, b->packed.R, b->packed.N);
    if (token_input(b))
        memcpy(b->host_tokens, inputs, R * sizeof *b->host_tokens);
    if (b->host_inputs)
        op->upload(b->be, b->inputs, inputs, R * rnnd__input_bytes(b->info));
    if (b->host_targets)
        op->upload(b->be, b->targets, targets,
                   targets_of * rnnd__target_bytes(b->info));
}

int rnnd_batch_load(struct rnnd_batch *b, const struct rnnd_piece *piece, int64_t count,
                    int64_t first)
{
    struct rnnd_limits need = {count, count ? piece[0].length : 0, 0, 0};
    for (int64_t j = 0; j < count; j++)
        need.rows += piece[j].length;
    if (need.rows > INT32_MAX)
        return rnnd__fail(
            RNND_EUSAGE,
            "a batch of %lld steps on one rank, at most %d are supported: "
            "use a smaller --batch or --microbatch-tokens",
            (long long)need.rows, INT32_MAX);
    RNND_TRY(rnnd_batch_reserve(b, &need));
    RNND_TRY(reserve_piece(b, need.steps + 1));
    pack_shape(b, piece, count, first);
    char *inputs = packing_place(b, b->inputs, b->host_inputs);
    char *targets =
        b->with_targets ? packing_place(b, b->targets, b->host_targets) : NULL;
    for (int64_t j = 0; j < count; j++) {
        RNND_TRY(pack_inputs(b, &piece[j], j, inputs, targets));
        RNND_TRY(pack_targets(b, &piece[j], j, targets));
    }
    upload_contents(b, inputs, targets);
    pack_strings(b);
    return 0;
}

const void *rnnd_batch_targets(const struct rnnd_batch *b)
{
    return packing_place(b, b->targets, b->host_targets);
}

/* Tokens of the vocabulary, or finite features, as in a data set. */
static int check_steps(const struct rnnd_batch *b, const void *steps, int64_t count)
{
    const int32_t *token = steps;
    const float *value = steps;
    for (int64_t t = 0; token_input(b) && t < count; t++)
        if (token[t] < 0 || token[t] >= b->info->vocab)
            return rnnd__fail(RNND_EUSAGE, "step %lld: token %d, expected 0 to %lld",
                              (long long)t, token[t], (long long)b->info->vocab - 1);
    for (int64_t i = 0; !token_input(b) && i < count * b->info->inputs; i++)
        if (!isfinite(value[i]))
            return rnnd__fail(RNND_EUSAGE,
                              "step %lld, feature %lld: %g, expected a finite number",
                              (long long)(i / b->info->inputs),
                              (long long)(i % b->info->inputs), (double)value[i]);
    return 0;
}

int rnnd_batch_load_steps(struct rnnd_batch *b, const void *steps, int64_t count)
{
    struct rnnd_piece piece = {.length = count, .sequence = -1};
    struct rnnd_limits need = {1, count, count, 0};
    if (count < 0 || count > INT32_MAX)
        return rnnd__fail(RNND_EUSAGE, "%lld steps, expected 0 to %d", (long long)count,
                          INT32_MAX);
    RNND_TRY(check_steps(b, steps, count));
    RNND_TRY(rnnd_batch_reserve(b, &need));
    pack_shape(b, &piece, 1, 0);
    char *inputs = packing_place(b, b->inputs, b->host_inputs);
    memcpy(inputs, steps, (size_t)count * rnnd__input_bytes(b->info));
    for (int64_t t = 0; b->mean && t < count; t++)
        normalise(b, (float *)inputs + t * b->info->inputs);
    upload_contents(b, inputs, NULL);
    return 0;
}

static int longer_first(const void *a, const void *b)
{
    const struct rnnd_piece *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

int rnnd_batch_load_sequences(struct rnnd_batch *b, const int32_t *ids, int64_t count)
{
    const int64_t *offsets = rnnd_dataset_offsets(b->data);
    bool pairs = b->info->task == RNND_LM && b->with_targets;
    struct rnnd_piece *piece = NULL;
    RNND_TRY(RNND_NEW(&piece, count, "batch"));
    for (int64_t j = 0; j < count; j++) {
        int64_t length = offsets[ids[j] + 1] - offsets[ids[j]];
        piece[j] = (struct rnnd_piece){.id = ids[j],
                                       .begin = offsets[ids[j]],
                                       .length = length - (pairs && length > 0),
                                       .sequence = ids[j]};
    }
    qsort(piece, (size_t)count, sizeof *piece, longer_first);
    int status = rnnd_batch_load(b, piece, count, 0);
    free(piece);
    return status;
}
