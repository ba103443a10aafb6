/*
 * params.h - the parameters of a model: one flat arena of values, one of gradient sums,
 * and a table that names their parts.
 *
 * The arenas are laid out in the order in which gradients become final (head, layers
 * from the top, embedding), so that reductions run over contiguous ranges.
 * Communicator, optimizer and checkpoint see only these arenas, no layers.
 */
#ifndef RNND_PARAMS_H
#define RNND_PARAMS_H

#include "backend.h"
#include "model/touched.h"
#include "rnn_dist.h"

enum rnnd__initial { RNND_UNIFORM, RNND_NORMAL };

struct rnnd__param {
    /* PyTorch's name */
    char name[48];
    /* cols 0: a vector of rows elements */
    int64_t rows, cols;
    /* of the first element in the arenas */
    int64_t offset;
    enum rnnd__initial initial;
    /* the uniform distribution is over -bound .. bound */
    double bound;
};

struct rnnd__params {
    struct rnnd_backend *be;
    /* the arenas, float [count] each */
    struct rnnd__buf value, grad;
    /* includes the padding between parameters, which stays zero */
    int64_t count;
    /* [listed], in arena order; tied parameters have the same offset */
    struct rnnd__param *list;
    int listed;
    /* rows of the embedding, if only those that are used are updated */
    struct rnnd__touched touched;
};

const struct rnnd__params *rnnd__model_params(const struct rnnd_model *model);
/* From now on the gradient of the embedding is sparse: see model/touched.h. For models
   of tokens without tied weights, on the CPU, before the first gradient. */
void rnnd__model_touch_rows(struct rnnd_model *model);
/* The rows that the gradients since rnnd_model_zero_gradient() touched. */
struct rnnd__touched *rnnd__model_touched(struct rnnd_model *model);
/* The names that are stored with it. */
const struct rnnd__names *rnnd__model_names(const struct rnnd_model *model);

/* Makes the normalization of features part of the first layer: the model then computes
   the same, up to rounding, without input.mean and input.std. *ratio: the largest
   |mean| / std, 0 without normalization. EUSAGE: the layer has no biases, which would
   take the mean. EDATA, and a model not to be used, where a weight would not fit a
   float. */
RNND_CHECKED int rnnd__model_fold(struct rnnd_model *model, double *ratio);

/* The elements from the start of the arena whose gradients are dense. */
static inline int64_t rnnd__params_dense(const struct rnnd__params *p)
{
    return p->touched.on ? p->touched.begin : p->count;
}

static inline int64_t rnnd__param_size(const struct rnnd__param *p)
{
    return p->rows * (p->cols ? p->cols : 1);
}

/* Appends a parameter and returns its offset. tied: the offset of the parameter it is
   tied to, or -1. The list must have room. */
int64_t rnnd__params_add(struct rnnd__params *params, const struct rnnd__param *proto,
                         int64_t tied);
/* Allocates the arenas, set to zero. */
RNND_CHECKED int rnnd__params_alloc(struct rnnd__params *params,
                                    struct rnnd_backend *be);
void rnnd__params_clear(struct rnnd__params *params);
/* Sets an arena, float [count], to zero. */
void rnnd__params_zero(const struct rnnd__params *params, struct rnnd__buf arena);
/* Sets the gradients to zero, and forgets touched rows. */
void rnnd__params_zero_gradient(struct rnnd__params *params);
/* Copy an arena to or from host memory, float [count]; both wait for the device. */
RNND_CHECKED int rnnd__params_download(const struct rnnd__params *params,
                                       struct rnnd__buf arena, float *host);
RNND_CHECKED int rnnd__params_upload(const struct rnnd__params *params,
                                     struct rnnd__buf arena, const float *host);
/* *hash: of the bits of an arena; any bit changes it. */
RNND_CHECKED int rnnd__params_hash(const struct rnnd__params *params,
                                   struct rnnd__buf arena, uint64_t *hash);
/* Sets initial values: each parameter from its own Philox stream, keyed by its name
   (the first name of tied ones), so that its values do not depend on the other
   parameters. */
RNND_CHECKED int rnnd__params_init(struct rnnd__params *params, uint64_t seed);
/* The parameter of this name; NULL if there is none. */
const struct rnnd__param *rnnd__params_find(const struct rnnd__params *params,
                                            const char *name);

#endif
