/*
 * hdf.h - HDF5 files: arrays read and written whole or by rows, attributes, and
 * failures as status. No other room includes HDF5's own header.
 *
 * Files are opened without locking. A new file is written under a temporary name;
 * commit() syncs and renames it, so a reader sees the old file or the new one. Files
 * written here end with a checksum over the whole file, after the part that HDF5
 * reads, which open() verifies before HDF5 sees a byte; a file without one is accepted
 * if it ends where HDF5's part ends. In addition, arrays may carry Fletcher-32
 * checksums, and the file format is one with checksums on metadata.
 *
 * Objects are named by path, "/group/name" or "group/name". Messages name file,
 * object and, where there is one, index. All functions may be called from several
 * threads.
 *
 * A file without that checksum is read by a child process first, since HDF5 crashes on
 * some damaged files.
 *
 * What a file claims is judged against its size before memory is taken for it, and
 * nothing leads out of the file: virtual arrays, external storage and external links
 * are EDATA.
 */
#ifndef RNND_HDF_H
#define RNND_HDF_H

#include "rnn_dist.h"

/* An open file. */
struct rnnd__hdf;

/* What the elements of an array in a file are: integers up to 64 bits (booleans
   included), floats, strings, anything else. */
enum rnnd__hdf_kind { RNND_HDF_INT, RNND_HDF_FLOAT, RNND_HDF_STRING, RNND_HDF_OTHER };

struct rnnd__hdf_shape {
    enum rnnd__hdf_kind kind;
    /* 0 (a scalar) to 4 */
    int rank;
    /* [rank] */
    int64_t dim[4];
    /* bytes of one element in the file */
    int64_t size;
};

/* The type of array elements in memory. */
enum rnnd__hdf_type { RNND_I32, RNND_I64, RNND_F32, RNND_F64, RNND_U8 };

/* Bytes of one element. */
size_t rnnd__hdf_size_of(enum rnnd__hdf_type type);

/* ---- reading */

/* Whether the first or last MiB of a file contains a text. Tells what a file was that
   is too damaged to be opened. False if the file cannot be read. */
bool rnnd__hdf_mentions(const char *path, const char *text);

/* EFILE: missing, unreadable, a folder, truncated, damaged; EDATA: not HDF5, or refused
   by rnnd__hdf_probe(). *out is freed by rnnd__hdf_close. */
RNND_CHECKED int rnnd__hdf_open(const char *path, struct rnnd__hdf **out);
/* The same for a file that was written here: EFILE also where it has no checksum over
   the whole file. */
RNND_CHECKED int rnnd__hdf_open_own(const char *path, struct rnnd__hdf **out);
/* Reads an HDF5 file that has no checksum over the whole file in a child process, with
   limits on time and memory. EDATA where HDF5 crashes on it, does not finish, or takes
   too much memory. The verdict is kept while the file does not change. Opening a file
   does this, too; do it before MPI starts, since some networks do not like forks. No
   failure for what is no such file. */
RNND_CHECKED int rnnd__hdf_probe(const char *path);
/* Also discards a file that was created but not committed. NULL is accepted. */
void rnnd__hdf_close(struct rnnd__hdf *file);
/* The path as given to open or create; borrowed. */
const char *rnnd__hdf_path(const struct rnnd__hdf *file);
/* Whether the file that was opened ends with a checksum over the whole file. */
bool rnnd__hdf_ends_with_checksum(const struct rnnd__hdf *file);
/* Whether there is such a group or array. True if that cannot be determined: reading it
   then reports why. */
bool rnnd__hdf_has(struct rnnd__hdf *file, const char *object);
/* EDATA where there is no such array or it has more than 4 dimensions. */
RNND_CHECKED int rnnd__hdf_shape(struct rnnd__hdf *file, const char *object,
                                 struct rnnd__hdf_shape *out);
/* Reads rows first .. first+count-1 (of the first dimension; a scalar is one row) into
   out [count, other dimensions], converted to type. EDATA: no such array, no such rows,
   not numbers, or a value that does not fit type (with its index). EFILE: checksum
   mismatch, read error. */
RNND_CHECKED int rnnd__hdf_read(struct rnnd__hdf *file, const char *object,
                                int64_t first, int64_t count, enum rnnd__hdf_type type,
                                void *out);
/* EDATA, naming path and object, unless first .. first+count-1 are among 0 .. rows-1.
   */
RNND_CHECKED int rnnd__hdf_check_rows(const char *path, const char *object,
                                      int64_t rows, int64_t first, int64_t count);
/* Where an array that is stored contiguously begins in the file, and the bytes of one
   of its rows. False for other arrays: chunked, external, without storage, missing.
   */
bool rnnd__hdf_place(struct rnnd__hdf *file, const char *object, int64_t *offset,
                     int64_t *row);
/* Advises the system to read these bytes of the file in the background. */
void rnnd__hdf_prefetch(struct rnnd__hdf *file, int64_t offset, int64_t bytes);
/* Reads a one-dimensional array of strings, of fixed or variable length. *out [*count]
   is one malloc'ed block (pointers, then texts), freed by the caller. EDATA where the
   array is missing or of another kind. */
RNND_CHECKED int rnnd__hdf_read_strings(struct rnnd__hdf *file, const char *object,
                                        char ***out, int64_t *count);
/* Whether damage to the values of an array is noticed without a checksum over the whole
   file: they carry Fletcher-32, are part of the object header, or there are none. */
RNND_CHECKED int rnnd__hdf_has_checksum(struct rnnd__hdf *file, const char *object,
                                        bool *out);
/* Calls visit with the path of each array below group ("/": all), in name order. Stops
   at the first failure of visit and returns it. */
RNND_CHECKED int rnnd__hdf_each(struct rnnd__hdf *file, const char *group,
                                int (*visit)(void *context, const char *object),
                                void *context);

/* Reads all numbers and lists of strings, and keeps none. Fails as reading them does.
   */
RNND_CHECKED int rnnd__hdf_read_all(struct rnnd__hdf *file);

/* Attributes of the root group. has never fails; get: EDATA where the attribute is
   missing or of another type. A string is malloc'ed and freed by the caller. */
bool rnnd__hdf_has_attribute(struct rnnd__hdf *file, const char *name);
RNND_CHECKED int rnnd__hdf_get_int(struct rnnd__hdf *file, const char *name,
                                   int64_t *out);
RNND_CHECKED int rnnd__hdf_get_string(struct rnnd__hdf *file, const char *name,
                                      char **out);

/* EDATA unless the attributes format and version are these. */
RNND_CHECKED int rnnd__hdf_check_format(struct rnnd__hdf *file, const char *format,
                                        int64_t version);

/* ---- writing: EFILE on failure */

/* How an HDF5 file begins. */
#define RNND_HDF_START "\211HDF\r\n\032\n"

struct rnnd__kind;

/* Starts a file that is to become path, under the temporary name PATH.tmp-PID. kind:
   what it may replace, as in rnnd__output_open(). */
RNND_CHECKED int rnnd__hdf_create_as(const char *path, const struct rnnd__kind *kind,
                                     struct rnnd__hdf **out);
/* The same, whatever it replaces: in folders that belong to the program. */
RNND_CHECKED int rnnd__hdf_create(const char *path, struct rnnd__hdf **out);
/* Flushes, appends the checksum, syncs, renames to path, syncs the folder. Frees the
   handle in any case. Fails also where an earlier write to the file failed. */
RNND_CHECKED int rnnd__hdf_commit(struct rnnd__hdf *file);
/* Writes an array [dim[0], ..., dim[rank-1]] of type, and makes the groups that its
   path names. data NULL: the array reads as zero until rows are written. checksum:
   chunked with Fletcher-32, else contiguous. */
RNND_CHECKED int rnnd__hdf_write(struct rnnd__hdf *file, const char *object,
                                 enum rnnd__hdf_type type, int rank, const int64_t *dim,
                                 bool checksum, const void *data);
/* Writes rows first .. first+count-1 of an array that exists; data [count, other
   dimensions] of type. */
RNND_CHECKED int rnnd__hdf_write_rows(struct rnnd__hdf *file, const char *object,
                                      int64_t first, int64_t count,
                                      enum rnnd__hdf_type type, const void *data);
/* Writes an array [count] of strings, UTF-8. */
RNND_CHECKED int rnnd__hdf_write_strings(struct rnnd__hdf *file, const char *object,
                                         const char *const *text, int64_t count);
/* Sets an attribute of the root group, replacing one of the same name. */
RNND_CHECKED int rnnd__hdf_set_int(struct rnnd__hdf *file, const char *name,
                                   int64_t value);
RNND_CHECKED int rnnd__hdf_set_string(struct rnnd__hdf *file, const char *name,
                                      const char *value);

#endif
