/*
 * hdf.h - the only door to HDF5: files, slices of arrays, attributes, errors as status.
 *
 * Files are read without locking and written under a temporary name that commit()
 * flushes, fsyncs and renames, so that a reader finds the old file or the new one.
 * Every message names file and object. Files written here end with a checksum over all
 * of them (a seal, behind what HDF5 reads), which open() verifies; a file without one
 * is accepted. On top of it arrays may carry Fletcher-32, and the file format is one
 * whose metadata carry checksums.
 */
#ifndef RNND_HDF_H
#define RNND_HDF_H

#include "rnn_dist.h"

struct rnnd__hdf;

enum rnnd__hdf_kind { RNND_HDF_INT, RNND_HDF_FLOAT, RNND_HDF_STRING, RNND_HDF_OTHER };

struct rnnd__hdf_shape {
    enum rnnd__hdf_kind kind;
    int rank;
    int64_t dim[4];
};

/* What an array is in memory. */
enum rnnd__hdf_type { RNND_I32, RNND_I64, RNND_F32, RNND_F64, RNND_U8 };

/* ---- reading */

/* Whether the first or the last MiB of a file, HDF5 or not, holds a text: what a
   file was that is too damaged to be opened. */
bool rnnd__hdf_mentions(const char *path, const char *text);

/* EFILE: missing, unreadable, a folder, not HDF5, truncated, damaged. */
RNND_CHECKED int rnnd__hdf_open(const char *path, struct rnnd__hdf **out);
/* Also drops a file that was created and not committed. NULL is accepted. */
void rnnd__hdf_close(struct rnnd__hdf *file);
const char *rnnd__hdf_path(const struct rnnd__hdf *file);
/* Whether the file that was opened has a checksum over all of it. */
bool rnnd__hdf_ends_with_checksum(const struct rnnd__hdf *file);
bool rnnd__hdf_has(struct rnnd__hdf *file, const char *object);
/* EDATA where there is no such dataset or it has more than 4 dimensions. */
RNND_CHECKED int rnnd__hdf_shape(struct rnnd__hdf *file, const char *object,
                                 struct rnnd__hdf_shape *out);
/* Rows first .. first+count-1 (of the first dimension), converted to type; integers
   that do not fit are EDATA with their index. A checksum that does not hold is
   EFILE. */
RNND_CHECKED int rnnd__hdf_read(struct rnnd__hdf *file, const char *object,
                                int64_t first, int64_t count, enum rnnd__hdf_type type,
                                void *out);
/* Where the rows of an array lie, one after the other: bytes before the first, and
   bytes of each. False where they do not, but in chunks, in another file, or
   nowhere. */
bool rnnd__hdf_place(struct rnnd__hdf *file, const char *object, int64_t *offset,
                     int64_t *row);
/* These bytes of the file will be read soon: the system may begin to. */
void rnnd__hdf_prefetch(struct rnnd__hdf *file, int64_t offset, int64_t bytes);
/* A one-dimensional array of strings, fixed or variable: *out is one malloc'ed block
   (pointers, then texts), taken by the caller; *count its length. */
RNND_CHECKED int rnnd__hdf_read_strings(struct rnnd__hdf *file, const char *object,
                                        char ***out, int64_t *count);
/* Whether an array carries a checksum of its own. */
RNND_CHECKED int rnnd__hdf_has_checksum(struct rnnd__hdf *file, const char *object,
                                        bool *out);
/* Calls visit for every dataset below group ("/" = all), in name order; stops at a
   failure. */
RNND_CHECKED int rnnd__hdf_each(struct rnnd__hdf *file, const char *group,
                                int (*visit)(void *context, const char *object),
                                void *context);

/* Attributes of the root group. has: without failing. String: malloc'ed, taken. */
bool rnnd__hdf_has_attribute(struct rnnd__hdf *file, const char *name);
RNND_CHECKED int rnnd__hdf_get_int(struct rnnd__hdf *file, const char *name,
                                   int64_t *out);
RNND_CHECKED int rnnd__hdf_get_double(struct rnnd__hdf *file, const char *name,
                                      double *out);
RNND_CHECKED int rnnd__hdf_get_string(struct rnnd__hdf *file, const char *name,
                                      char **out);

/* ---- writing */

/* A new file beside path, under the temporary name PATH.tmp-PID. */
RNND_CHECKED int rnnd__hdf_create(const char *path, struct rnnd__hdf **out);
/* Flush, close, seal, fsync, rename to path, fsync the folder; the handle is gone in
   any case. EFILE also where any write before it failed. */
RNND_CHECKED int rnnd__hdf_commit(struct rnnd__hdf *file);
/* An array of rank dims, groups on the way are made. data NULL: filled with zero, to be
   written in slices. checksum: chunked with Fletcher-32, else contiguous. */
RNND_CHECKED int rnnd__hdf_write(struct rnnd__hdf *file, const char *object,
                                 enum rnnd__hdf_type type, int rank, const int64_t *dim,
                                 bool checksum, const void *data);
RNND_CHECKED int rnnd__hdf_write_rows(struct rnnd__hdf *file, const char *object,
                                      int64_t first, int64_t count,
                                      enum rnnd__hdf_type type, const void *data);
RNND_CHECKED int rnnd__hdf_write_strings(struct rnnd__hdf *file, const char *object,
                                         const char *const *text, int64_t count);
RNND_CHECKED int rnnd__hdf_set_int(struct rnnd__hdf *file, const char *name,
                                   int64_t value);
RNND_CHECKED int rnnd__hdf_set_double(struct rnnd__hdf *file, const char *name,
                                      double value);
RNND_CHECKED int rnnd__hdf_set_string(struct rnnd__hdf *file, const char *name,
                                      const char *value);

#endif
