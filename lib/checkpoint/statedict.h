/*
 * statedict.h - named arrays of a file against the parameters of a model.
 *
 * A file is a checkpoint (/model/NAME), HDF5 with the arrays at its root, or
 * safetensors. Names are our own, which are PyTorch's for a module with `embed`, `rnn`
 * and `head`, or those of another module where it is plain which array is which
 * ("lstm.weight_ih_l0", "encoder.weight", "decoder.bias"). What PyTorch's wrappers put
 * before all names ("module.") counts nothing.
 */
#ifndef RNND_STATEDICT_H
#define RNND_STATEDICT_H

#include "rnn_dist.h"

struct rnnd__hdf;

/* Under which keys an exported file tells of its model. */
#define RNND_TOLD_TASK    "rnn_dist.task"
#define RNND_TOLD_CONFIG  "rnn_dist.config"
#define RNND_TOLD_CLASSES "rnn_dist.classes"

enum rnnd__float_type {
    RNND_TENSOR_OTHER,
    RNND_TENSOR_F32,
    RNND_TENSOR_F64,
    RNND_TENSOR_F16,
    RNND_TENSOR_BF16
};

struct rnnd__tensor {
    /* in the file */
    char *name;
    /* here; "" = not understood */
    char ours[48];
    int rank;
    /* cols 0: a vector. Of other ranks both are 0 */
    int64_t rows, cols;
    /* safetensors: what its elements are */
    enum rnnd__float_type type;
    /* safetensors: where they lie in the file */
    int64_t at, bytes;
};

struct rnnd__statedict {
    char *path;
    /* NULL: safetensors, open as fd */
    struct rnnd__hdf *hdf;
    /* hdf is the caller's */
    bool borrowed;
    /* where its arrays lie, with a slash behind */
    const char *group;
    int fd;
    /* [count] */
    struct rnnd__tensor *tensor;
    int count;
    /* what the file says of its model, or NULL */
    char *task, *config;
    /* one block, or NULL */
    char **classes;
    int64_t class_count;
};

/* The arrays of a file of either kind. EFILE where it cannot be read, EDATA where it is
   neither, EUSAGE where several arrays could be the same parameter. */
RNND_CHECKED int rnnd__statedict_open(const char *path, struct rnnd__statedict *out);
/* Those of a file that is open; borrowed. */
RNND_CHECKED int rnnd__statedict_of(struct rnnd__hdf *file,
                                    struct rnnd__statedict *out);
void rnnd__statedict_close(struct rnnd__statedict *sd);

/* What a file says of the training of its model, and over it what opt was given (may
   be NULL), into out, which has its defaults. */
RNND_CHECKED int rnnd__statedict_options(const struct rnnd__statedict *sd,
                                         const struct rnnd_options *opt,
                                         struct rnnd_options *out);
/* The model that a file holds: widths from its arrays, the rest from what it says and,
   over that, from what opt was given (may be NULL). EDATA where the arrays make no
   model, EUSAGE where the task is not told or does not fit them. */
RNND_CHECKED int rnnd__statedict_spec(const struct rnnd__statedict *sd,
                                      const struct rnnd_options *opt,
                                      struct rnnd_model_spec *out);
/* All parameters of the model; every array must have its place there and the same
   shape, else EUSAGE with both. input.mean and input.std may be missing, or left
   over. */
RNND_CHECKED int rnnd__statedict_load(struct rnnd__statedict *sd,
                                      struct rnnd_model *model);
/* Both; classes too. */
RNND_CHECKED int rnnd__statedict_model(struct rnnd__statedict *sd,
                                       const struct rnnd_options *opt,
                                       struct rnnd_backend *be,
                                       struct rnnd_model **out);

/* The parameters, and what makes a model of them again, as HDF5 where path ends in .h5,
   .hdf5 or .hdf, else as safetensors; atomic, and the same bytes each time. opt may be
   NULL. */
RNND_CHECKED int rnnd__statedict_export(const char *path, struct rnnd_model *model,
                                        const struct rnnd_options *opt);

/* Train options as text, with those that shape the model as it is; malloc'ed, taken.
   opt may be NULL: the defaults. */
RNND_CHECKED int rnnd__statedict_config(const struct rnnd_model *model,
                                        const struct rnnd_options *opt, char **text);

/* Whether that is HDF5, by its name. */
bool rnnd__statedict_is_hdf(const char *path);

/* ---- the parts (lib/statedict*.c, lib/safetensors*.c) */

/* Gives every array its name here. */
RNND_CHECKED int rnnd__statedict_name(struct rnnd__statedict *sd);
/* NULL where there is none. */
const struct rnnd__tensor *rnnd__statedict_find(const struct rnnd__statedict *sd,
                                                const char *ours);
/* "name [rows, cols], ..." of the arrays of a file, cut at size. */
void rnnd__statedict_list(const struct rnnd__statedict *sd, char *text, size_t size);
/* Adds an array; takes name. */
RNND_CHECKED int rnnd__statedict_add(struct rnnd__statedict *sd,
                                     const struct rnnd__tensor *t);
/* Classes as one text, a list in JSON; malloc'ed, taken; NULL where there are none. */
RNND_CHECKED int rnnd__statedict_classes_text(const struct rnnd_model *model,
                                              char **out);
RNND_CHECKED int rnnd__statedict_take_classes(struct rnnd__statedict *sd,
                                              const char *text);

/* The arrays of sd->hdf, named, and what the file tells. */
RNND_CHECKED int rnnd__statedict_hdf_read(struct rnnd__statedict *sd);
RNND_CHECKED int rnnd__statedict_hdf_write(const char *path, struct rnnd_model *model,
                                           const struct rnnd_options *opt);
RNND_CHECKED int rnnd__safetensors_open(struct rnnd__statedict *sd);
RNND_CHECKED int rnnd__safetensors_read(const struct rnnd__statedict *sd,
                                        const struct rnnd__tensor *t, float *out);
RNND_CHECKED int rnnd__safetensors_write(const char *path, struct rnnd_model *model,
                                         const struct rnnd_options *opt);

#endif
