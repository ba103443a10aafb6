/*
 * params.h - the parameters of a model: one flat arena of values, one of gradient sums,
 * and a table of names over them.
 *
 * The arena is laid out in the order in which gradients become final (head, layers from
 * the top, embedding), so that reductions run over contiguous ranges. Communicator,
 * optimizer and checkpoint see only this; they know no layers.
 */
#ifndef RNND_PARAMS_H
#define RNND_PARAMS_H

#include "backend.h"
#include "rnn_dist.h"

enum rnnd__initial { RNND_UNIFORM, RNND_NORMAL };

struct rnnd__param {
    /* PyTorch's */
    char name[48];
    /* cols 0: a vector of rows elements */
    int64_t rows, cols;
    /* in the arena */
    int64_t offset;
    enum rnnd__initial initial;
    /* of the uniform distribution */
    double bound;
};

struct rnnd__params {
    struct rnnd_backend *be;
    /* [count] */
    struct rnnd__buf value, grad;
    /* gaps between parameters included; they stay zero */
    int64_t count;
    /* [listed], in arena order; tied names share an offset */
    struct rnnd__param *list;
    int listed;
};

const struct rnnd__params *rnnd__model_params(const struct rnnd_model *model);

static inline int64_t rnnd__param_size(const struct rnnd__param *p)
{
    return p->rows * (p->cols ? p->cols : 1);
}

/* Appends a parameter and returns its offset; tied: shares the offset given, else
   -1. */
int64_t rnnd__params_add(struct rnnd__params *params, const struct rnnd__param *proto,
                         int64_t tied);
/* Allocates the arenas, zeroed. */
RNND_CHECKED int rnnd__params_alloc(struct rnnd__params *params,
                                    struct rnnd_backend *be);
void rnnd__params_clear(struct rnnd__params *params);
/* Fills the values: each parameter from its own Philox stream, keyed by its name (of
   tied ones the first), so that a layer more leaves the others' values as they are. */
RNND_CHECKED int rnnd__params_init(struct rnnd__params *params, uint64_t seed);
/* NULL where there is none of this name. */
const struct rnnd__param *rnnd__params_find(const struct rnnd__params *params,
                                            const char *name);

#endif
