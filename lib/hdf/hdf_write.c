/*
 * hdf_write.c - new HDF5 files, which get their name only when they are complete on
 * disk.
 *
 * HDF5 may fail to write and still close a file without error, so a failure is
 * remembered until commit.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output.h"
#include "hdf/hdf_room.h"

static const char unwritten[] = "cannot be written";

/* ---- create and commit */

/* Creation properties without times: the same contents are the same bytes. */
static hid_t timeless(hid_t class)
{
    HELD make = H5Pcreate(class);
    if (make < 0 || H5Pset_obj_track_times(make, false) < 0)
        return -1;
    return rnnd__hdf_take(&make);
}

static int create_file(struct rnnd__hdf *file, const struct rnnd__kind *kind)
{
    struct stat info;
    RNND_TRY(rnnd__output_open(file->path, kind, &file->output));
    if (!file->output->target)
        return rnnd__fail(RNND_EFILE, "%s: %s: is %s", file->path, unwritten,
                          stat(file->path, &info) == 0 && S_ISDIR(info.st_mode)
                              ? "a folder"
                              : "not a regular file");
    GUARD;
    HELD access = rnnd__hdf_access();
    HELD make = timeless(H5P_FILE_CREATE);
    if (access >= 0 && make >= 0)
        file->id = H5Fcreate(file->output->temp, H5F_ACC_TRUNC, make, access);
    return file->id < 0 ? rnnd__hdf_fail(file, unwritten) : 0;
}

int rnnd__hdf_create_as(const char *path, const struct rnnd__kind *kind,
                        struct rnnd__hdf **out)
{
    struct rnnd__hdf *file;
    RNND_TRY(rnnd__hdf_handle(path, &file));
    int status = create_file(file, kind);
    if (status < 0) {
        rnnd__hdf_close(file);
        return status;
    }
    *out = file;
    return 0;
}

int rnnd__hdf_create(const char *path, struct rnnd__hdf **out)
{
    return rnnd__hdf_create_as(path, NULL, out);
}

static int finish_file(struct rnnd__hdf *file)
{
    GUARD;
    if (file->failed)
        return rnnd__fail(RNND_EFILE, "%s: not written: an earlier write failed",
                          file->path);
    if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0)
        return rnnd__hdf_fail(file, unwritten);
    return H5Fclose(rnnd__hdf_take(&file->id)) < 0 ? rnnd__hdf_fail(file, unwritten)
                                                   : 0;
}

int rnnd__hdf_commit(struct rnnd__hdf *file)
{
    int status;
    RNND_TRY_GOTO(finish_file(file));
    RNND_TRY_GOTO(rnnd__hdf_write_checksum(file->output->fd, file->path));
    struct rnnd__output *output = file->output;
    file->output = NULL;
    RNND_TRY_GOTO(rnnd__output_commit(output));
done:
    rnnd__hdf_close(file);
    return status;
}

/* Remembers a failure for commit(). */
static int note_failure(struct rnnd__hdf *file, int status)
{
    if (status < 0)
        file->failed = true;
    return status;
}

/* ---- arrays */

static hid_t file_type(enum rnnd__hdf_type type)
{
    switch (type) {
    case RNND_I32:
        return H5T_STD_I32LE;
    case RNND_I64:
        return H5T_STD_I64LE;
    case RNND_F32:
        return H5T_IEEE_F32LE;
    case RNND_F64:
        return H5T_IEEE_F64LE;
    case RNND_U8:
        return H5T_STD_U8LE;
    }
    return -1;
}

/* An array to be written; data NULL where its rows are written later. */
struct array {
    hid_t stored, memory;
    int rank;
    const int64_t *dim;
    bool checksum;
    const void *data;
};

/* An array of up to 1 GiB is one chunk: its address and size are in the object header,
   protected by the header's checksum. Larger arrays, and those written by rows, have
   chunks of about 4 MiB. */
static herr_t set_chunks(hid_t make, const struct array *a)
{
    hsize_t chunk[RNND_HDF_MAX_RANK];
    int64_t row = (int64_t)H5Tget_size(a->stored); /* bytes */
    for (int d = 0; d < a->rank; d++) {
        chunk[d] = (hsize_t)a->dim[d];
        row *= d ? a->dim[d] : 1;
    }
    if (!a->data || a->dim[0] > ((int64_t)1 << 30) / row) {
        int64_t rows = ((int64_t)1 << 22) / row + 1;
        chunk[0] = (hsize_t)(rows < a->dim[0] ? rows : a->dim[0]);
    }
    return H5Pset_chunk(make, a->rank, chunk) < 0 ? -1 : H5Pset_fletcher32(make);
}

/* The groups in the path of an object. */
static int make_groups(struct rnnd__hdf *file, const char *object)
{
    OWNED char *name = strdup(object);
    HELD make = timeless(H5P_GROUP_CREATE);
    if (!name)
        return rnnd__fail_memory(strlen(object), "an object name");
    for (char *slash = name; make >= 0 && (slash = strchr(slash + 1, '/'));
         *slash = '/') {
        *slash = 0;
        htri_t there = H5Lexists(file->id, name, H5P_DEFAULT);
        HELD group = there == 0
                         ? H5Gcreate2(file->id, name, H5P_DEFAULT, make, H5P_DEFAULT)
                         : -1;
        if (there < 0 || (there == 0 && group < 0))
            return rnnd__hdf_fail_object(file, object, unwritten);
    }
    return make < 0 ? rnnd__hdf_fail_object(file, object, unwritten) : 0;
}

static int make_array(struct rnnd__hdf *file, const char *object, const struct array *a,
                      hid_t space, hid_t *out)
{
    HELD make = timeless(H5P_DATASET_CREATE);
    herr_t bad = make < 0 || space < 0 || a->stored < 0 ? -1 : 0;
    RNND_TRY(make_groups(file, object));
    if (!bad && a->checksum && a->rank == 0)
        bad = H5Pset_layout(make, H5D_COMPACT); /* in the object header */
    else if (!bad && a->checksum && H5Sget_simple_extent_npoints(space) > 0)
        bad = set_chunks(make, a);
    if (bad == 0)
        *out = H5Dcreate2(file->id, object, a->stored, space, H5P_DEFAULT, make,
                          H5P_DEFAULT);
    return bad < 0 || *out < 0 ? rnnd__hdf_fail_object(file, object, unwritten) : 0;
}

static int close_array(struct rnnd__hdf *file, const char *object, hid_t *set)
{
    return H5Dclose(rnnd__hdf_take(set)) < 0
               ? rnnd__hdf_fail_object(file, object, unwritten)
               : 0;
}

static int write_array(struct rnnd__hdf *file, const char *object,
                       const struct array *a)
{
    hsize_t dim[RNND_HDF_MAX_RANK];
    for (int d = 0; d < a->rank; d++)
        dim[d] = (hsize_t)a->dim[d];
    HELD space = a->rank ? H5Screate_simple(a->rank, dim, NULL) : H5Screate(H5S_SCALAR);
    HELD set = -1;
    RNND_TRY(make_array(file, object, a, space, &set));
    if (a->data && H5Sget_simple_extent_npoints(space) > 0 &&
        H5Dwrite(set, a->memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, a->data) < 0)
        return rnnd__hdf_fail_object(file, object, unwritten);
    return close_array(file, object, &set);
}

int rnnd__hdf_write(struct rnnd__hdf *file, const char *object,
                    enum rnnd__hdf_type type, int rank, const int64_t *dim,
                    bool checksum, const void *data)
{
    GUARD;
    struct array a = {
        file_type(type), rnnd__hdf_memory_type(type), rank, dim, checksum, data};
    return note_failure(file, write_array(file, object, &a));
}

static int write_rows(struct rnnd__hdf *file, const char *object, int64_t first,
                      int64_t count, enum rnnd__hdf_type type, const void *data)
{
    HELD_ARRAY a = NO_ARRAY;
    RNND_TRY(rnnd__hdf_array_of(file, object, &a));
    if (rnnd__hdf_check_rows(file->path, object, a.shape.rank ? a.shape.dim[0] : 0,
                             first, count) < 0)
        return RNND_EFILE;
    if (count * a.width == 0)
        return 0;
    HELD memory = rnnd__hdf_select_rows(&a, first, count);
    if (memory < 0 || H5Dwrite(a.id, rnnd__hdf_memory_type(type), memory, a.space,
                               H5P_DEFAULT, data) < 0)
        return rnnd__hdf_fail_object(file, object, unwritten);
    return close_array(file, object, &a.id);
}

int rnnd__hdf_write_rows(struct rnnd__hdf *file, const char *object, int64_t first,
                         int64_t count, enum rnnd__hdf_type type, const void *data)
{
    GUARD;
    return note_failure(file, write_rows(file, object, first, count, type, data));
}

/* ---- strings */

static hid_t text_type(size_t size)
{
    HELD type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, size) < 0 ||
        H5Tset_cset(type, H5T_CSET_UTF8) < 0 ||
        (size != H5T_VARIABLE && H5Tset_strpad(type, H5T_STR_NULLPAD) < 0))
        return -1;
    return rnnd__hdf_take(&type);
}

/* Fields of one size, with a checksum; of variable length, without one, where the
   longest string would make the others too large. */
static int write_texts(struct rnnd__hdf *file, const char *object,
                       const char *const *text, int64_t count)
{
    size_t longest = 1, total = 0, bytes;
    for (int64_t i = 0; i < count; i++) {
        size_t n = strlen(text[i]);
        longest = n > longest ? n : longest;
        total += n;
    }
    bool fixed = !__builtin_mul_overflow(longest, (size_t)count, &bytes) &&
                 bytes <= 4 * total + (1 << 20);
    HELD type = text_type(fixed ? longest : H5T_VARIABLE);
    if (type < 0)
        return rnnd__hdf_fail_object(file, object, unwritten);
    OWNED char *field = NULL;
    struct array a = {type, type, 1, &count, fixed, text};
    if (fixed) {
        RNND_TRY(rnnd__new((size_t)count, longest, "strings", &field));
        for (int64_t i = 0; i < count; i++)
            memcpy(field + (size_t)i * longest, text[i], strlen(text[i]));
        a.data = field;
    }
    return write_array(file, object, &a);
}

int rnnd__hdf_write_strings(struct rnnd__hdf *file, const char *object,
                            const char *const *text, int64_t count)
{
    GUARD;
    return note_failure(file, write_texts(file, object, text, count));
}

/* ---- attributes of the root group */

static int write_attribute(struct rnnd__hdf *file, const char *name, hid_t stored,
                           hid_t type, const void *value)
{
    HELD space = H5Screate(H5S_SCALAR);
    htri_t there = H5Aexists(file->id, name);
    if (space < 0 || stored < 0 || there < 0 ||
        (there > 0 && H5Adelete(file->id, name) < 0))
        return rnnd__hdf_fail_attribute(file, name, unwritten);
    HELD made = H5Acreate2(file->id, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    if (made < 0 || H5Awrite(made, type, value) < 0)
        return rnnd__hdf_fail_attribute(file, name, unwritten);
    return H5Aclose(rnnd__hdf_take(&made)) < 0
               ? rnnd__hdf_fail_attribute(file, name, unwritten)
               : 0;
}

static int put_attribute(struct rnnd__hdf *file, const char *name, hid_t stored,
                         hid_t type, const void *value)
{
    return note_failure(file, write_attribute(file, name, stored, type, value));
}

int rnnd__hdf_set_int(struct rnnd__hdf *file, const char *name, int64_t value)
{
    GUARD;
    return put_attribute(file, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

/* Of variable length, which h5py reads as str. */
int rnnd__hdf_set_string(struct rnnd__hdf *file, const char *name, const char *value)
{
    GUARD;
    HELD type = text_type(H5T_VARIABLE);
    return put_attribute(file, name, type, type, &value);
}
