/*
 * onnx_graph.c - builds an ONNX file of the published schema (onnx.proto, which the
 * build translates by protobuf-c), and writes it.
 *
 * All of it is malloc'ed, so that protobuf-c's own function frees it. Knows operators
 * by name only.
 */
#include "exchange/onnx.h"

#ifdef HAVE_ONNX
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "exchange/export.h"
#include "exchange/onnx.pb-c.h"

/* The operators of 2021, which all runtimes of today know. */
enum { OPERATORS = 14, FORMAT = 7 };

struct rnnd__onnx {
    Onnx__ModelProto *model;
    /* part of the model */
    Onnx__GraphProto *graph;
    /* the first failure */
    int status;
};

/* ---- memory */

static void fail_memory(struct rnnd__onnx *g, size_t bytes)
{
    if (g->status == 0)
        g->status = rnnd__fail_memory(bytes, "an ONNX graph");
}

static void *take(struct rnnd__onnx *g, size_t bytes)
{
    void *p = g->status == 0 ? calloc(1, bytes ? bytes : 1) : NULL;
    if (!p)
        fail_memory(g, bytes);
    return p;
}

static char *copy(struct rnnd__onnx *g, const char *text)
{
    char *p = take(g, strlen(text) + 1);
    return p ? strcpy(p, text) : NULL;
}

/* A message, set to its initial value. */
#define MESSAGE(g, type, init)          \
    ({                                  \
        type *m_ = take(g, sizeof *m_); \
        if (m_)                         \
            *m_ = (type)init;           \
        m_;                             \
    })

/* Appends a pointer, which may be NULL after a failure, to a repeated field. */
static void append(struct rnnd__onnx *g, void *list, size_t *count, void *element)
{
    void **old, **grown = NULL;
    memcpy(&old, list, sizeof old);
    if (element)
        grown = realloc(old, (*count + 1) * sizeof *grown);
    if (element && !grown)
        fail_memory(g, *count * sizeof *grown);
    if (!grown)
        return;
    grown[(*count)++] = element;
    memcpy(list, &grown, sizeof grown);
}

/* ---- the file */

int rnnd__onnx_new(struct rnnd__onnx **out)
{
    struct rnnd__onnx *g;
    RNND_TRY(RNND_NEW(&g, 1, "an ONNX graph"));
    g->model = MESSAGE(g, Onnx__ModelProto, ONNX__MODEL_PROTO__INIT);
    g->graph = MESSAGE(g, Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
    Onnx__OperatorSetIdProto *set =
        MESSAGE(g, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
    if (set) {
        set->domain = copy(g, "");
        set->has_version = true;
        set->version = OPERATORS;
        g->model->graph = g->graph;
        g->model->has_ir_version = true;
        g->model->ir_version = FORMAT;
        g->model->producer_name = copy(g, PACKAGE_NAME);
        g->model->producer_version = copy(g, PACKAGE_VERSION);
        g->graph->name = copy(g, "rnn_dist");
        append(g, &g->model->opset_import, &g->model->n_opset_import, set);
    }
    int status = g->status;
    if (status == 0)
        *out = g;
    else
        rnnd__onnx_free(g);
    return status;
}

void rnnd__onnx_free(struct rnnd__onnx *g)
{
    if (!g)
        return;
    /* Both functions accept NULL. */
    if (!g->model || g->model->graph != g->graph)
        onnx__graph_proto__free_unpacked(g->graph, NULL);
    onnx__model_proto__free_unpacked(g->model, NULL);
    free(g);
}

/* In a file constants are little-endian. */
static void order_bytes(Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__TensorProto *t = graph->initializer[i];
        uint64_t *wide = (uint64_t *)t->raw_data.data;
        uint32_t *narrow = (uint32_t *)t->raw_data.data;
        bool is_wide = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
        for (size_t k = 0; is_wide && k < t->raw_data.len / sizeof *wide; k++)
            wide[k] = htole64(wide[k]);
        for (size_t k = 0; !is_wide && k < t->raw_data.len / sizeof *narrow; k++)
            narrow[k] = htole32(narrow[k]);
    }
}

struct sink {
    ProtobufCBuffer base;
    FILE *stream;
    bool failed;
};

static void append_bytes(ProtobufCBuffer *buffer, size_t length, const uint8_t *data)
{
    struct sink *sink = (struct sink *)buffer;
    if (!sink->failed && fwrite(data, 1, length, sink->stream) != length)
        sink->failed = true;
}

/* The first field is the version, the second the producer. */
static const struct rnnd__kind kind = {
    "an ONNX file of rnn_dist", {"\b"}, PACKAGE_NAME};

int rnnd__onnx_write(struct rnnd__onnx *g, const char *path)
{
    struct rnnd__file file = {.stream = NULL};
    int status = 0;
    RNND_TRY(g->status);
    order_bytes(g->graph);
    size_t bytes = onnx__model_proto__get_packed_size(g->model);
    RNND_TRY(rnnd__onnx_check_size(path, (int64_t)(bytes / sizeof(float))));
    RNND_TRY(rnnd__file_create(path, &kind, &file));
    struct sink sink = {.base = {.append = append_bytes}, .stream = file.stream};
    onnx__model_proto__pack_to_buffer(g->model, &sink.base);
    if (sink.failed)
        RNND_TRY_GOTO(rnnd__file_fail("write", path));
    RNND_TRY_GOTO(rnnd__file_commit(&file));
done:
    rnnd__file_drop(&file);
    return status;
}

/* ---- inputs, outputs, texts */

static Onnx__TensorShapeProto__Dimension *dimension(struct rnnd__onnx *g,
                                                    const char *text)
{
    Onnx__TensorShapeProto__Dimension *d =
        MESSAGE(g, Onnx__TensorShapeProto__Dimension,
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    if (!d)
        return NULL;
    if (text[0] >= '0' && text[0] <= '9') {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = strtoll(text, NULL, 10);
    } else {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = copy(g, text);
    }
    return d;
}

static int32_t number_of(enum rnnd__onnx_type type)
{
    static const int32_t numbers[] = {
        [RNND_ONNX_FLOAT] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
        [RNND_ONNX_INT64] = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    };
    return numbers[type];
}

static Onnx__ValueInfoProto *value_info(struct rnnd__onnx *g, const char *name,
                                        enum rnnd__onnx_type type, int rank,
                                        const char *const *dim)
{
    Onnx__ValueInfoProto *v =
        MESSAGE(g, Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);
    if (!v)
        return NULL;
    v->name = copy(g, name);
    v->type = MESSAGE(g, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
    Onnx__TypeProto__Tensor *tensor =
        MESSAGE(g, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
    if (!tensor)
        return v;
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type->tensor_type = tensor;
    tensor->has_elem_type = true;
    tensor->elem_type = number_of(type);
    tensor->shape = MESSAGE(g, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
    for (int i = 0; tensor->shape && i < rank; i++)
        append(g, &tensor->shape->dim, &tensor->shape->n_dim, dimension(g, dim[i]));
    return v;
}

void rnnd__onnx_input(struct rnnd__onnx *g, const char *name, enum rnnd__onnx_type type,
                      int rank, const char *const *dim)
{
    append(g, &g->graph->input, &g->graph->n_input,
           value_info(g, name, type, rank, dim));
}

void rnnd__onnx_output(struct rnnd__onnx *g, const char *name, int rank,
                       const char *const *dim)
{
    append(g, &g->graph->output, &g->graph->n_output,
           value_info(g, name, RNND_ONNX_FLOAT, rank, dim));
}

void rnnd__onnx_text(struct rnnd__onnx *g, const char *key, const char *text)
{
    Onnx__StringStringEntryProto *entry =
        MESSAGE(g, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
    if (!entry)
        return;
    entry->key = copy(g, key);
    entry->value = copy(g, text);
    append(g, &g->model->metadata_props, &g->model->n_metadata_props, entry);
}

/* ---- constants */

/* A constant; its elements, of width bytes each, are returned. */
static void *constant(struct rnnd__onnx *g, const char *name, enum rnnd__onnx_type type,
                      int rank, const int64_t *dim)
{
    size_t bytes = type == RNND_ONNX_INT64 ? sizeof(int64_t) : sizeof(float);
    Onnx__TensorProto *t = MESSAGE(g, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
    if (!t)
        return NULL;
    append(g, &g->graph->initializer, &g->graph->n_initializer, t);
    t->name = copy(g, name);
    t->has_data_type = true;
    t->data_type = number_of(type);
    t->dims = take(g, (size_t)rank * sizeof *dim);
    for (int i = 0; t->dims && i < rank; i++) {
        t->dims[t->n_dims++] = dim[i];
        bytes *= (size_t)dim[i];
    }
    t->raw_data.data = take(g, bytes);
    t->has_raw_data = true;
    t->raw_data.len = t->raw_data.data ? bytes : 0;
    return t->raw_data.data;
}

float *rnnd__onnx_floats(struct rnnd__onnx *g, const char *name, int rank,
                         const int64_t *dim)
{
    return constant(g, name, RNND_ONNX_FLOAT, rank, dim);
}

void rnnd__onnx_float(struct rnnd__onnx *g, const char *name, float value)
{
    float *to = constant(g, name, RNND_ONNX_FLOAT, 0, NULL);
    if (to)
        *to = value;
}

void rnnd__onnx_ints(struct rnnd__onnx *g, const char *name, const int64_t *value,
                     int64_t count)
{
    int64_t *to = constant(g, name, RNND_ONNX_INT64, count ? 1 : 0, &count);
    for (int64_t i = 0; to && i < (count ? count : 1); i++)
        to[i] = value[i];
}

/* ---- nodes */

static void add_names(struct rnnd__onnx *g, char ***list, size_t *count,
                      const char *const *name)
{
    for (; *name; name++)
        append(g, list, count, copy(g, *name));
}

struct rnnd__onnx_node *rnnd__onnx_node(struct rnnd__onnx *g, const char *op,
                                        const char *const *outputs,
                                        const char *const *inputs)
{
    Onnx__NodeProto *n = MESSAGE(g, Onnx__NodeProto, ONNX__NODE_PROTO__INIT);
    if (!n)
        return NULL;
    append(g, &g->graph->node, &g->graph->n_node, n);
    n->op_type = copy(g, op);
    n->name = copy(g, outputs[0][0] ? outputs[0] : outputs[1]);
    add_names(g, &n->output, &n->n_output, outputs);
    add_names(g, &n->input, &n->n_input, inputs);
    return (struct rnnd__onnx_node *)n;
}

static Onnx__AttributeProto *attribute(struct rnnd__onnx *g,
                                       struct rnnd__onnx_node *node, const char *name,
                                       Onnx__AttributeProto__AttributeType type)
{
    Onnx__NodeProto *n = (Onnx__NodeProto *)node;
    Onnx__AttributeProto *a =
        MESSAGE(g, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
    if (!a)
        return NULL;
    append(g, &n->attribute, &n->n_attribute, a);
    a->name = copy(g, name);
    a->has_type = true;
    a->type = type;
    return a;
}

static void set_bytes(struct rnnd__onnx *g, ProtobufCBinaryData *to, const char *text)
{
    to->data = (uint8_t *)copy(g, text);
    to->len = to->data ? strlen(text) : 0;
}

void rnnd__onnx_int(struct rnnd__onnx *g, struct rnnd__onnx_node *node,
                    const char *name, int64_t value)
{
    Onnx__AttributeProto *a =
        attribute(g, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (!a)
        return;
    a->has_i = true;
    a->i = value;
}

void rnnd__onnx_list(struct rnnd__onnx *g, struct rnnd__onnx_node *node,
                     const char *name, const int64_t *value, int64_t count)
{
    Onnx__AttributeProto *a =
        attribute(g, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    if (!a || !(a->ints = take(g, (size_t)count * sizeof *value)))
        return;
    memcpy(a->ints, value, (size_t)count * sizeof *value);
    a->n_ints = (size_t)count;
}

void rnnd__onnx_word(struct rnnd__onnx *g, struct rnnd__onnx_node *node,
                     const char *name, const char *text)
{
    Onnx__AttributeProto *a =
        attribute(g, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    if (!a)
        return;
    a->has_s = true;
    set_bytes(g, &a->s, text);
}

void rnnd__onnx_words(struct rnnd__onnx *g, struct rnnd__onnx_node *node,
                      const char *name, const char *text, int count)
{
    Onnx__AttributeProto *a =
        attribute(g, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    if (!a || !(a->strings = take(g, (size_t)count * sizeof *a->strings)))
        return;
    for (int i = 0; i < count; i++)
        set_bytes(g, &a->strings[a->n_strings++], text);
}

#endif
