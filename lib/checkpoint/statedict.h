/*
 * statedict.h - named arrays of a file, matched with the parameters of a model.
 *
 * A file is a checkpoint (/model/NAME), HDF5 with the arrays at its root, or
 * safetensors. Names are ours, which are PyTorch's for a module with `embed`, `rnn` and
 * `head`, or those of another module where it is unambiguous which array is which
 * ("lstm.weight_ih_l0", "cell.weight_ih", "encoder.weight", "decoder.bias"). Prefixes
 * that PyTorch's wrappers add to all names ("module.") are ignored. A matrix that
 * weight_norm keeps as two arrays is one array here.
 */
#ifndef RNND_STATEDICT_H
#define RNND_STATEDICT_H

#include "base/names.h"
#include "rnn_dist.h"

struct rnnd__hdf;

/* Keys of the texts that describe the model in an exported file: metadata of
   safetensors, attributes of HDF5. */
#define RNND_KEY_TASK   "rnn_dist.task"
#define RNND_KEY_CONFIG "rnn_dist.config"

enum rnnd__float_type {
    RNND_TENSOR_OTHER,
    RNND_TENSOR_F32,
    RNND_TENSOR_F64,
    RNND_TENSOR_F16,
    RNND_TENSOR_BF16
};

/* An array of a file. */
struct rnnd__tensor {
    /* in the file; owned */
    char *name;
    /* the parameter that it is; "" = none */
    char ours[48];
    int rank;
    /* of a vector cols is 0; where rank is neither 1 nor 2 both are 0 */
    int64_t rows, cols;
    /* of the elements */
    enum rnnd__float_type type;
    /* safetensors: place in the file, in bytes */
    int64_t at, bytes;
    /* made of two other arrays by weight_norm: 1 + their indices; 0 = is in the file */
    int gain, direction;
    /* one of the two */
    bool is_part;
};

/* All arrays of a file, and what the file says about its model. */
struct rnnd__statedict {
    /* owned */
    char *path;
    /* of the names of the arrays that count; "" = all count */
    const char *prefix;
    /* NULL: safetensors, open as fd */
    struct rnnd__hdf *hdf;
    /* hdf belongs to the caller */
    bool borrowed;
    /* HDF5 group of the arrays, with a slash at the end */
    const char *group;
    /* -1 = closed */
    int fd;
    /* [count] owned */
    struct rnnd__tensor *tensor;
    int count;
    /* name of the task, options as text; owned, NULL where the file has none */
    char *task, *config;
    struct rnnd__names names;
};

/* Opens a file of any kind and lists its arrays; no values are read. EFILE where it
   cannot be read, EDATA where it is of no kind, EUSAGE where it is ambiguous which
   array is which parameter. */
RNND_CHECKED int rnnd__statedict_open(const char *path, struct rnnd__statedict *out);
/* The same for the arrays whose names begin with a prefix alone, which is borrowed, and
   not part of their names then; NULL = all. */
RNND_CHECKED int rnnd__statedict_open_part(const char *path, const char *prefix,
                                           struct rnnd__statedict *out);
/* The same for an open HDF5 file, which is borrowed. */
RNND_CHECKED int rnnd__statedict_of(struct rnnd__hdf *file,
                                    struct rnnd__statedict *out);
void rnnd__statedict_close(struct rnnd__statedict *sd);

/* Train options of the model in a file: defaults (which out has already), then the
   file's options, then those given in opt (may be NULL). EDATA where the file's are
   invalid. */
RNND_CHECKED int rnnd__statedict_options(const struct rnnd__statedict *sd,
                                         const struct rnnd_options *opt,
                                         struct rnnd_options *out);
/* The model in a file: widths from its arrays, the rest from these options. EDATA
   where the arrays make no model, EUSAGE where the task is unknown or options in opt
   do not fit the arrays. */
RNND_CHECKED int rnnd__statedict_spec(const struct rnnd__statedict *sd,
                                      const struct rnnd_options *opt,
                                      struct rnnd_model_spec *out);
/* Loads all parameters of a model. EUSAGE, and an unchanged model, unless parameters
   and arrays match one to one, with equal shapes; input.mean and input.std may be
   missing or superfluous. EDATA where a value does not fit a float. */
RNND_CHECKED int rnnd__statedict_load(struct rnnd__statedict *sd,
                                      struct rnnd_model *model);
/* Makes the model in a file, with parameters and class names; freed by
   rnnd_model_free. */
RNND_CHECKED int rnnd__statedict_model(struct rnnd__statedict *sd,
                                       const struct rnnd_options *opt,
                                       struct rnnd_backend *be,
                                       struct rnnd_model **out);

/* Train options as text, those that shape the model being as they are in it. opt NULL:
   the others are defaults. *text is malloc'ed and freed by the caller. */
RNND_CHECKED int rnnd__statedict_config(const struct rnnd_model *model,
                                        const struct rnnd_options *opt, char **text);

/* Write parameters, and texts that describe the model. Atomic; the same model gives the
   same bytes. opt may be NULL. */
RNND_CHECKED int rnnd__statedict_hdf_write(const char *path, struct rnnd_model *model,
                                           const struct rnnd_options *opt);
RNND_CHECKED int rnnd__safetensors_write(const char *path, struct rnnd_model *model,
                                         const struct rnnd_options *opt);
/* Calls put for each text that describes a model in an exported file: task, options,
   and classes if it has any. */
RNND_CHECKED int rnnd__statedict_describe(
    const struct rnnd_model *model, const struct rnnd_options *opt,
    int (*put)(void *context, const char *key, const char *text), void *context);

/* ---- shared by the files of the room */

/* Removes the arrays without the prefix; EUSAGE where none has it. */
RNND_CHECKED int rnnd__statedict_choose(struct rnnd__statedict *sd);
/* Adds the matrices that weight_norm keeps as two arrays. */
RNND_CHECKED int rnnd__statedict_join(struct rnnd__statedict *sd);
/* The values of such a matrix, from those of its parts: value [rows, cols] holds the
   directions, gain [rows] or [cols]. EDATA where a direction is zero. */
RNND_CHECKED int rnnd__statedict_scale(const struct rnnd__statedict *sd,
                                       const struct rnnd__tensor *t, const float *gain,
                                       float *value);
/* Fails, and lists the arrays of the file. */
int rnnd__statedict_fail(const struct rnnd__statedict *sd, const char *problem);
/* Sets `ours` of every array. */
RNND_CHECKED int rnnd__statedict_name(struct rnnd__statedict *sd);
/* The array that is this parameter; NULL where there is none. */
const struct rnnd__tensor *rnnd__statedict_find(const struct rnnd__statedict *sd,
                                                const char *ours);
/* Appends a copy of an array, under this name. */
RNND_CHECKED int rnnd__statedict_add(struct rnnd__statedict *sd, const char *name,
                                     const struct rnnd__tensor *t);

/* "[rows, cols]", "[rows]" or "of 3 dimensions". */
void rnnd__statedict_shape(const struct rnnd__tensor *t, char text[64]);
/* Appends "name SHAPE" to a list separated by commas, in text [size]; at its end, "..."
   once it is full. */
void rnnd__statedict_list_add(char *text, size_t size, const char *name,
                              const struct rnnd__tensor *t);
/* The list of all arrays, or "no arrays". */
void rnnd__statedict_list(const struct rnnd__statedict *sd, char *text, size_t size);

/* Names of features, tokens and classes: of a checkpoint, into sd->names. */
RNND_CHECKED int rnnd__statedict_read_axes(struct rnnd__statedict *sd);
/* The same from an exported file: get returns the text of a key, malloc'ed, or NULL.
   sd->task is known. */
RNND_CHECKED int rnnd__statedict_take_axes(struct rnnd__statedict *sd,
                                           int (*get)(void *context, const char *key,
                                                      char **text),
                                           void *context);
/* Gives a model the names in a file; those that do not fit are ignored with a
   warning. */
RNND_CHECKED int rnnd__statedict_name_model(const struct rnnd__statedict *sd,
                                            struct rnnd_model *model);
/* Writes the names of a model to a checkpoint, and as texts of an exported file. */
RNND_CHECKED int rnnd__statedict_write_axes(struct rnnd__hdf *file,
                                            const struct rnnd_model *model);
RNND_CHECKED int rnnd__statedict_describe_axes(
    const struct rnnd_model *model,
    int (*put)(void *context, const char *key, const char *text), void *context);

/* Lists the arrays of sd->hdf, and reads what the file says about its model. */
RNND_CHECKED int rnnd__statedict_hdf_read(struct rnnd__statedict *sd);
/* The same for the safetensors file that is open as sd->fd. */
RNND_CHECKED int rnnd__safetensors_open(struct rnnd__statedict *sd);
/* The values of an array of 1 or 2 dimensions, [rows, cols]. */
RNND_CHECKED int rnnd__safetensors_read(const struct rnnd__statedict *sd,
                                        const struct rnnd__tensor *t, float *out);

#endif
