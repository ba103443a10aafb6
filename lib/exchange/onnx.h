/*
 * onnx.h - an ONNX graph in the making, and its file.
 *
 * Nodes are appended in the order in which they run. The first failure, of memory, is
 * kept and reported by rnnd__onnx_write(); what follows it does nothing.
 */
#ifndef RNND_ONNX_H
#define RNND_ONNX_H

#include "rnn_dist.h"

enum rnnd__onnx_type { RNND_ONNX_FLOAT, RNND_ONNX_INT64 };
/* Types as the attribute "to" of Cast names them. */
enum { RNND_ONNX_TO_INT32 = 6, RNND_ONNX_TO_FLOAT = 1 };

struct rnnd__onnx;
/* A node, to which attributes can be added; NULL after a failure. */
struct rnnd__onnx_node;

/* An empty graph for the operators of the standard set. */
RNND_CHECKED int rnnd__onnx_new(struct rnnd__onnx **out);
void rnnd__onnx_free(struct rnnd__onnx *g);
/* Writes the file, atomically, once. EUSAGE where it would be larger than protobuf
   allows. */
RNND_CHECKED int rnnd__onnx_write(struct rnnd__onnx *g, const char *path);

/* What the graph takes and gives. dim [rank]: names, or numbers as text. */
void rnnd__onnx_input(struct rnnd__onnx *g, const char *name, enum rnnd__onnx_type type,
                      int rank, const char *const *dim);
void rnnd__onnx_output(struct rnnd__onnx *g, const char *name, int rank,
                       const char *const *dim);
/* A text of the file's metadata. */
void rnnd__onnx_text(struct rnnd__onnx *g, const char *key, const char *text);

/* A constant, float [dim[0],...], zeroed, to be filled; NULL after a failure. */
float *rnnd__onnx_floats(struct rnnd__onnx *g, const char *name, int rank,
                         const int64_t *dim);
/* Constants of one float, and of integers [count]; count 0: a single one. */
void rnnd__onnx_float(struct rnnd__onnx *g, const char *name, float value);
void rnnd__onnx_ints(struct rnnd__onnx *g, const char *name, const int64_t *value,
                     int64_t count);

/* Appends a node; outputs and then inputs are names, each list ended by NULL. "" is an
   output or input that is left out. */
struct rnnd__onnx_node *rnnd__onnx_node(struct rnnd__onnx *g, const char *op,
                                        const char *const *outputs,
                                        const char *const *inputs);
/* A node with one output. */
#define rnnd__onnx_op(g, op, output, ...)                       \
    rnnd__onnx_node(g, op, (const char *const[]){output, NULL}, \
                    (const char *const[]){__VA_ARGS__, NULL})
void rnnd__onnx_int(struct rnnd__onnx *g, struct rnnd__onnx_node *node,
                    const char *name, int64_t value);
/* A list of integers [count]. */
void rnnd__onnx_list(struct rnnd__onnx *g, struct rnnd__onnx_node *node,
                     const char *name, const int64_t *value, int64_t count);
void rnnd__onnx_word(struct rnnd__onnx *g, struct rnnd__onnx_node *node,
                     const char *name, const char *text);
/* A list of count times the same word. */
void rnnd__onnx_words(struct rnnd__onnx *g, struct rnnd__onnx_node *node,
                      const char *name, const char *text, int count);

#endif
