/*
 * test_semantics.c - what others got wrong inside one process: packing, order, final
 * states, masks, carried state, plans.
 *
 * Each test names the faults that it excludes (CASE n: numbers of the list of known
 * faults of such systems, kept in tests/cases/README). Uses the public header only.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../suite.h"
#include "data.h"
#include "options/options.h"
#include "rnn_dist.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Two ways of packing may round differently: a few units in the last place of a float.
 */
#define SAME 2e-6

static struct rnnd_comm *comm;
static struct rnnd_backend *backend;
static char folder[64], data_path[96];

#define CK_OK(expr)                                                   \
    do {                                                              \
        int ck_status = (expr);                                       \
        ck_assert_msg(ck_status == 0, "%s: %d, %s", #expr, ck_status, \
                      rnnd_status_detail());                          \
    } while (0)

/* ---- a model and its data */

struct fixture {
    struct rnnd_dataset *data;
    struct rnnd_model *model;
    struct rnnd_batch *batch;
    struct rnnd_loss_sums *loss;
    int64_t sequences, steps, outputs;
};

static void *zeroed(int64_t count, size_t size)
{
    void *out = calloc((size_t)count + 1, size);
    ck_assert_ptr_nonnull(out);
    return out;
}

static void open_fixture(struct fixture *f, const struct case_data *d,
                         const struct rnnd_model_spec *spec)
{
    memset(f, 0, sizeof *f);
    CK_OK(case_data_write(data_path, d));
    CK_OK(rnnd_dataset_open(data_path, &f->data));
    const struct rnnd_dataset_info *info = rnnd_dataset_info(f->data);
    struct rnnd_model_spec s = *spec;
    s.task = info->task;
    s.inputs = info->inputs;
    s.vocab = info->vocab;
    s.outputs = info->outputs;
    CK_OK(rnnd_model_new(backend, &s, &f->model));
    CK_OK(rnnd_model_init(f->model, 3));
    CK_OK(rnnd_loss_sums_new(backend, &f->loss));
    CK_OK(rnnd_batch_new(backend, f->data, true, NULL, NULL, &f->batch));
    f->sequences = info->sequences;
    f->steps = info->steps;
    f->outputs = info->outputs;
}

static void close_fixture(struct fixture *f)
{
    rnnd_loss_sums_free(f->loss);
    rnnd_batch_free(f->batch);
    rnnd_model_free(f->model);
    rnnd_dataset_close(f->data);
    unlink(data_path);
}

/* Loss sum and gradient of some sequences, added to what is there. */
static struct rnnd_loss add_gradient(struct fixture *f, const int32_t *ids,
                                     int64_t count, int64_t update)
{
    struct rnnd_pass pass = {.seed = 5, .update = update, .last = true};
    struct rnnd_loss loss;
    CK_OK(rnnd_batch_load_sequences(f->batch, ids, count));
    CK_OK(rnnd_model_gradient(f->model, f->batch, &pass, f->loss));
    CK_OK(rnnd_loss_sums_take(f->loss, &loss));
    return loss;
}

/* A parameter's values, or its gradient; *count is how many. Taken by the caller. */
static float *parameter(struct fixture *f, const char *name, bool gradient,
                        int64_t *count)
{
    const char *found;
    int64_t rows = 0, cols = 0;
    int i = 0;
    while (rnnd_model_parameter(f->model, i, &found, &rows, &cols) &&
           strcmp(found, name) != 0)
        i++;
    *count = rows * (cols ? cols : 1);
    float *out = zeroed(*count, sizeof *out);
    CK_OK(gradient ? rnnd_model_get_gradient(f->model, name, out)
                   : rnnd_model_get(f->model, name, out));
    return out;
}

/* All gradients, one after another; they are zero afterwards. */
static float *take_gradients(struct fixture *f, int64_t *count)
{
    float *all = zeroed(rnnd_model_parameters(f->model), sizeof *all);
    const char *name;
    int64_t rows, cols, n;
    *count = 0;
    for (int i = 0; rnnd_model_parameter(f->model, i, &name, &rows, &cols); i++) {
        float *one = parameter(f, name, true, &n);
        memcpy(all + *count, one, (size_t)n * sizeof *one);
        *count += n;
        free(one);
    }
    rnnd_model_zero_gradient(f->model);
    return all;
}

/* Scores of some sequences in packed order, and their final states [L*D,count,H]. */
static void scores_of(struct fixture *f, const int32_t *ids, int64_t count,
                      float *scores, float *h)
{
    struct rnnd_state *state;
    CK_OK(rnnd_state_new(f->model, count, &state));
    struct rnnd_pass pass = {.state = state};
    CK_OK(rnnd_batch_load_sequences(f->batch, ids, count));
    CK_OK(rnnd_model_scores(f->model, f->batch, &pass, scores));
    if (h) {
        const struct rnnd_model_spec *s = rnnd_model_spec(f->model);
        float *c = zeroed(s->layers * (s->bidirectional ? 2 : 1) * count * s->hidden,
                          sizeof *c);
        rnnd_state_advance(state);
        CK_OK(rnnd_state_get(state, h, c));
        free(c);
    }
    rnnd_state_free(state);
}

static void assert_near(const char *what, const float *a, const float *b, int64_t n,
                        double bound)
{
    double worst = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - b[i]));
        most = fmax(most, fabs((double)b[i]));
        ck_assert_msg(isfinite(a[i]), "%s[%lld] is %g", what, (long long)i,
                      (double)a[i]);
    }
    ck_assert_msg(worst <= bound * most, "%s: off by %.3g of the largest, %.3g", what,
                  worst / most, most);
}

/* ---- packing */

/* CASE 2: nothing of a sequence depends on its longest neighbour, in either direction.
 */
START_TEST(neighbours)
{
    const double length[] = {5, 50};
    const struct case_data d = {.task = "tag",
                                .length = length,
                                .sequences = 2,
                                .features = 3,
                                .outputs = 4,
                                .seed = 2};
    const struct rnnd_model_spec spec = {
        .cell = (enum rnnd_cell)_i, .hidden = 9, .layers = 2, .bidirectional = true};
    const int32_t both[] = {0, 1};
    struct fixture f;
    open_fixture(&f, &d, &spec);
    float alone[5 * 4], together[55 * 4], mine[5 * 4], h[4 * 9], h_both[4 * 2 * 9];
    scores_of(&f, both, 1, alone, h);
    scores_of(&f, both, 2, together, h_both);
    for (int t = 0; t < 5; t++) /* the longer one comes first in each step */
        memcpy(mine + 4 * t, together + 4 * (2 * t + 1), sizeof *mine * 4);
    assert_near("scores", mine, alone, 5 * 4, SAME);
    for (int p = 0; p < 4; p++)
        assert_near("h_n", h_both + 9 * (2 * p + 1), h + 9 * p, 9, SAME);

    int64_t n;
    add_gradient(&f, both, 2, 0);
    float *of_both = take_gradients(&f, &n);
    add_gradient(&f, both, 1, 0);
    add_gradient(&f, both + 1, 1, 0);
    float *of_each = take_gradients(&f, &n);
    assert_near("gradient", of_both, of_each, n, SAME);
    free(of_both);
    free(of_each);
    close_fixture(&f);
}
END_TEST

/* The next permutation of four, in lexical order; false after the last. */
static bool permute(int32_t *p)
{
    int i = 2, j = 3;
    while (i >= 0 && p[i] > p[i + 1])
        i--;
    if (i < 0)
        return false;
    while (p[j] < p[i])
        j--;
    int32_t swap = p[i];
    p[i] = p[j];
    p[j] = swap;
    for (int a = i + 1, b = 3; a < b; a++, b--) {
        swap = p[a];
        p[a] = p[b];
        p[b] = swap;
    }
    return true;
}

static const double four_lengths[] = {3, 7, 1, 5};

/* Feature data of four sequences in the order p; first values as at seed 4 in file
 * order. */
static void permuted_data(struct case_data *d, const int32_t *p, double *length,
                          double *input, double *target)
{
    int64_t at = 0, start[4] = {0, 3, 10, 11};
    for (int j = 0; j < 4; j++) {
        length[j] = four_lengths[p[j]];
        target[j] = p[j];
        for (int t = 0; t < length[j]; t++, at++)
            for (int k = 0; k < 2; k++)
                input[2 * at + k] = sin(7.0 * (double)(start[p[j]] + t) + 3 * k);
    }
    *d = (struct case_data){.task = "classify",
                            .length = length,
                            .sequences = 4,
                            .features = 2,
                            .outputs = 4,
                            .inputs = input,
                            .targets = target};
}

/* CASE 4: 24 orders of the data and 24 orders of asking: every result follows its
 * sequence. */
START_TEST(orders)
{
    const struct rnnd_model_spec spec = {.cell = RNND_LSTM, .hidden = 6, .layers = 1};
    const int32_t by_length[] = {1, 3, 0, 2};
    int32_t p[] = {0, 1, 2, 3};
    float want[4][4], want_h[4][6], want_loss = 0;
    int orders = 0;
    do {
        struct case_data d;
        struct fixture f;
        double length[4], input[2 * 16], target[4];
        float scores[4][4], h[4][6];
        permuted_data(&d, p, length, input, target);
        open_fixture(&f, &d, &spec);
        const int32_t file_order[] = {0, 1, 2, 3};
        scores_of(&f, orders % 2 ? p : file_order, 4, scores[0], h[0]);
        struct rnnd_loss loss = add_gradient(&f, p, 4, 0);
        if (orders == 0) {
            memcpy(want, scores, sizeof want);
            memcpy(want_h, h, sizeof want_h);
            want_loss = (float)loss.loss;
        }
        /* Packed order is by length, for any order of file or request. */
        for (int j = 0; j < 4; j++) {
            assert_near("scores", scores[j], want[j], 4, SAME);
            assert_near("h_n", h[j], want_h[j], 6, SAME);
        }
        ck_assert_double_eq_tol(loss.loss, want_loss, 1e-5);
        ck_assert_double_eq(loss.targets, 4);
        close_fixture(&f);
        orders++;
    } while (permute(p));
    ck_assert_int_eq(orders, 24);
    /* The labels went with their sequences: the loss is that of these scores. */
    double by_hand = 0;
    for (int j = 0; j < 4; j++) {
        double sum = 0;
        for (int k = 0; k < 4; k++)
            sum += exp(want[j][k]);
        by_hand += log(sum) - want[j][by_length[j]];
    }
    ck_assert_double_eq_tol(want_loss, by_hand, 1e-5);
}
END_TEST

/* CASE 5: the head of a sequence task sees the last forward and the first backward
   state, which are the final states, for every length. CASE 1: and zeros for an empty
   sequence. */
START_TEST(final_state)
{
    const double length[] = {9, 4, 4, 2, 1, 0};
    const struct case_data d = {.task = "regress",
                                .length = length,
                                .sequences = 6,
                                .features = 3,
                                .outputs = 2,
                                .seed = 9};
    const struct rnnd_model_spec spec = {
        .cell = (enum rnnd_cell)_i, .hidden = 5, .layers = 2, .bidirectional = true};
    const int32_t ids[] = {0, 1, 2, 3, 4, 5};
    struct fixture f;
    open_fixture(&f, &d, &spec);
    float scores[6 * 2], h[4][6][5], by_hand[6 * 2];
    scores_of(&f, ids, 6, scores, h[0][0]);
    int64_t n;
    float *w = parameter(&f, "head.weight", false, &n),
          *b = parameter(&f, "head.bias", false, &n);
    for (int j = 0; j < 6; j++)
        for (int o = 0; o < 2; o++) {
            double s = b[o];
            for (int k = 0; k < 5; k++)
                s += (double)w[10 * o + k] * h[2][j][k] +
                     (double)w[10 * o + 5 + k] * h[3][j][k];
            by_hand[2 * j + o] = (float)s;
        }
    assert_near("scores", scores, by_hand, 12, SAME);
    ck_assert_float_eq(scores[10], b[0]);
    ck_assert_float_eq(scores[11], b[1]);
    free(w);
    free(b);
    close_fixture(&f);
}
END_TEST

/* A tie of max goes to the earliest step: the state is the same at all steps, and the
   gradient of a weight of 0 tells whose input it saw. */
START_TEST(tie_of_max)
{
    const double length[] = {3}, input[] = {5, 7, 11};
    const struct case_data d = {.task = "regress",
                                .length = length,
                                .sequences = 1,
                                .features = 1,
                                .outputs = 1,
                                .inputs = input};
    const struct rnnd_model_spec spec = {
        .cell = RNND_RNN_TANH, .hidden = 1, .layers = 1, .pool = RNND_POOL_MAX};
    const float zero = 0, half = 0.5f;
    const int32_t id = 0;
    struct fixture f;
    open_fixture(&f, &d, &spec);
    CK_OK(rnnd_model_set(f.model, "rnn.weight_ih_l0", &zero));
    CK_OK(rnnd_model_set(f.model, "rnn.weight_hh_l0", &zero));
    CK_OK(rnnd_model_set(f.model, "rnn.bias_ih_l0", &half));
    add_gradient(&f, &id, 1, 0);
    int64_t n;
    float *dw = parameter(&f, "rnn.weight_ih_l0", true, &n);
    float *db = parameter(&f, "rnn.bias_ih_l0", true, &n);
    ck_assert_float_ne(db[0], 0);
    ck_assert_float_eq_tol(dw[0] / db[0], 5, 1e-5);
    free(dw);
    free(db);
    close_fixture(&f);
}
END_TEST

/* CASE 13: weights 0, b_hn = 1, h0 = 0: reset after the product gives h1 = 0.5
 * tanh(0.5). */
START_TEST(gru_definition)
{
    const double length[] = {1};
    const struct case_data d = {
        .task = "tag", .length = length, .sequences = 1, .features = 1, .outputs = 2};
    const struct rnnd_model_spec spec = {.cell = RNND_GRU, .hidden = 2, .layers = 1};
    const float zero[64] = {0}, bias[6] = {0, 0, 0, 0, 1, 1};
    const int32_t id = 0;
    struct fixture f;
    open_fixture(&f, &d, &spec);
    CK_OK(rnnd_model_set(f.model, "rnn.weight_ih_l0", zero));
    CK_OK(rnnd_model_set(f.model, "rnn.weight_hh_l0", zero));
    CK_OK(rnnd_model_set(f.model, "rnn.bias_ih_l0", zero));
    CK_OK(rnnd_model_set(f.model, "rnn.bias_hh_l0", bias));
    float scores[2], h[2];
    scores_of(&f, &id, 1, scores, h);
    ck_assert_float_eq_tol(h[0], 0.5 * tanh(0.5), 1e-7);
    ck_assert_float_eq_tol(h[1], 0.231058579, 1e-7);
    close_fixture(&f);
}
END_TEST

/* ---- dropout */

#define UNITS 64

/* Which inputs of a layer got no gradient at all: those that dropout took at every
 * step. */
static int dropped_columns(struct fixture *f, const char *name, int64_t cols,
                           char *dropped)
{
    int64_t n;
    float *g = parameter(f, name, true, &n);
    int count = 0;
    for (int64_t k = 0; k < cols; k++) {
        dropped[k] = 1;
        for (int64_t r = 0; r < n / cols; r++)
            if (g[r * cols + k] != 0)
                dropped[k] = 0;
        count += dropped[k];
    }
    free(g);
    return count;
}

/* The masks of three places: above layer 0, above layer 1, before the head. */
static void masks_of(struct fixture *f, int32_t id, int64_t update, char mask[3][UNITS],
                     int *count)
{
    static const char *const reader[] = {"rnn.weight_ih_l1", "rnn.weight_ih_l2",
                                         "head.weight"};
    int64_t n;
    add_gradient(f, &id, 1, update);
    for (int k = 0; k < 3; k++)
        count[k] = dropped_columns(f, reader[k], UNITS, mask[k]);
    free(take_gradients(f, &n));
}

/* CASES 14, 46: one mask per sequence keeps units away for all 30 steps; it differs
   between places, updates and sequences (even equal ones), and is the same when drawn
   again. A mask per step would leave a unit out of all 30 steps once in 10^9. */
START_TEST(masks)
{
    const double length[] = {30, 30};
    bool by_sequence = _i == RNND_DROPOUT_SEQUENCE;
    const struct case_data d = {.task = "tag",
                                .length = length,
                                .sequences = 2,
                                .features = 3,
                                .outputs = 4,
                                .seed = 2};
    const struct rnnd_model_spec spec = {.cell = RNND_LSTM,
                                         .hidden = UNITS,
                                         .layers = 3,
                                         .dropout = 0.5,
                                         .dropout_head = 0.5,
                                         .dropout_kind = (enum rnnd_dropout_kind)_i};
    char first[3][UNITS], again[3][UNITS], later[3][UNITS], other[3][UNITS];
    int count[3], more[3];
    struct fixture f;
    open_fixture(&f, &d, &spec);
    masks_of(&f, 0, 7, first, count);
    masks_of(&f, 0, 7, again, more);
    masks_of(&f, 0, 8, later, more);
    masks_of(&f, 1, 7, other, more);
    ck_assert_mem_eq(first, again, sizeof first);
    for (int k = 0; k < 3; k++) {
        if (!by_sequence) {
            ck_assert_int_eq(count[k], 0);
            continue;
        }
        ck_assert_int_ge(count[k], 16); /* half of 64, four standard deviations */
        ck_assert_int_le(count[k], 48);
        ck_assert_mem_ne(first[k], later[k], UNITS);
        ck_assert_mem_ne(first[k], other[k], UNITS);
        ck_assert_mem_ne(first[k], first[(k + 1) % 3], UNITS);
    }
    close_fixture(&f);
}
END_TEST

/* CASE 14: what is kept is scaled by 1/(1-p), and evaluation drops nothing. One step,
   one output: the head's gradient is the loss gradient times what the head read. */
START_TEST(mask_scale)
{
    const double length[] = {1};
    const struct case_data d = {.task = "regress_steps",
                                .length = length,
                                .sequences = 1,
                                .features = 3,
                                .outputs = 1,
                                .seed = 2};
    struct rnnd_model_spec spec = {
        .cell = RNND_GRU, .hidden = UNITS, .layers = 1, .dropout_head = 0.2};
    const int32_t id = 0;
    struct fixture f;
    open_fixture(&f, &d, &spec);
    float score, h[UNITS];
    int64_t n;
    scores_of(&f, &id, 1, &score, h);
    add_gradient(&f, &id, 1, 0);
    float *dw = parameter(&f, "head.weight", true, &n),
          *db = parameter(&f, "head.bias", true, &n);
    int kept = 0;
    for (int k = 0; k < UNITS; k++) {
        float read = dw[k] / db[0];
        if (read == 0)
            continue;
        ck_assert_float_eq_tol(read, h[k] / 0.8f, 1e-6);
        kept++;
    }
    ck_assert_int_ge(kept, 40); /* of 64 four fifths, less four standard deviations */
    ck_assert_int_lt(kept, UNITS);

    struct rnnd_pass pass = {.seed = 5};
    struct rnnd_loss loss;
    float target;
    CK_OK(rnnd_dataset_targets(f.data, 0, 1, &target));
    CK_OK(rnnd_model_evaluate(f.model, f.batch, &pass, f.loss));
    CK_OK(rnnd_loss_sums_take(f.loss, &loss));
    ck_assert_double_eq_tol(loss.loss, pow((double)score - target, 2), 1e-6);
    int64_t w_count;
    float *w = parameter(&f, "head.weight", false, &w_count),
          *b = parameter(&f, "head.bias", false, &n);
    double by_hand = b[0];
    for (int k = 0; k < UNITS; k++)
        by_hand += (double)w[k] * h[k];
    ck_assert_double_eq_tol(score, by_hand, 1e-6);
    free(w);
    free(b);
    free(dw);
    free(db);
    close_fixture(&f);
}
END_TEST

/* ---- plans */

static struct rnnd_plan *new_plan(const int64_t *offsets, int64_t sequences,
                                  int64_t batch, int64_t batch_tokens, bool shuffle)
{
    struct rnnd_plan_options opt = {.seed = 11,
                                    .shuffle = shuffle,
                                    .bucket = 4,
                                    .batch = batch,
                                    .batch_tokens = batch_tokens};
    struct rnnd_plan *plan;
    CK_OK(rnnd_plan_new(offsets, sequences, &opt, &plan));
    return plan;
}

/* The sequences of an epoch in the order in which they come. */
static int64_t order_of(struct rnnd_plan *plan, int64_t epoch, int32_t *order)
{
    int64_t n = 0;
    rnnd_plan_epoch(plan, epoch);
    for (int64_t e = 0; e < rnnd_plan_entries(plan); e++) {
        const int32_t *ids;
        int64_t count;
        rnnd_plan_entry(plan, e, &ids, &count);
        for (int64_t j = 0; j < count; j++)
            order[n++] = ids[j];
    }
    return n;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The batches of the epoch laid out, as sets of sequences (bits), in no order. */
static void batches_of(const struct rnnd_plan *plan, uint32_t *set)
{
    int64_t entries = rnnd_plan_entries(plan);
    for (int64_t e = 0; e < entries; e++) {
        const int32_t *ids;
        int64_t count;
        rnnd_plan_entry(plan, e, &ids, &count);
        set[e] = 0;
        for (int64_t j = 0; j < count; j++)
            set[e] |= UINT32_C(1) << ids[j];
    }
    qsort(set, (size_t)entries, sizeof *set, by_value);
}

/* CASES 22, 45: every epoch holds every sequence once; epochs differ in order and
   batches; a repeat does not. */
START_TEST(epochs)
{
    int64_t offsets[24] = {0};
    int32_t order[3][23], again[23];
    uint32_t batches[3][23] = {{0}};
    for (int i = 0; i < 23; i++)
        offsets[i + 1] = offsets[i] + i % 7;
    struct rnnd_plan *plan = new_plan(offsets, 23, _i ? 0 : 5, _i ? 9 : 0, true);
    for (int e = 0; e < 3; e++) {
        int seen[23] = {0};
        ck_assert_int_eq(order_of(plan, e, order[e]), 23);
        for (int i = 0; i < 23; i++)
            ck_assert_int_eq(seen[order[e][i]]++, 0);
        batches_of(plan, batches[e]);
    }
    for (int e = 0; e < 3; e++) {
        ck_assert_mem_ne(order[e], order[(e + 1) % 3], sizeof again);
        ck_assert_mem_ne(batches[e], batches[(e + 1) % 3], sizeof batches[e]);
    }
    order_of(plan, 1, again);
    ck_assert_mem_eq(order[1], again, sizeof again);
    rnnd_plan_free(plan);
}
END_TEST

/* CASE 21: a budget of 10 for 9, 9, 1, 1, 25: never more, but for the 25, which goes
 * alone. */
START_TEST(budget)
{
    const int64_t offsets[] = {0, 9, 18, 19, 20, 45};
    const int64_t want[] = {1, 2, 1, 1};
    struct rnnd_plan *plan = new_plan(offsets, 5, 0, 10, false);
    rnnd_plan_epoch(plan, 0);
    ck_assert_int_eq(rnnd_plan_entries(plan), 4);
    for (int e = 0; e < 4; e++) {
        const int32_t *ids;
        int64_t count;
        rnnd_plan_entry(plan, e, &ids, &count);
        ck_assert_int_eq(count, want[e]);
    }
    rnnd_plan_free(plan);
}
END_TEST

/* What a rank's share costs in rows: its rows, and one more for each step that it
   makes; lengths fall. */
static double load_of(const int64_t *length, const int32_t *mine, int64_t n)
{
    double load = n ? (double)length[mine[0]] : 0;
    for (int64_t j = 0; j < n; j++)
        load += (double)length[mine[j]];
    return load;
}

/* CASE 25: lognormal lengths over 8 ranks: each sequence has one rank, and the shares
   are more even than those of taking turns. */
START_TEST(shares)
{
    enum { N = 128, RANKS = 8 };
    int64_t length[N], longest = 0;
    double in_turn[RANKS] = {0}, first[RANKS] = {0}, total = 0, by_turns = 0, most = 0;
    for (int i = 0; i < N; i++) {
        double u = (i * 37 % N + 0.5) / N,
               logit = log(u / (1 - u)) / 1.7; /* nearly normal */
        length[i] = (int64_t)exp(4 + logit);
        in_turn[i % RANKS] += (double)length[i];
        first[i % RANKS] = fmax(first[i % RANKS], (double)length[i]);
        longest = length[i] > longest ? length[i] : longest;
    }
    for (int r = 0; r < RANKS; r++)
        by_turns = fmax(by_turns, in_turn[r] + first[r]);
    int owner[N] = {0};
    double straggler;
    for (int r = 0; r < RANKS; r++) {
        int32_t mine[N];
        int64_t n;
        CK_OK(rnnd_plan_shard(length, N, RANKS, r, mine, &n, &straggler));
        for (int64_t j = 0; j < n; j++)
            owner[mine[j]]++;
        double load = load_of(length, mine, n);
        most = fmax(most, load);
        total += load;
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(owner[i], 1);
    /* Even, but for the longest sequence, which is one rank's in any case. */
    ck_assert_double_le(most, fmax(1.03 * total / RANKS, 2.0 * (double)longest));
    ck_assert_double_le(most, by_turns);
    ck_assert_double_eq_tol(straggler, most * RANKS / total, 0.01);
}
END_TEST

/* ---- carried state */

static long peak_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void train_windows(int64_t updates, const char *run_dir)
{
    struct rnnd_options opt;
    struct rnnd_train_result result;
    char number[32], command[128];
    snprintf(number, sizeof number, "%lld", (long long)updates);
    const char *const set[][2] = {{"data", data_path},     {"run-dir", run_dir},
                                  {"hidden", "32"},        {"batch", "2"},
                                  {"tbptt", "5"},          {"windows", "1"},
                                  {"max-updates", number}, {"progress", "none"},
                                  {"epochs", "1"},         {"threads", "1"}};
    CK_OK(rnnd_options_init(&opt));
    for (int i = 0; i < COUNT(set); i++)
        CK_OK(rnnd__options_set(&opt, set[i][0], set[i][1], RNND_FROM_COMMAND_LINE));
    CK_OK(rnnd_train(&opt, comm, &result));
    ck_assert_int_eq(result.updates, updates);
    rnnd_options_clear(&opt);
    snprintf(command, sizeof command, "rm -rf '%s'", run_dir);
    ck_assert_int_eq(system(command), 0);
}

/* CASE 15: 1000 windows need no more memory than 50, so no window's graph is kept. */
START_TEST(flat_memory)
{
    const double length[] = {5000, 4000};
    const struct case_data d = {
        .task = "tag", .length = length, .sequences = 2, .features = 8, .outputs = 4};
    char run_dir[96];
    snprintf(run_dir, sizeof run_dir, "%s/run", folder);
    CK_OK(case_data_write(data_path, &d));
    /* The first runs also fill what libraries and the allocator keep. */
    for (int i = 0; i < 3; i++)
        train_windows(50, run_dir);
    long before = peak_kilobytes();
    train_windows(1000, run_dir);
    ck_assert_int_le(peak_kilobytes() - before, 512);
    unlink(data_path);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("semantics");
    TCase *tests = tcase_create("faults that others had");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, neighbours, RNND_RNN_TANH, RNND_GRU + 1);
    tcase_add_test(tests, orders);
    tcase_add_loop_test(tests, final_state, RNND_RNN_TANH, RNND_GRU + 1);
    tcase_add_test(tests, tie_of_max);
    tcase_add_test(tests, gru_definition);
    tcase_add_loop_test(tests, masks, RNND_DROPOUT_ELEMENT, RNND_DROPOUT_SEQUENCE + 1);
    tcase_add_test(tests, mask_scale);
    tcase_add_loop_test(tests, epochs, 0, 2);
    tcase_add_test(tests, budget);
    tcase_add_test(tests, shares);
#ifndef __SANITIZE_ADDRESS__ /* which holds freed memory back */
    tcase_add_test(tests, flat_memory);
#else
    (void)flat_memory;
#endif
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    struct rnnd_options opt;
    snprintf(folder, sizeof folder, "%.40s/semantics-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder) || rnnd_options_init(&opt) < 0 ||
        rnnd_comm_open(60, &comm) < 0 || rnnd_backend_open(&opt, comm, &backend) < 0) {
        fprintf(stderr, "test_semantics: %s\n", rnnd_status_detail());
        return EXIT_FAILURE;
    }
    rnnd_options_clear(&opt);
    snprintf(data_path, sizeof data_path, "%s/data.h5", folder);
    int status = run_suite(make_suite());
    rmdir(folder);
    rnnd_backend_close(backend);
    rnnd_comm_close(comm);
    return status;
}
