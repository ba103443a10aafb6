/*
 * test_golden.c - small models on ragged data against PyTorch float64.
 *
 * Takes the tables of golden/golden.h5, of golden/weights.h5, whose losses have weights
 * of classes and label smoothing, of golden/layers.h5, whose layers are not the
 * default, and of golden/sparse.h5, whose updates are those of --sparse-embedding
 * (golden/make_golden.py tells how they were made), and holds the public interface
 * against them: loss, gradients, scores, final states, parameters after updates, and
 * whole trainings with truncated BPTT. Lengths are 0, 1, and up to 65535, 65536 and
 * 100000, where others break (CASES 1 and 9). Under mpirun the trainings are shared out
 * over the ranks and must give the same numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "hdf/hdf.h"
#include "model/params.h"
#include "options/options.h"
#include "rnn_dist.h"

/* How far single precision may be from double. Of a tensor's largest value: one
   rounding is 6e-8, and what sums and steps leave was 1.5e-6 at worst, 5e-7 after
   100000 steps. Of the change that updates make: as of a gradient, and each update
   rounds the parameter itself, which may be a thousand times the change. */
#define TENSOR_BOUND 5e-6
#define CHANGE_BOUND 2e-5
#define ROUNDING     0x1p-24
#define LOSS_BOUND   1e-6

/* Columns of /spec and /real, in the order of make_golden.py. */
enum {
    DATA,
    TASK,
    CELL,
    LAYERS,
    BIDIRECTIONAL,
    POOL,
    INPUTS,
    VOCAB,
    EMBED,
    HIDDEN,
    OUTPUTS,
    TIE,
    OPTIMIZER,
    UPDATES,
    BATCH,
    TBPTT,
    WINDOWS,
    STREAM,
    PARAM,
    PARAMS,
    TARGET,
    SCORE,
    STATE_H,
    STATE_C,
    SPEC_COLUMNS
};
enum {
    LR,
    MOMENTUM,
    BETA1,
    BETA2,
    EPS,
    WEIGHT_DECAY,
    CLIP_NORM,
    LOSS,
    TARGETS,
    REAL_COLUMNS
};

enum { SMOOTHING, MEAN, PLAIN, WEIGHING_COLUMNS };
enum { NO_BIAS, LAYERS_COLUMNS };
/* Of /weight: the widest case's. */
enum { WEIGHTS = 11 };

static const char *const data_name[] = {"ragged",    "holes",     "empty",
                                        "single",    "text",      "long65535",
                                        "long65536", "long100000"};

/* What make_golden.py keeps of a case's scores. */
enum { MOST_SCORES = 1000 };

static struct rnnd__hdf *golden;
static char **case_name;
static int32_t *spec_table;
static double *real_table;
static int64_t case_count;
/* of weights.h5, else NULL: a row of WEIGHING_COLUMNS, and of WEIGHTS, for each case */
static double *weighing_table, *weight_table;
/* of layers.h5, else NULL: a row of LAYERS_COLUMNS for each case */
static int32_t *layers_table;
/* whether it is sparse.h5 */
static bool sparse;

static struct rnnd_comm *comm;
static struct rnnd_backend *backend;
static char folder[64];

/* One case, with all that its test holds. */
struct golden_case {
    const char *name;
    const int32_t *spec;
    const double *real;
    /* NULL = the loss is not weighted */
    const double *weighing, *weight;
    int32_t layers[LAYERS_COLUMNS];
    int64_t sequences, steps;
    int64_t *offsets;
    char data_path[128];
    struct rnnd_dataset *data;
    struct rnnd_model *model;
    struct rnnd_options opt;
};

/* One parameter of a case, and its place in the flat numbers. */
struct tensor {
    char name[64];
    /* cols 0 = a vector */
    int64_t rows, cols;
    int64_t at;
};

static bool in_test; /* else a failure ends the program: Check has nowhere to jump to */

static void must(int status, const char *what)
{
    if (status == 0)
        return;
    if (in_test)
        ck_abort_msg("%s: %d, %s", what, status, rnnd_status_detail());
    fprintf(stderr, "test_golden: %s: %d, %s\n", what, status, rnnd_status_detail());
    exit(EXIT_FAILURE);
}

#define CK_OK(expr) must((expr), #expr)

/* ---- the golden file */

static void *zeroed(int64_t count, size_t size)
{
    void *out = calloc((size_t)count + 1, size);
    must(out ? 0 : RNND_EDEVICE, "calloc");
    return out;
}

/* All of an object; *rows is its first dimension. */
static void *read_all(const char *object, enum rnnd__hdf_type type, int64_t *rows)
{
    struct rnnd__hdf_shape shape;
    CK_OK(rnnd__hdf_shape(golden, object, &shape));
    *rows = shape.dim[0];
    void *out = zeroed(*rows * (shape.rank == 2 ? shape.dim[1] : 1), sizeof(double));
    CK_OK(rnnd__hdf_read(golden, object, 0, *rows, type, out));
    return out;
}

/* A piece of a flat table. */
static void *read_part(const char *object, int64_t first, int64_t count,
                       enum rnnd__hdf_type type)
{
    void *out = zeroed(count, sizeof(double));
    if (count > 0)
        CK_OK(rnnd__hdf_read(golden, object, first, count, type, out));
    return out;
}

static void open_golden(const char *name)
{
    const char *srcdir = getenv("srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/%s", srcdir ? srcdir : ".", name);
    CK_OK(rnnd__hdf_open(path, &golden));
    CK_OK(rnnd__hdf_read_strings(golden, "cases", &case_name, &case_count));
    int64_t rows;
    spec_table = read_all("spec", RNND_I32, &rows);
    must(rows == case_count ? 0 : RNND_EDATA, "rows of /spec");
    real_table = read_all("real", RNND_F64, &rows);
    must(rows == case_count ? 0 : RNND_EDATA, "rows of /real");
    if (rnnd__hdf_has(golden, "layers")) {
        layers_table = read_all("layers", RNND_I32, &rows);
        must(rows == case_count ? 0 : RNND_EDATA, "rows of /layers");
    }
    if (!rnnd__hdf_has(golden, "weighing"))
        return;
    weighing_table = read_all("weighing", RNND_F64, &rows);
    must(rows == case_count ? 0 : RNND_EDATA, "rows of /weighing");
    weight_table = read_all("weight", RNND_F64, &rows);
    must(rows == case_count ? 0 : RNND_EDATA, "rows of /weight");
}

static void close_golden(void)
{
    free(spec_table);
    free(real_table);
    free(weighing_table);
    free(weight_table);
    free(layers_table);
    weighing_table = weight_table = NULL;
    layers_table = NULL;
    free(case_name);
    rnnd__hdf_close(golden);
}

/* ---- one case */

static bool is_stepwise(const struct golden_case *g)
{
    return rnnd_task_is_stepwise((enum rnnd_task)g->spec[TASK]);
}

static void write_targets(const struct golden_case *g, struct rnnd__hdf *file)
{
    bool classes = g->spec[TASK] == RNND_CLASSIFY || g->spec[TASK] == RNND_TAG;
    int64_t rows = is_stepwise(g) ? g->steps : g->sequences;
    int64_t dim[2] = {rows, g->spec[OUTPUTS]};
    int64_t count = classes ? rows : rows * dim[1];
    float *value = read_part("target", g->spec[TARGET], count, RNND_F32);
    if (classes) {
        int32_t *label = zeroed(count, sizeof *label);
        for (int64_t i = 0; i < count; i++)
            label[i] = (int32_t)value[i];
        CK_OK(rnnd__hdf_write(file, "targets", RNND_I32, 1, dim, false, label));
        CK_OK(rnnd__hdf_set_int(file, "num_classes", g->spec[OUTPUTS]));
        free(label);
    } else {
        CK_OK(rnnd__hdf_write(file, "targets", RNND_F32, 2, dim, false, value));
    }
    free(value);
}

/* The data set of the case as a file that users could have written. */
static void write_data(struct golden_case *g)
{
    bool tokens = g->spec[VOCAB] > 0;
    char object[64];
    snprintf(object, sizeof object, "data/%s/inputs", data_name[g->spec[DATA]]);
    void *inputs = zeroed(g->steps * (tokens ? 1 : g->spec[INPUTS]), 4);
    if (g->steps > 0)
        CK_OK(rnnd__hdf_read(golden, object, 0, g->steps, tokens ? RNND_I32 : RNND_F32,
                             inputs));

    struct rnnd__hdf *file;
    CK_OK(rnnd__hdf_create(g->data_path, &file));
    CK_OK(rnnd__hdf_set_string(file, "format", "rnn_dist-data"));
    CK_OK(rnnd__hdf_set_int(file, "version", 1));
    CK_OK(rnnd__hdf_set_string(file, "task",
                               rnnd_task_name((enum rnnd_task)g->spec[TASK])));
    int64_t dim[2] = {g->sequences + 1, 0};
    CK_OK(rnnd__hdf_write(file, "offsets", RNND_I64, 1, dim, false, g->offsets));
    dim[0] = g->steps;
    dim[1] = g->spec[INPUTS];
    if (tokens) {
        CK_OK(rnnd__hdf_set_int(file, "vocab_size", g->spec[VOCAB]));
        CK_OK(rnnd__hdf_write(file, "inputs", RNND_I32, 1, dim, false, inputs));
    } else {
        CK_OK(rnnd__hdf_write(file, "inputs", RNND_F32, 2, dim, false, inputs));
    }
    if (g->spec[TASK] != RNND_LM)
        write_targets(g, file);
    CK_OK(rnnd__hdf_commit(file));
    free(inputs);
}

static struct rnnd_model_spec model_spec(const struct golden_case *g)
{
    const int32_t *s = g->spec;
    return (struct rnnd_model_spec){
        .task = (enum rnnd_task)s[TASK],
        .cell = (enum rnnd_cell)s[CELL],
        .inputs = s[INPUTS],
        .vocab = s[VOCAB],
        .embed = s[EMBED],
        .hidden = s[HIDDEN],
        .layers = s[LAYERS],
        .bidirectional = s[BIDIRECTIONAL] != 0,
        .pool = (enum rnnd_pool)s[POOL],
        .outputs = s[OUTPUTS],
        .tie_weights = s[TIE] != 0,
        .no_bias = g->layers[NO_BIAS] != 0,
    };
}

static void add_tensor(struct tensor *list, int *n, int64_t rows, int64_t cols,
                       const char *name)
{
    struct tensor *t = &list[*n];
    t->at = 0;
    if (*n > 0)
        t->at = t[-1].at + t[-1].rows * (t[-1].cols ? t[-1].cols : 1);
    t->rows = rows;
    t->cols = cols;
    snprintf(t->name, sizeof t->name, "%s", name);
    *n += 1;
}

/* The parameters in the order of PyTorch's state_dict, by the shapes it documents; how
 * many. */
static int list_tensors(const struct golden_case *g, struct tensor *list)
{
    static const int64_t gates_of[] = {1, 1, 4, 3};
    const int32_t *s = g->spec;
    int64_t D = s[BIDIRECTIONAL] ? 2 : 1, H = s[HIDDEN], GH = gates_of[s[CELL]] * H;
    int n = 0;
    if (s[VOCAB])
        add_tensor(list, &n, s[VOCAB], s[EMBED], "embed.weight");
    for (int k = 0; k < s[LAYERS]; k++)
        for (int d = 0; d < D; d++) {
            int64_t in = k > 0 ? D * H : s[VOCAB] ? s[EMBED] : s[INPUTS];
            const char *tail = d ? "_reverse" : "";
            char name[64];
            snprintf(name, sizeof name, "rnn.weight_ih_l%d%s", k, tail);
            add_tensor(list, &n, GH, in, name);
            snprintf(name, sizeof name, "rnn.weight_hh_l%d%s", k, tail);
            add_tensor(list, &n, GH, H, name);
            if (g->layers[NO_BIAS])
                continue;
            snprintf(name, sizeof name, "rnn.bias_ih_l%d%s", k, tail);
            add_tensor(list, &n, GH, 0, name);
            snprintf(name, sizeof name, "rnn.bias_hh_l%d%s", k, tail);
            add_tensor(list, &n, GH, 0, name);
        }
    if (!s[TIE])
        add_tensor(list, &n, s[OUTPUTS], D * H, "head.weight");
    add_tensor(list, &n, s[OUTPUTS], 0, "head.bias");
    return n;
}

#define MOST_TENSORS 32

/* PyTorch's names and shapes are the model's, and their values go in. */
static void set_parameters(struct golden_case *g)
{
    struct tensor list[MOST_TENSORS];
    int n = list_tensors(g, list);
    int64_t count = g->spec[PARAMS];
    ck_assert_msg(rnnd_model_parameters(g->model) == count,
                  "%s: %lld parameters, not %lld", g->name,
                  (long long)rnnd_model_parameters(g->model), (long long)count);
    float *value = read_part("param", g->spec[PARAM], count, RNND_F32);
    for (int i = 0; i < n; i++) {
        const char *name;
        int64_t rows = -1, cols = -1;
        int k = 0;
        while (rnnd_model_parameter(g->model, k, &name, &rows, &cols) &&
               strcmp(name, list[i].name) != 0)
            k++;
        ck_assert_msg(rows == list[i].rows && cols == list[i].cols,
                      "%s: %s is [%lld,%lld], not [%lld,%lld]", g->name, list[i].name,
                      (long long)rows, (long long)cols, (long long)list[i].rows,
                      (long long)list[i].cols);
        CK_OK(rnnd_model_set(g->model, list[i].name, value + list[i].at));
    }
    free(value);
}

static void set_option(struct golden_case *g, const char *name, const char *format,
                       double x)
{
    char text[64];
    snprintf(text, sizeof text, format, x);
    CK_OK(rnnd__options_set(&g->opt, name, text, RNND_FROM_COMMAND_LINE));
}

static void set_optimizer(struct golden_case *g)
{
    g->opt.optimizer = (enum rnnd_optimizer)g->spec[OPTIMIZER];
    set_option(g, "lr", "%.17g", g->real[LR]);
    set_option(g, "momentum", "%.17g", g->real[MOMENTUM]);
    set_option(g, "beta1", "%.17g", g->real[BETA1]);
    set_option(g, "beta2", "%.17g", g->real[BETA2]);
    set_option(g, "eps", "%.17g", g->real[EPS]);
    set_option(g, "weight-decay", "%.17g", g->real[WEIGHT_DECAY]);
    set_option(g, "clip-norm", "%.17g", g->real[CLIP_NORM]);
}

static bool has_weights(const struct golden_case *g)
{
    for (int k = 0; k < WEIGHTS; k++)
        if (g->weight[k] != 1)
            return true;
    return false;
}

/* The loss of the case: for the model, and for a whole training. */
static void set_loss(struct golden_case *g)
{
    float weight[WEIGHTS];
    char list[WEIGHTS * 16] = "";
    size_t n = 0;
    for (int k = 0; k < g->spec[OUTPUTS]; k++) {
        weight[k] = (float)g->weight[k];
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%g", k ? "," : "",
                              g->weight[k]);
    }
    CK_OK(rnnd_model_weigh(g->model, has_weights(g) ? weight : NULL,
                           g->weighing[SMOOTHING]));
    set_option(g, "label-smoothing", "%.17g", g->weighing[SMOOTHING]);
    if (has_weights(g))
        CK_OK(rnnd__options_set(&g->opt, "class-weight", list, RNND_FROM_COMMAND_LINE));
}

/* All ranks have come here, with the same status. */
static void together(void)
{
    CK_OK(rnnd_comm_agree(comm, 0));
}

static void case_open(struct golden_case *g, int i)
{
    memset(g, 0, sizeof *g);
    g->name = case_name[i];
    g->spec = spec_table + (int64_t)i * SPEC_COLUMNS;
    g->real = real_table + (int64_t)i * REAL_COLUMNS;
    if (weighing_table) {
        g->weighing = weighing_table + (int64_t)i * WEIGHING_COLUMNS;
        g->weight = weight_table + (int64_t)i * WEIGHTS;
    }
    if (layers_table)
        memcpy(g->layers, layers_table + (int64_t)i * LAYERS_COLUMNS, sizeof g->layers);
    char object[64];
    snprintf(object, sizeof object, "data/%s/offsets", data_name[g->spec[DATA]]);
    int64_t n;
    g->offsets = read_all(object, RNND_I64, &n);
    g->sequences = n - 1;
    g->steps = g->offsets[n - 1];
    snprintf(g->data_path, sizeof g->data_path, "%s/case%d.h5", folder, i);
    if (rnnd_comm_rank(comm) == 0)
        write_data(g);
    together();
    CK_OK(rnnd_dataset_open(g->data_path, &g->data));
    struct rnnd_model_spec spec = model_spec(g);
    CK_OK(rnnd_model_new(backend, &spec, &g->model));
    set_parameters(g);
    CK_OK(rnnd_options_init(&g->opt));
    set_optimizer(g);
    g->opt.sparse_embedding = sparse;
    if (sparse)
        rnnd__model_touch_rows(g->model);
    if (g->weighing)
        set_loss(g);
}

static void case_close(struct golden_case *g)
{
    rnnd_options_clear(&g->opt);
    rnnd_model_free(g->model);
    rnnd_dataset_close(g->data);
    free(g->offsets);
    together();
    if (rnnd_comm_rank(comm) == 0)
        unlink(g->data_path);
}

/* ---- comparisons */

/* max|a-b| <= bound * max|b| + rounding: where all of b is 0, a must be 0 too. */
struct allowed {
    double bound, rounding;
};

static const struct allowed of_tensor = {TENSOR_BOUND, 0};

static void compare(const struct golden_case *g, const char *what, const float *a,
                    const double *b, int64_t n, struct allowed allowed)
{
    double worst = 0, most = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - b[i]);
        if (!(d <= worst)) {
            worst = d;
            at = i;
        }
        most = fmax(most, fabs(b[i]));
    }
    ck_assert_msg(
        worst <= allowed.bound * most + allowed.rounding,
        "%s: %s[%lld] is %.9g, PyTorch says %.9g (off by %.2g of the largest %.3g)",
        g->name, what, (long long)at, (double)a[at], b[at], worst / most, most);
}

static void compare_loss(const struct golden_case *g, const char *what,
                         const struct rnnd_loss *loss, double want)
{
    ck_assert_msg(loss->targets == g->real[TARGETS], "%s: %s counts %g targets, not %g",
                  g->name, what, loss->targets, g->real[TARGETS]);
    ck_assert_msg(fabs(loss->loss - want) <= LOSS_BOUND * fabs(want),
                  "%s: %s gives a loss sum of %.9g, PyTorch %.9g", g->name, what,
                  loss->loss, want);
}

/* The mean that PyTorch's own modules give: their divisor is ours. */
static void compare_mean(const struct golden_case *g, const struct rnnd_loss *loss)
{
    double mean = loss->loss / loss->weight, want = g->weighing[MEAN];
    ck_assert_msg(fabs(mean - want) <= LOSS_BOUND * want,
                  "%s: the mean loss is %.9g, PyTorch's %.9g", g->name, mean, want);
}

static void compare_gradients(struct golden_case *g)
{
    struct tensor list[MOST_TENSORS];
    int n = list_tensors(g, list);
    double *want = read_part("grad", g->spec[PARAM], g->spec[PARAMS], RNND_F64);
    float *got = zeroed(g->spec[PARAMS], sizeof *got);
    for (int i = 0; i < n; i++) {
        int64_t count = list[i].rows * (list[i].cols ? list[i].cols : 1);
        CK_OK(rnnd_model_get_gradient(g->model, list[i].name, got));
        compare(g, list[i].name, got, want + list[i].at, count, of_tensor);
    }
    free(got);
    free(want);
}

/* What the updates added to the parameters. */
static void compare_changes(struct golden_case *g, struct rnnd_model *model)
{
    struct tensor list[MOST_TENSORS];
    int n = list_tensors(g, list);
    float *before = read_part("param", g->spec[PARAM], g->spec[PARAMS], RNND_F32);
    double *after = read_part("after", g->spec[PARAM], g->spec[PARAMS], RNND_F64);
    float *got = zeroed(g->spec[PARAMS], sizeof *got);
    for (int i = 0; i < n; i++) {
        int64_t count = list[i].rows * (list[i].cols ? list[i].cols : 1);
        double *want = after + list[i].at, largest = 0;
        char what[96];
        snprintf(what, sizeof what, "change of %.64s", list[i].name);
        CK_OK(rnnd_model_get(model, list[i].name, got));
        for (int64_t k = 0; k < count; k++) {
            largest = fmax(largest, fabs(want[k]));
            got[k] -= before[list[i].at + k];
            want[k] -= before[list[i].at + k];
        }
        /* No change at all is exact. */
        bool changed = g->real[TARGETS] > 0;
        struct allowed allowed = {CHANGE_BOUND,
                                  changed ? g->spec[UPDATES] * ROUNDING * largest : 0};
        compare(g, what, got, want, count, allowed);
    }
    free(got);
    free(after);
    free(before);
}

/* ---- batches */

/* Sequences by falling length, stable: the place of each in a packed batch. */
static int64_t *packed_order(const struct golden_case *g)
{
    int64_t N = g->sequences, *order = zeroed(N, sizeof *order), n = 0;
    for (int64_t length = g->steps; length >= 0; length--)
        for (int64_t i = 0; i < N; i++)
            if (g->offsets[i + 1] - g->offsets[i] == length)
                order[n++] = i;
    return order;
}

/* packed [rows,cols] in the order of the data set: sequences, or steps of sequences. */
static float *unpacked(const struct golden_case *g, const float *packed, int64_t cols,
                       bool steps)
{
    int64_t N = g->sequences, *order = packed_order(g), row = 0;
    int64_t longest = N > 0 ? g->offsets[order[0] + 1] - g->offsets[order[0]] : 0;
    float *out = zeroed((g->steps + N) * cols, sizeof *out);
    for (int64_t t = 0; t < (steps ? longest : 1); t++)
        for (int64_t j = 0; j < N; j++) {
            int64_t i = order[j], at = i;
            if (steps && g->offsets[i] + t >= g->offsets[i + 1])
                continue;
            if (steps)
                at = g->offsets[i] + t;
            memcpy(out + at * cols, packed + row++ * cols, (size_t)cols * sizeof *out);
        }
    free(order);
    return out;
}

static struct rnnd_batch *load_all(struct golden_case *g, bool targets)
{
    int64_t N = g->sequences, longest = 0;
    int32_t *ids = zeroed(N, sizeof *ids);
    for (int64_t i = 0; i < N; i++) {
        ids[i] = (int32_t)i;
        if (g->offsets[i + 1] - g->offsets[i] > longest)
            longest = g->offsets[i + 1] - g->offsets[i];
    }
    struct rnnd_limits limits = {.sequences = N, .steps = longest, .rows = g->steps};
    struct rnnd_batch *batch;
    CK_OK(rnnd_batch_new(backend, g->data, targets, NULL, NULL, &batch));
    CK_OK(rnnd_batch_reserve(batch, &limits));
    CK_OK(rnnd_model_reserve(g->model, &limits, targets));
    CK_OK(rnnd_batch_load_sequences(batch, ids, N));
    free(ids);
    return batch;
}

/* ---- tests */

/* Loss, gradients and the first updates. */
START_TEST(gradients_and_updates)
{
    struct golden_case g;
    case_open(&g, _i);
    struct rnnd_batch *batch = load_all(&g, true);
    struct rnnd_optim *optim;
    CK_OK(rnnd_optim_new(g.model, &g.opt, &optim));
    struct rnnd_loss loss;
    struct rnnd_loss_sums *sums;
    struct rnnd_pass pass = {.last = true};
    CK_OK(rnnd_loss_sums_new(rnnd_model_backend(g.model), &sums));
    CK_OK(rnnd_model_evaluate(g.model, batch, &pass, sums));
    CK_OK(rnnd_loss_sums_take(sums, &loss));
    /* evaluations are not weighted */
    compare_loss(&g, "evaluation", &loss,
                 g.weighing ? g.weighing[PLAIN] : g.real[LOSS]);
    for (int u = 0; u < g.spec[UPDATES]; u++) {
        double norm;
        pass.update = u;
        rnnd_model_zero_gradient(g.model);
        CK_OK(rnnd_model_gradient(g.model, batch, &pass, sums));
        CK_OK(rnnd_loss_sums_take(sums, &loss));
        if (u == 0) {
            compare_loss(&g, "training", &loss, g.real[LOSS]);
            if (g.weighing)
                compare_mean(&g, &loss);
            compare_gradients(&g);
        }
        CK_OK(rnnd_optim_step(optim, &loss, g.opt.lr, &norm));
    }
    if (g.spec[TBPTT] == 0 && g.spec[BATCH] >= g.sequences)
        compare_changes(&g, g.model);
    rnnd_loss_sums_free(sums);
    rnnd_optim_free(optim);
    rnnd_batch_free(batch);
    case_close(&g);
}
END_TEST

/* What predict gives: scores and final states. */
START_TEST(scores_and_states)
{
    struct golden_case g;
    case_open(&g, _i);
    struct rnnd_batch *batch = load_all(&g, false);
    struct rnnd_state *state;
    CK_OK(rnnd_state_new(g.model, g.sequences, &state));
    struct rnnd_pass pass = {.state = state};
    int64_t O = g.spec[OUTPUTS], H = g.spec[HIDDEN], N = g.sequences;
    int64_t rows = is_stepwise(&g) ? g.steps : N;
    float *packed = zeroed(rows * O, sizeof *packed);
    CK_OK(rnnd_model_scores(g.model, batch, &pass, packed));
    float *scores = unpacked(&g, packed, O, is_stepwise(&g));
    int64_t count = rows * O < MOST_SCORES ? rows * O : MOST_SCORES;
    double *want = read_part("score", g.spec[SCORE], count, RNND_F64);
    compare(&g, "scores", scores, want, count, of_tensor);
    free(want);
    free(scores);
    free(packed);

    rnnd_state_advance(state);
    int64_t planes = (int64_t)g.spec[LAYERS] * (g.spec[BIDIRECTIONAL] ? 2 : 1),
            plane = N * H;
    bool lstm = g.spec[CELL] == RNND_LSTM;
    float *h = zeroed(planes * plane, sizeof *h);
    float *c = zeroed(planes * plane, sizeof *c);
    CK_OK(rnnd_state_get(state, h, lstm ? c : NULL));
    for (int64_t p = 0; p < planes; p++) {
        float *h_n = unpacked(&g, h + p * plane, H, false);
        want = read_part("h", g.spec[STATE_H] + p * plane, plane, RNND_F64);
        compare(&g, "h_n", h_n, want, plane, of_tensor);
        free(want);
        free(h_n);
        if (!lstm)
            continue;
        float *c_n = unpacked(&g, c + p * plane, H, false);
        want = read_part("c", g.spec[STATE_C] + p * plane, plane, RNND_F64);
        compare(&g, "c_n", c_n, want, plane, of_tensor);
        free(want);
        free(c_n);
    }
    free(h);
    free(c);
    rnnd_state_free(state);
    rnnd_batch_free(batch);
    case_close(&g);
}
END_TEST

static void set_training(struct golden_case *g, const char *init, const char *run_dir)
{
    static const char *const cells[] = {"rnn_tanh", "rnn_relu", "lstm", "gru"};
    const struct {
        const char *name, *text;
    } words[] = {
        {"data", g->data_path},
        {"cell", cells[g->spec[CELL]]},
        {"shuffle", g->spec[STREAM] ? "epoch" : "none"},
        {"init", init},
        {"run-dir", run_dir},
        {"progress", "none"},
        {"precision", "fp32"},
        {"device", "cpu"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CK_OK(rnnd__options_set(&g->opt, words[i].name, words[i].text,
                                RNND_FROM_COMMAND_LINE));
    if (g->layers[NO_BIAS])
        CK_OK(rnnd__options_set(&g->opt, "no-bias", "yes", RNND_FROM_COMMAND_LINE));
    if (g->spec[BIDIRECTIONAL])
        CK_OK(
            rnnd__options_set(&g->opt, "bidirectional", "yes", RNND_FROM_COMMAND_LINE));
    set_option(g, "layers", "%.0f", g->spec[LAYERS]);
    set_option(g, "hidden", "%.0f", g->spec[HIDDEN]);
    set_option(g, "batch", "%.0f", g->spec[BATCH]);
    set_option(g, "tbptt", "%.0f", g->spec[TBPTT]);
    set_option(g, "windows", "%.0f", g->spec[WINDOWS]);
    set_option(g, "max-updates", "%.0f", g->spec[UPDATES]);
    set_option(g, "epochs", "%.0f", 1000);
    if (g->spec[VOCAB])
        set_option(g, "embed", "%.0f", g->spec[EMBED]);
    if (g->spec[TASK] == RNND_LM)
        CK_OK(rnnd__options_set(&g->opt, "stream", g->spec[STREAM] ? "yes" : "no",
                                RNND_FROM_COMMAND_LINE));
}

static void remove_run(const char *run_dir)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", run_dir);
    ck_assert_int_eq(system(command), 0);
}

/* A whole training, with truncated BPTT, a weighted loss, other layers or a sparse
   embedding, on all ranks. */
START_TEST(whole_training)
{
    struct golden_case g;
    if (spec_table[(int64_t)_i * SPEC_COLUMNS + TBPTT] == 0 && !weighing_table &&
        !layers_table && !sparse)
        return;
    case_open(&g, _i);
    char init[128], run_dir[128], last[256];
    snprintf(init, sizeof init, "%s/init.h5", folder);
    snprintf(run_dir, sizeof run_dir, "%s/run", folder);
    snprintf(last, sizeof last, "%s/ckpt-%010d.h5", run_dir, g.spec[UPDATES]);
    set_training(&g, init, run_dir);
    if (rnnd_comm_rank(comm) == 0)
        CK_OK(rnnd_checkpoint_save_model(init, g.model, &g.opt));
    together();

    struct rnnd_train_result result;
    CK_OK(rnnd_train(&g.opt, comm, &result));
    ck_assert_int_eq(result.updates, g.spec[UPDATES]);
    together();
    struct rnnd_model *trained;
    CK_OK(rnnd_checkpoint_load_model(last, backend, &trained, NULL));
    compare_changes(&g, trained);
    rnnd_model_free(trained);
    together();
    if (rnnd_comm_rank(comm) == 0) {
        unlink(init);
        remove_run(run_dir);
    }
    case_close(&g);
}
END_TEST

static void open_world(void)
{
    struct rnnd_options opt;
    CK_OK(rnnd_options_init(&opt));
    opt.device = RNND_DEVICE_CPU;
    opt.threads = 1;
    CK_OK(rnnd_comm_open(120, &comm));
    CK_OK(rnnd_backend_open(&opt, comm, &backend));
    rnnd_options_clear(&opt);
    if (rnnd_comm_rank(comm) == 0) {
        const char *tmp = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%.40s/golden-XXXXXX", tmp ? tmp : "/tmp");
        must(mkdtemp(folder) ? 0 : RNND_EFILE, "mkdtemp");
    }
    CK_OK(rnnd_comm_broadcast(comm, folder, sizeof folder));
}

static void close_world(void)
{
    if (rnnd_comm_rank(comm) == 0)
        rmdir(folder);
    rnnd_backend_close(backend);
    rnnd_comm_close(comm);
}

/* All cases of a file. */
static int run_golden(const char *name)
{
    open_golden(name);
    int cases = (int)case_count;
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create("against PyTorch float64");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, gradients_and_updates, 0, cases);
    tcase_add_loop_test(tests, scores_and_states, 0, cases);
    tcase_add_loop_test(tests, whole_training, 0, cases);
    suite_add_tcase(suite, tests);
    in_test = true;
    int status = run_suite(suite);
    in_test = false;
    close_golden();
    return status;
}

int main(void)
{
    open_world();
    int status = run_golden("golden.h5");
    int weighted = run_golden("weights.h5");
    int layers = run_golden("layers.h5");
    sparse = true;
    int sparse_status = run_golden("sparse.h5");
    close_world();
    return status ? status : weighted ? weighted : layers ? layers : sparse_status;
}
