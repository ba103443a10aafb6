/*
 * dataset.h - inside a data set, for the files of its room: dataset.c opens, keeps and
 * hands out values, dataset_check.c checks them, dataset_moments.c has their
 * statistics, batch.c packs them.
 */
#ifndef RNND_DATASET_H
#define RNND_DATASET_H

#include "base/hash.h"
#include "base/names.h"
#include "base/task.h"
#include "hdf/hdf.h"

/* ---- rows of inputs and targets in memory */

/* Features, scores and answers are floats, token ids and labels int32: elements of the
   same size. */
enum { RNND__ELEMENT = sizeof(float) };
_Static_assert(sizeof(int32_t) == RNND__ELEMENT, "one size for all elements");

static inline enum rnnd__hdf_type rnnd__input_type(const struct rnnd_dataset_info *info)
{
    return info->vocab ? RNND_I32 : RNND_F32;
}

static inline enum rnnd__hdf_type rnnd__target_type(
    const struct rnnd_dataset_info *info)
{
    return rnnd__task_is_categorical(info->task) ? RNND_I32 : RNND_F32;
}

/* Elements of one step: 1 token id, or I features. */
static inline int64_t rnnd__input_width(const struct rnnd_dataset_info *info)
{
    return info->vocab ? 1 : info->inputs;
}

/* Elements of one target: 1 label or token id, or O values. */
static inline int64_t rnnd__target_width(const struct rnnd_dataset_info *info)
{
    return rnnd__task_target_width(info->task, info->outputs);
}

/* Bytes of the two. */
static inline size_t rnnd__input_bytes(const struct rnnd_dataset_info *info)
{
    return (size_t)rnnd__input_width(info) * RNND__ELEMENT;
}

static inline size_t rnnd__target_bytes(const struct rnnd_dataset_info *info)
{
    return (size_t)rnnd__target_width(info) * RNND__ELEMENT;
}

/* ---- the data set */

/* Where an array is stored contiguously in the file. */
struct rnnd__dataset_place {
    /* bytes before the first row; bytes of a row, 0 = not contiguous */
    int64_t offset, row;
};

/* How rows of the file become those of the model that the data set was matched with;
   NULL: as they are. All owned. */
struct rnnd__dataset_match {
    /* [I], [O] columns of the file: of each feature, of each value of a target */
    int64_t *feature, *value;
    /* elements of a row of the file, where columns are picked */
    int64_t file_inputs, file_outputs;
    /* [V], [classes] of the file: the model's number of each token, of each class; -1 =
       ignored */
    int32_t *token, *class;
    /* a row of the model */
    float *row;
};

struct rnnd_dataset {
    /* once matched with a model, widths and numbers are the model's */
    struct rnnd_dataset_info info;
    /* owned */
    char *path;
    /* open while values are read from disk, else NULL */
    struct rnnd__hdf *file;
    /* num_classes of classify, tag and ctc, in the file */
    int64_t classes;
    bool has_targets;
    /* NaN among the features are missing values */
    bool marks_missing;
    /* rows of /targets: N, S, or the labels of all strings */
    int64_t target_rows;
    /* [N+1] owned; of strings NULL but for ctc, whose targets are in memory */
    int64_t *offsets, *string_offsets;
    /* [S, input width] and [target_rows, target width], owned; NULL = read from disk */
    void *inputs, *targets;
    /* of what is read from disk */
    struct rnnd__dataset_place inputs_at, targets_at;
    /* [N] owned, one block; NULL = none */
    char **name;
    struct rnnd__names names;
    /* how often each token and class of the file occurs; [V], [classes] owned, NULL
       where they have no names */
    int64_t *token_uses, *class_uses;
    /* [I] while wider features are looked through, else NULL */
    struct rnnd__range *range;
    struct rnnd__dataset_match match;
    /* rows of the file, wider than the model's, on their way from disk; owned */
    void *wide;
    size_t wide_room;
};

/* Bytes of inputs and targets that a data set keeps in memory at most; 1 GiB. */
extern int64_t rnnd__dataset_keep;

/* ---- reading: EDATA, also where the file that has opened cannot be read */

RNND_CHECKED int rnnd__dataset_shape(struct rnnd_dataset *data, const char *object,
                                     struct rnnd__hdf_shape *out);
/* Rows first .. first+count-1 of an object into out. */
RNND_CHECKED int rnnd__dataset_read(struct rnnd_dataset *data, const char *object,
                                    int64_t first, int64_t count,
                                    enum rnnd__hdf_type type, void *out);
/* Reads and checks /offsets. Sets info.sequences, info.longest and, for lm,
   info.targets. */
RNND_CHECKED int rnnd__dataset_offsets(struct rnnd_dataset *data);
/* Reads and checks all inputs and targets, and keeps them where asked to. Sets
   info.targets and info.fingerprint. */
RNND_CHECKED int rnnd__dataset_values(struct rnnd_dataset *data, bool keep_inputs,
                                      bool keep_targets);

/* An array of N+1 offsets into an object of `rows` rows: *at [N+1], owned by the
   caller. */
RNND_CHECKED int rnnd__dataset_read_offsets(struct rnnd_dataset *data, const char *name,
                                            const char *object, int64_t rows,
                                            int64_t **at);

/* ---- strings (strings.c) */

/* Reads and checks /target_offsets, of an array of so many labels. */
RNND_CHECKED int rnnd__dataset_string_offsets(struct rnnd_dataset *data, int64_t rows);
/* Checks labels first .. first+count-1, as dataset_check.c does. */
RNND_CHECKED int rnnd__dataset_check_string(struct rnnd_dataset *data, const void *rows,
                                            int64_t first, int64_t count);
/* Counts the strings that are targets, those that do not fit, and those with a label
   that the model does not know. */
void rnnd__dataset_count_strings(struct rnnd_dataset *data);

/* ---- matching (dataset_names.c) */

/* Turns inputs or targets [count] of the file into those of the model, in place. */
void rnnd__dataset_map_inputs(const struct rnnd_dataset *data, void *rows,
                              int64_t count);
void rnnd__dataset_map_targets(const struct rnnd_dataset *data, void *rows,
                               int64_t count);
void rnnd__dataset_match_clear(struct rnnd__dataset_match *match);

#endif
