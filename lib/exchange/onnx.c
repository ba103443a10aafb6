/*
 * onnx.c - a model as an ONNX graph: what it computes, not only its parameters.
 *
 *     x [batch,time,I], or tokens [batch,time]; lengths [batch]
 *         -> normalized or embedded [time,batch,I]
 *         -> recurrent layers [time,batch,D*H]
 *         -> pooled over the steps that exist [batch,D*H], for tasks of sequences
 *         -> scores [batch,O] or [batch,time,O], before softmax or sigmoid
 *
 * Knows operators and their parameters, and nothing of the file (onnx_graph.c). What
 * lies beyond the end of a sequence has no influence. Recurrent operators of some
 * runtimes refuse a length of 0, so such a sequence runs one step, which is then
 * replaced by zeros.
 */
#include "exchange/export.h"

#include "base/status.h"

int rnnd__onnx_check_size(const char *path, int64_t parameters)
{
    /* Of 2 GiB, what protobuf can count, a part is for names and structure. */
    const int64_t most = (INT32_MAX - (1 << 20)) / (int64_t)sizeof(float);
    if (parameters <= most)
        return 0;
    return rnnd__fail(RNND_EUSAGE,
                      "%s: an ONNX file holds at most 2 GB, %lld parameters; the model "
                      "has %lld; use .safetensors or .h5",
                      path, (long long)most, (long long)parameters);
}

#ifdef HAVE_ONNX
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "checkpoint/statedict.h"
#include "exchange/onnx.h"

struct job {
    struct rnnd_model *model;
    const struct rnnd_model_spec *spec;
    struct rnnd__onnx *g;
    /* directions */
    int D;
};

/* ---- parameters */

static int copy_parameter(struct job *j, const char *name, int rank, const int64_t *dim)
{
    float *to = rnnd__onnx_floats(j->g, name, rank, dim);
    return to ? rnnd_model_get(j->model, name, to) : 0;
}

/* ONNX's order of the gates, as their places in ours: LSTM input, output, forget, cell
   of i f g o; GRU update, reset, new of r z n. */
static const int *gate_order(enum rnnd_cell cell)
{
    static const int lstm[] = {0, 3, 1, 2}, gru[] = {1, 0, 2}, plain[] = {0};
    return cell == RNND_LSTM ? lstm : cell == RNND_GRU ? gru : plain;
}

/* Copies a parameter [G*H,width], gate by gate, into to [G*H,width]. */
static int copy_gates(struct job *j, const char *what, int layer, int direction,
                      int64_t width, float *to)
{
    int gates = rnnd__cell_gates(j->spec->cell);
    const int *order = gate_order(j->spec->cell);
    int64_t block = j->spec->hidden * width;
    float *ours = NULL;
    char name[48];
    snprintf(name, sizeof name, "rnn.%s_l%d%s", what, layer,
             direction ? "_reverse" : "");
    RNND_TRY(RNND_NEW(&ours, gates * block, name));
    int status = rnnd_model_get(j->model, name, ours);
    for (int k = 0; status == 0 && k < gates; k++)
        memcpy(to + k * block, ours + order[k] * block, (size_t)block * sizeof *to);
    free(ours);
    return status;
}

/* B [D,2*G*H] of a layer. */
static int add_biases(struct job *j, int layer, const char *name)
{
    int64_t GH = rnnd__cell_gates(j->spec->cell) * j->spec->hidden;
    float *b = rnnd__onnx_floats(j->g, name, 2, (int64_t[]){j->D, 2 * GH});
    for (int d = 0; b && d < j->D; d++) {
        RNND_TRY(copy_gates(j, "bias_ih", layer, d, 1, b + d * 2 * GH));
        RNND_TRY(copy_gates(j, "bias_hh", layer, d, 1, b + (d * 2 + 1) * GH));
    }
    return 0;
}

/* W [D,G*H,I], R [D,G*H,H] and B of a layer; without biases the name of B is "". */
static int add_weights(struct job *j, int layer, char name[3][32])
{
    int64_t H = j->spec->hidden, GH = rnnd__cell_gates(j->spec->cell) * H;
    int64_t first = j->spec->vocab ? j->spec->embed : j->spec->inputs;
    int64_t I = layer ? j->D * H : first;
    for (int k = 0; k < 3; k++)
        snprintf(name[k], 32, "rnn.%c_l%d", "WRB"[k], layer);
    float *w = rnnd__onnx_floats(j->g, name[0], 3, (int64_t[]){j->D, GH, I});
    float *r = rnnd__onnx_floats(j->g, name[1], 3, (int64_t[]){j->D, GH, H});
    for (int d = 0; w && r && d < j->D; d++) {
        RNND_TRY(copy_gates(j, "weight_ih", layer, d, I, w + d * GH * I));
        RNND_TRY(copy_gates(j, "weight_hh", layer, d, H, r + d * GH * H));
    }
    if (!j->spec->no_bias)
        return add_biases(j, layer, name[2]);
    name[2][0] = '\0';
    return 0;
}

/* ---- inputs */

static void transpose(struct job *j, const char *from, const char *to, int rank,
                      const int64_t *order)
{
    rnnd__onnx_list(j->g, rnnd__onnx_op(j->g, "Transpose", to, from), "perm", order,
                    rank);
}

/* Those of every model: some runtimes warn of a constant that nothing reads. */
static void add_constants(struct job *j)
{
    rnnd__onnx_ints(j->g, "0", (int64_t[]){0}, 0);
    rnnd__onnx_ints(j->g, "1", (int64_t[]){1}, 0);
    rnnd__onnx_ints(j->g, "[1]", (int64_t[]){1}, 1);
    rnnd__onnx_ints(j->g, "[2]", (int64_t[]){2}, 1);
    rnnd__onnx_float(j->g, "0.0", 0);
}

/* "steps": the length as recurrent operators take it; "exists" [time,batch,1]: whether
   a step is part of its sequence. */
static void add_lengths(struct job *j)
{
    struct rnnd__onnx *g = j->g;
    rnnd__onnx_op(g, "Max", "length.least", "lengths", "[1]");
    rnnd__onnx_int(g, rnnd__onnx_op(g, "Cast", "steps", "length.least"), "to",
                   RNND_ONNX_TO_INT32);
    rnnd__onnx_op(g, "Shape", "x.shape", "x");
    rnnd__onnx_op(g, "Gather", "time", "x.shape", "1");
    rnnd__onnx_op(g, "Range", "step", "0", "time", "1");
    rnnd__onnx_op(g, "Unsqueeze", "step.column", "step", "[1]");
    rnnd__onnx_op(g, "Less", "exists.plain", "step.column", "lengths");
    rnnd__onnx_op(g, "Unsqueeze", "exists", "exists.plain", "[2]");
}

/* The name of what the first layer reads, [time,batch,width]. */
static int add_inputs(struct job *j, const char **out)
{
    if (j->spec->vocab) {
        RNND_TRY(copy_parameter(j, "embed.weight", 2,
                                (int64_t[]){j->spec->vocab, j->spec->embed}));
        transpose(j, "x", "x.steps", 2, (int64_t[]){1, 0});
        rnnd__onnx_op(j->g, "Gather", "embedded", "embed.weight", "x.steps");
        *out = "embedded";
        return 0;
    }
    transpose(j, "x", "x.steps", 3, (int64_t[]){1, 0, 2});
    *out = "x.steps";
    if (!j->spec->normalize)
        return 0;
    RNND_TRY(copy_parameter(j, "input.mean", 1, &j->spec->inputs));
    RNND_TRY(copy_parameter(j, "input.std", 1, &j->spec->inputs));
    rnnd__onnx_op(j->g, "Sub", "x.centred", "x.steps", "input.mean");
    rnnd__onnx_op(j->g, "Div", "normalized", "x.centred", "input.std");
    *out = "normalized";
    return 0;
}

/* ---- recurrent layers */

/* One layer; y and y_last: the names of its outputs of all steps [time,D,batch,H] and
   of its last states [D,batch,H], "" = not needed. */
static int add_layer(struct job *j, int layer, const char *x, const char *y,
                     const char *y_last)
{
    static const char *const op[] = {
        [RNND_RNN_TANH] = "RNN",
        [RNND_RNN_RELU] = "RNN",
        [RNND_LSTM] = "LSTM",
        [RNND_GRU] = "GRU",
    };
    enum rnnd_cell cell = j->spec->cell;
    char w[3][32];
    RNND_TRY(add_weights(j, layer, w));
    struct rnnd__onnx_node *node =
        rnnd__onnx_node(j->g, op[cell], (const char *const[]){y, y_last, NULL},
                        (const char *const[]){x, w[0], w[1], w[2], "steps", NULL});
    rnnd__onnx_int(j->g, node, "hidden_size", j->spec->hidden);
    rnnd__onnx_word(j->g, node, "direction", j->D == 2 ? "bidirectional" : "forward");
    if (cell == RNND_GRU)
        rnnd__onnx_int(j->g, node, "linear_before_reset", 1);
    if (cell == RNND_RNN_TANH || cell == RNND_RNN_RELU)
        rnnd__onnx_words(j->g, node, "activations",
                         cell == RNND_RNN_RELU ? "Relu" : "Tanh", j->D);
    return 0;
}

/* All layers. After them there is "last" [batch,D*H], of the last states, or else
   "outputs" [time,batch,D*H]. */
static int add_layers(struct job *j, const char *x, bool last)
{
    char input[32];
    snprintf(input, sizeof input, "%s", x);
    for (int l = 0; l < (int)j->spec->layers; l++) {
        bool top = l == (int)j->spec->layers - 1;
        char y[32], apart[32];
        if (top && last)
            return add_layer(j, l, input, "", "states");
        if (l == 0)
            rnnd__onnx_ints(j->g, "rows", (int64_t[]){0, 0, -1}, 3);
        snprintf(y, sizeof y, "rnn.Y_l%d", l);
        snprintf(apart, sizeof apart, "rnn.apart_l%d", l);
        RNND_TRY(add_layer(j, l, input, y, ""));
        transpose(j, y, apart, 4, (int64_t[]){0, 2, 1, 3});
        snprintf(input, sizeof input, top ? "outputs" : "rnn.outputs_l%d", l);
        rnnd__onnx_op(j->g, "Reshape", input, apart, "rows");
    }
    return 0;
}

/* ---- pooling and head */

/* "pooled" [batch,D*H]; zero for a sequence without steps. */
static void add_pooling(struct job *j)
{
    struct rnnd__onnx *g = j->g;
    const char *found = "last";
    if (j->spec->pool == RNND_POOL_LAST) {
        transpose(j, "states", "states.apart", 3, (int64_t[]){1, 0, 2});
        rnnd__onnx_ints(g, "row", (int64_t[]){0, -1}, 2);
        rnnd__onnx_op(g, "Reshape", found, "states.apart", "row");
    } else if (j->spec->pool == RNND_POOL_MEAN) {
        found = "mean";
        rnnd__onnx_ints(g, "[0]", (int64_t[]){0}, 1);
        rnnd__onnx_op(g, "Where", "outputs.real", "exists", "outputs", "0.0");
        rnnd__onnx_int(g, rnnd__onnx_op(g, "ReduceSum", "sum", "outputs.real", "[0]"),
                       "keepdims", 0);
        rnnd__onnx_int(g, rnnd__onnx_op(g, "Cast", "count", "length.least"), "to",
                       RNND_ONNX_TO_FLOAT);
        rnnd__onnx_op(g, "Unsqueeze", "count.column", "count", "[1]");
        rnnd__onnx_op(g, "Div", found, "sum", "count.column");
    } else {
        found = "max";
        rnnd__onnx_float(g, "-inf", -INFINITY);
        rnnd__onnx_op(g, "Where", "outputs.real", "exists", "outputs", "-inf");
        struct rnnd__onnx_node *max =
            rnnd__onnx_op(g, "ReduceMax", found, "outputs.real");
        rnnd__onnx_list(g, max, "axes", (int64_t[]){0}, 1);
        rnnd__onnx_int(g, max, "keepdims", 0);
    }
    rnnd__onnx_op(g, "Greater", "has_steps.plain", "lengths", "0");
    rnnd__onnx_op(g, "Unsqueeze", "has_steps", "has_steps.plain", "[1]");
    rnnd__onnx_op(g, "Where", "pooled", "has_steps", found, "0.0");
}

/* A tied matrix is stored once, as that of the embedding. */
static int add_head(struct job *j, bool stepwise)
{
    int64_t O = j->spec->outputs, width = j->D * j->spec->hidden;
    const char *weight = j->spec->tie_weights ? "embed.weight" : "head.weight";
    if (!j->spec->tie_weights)
        RNND_TRY(copy_parameter(j, weight, 2, (int64_t[]){O, width}));
    RNND_TRY(copy_parameter(j, "head.bias", 1, &O));
    transpose(j, weight, "head.columns", 2, (int64_t[]){1, 0});
    rnnd__onnx_op(j->g, "MatMul", "head.product", stepwise ? "outputs" : "pooled",
                  "head.columns");
    const char *sum = stepwise ? "head.sum" : "scores";
    rnnd__onnx_op(j->g, "Add", sum, "head.product", "head.bias");
    if (!stepwise)
        return 0;
    rnnd__onnx_op(j->g, "Where", "scores.steps", "exists", sum, "0.0");
    transpose(j, "scores.steps", "scores", 3, (int64_t[]){1, 0, 2});
    return 0;
}

/* ---- all of it */

static int put_text(void *g, const char *key, const char *text)
{
    rnnd__onnx_text(g, key, text);
    return 0;
}

static void add_interface(struct job *j, bool stepwise)
{
    char inputs[24], outputs[24];
    snprintf(inputs, sizeof inputs, "%lld", (long long)j->spec->inputs);
    snprintf(outputs, sizeof outputs, "%lld", (long long)j->spec->outputs);
    rnnd__onnx_input(j->g, "x", j->spec->vocab ? RNND_ONNX_INT64 : RNND_ONNX_FLOAT,
                     j->spec->vocab ? 2 : 3,
                     (const char *const[]){"batch", "time", inputs});
    rnnd__onnx_input(j->g, "lengths", RNND_ONNX_INT64, 1,
                     (const char *const[]){"batch"});
    if (stepwise)
        rnnd__onnx_output(j->g, "scores", 3,
                          (const char *const[]){"batch", "time", outputs});
    else
        rnnd__onnx_output(j->g, "scores", 2, (const char *const[]){"batch", outputs});
}

static int build(struct job *j, const struct rnnd_options *opt)
{
    bool stepwise = rnnd_task_is_stepwise(j->spec->task);
    const char *x;
    RNND_TRY(rnnd__statedict_describe(j->model, opt, put_text, j->g));
    add_interface(j, stepwise);
    add_constants(j);
    add_lengths(j);
    RNND_TRY(add_inputs(j, &x));
    RNND_TRY(add_layers(j, x, !stepwise && j->spec->pool == RNND_POOL_LAST));
    if (!stepwise)
        add_pooling(j);
    return add_head(j, stepwise);
}

int rnnd__onnx_export(const char *path, struct rnnd_model *model,
                      const struct rnnd_options *opt)
{
    struct job j = {.model = model, .spec = rnnd_model_spec(model)};
    j.D = j.spec->bidirectional ? 2 : 1;
    RNND_TRY(rnnd__onnx_check_size(path, rnnd_model_parameters(model)));
    RNND_TRY(rnnd__onnx_new(&j.g));
    int status = build(&j, opt);
    if (status == 0)
        status = rnnd__onnx_write(j.g, path);
    rnnd__onnx_free(j.g);
    return status;
}

#else

int rnnd__onnx_export(const char *path, struct rnnd_model *model,
                      const struct rnnd_options *opt)
{
    (void)model, (void)opt;
    return rnnd__export_check(path);
}

#endif
