/*
 * dataset.h - what the two files of the data set's room share: dataset.c opens, keeps
 * and hands out; dataset_check.c looks at every value.
 */
#ifndef RNND_DATASET_H
#define RNND_DATASET_H

#include "base/hash.h"
#include "hdf/hdf.h"

/* Where an array's rows lie in the file; row 0 = not in one piece. */
struct rnnd__dataset_place {
    /* bytes */
    int64_t offset, row;
};

struct rnnd_dataset {
    struct rnnd_dataset_info info;
    char *path;
    /* open while contents are read from disk, else NULL */
    struct rnnd__hdf *file;
    /* of classify and tag */
    int64_t classes;
    bool has_targets;
    /* N or S */
    int64_t target_rows;
    /* [N+1] */
    int64_t *offsets;
    /* all of them, or NULL: read by slices */
    void *inputs, *targets;
    /* what is read by slices */
    struct rnnd__dataset_place inputs_at, targets_at;
    /* one block each, or NULL */
    char **name, **class, **token;
};

/* Up to how many bytes of inputs and targets a data set keeps in memory; 1 GiB. */
extern int64_t rnnd__dataset_keep;

/* int32 or float, four bytes an element either way */
enum rnnd__hdf_type rnnd__dataset_input_type(const struct rnnd_dataset *data);
enum rnnd__hdf_type rnnd__dataset_target_type(const struct rnnd_dataset *data);
/* Elements a row: 1 for ids and labels. */
int64_t rnnd__dataset_input_width(const struct rnnd_dataset *data);
int64_t rnnd__dataset_target_width(const struct rnnd_dataset *data);

/* Reads rows; what is wrong with a file that has opened is bad data. */
RNND_CHECKED int rnnd__dataset_read(struct rnnd_dataset *data, const char *object,
                                    int64_t first, int64_t count,
                                    enum rnnd__hdf_type type, void *out);
/* Reads and checks offsets; fills info.longest and, for lm, info.targets. */
RNND_CHECKED int rnnd__dataset_offsets(struct rnnd_dataset *data);
/* Reads and checks all values, keeps inputs and targets where asked to; fills
   info.targets, fingerprint. */
RNND_CHECKED int rnnd__dataset_values(struct rnnd_dataset *data, bool inputs,
                                      bool targets);

#endif
