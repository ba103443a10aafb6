/*
 * hdf_claims.c - what a file of unknown origin claims, judged before anything is read.
 *
 * A few bytes of HDF5 can claim arrays of 2^62 elements, chunks of 4 GiB, and values
 * that are in other files. Sizes are compared with that of the file: without
 * compression values take as much room there as in memory, and gzip, the strongest of
 * HDF5's own filters, packs at most 1032 bytes into one.
 */
#include <stdlib.h>
#include <string.h>

#include "hdf/hdf_room.h"

/* ROOM: claims up to this size are harmless, whatever the file's size. */
enum { GZIP_MOST = 1032, ROOM = 16 << 20 };

int64_t rnnd__hdf_most_bytes(const struct rnnd__hdf *file)
{
    return file->size < INT64_MAX - ROOM ? file->size + ROOM : INT64_MAX;
}

/* The same for an array, which may be compressed. */
static int64_t most_for(const struct rnnd__hdf *file, hid_t made)
{
    int64_t most;
    int filters = H5Pget_nfilters(made);
    if (filters <= 0)
        return rnnd__hdf_most_bytes(file);
    return __builtin_mul_overflow(file->size, (int64_t)GZIP_MOST, &most) ||
                   most > INT64_MAX - ROOM
               ? INT64_MAX
               : most + ROOM;
}

int rnnd__hdf_check_storage(struct rnnd__hdf *file, const char *object, hid_t array)
{
    HELD made = H5Dget_create_plist(array);
    if (made < 0)
        return rnnd__hdf_fail_object(file, object, "cannot be read");
    if (H5Pget_layout(made) == H5D_VIRTUAL)
        return FAIL_OBJECT(
            file, object,
            "a virtual array, whose values are elsewhere; copy them into "
            "the file");
    if (H5Pget_layout(made) == H5D_CONTIGUOUS && H5Pget_external_count(made) > 0)
        return FAIL_OBJECT(file, object,
                           "its values are in another file; copy them into this one");
    return 0;
}

/* Bytes of so many extents, of which 0 counts as 1; INT64_MAX where they overflow. */
static int64_t bytes_of(int rank, const hsize_t *dim, size_t element)
{
    int64_t bytes = element ? (int64_t)element : 1;
    for (int d = 0; d < rank; d++)
        if (dim[d] > INT64_MAX ||
            __builtin_mul_overflow(bytes, dim[d] ? (int64_t)dim[d] : 1, &bytes))
            return INT64_MAX;
    return bytes;
}

int rnnd__hdf_check_claim(struct rnnd__hdf *file, const char *object,
                          const struct rnnd__hdf_array *a)
{
    hsize_t dim[RNND_HDF_MAX_RANK], chunk[RNND_HDF_MAX_RANK];
    size_t element = H5Tget_size(a->type);
    if (!file->size)
        return 0;
    HELD made = H5Dget_create_plist(a->id);
    if (made < 0)
        return rnnd__hdf_fail_object(file, object, "cannot be read");
    int64_t most = most_for(file, made);
    for (int d = 0; d < a->shape.rank; d++)
        dim[d] = (hsize_t)a->shape.dim[d];
    if (bytes_of(a->shape.rank, dim, element) > most)
        return FAIL_OBJECT(
            file, object,
            "impossible size: its shape claims more bytes than a file of "
            "%lld can hold",
            (long long)file->size);
    if (H5Pget_layout(made) == H5D_CHUNKED &&
        H5Pget_chunk(made, RNND_HDF_MAX_RANK, chunk) >= 0 &&
        bytes_of(a->shape.rank, chunk, element) > most)
        return FAIL_OBJECT(
            file, object,
            "impossible size: its chunks claim more bytes than a file of "
            "%lld can hold",
            (long long)file->size);
    return 0;
}

/* ---- links */

static herr_t refuse_link(const char *parent, const char *group, const char *target,
                          const char *object, unsigned *flags, hid_t access,
                          void *context)
{
    (void)parent, (void)group, (void)target, (void)object, (void)flags, (void)access;
    (void)context;
    return -1;
}

hid_t rnnd__hdf_link_access(void)
{
    HELD access = H5Pcreate(H5P_LINK_ACCESS);
    if (access < 0 || H5Pset_elink_cb(access, refuse_link, NULL) < 0)
        return -1;
    return rnnd__hdf_take(&access);
}

/* Whether a link is one to another file. */
static bool is_external(struct rnnd__hdf *file, const char *name)
{
    H5L_info_t info;
    return H5Lget_info(file->id, name, &info, H5P_DEFAULT) >= 0 &&
           info.type >= H5L_TYPE_UD_MIN;
}

int rnnd__hdf_is_there(struct rnnd__hdf *file, const char *object, bool *out)
{
    OWNED char *name = strdup(object);
    HELD access = rnnd__hdf_link_access();
    htri_t there = access < 0 ? -1 : 1;
    if (!name) {
        file->starved = true;
        return rnnd__fail_memory(strlen(object), "an object name");
    }
    for (char *slash = name; there > 0 && slash;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = 0;
        there = H5Lexists(file->id, name, access);
        if (there > 0 && is_external(file, name))
            return FAIL_OBJECT(file, name, "a link to another file; copy it into this");
        if (slash)
            *slash = '/';
    }
    if (there < 0 || (there == 0 && rnnd__hdf_lacks_memory(file)))
        return rnnd__hdf_fail_object(file, object, "cannot be looked up");
    *out = there > 0;
    return 0;
}
