/*
 * predict.c - predicts all sequences of a data set, in its order.
 *
 * Ranks compute the batches of a pool; rank 0 gathers the results, puts them in order
 * and writes the pool to HDF5 and CSV. Knows no training.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/task.h"
#include "evaluate/predict_out.h"
#include "evaluate/predict_strings.h"
#include "evaluate/sweep.h"

struct predictor {
    struct rnnd_model *model;
    const struct rnnd_model_spec *spec;
    const int64_t *offsets;
    struct rnnd_comm *comm;
    const struct rnnd_options *opt;
    bool stepwise;
    int64_t outputs;
    /* final states to predict: 0 none, 1 h, 2 h and c; each L*D*H floats */
    int states;
    int64_t state_width;

    struct rnnd__sweep *sweep;
    struct rnnd_batch *batch;
    /* NULL without states; capacity in sequences */
    struct rnnd_state *state;
    int64_t state_rows;

    /* scores of one batch in packed order; sizes are in floats, here and below */
    float *packed;
    int64_t packed_room;
    /* results of this rank's batches of the pool, one after another */
    float *own;
    int64_t own_count, own_room;
    /* ctc: the records of the sequences of these batches; else NULL */
    struct rnnd__predict_strings *strings;
    /* [ranks] bytes of each rank's results */
    size_t *bytes;

    /* scratch of unpack() */
    int64_t *at;
    int64_t at_room;

    /* Rank 0 only: the files, and the results of a pool in the data set's order: rows
       of scores, h and c. */
    struct rnnd__predict_out *out;
    float *pool;
    int64_t pool_room;
    float *pool_state[2];
    int64_t pool_state_room[2];
    /* records by sequence of the pool: views */
    const int32_t **pool_string;
    int64_t pool_strings;
};

static int64_t length_of(const struct predictor *p, int64_t id)
{
    return p->offsets[id + 1] - p->offsets[id];
}

/* Output rows of sequences first .. end-1. */
static int64_t rows_of(const struct predictor *p, int64_t first, int64_t end)
{
    return p->stepwise ? p->offsets[end] - p->offsets[first] : end - first;
}

/* ---- scores to probabilities */

static void softmax(float *row, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        most = row[k] > most ? row[k] : most;
    for (int64_t k = 0; k < n; k++)
        sum += exp(row[k] - most);
    for (int64_t k = 0; k < n; k++)
        row[k] = (float)(exp(row[k] - most) / sum);
}

static void activate(const struct predictor *p, float *rows, int64_t count)
{
    bool choices = rnnd__task_is_categorical(p->spec->task);
    bool answers = rnnd__task(p->spec->task)->target == RNND__TARGET_ANSWERS;
    if (p->opt->raw)
        return;
    for (int64_t r = 0; r < count; r++, rows += p->outputs) {
        if (choices)
            softmax(rows, p->outputs);
        for (int64_t k = 0; answers && k < p->outputs; k++)
            rows[k] = (float)(1 / (1 + exp(-(double)rows[k])));
    }
}

/* ---- one batch */

static int reserve(float **p, int64_t *room, int64_t floats)
{
    if (floats <= *room && *p)
        return 0;
    RNND_TRY(rnnd__grow((size_t)floats, sizeof(float), "predictions", p));
    *room = floats;
    return 0;
}

/* Unpacks the scores of a batch, time-major, to out, sequence by sequence in the order
   of ids, which is by falling length as in the batch. */
static void unpack(const struct predictor *p, const int32_t *ids, int64_t count,
                   float *out)
{
    size_t bytes = (size_t)p->outputs * sizeof(float);
    if (!p->stepwise) {
        memcpy(out, p->packed, (size_t)count * bytes);
        return;
    }
    int64_t longest = count ? length_of(p, ids[0]) : 0, row = 0, alive = count;
    for (int64_t j = 0, sum = 0; j < count; sum += length_of(p, ids[j]), j++)
        p->at[j] = sum; /* first row of sequence j in out */
    for (int64_t t = 0; t < longest; t++) {
        while (length_of(p, ids[alive - 1]) <= t)
            alive--;
        for (int64_t j = 0; j < alive; j++, row++)
            memcpy(out + (p->at[j] + t) * p->outputs, p->packed + row * p->outputs,
                   bytes);
    }
}

/* Decodes the sequences of a batch by their scores, which are in the order of ids. */
static int decode(struct predictor *p, const int32_t *ids, int64_t count,
                  const float *score)
{
    for (int64_t j = 0; j < count; j++) {
        int64_t T = length_of(p, ids[j]);
        RNND_TRY(rnnd__predict_strings_add(p->strings, ids[j], T, score));
        score += T * p->outputs;
    }
    return 0;
}

/* Converts states from [L*D, rows, H] to [count, L*D, H]. */
static void unpack_states(const struct predictor *p, const float *from, int64_t count,
                          float *out)
{
    int64_t H = p->spec->hidden, LD = p->state_width / H;
    for (int64_t j = 0; j < count; j++)
        for (int64_t k = 0; k < LD; k++)
            memcpy(out + j * p->state_width + k * H, from + (k * p->state_rows + j) * H,
                   (size_t)H * sizeof(float));
}

static int take_states(struct predictor *p, int64_t count, float *out)
{
    float *raw = NULL;
    int64_t size = p->state_width * p->state_rows;
    RNND_TRY(RNND_NEW(&raw, 2 * size, "states"));
    rnnd_state_advance(p->state);
    int status = rnnd_state_get(p->state, raw, raw + size);
    for (int k = 0; status == 0 && k < p->states; k++)
        unpack_states(p, raw + k * size, count, out + k * count * p->state_width);
    free(raw);
    return status;
}

static int64_t batch_rows(const struct predictor *p, const int32_t *ids, int64_t count)
{
    int64_t rows = p->stepwise ? 0 : count;
    for (int64_t j = 0; p->stepwise && j < count; j++)
        rows += length_of(p, ids[j]);
    return rows;
}

/* Floats of a batch's results: scores, then h, then c. */
static int64_t batch_floats(const struct predictor *p, const int32_t *ids,
                            int64_t count)
{
    return batch_rows(p, ids, count) * p->outputs + count * p->states * p->state_width;
}

static int state_for(struct predictor *p, int64_t count)
{
    if (!p->states)
        return 0;
    if (p->state && count <= p->state_rows) {
        rnnd_state_zero(p->state);
        return 0;
    }
    rnnd_state_free(p->state);
    p->state = NULL;
    p->state_rows = count;
    return rnnd_state_new(p->model, count, &p->state);
}

static int run_batch(struct predictor *p, const int32_t *ids, int64_t count)
{
    int64_t rows = batch_rows(p, ids, count), floats = batch_floats(p, ids, count);
    RNND_TRY(reserve(&p->packed, &p->packed_room, rows * p->outputs));
    RNND_TRY(reserve(&p->own, &p->own_room, p->own_count + floats));
    RNND_TRY(state_for(p, count));
    if (count > p->at_room) {
        RNND_TRY(RNND_GROW(&p->at, count, "predictions"));
        p->at_room = count;
    }
    struct rnnd_pass pass = {.state = p->state};
    RNND_TRY(rnnd_batch_load_sequences(p->batch, ids, count));
    RNND_TRY(rnnd_model_scores(p->model, p->batch, &pass, p->packed));
    unpack(p, ids, count, p->own + p->own_count);
    if (p->strings)
        RNND_TRY(decode(p, ids, count, p->own + p->own_count));
    activate(p, p->own + p->own_count, rows);
    if (p->states)
        RNND_TRY(take_states(p, count, p->own + p->own_count + rows * p->outputs));
    p->own_count += floats;
    return 0;
}

static int run_pool(struct predictor *p)
{
    p->own_count = 0;
    if (p->strings)
        rnnd__predict_strings_begin(p->strings);
    for (int64_t k = 0; k < p->sweep->own; k++) {
        const int32_t *ids;
        int64_t count = rnnd__sweep_batch(p->sweep, p->sweep->mine[k], &ids);
        RNND_TRY(run_batch(p, ids, count));
    }
    return 0;
}

/* ---- rank 0: a pool in order */

static void place_batch(struct predictor *p, const int32_t *ids, int64_t count,
                        const float *from)
{
    int64_t first = p->sweep->first;
    size_t width = (size_t)p->outputs * sizeof(float);
    for (int64_t j = 0; j < count; j++) {
        int64_t rows = p->stepwise ? length_of(p, ids[j]) : 1;
        memcpy(p->pool + rows_of(p, first, ids[j]) * p->outputs, from,
               (size_t)rows * width);
        from += rows * p->outputs;
    }
    for (int k = 0; k < p->states; k++)
        for (int64_t j = 0; j < count; j++, from += p->state_width)
            memcpy(p->pool_state[k] + (ids[j] - first) * p->state_width, from,
                   (size_t)p->state_width * sizeof(float));
}

/* Steps over the records of a batch. */
static const int32_t *place_strings(struct predictor *p, const int32_t *ids,
                                    int64_t count, const int32_t *from)
{
    for (int64_t j = 0; j < count; j++, from = rnnd__record_next(from))
        p->pool_string[ids[j] - p->sweep->first] = from;
    return from;
}

static int place_pool(struct predictor *p, const float *all, const int32_t *strings)
{
    const struct rnnd__sweep *w = p->sweep;
    int64_t rows = rows_of(p, w->first, w->end), count = w->end - w->first;
    int32_t *mine = NULL;
    int64_t own;
    RNND_TRY(reserve(&p->pool, &p->pool_room, rows * p->outputs));
    if (p->strings && count > p->pool_strings) {
        RNND_TRY(RNND_GROW(&p->pool_string, count, "predictions"));
        p->pool_strings = count;
    }
    for (int k = 0; k < p->states; k++)
        RNND_TRY(
            reserve(&p->pool_state[k], &p->pool_state_room[k], count * p->state_width));
    RNND_TRY(RNND_NEW(&mine, w->batches, "shards"));
    int status = 0;
    for (int rank = 0; status == 0 && rank < rnnd_comm_size(p->comm); rank++) {
        status = rnnd__sweep_assign(w, rank, mine, &own);
        for (int64_t k = 0; status == 0 && k < own; k++) {
            const int32_t *ids;
            int64_t n = rnnd__sweep_batch(w, mine[k], &ids);
            place_batch(p, ids, n, all);
            if (p->strings)
                strings = place_strings(p, ids, n, strings);
            all += batch_floats(p, ids, n);
        }
    }
    free(mine);
    return status;
}

/* ---- the flow */

static int gather_pool(struct predictor *p)
{
    void *all = NULL, *strings = NULL;
    int status = rnnd_comm_gather(p->comm, p->own, (size_t)p->own_count * sizeof(float),
                                  &all, p->bytes);
    if (status == 0 && p->strings) {
        const struct rnnd__list *own = rnnd__predict_strings_all(p->strings);
        status = rnnd_comm_gather(
            p->comm, own->at, (size_t)own->count * sizeof(int32_t), &strings, p->bytes);
    }
    if (status == 0 && p->out) {
        struct rnnd__predict_pool pool = {.first = p->sweep->first,
                                          .end = p->sweep->end};
        status = place_pool(p, all, strings);
        pool.rows = p->pool;
        pool.state = p->pool_state;
        pool.string = p->pool_string;
        if (status == 0)
            status = rnnd__predict_out_pool(p->out, &pool);
    }
    free(all);
    free(strings);
    return status;
}

static int run(struct predictor *p)
{
    bool more;
    int status = 0;
    RNND_TRY(rnnd__sweep_next(p->sweep, &more));
    while (more) {
        /* If rank 0 fails to write, the others learn of it with the next pool, or
           below. */
        RNND_TRY(rnnd_comm_agree(p->comm, status ? status : run_pool(p)));
        status = gather_pool(p);
        RNND_TRY(rnnd__sweep_next(p->sweep, &more));
    }
    return rnnd_comm_agree(p->comm, status);
}

static void clear(struct predictor *p)
{
    rnnd__sweep_free(p->sweep);
    rnnd_batch_free(p->batch);
    rnnd_state_free(p->state);
    rnnd__predict_out_close(p->out);
    rnnd__predict_strings_free(p->strings);
    void *all[] = {p->packed, p->own,           p->bytes,         p->at,
                   p->pool,   p->pool_state[0], p->pool_state[1], p->pool_string};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

int rnnd_predict(struct rnnd_model *model, struct rnnd_dataset *data,
                 struct rnnd_comm *comm, const struct rnnd_options *opt)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(model);
    const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
    struct predictor p = {.model = model,
                          .spec = spec,
                          .offsets = rnnd_dataset_offsets(data),
                          .comm = comm,
                          .opt = opt,
                          .stepwise = rnnd_task_is_stepwise(spec->task),
                          .outputs = spec->outputs};
    struct rnnd__predict_layout layout = {.stepwise = p.stepwise,
                                          .strings = rnnd__task_has_strings(spec->task),
                                          .outputs = p.outputs,
                                          .pad = opt->pad};
    int status = 0;
    if (opt->states) {
        layout.places = spec->layers * (spec->bidirectional ? 2 : 1);
        layout.hidden = spec->hidden;
        layout.states = p.states = spec->cell == RNND_LSTM ? 2 : 1;
        p.state_width = layout.places * layout.hidden;
    }
    RNND_TRY(rnnd__predict_out_check(&layout, info));
    RNND_TRY(rnnd__predict_strings_new(opt, spec, data, &p.strings));
    status = RNND_NEW(&p.bytes, rnnd_comm_size(comm), "sizes");
    if (status == 0 && rnnd_comm_rank(comm) == 0)
        status = rnnd__predict_out_open(opt, data, model, &layout, &p.out);
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(
        rnnd__sweep_new(opt, data, comm, p.outputs + p.state_width, &p.sweep));
    RNND_TRY_GOTO(rnnd_batch_new(rnnd_model_backend(model), data, false,
                                 rnnd_model_mean(model), rnnd_model_std(model),
                                 &p.batch));
    RNND_TRY_GOTO(run(&p));
    RNND_TRY_GOTO(rnnd_comm_agree(comm, p.out ? rnnd__predict_out_commit(p.out) : 0));
done:
    clear(&p);
    return status;
}
