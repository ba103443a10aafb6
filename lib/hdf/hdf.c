/*
 * hdf.c - opens HDF5 files and their arrays, and reports why the library failed.
 *
 * Every return value of the library is checked; the innermost of its messages becomes
 * part of the status text. Knows nothing of what the objects mean.
 */
#include "hdf/hdf_room.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"

/* ---- one caller at a time, no error printing */

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

/* The error printer belongs to the program: it is restored afterwards. */
struct rnnd__hdf_guard rnnd__hdf_enter(void)
{
    static bool started;
    struct rnnd__hdf_guard guard = {NULL, NULL};
    pthread_mutex_lock(&library);
    /* The library's exit handler crashes on a file that could not be closed because the
       disk was full. All other files are closed by then. */
    started = started || H5dont_atexit() >= 0;
    errno = 0; /* see rnnd__hdf_lacks_memory() */
    H5Eget_auto2(H5E_DEFAULT, &guard.print, &guard.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return guard;
}

void rnnd__hdf_leave(struct rnnd__hdf_guard *guard)
{
    H5Eset_auto2(H5E_DEFAULT, guard->print, guard->data);
    pthread_mutex_unlock(&library);
}

void rnnd__hdf_drop_id(hid_t *id)
{
    if (*id >= 0)
        H5Idec_ref(*id);
    *id = -1;
}

void rnnd__hdf_drop_memory(void *pointer)
{
    free(*(void **)pointer);
}

/* ---- messages */

enum { REASON = 512 };

struct reason {
    char text[REASON];
    /* EFILE, or EDEVICE where memory was lacking */
    enum rnnd_status status;
};

/* The library reports lack of memory in many words, or not at all, or as an object that
   is not there; but malloc() leaves its mark. */
bool rnnd__hdf_lacks_memory(struct rnnd__hdf *file)
{
    file->starved = file->starved || errno == ENOMEM;
    return file->starved;
}

static herr_t take_innermost(unsigned n, const H5E_error2_t *error, void *context)
{
    struct reason *why = context;
    if (n == 0 && error->desc)
        snprintf(why->text, REASON, "%s", error->desc);
    return n == 0;
}

/* The library's message, on one line; where it quotes the system, only the quote. */
static struct reason library_reason(struct rnnd__hdf *file)
{
    struct reason why = {"HDF5 gives no reason", RNND_EFILE};
    char *text = why.text;
    if (rnnd__hdf_lacks_memory(file))
        return (struct reason){"out of memory", RNND_EDEVICE};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &why);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    char *system = strstr(text, "error message = '");
    if (system) {
        system += strlen("error message = '");
        system[strcspn(system, "'")] = 0;
        memmove(text, system, strlen(system) + 1);
    }
    return why;
}

int rnnd__hdf_fail(struct rnnd__hdf *file, const char *problem)
{
    struct reason why = library_reason(file);
    return rnnd__fail(why.status, "%s: %s: %s", file->path, problem, why.text);
}

int rnnd__hdf_fail_object(struct rnnd__hdf *file, const char *object,
                          const char *problem)
{
    struct reason why = library_reason(file);
    return rnnd__fail(why.status, "%s: %s%s: %s: %s", file->path, AT(object), problem,
                      why.text);
}

int rnnd__hdf_fail_attribute(struct rnnd__hdf *file, const char *name,
                             const char *problem)
{
    struct reason why = library_reason(file);
    return rnnd__fail(why.status, "%s: attribute %s: %s: %s", file->path, name, problem,
                      why.text);
}

/* ---- open and close */

int rnnd__hdf_handle(const char *path, struct rnnd__hdf **out)
{
    struct rnnd__hdf *file;
    RNND_TRY(RNND_NEW(&file, 1, "a file handle"));
    file->id = -1;
    file->path = strdup(path);
    if (!file->path) {
        free(file);
        return rnnd__fail_memory(strlen(path), "a file name");
    }
    *out = file;
    return 0;
}

enum { SIEVE = 512, METADATA_CACHE = 32 << 20 }; /* bytes */

/* The low bound V110 gives metadata checksums; files of any format are read. */

hid_t rnnd__hdf_access(void)
{
    HELD access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
        H5Pset_cache(access, 0, 521, METADATA_CACHE, 0.75) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_LATEST) < 0)
        return -1;
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
    if (H5Pset_file_locking(access, false, true) < 0)
        return -1;
#else
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
#endif
    return rnnd__hdf_take(&access);
}

/* Reports in the system's words why a path cannot be read, before HDF5 does in its
   own. */
static int open_readable(const char *path, int *fd, off_t *size)
{
    struct stat info;
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0 || fstat(*fd, &info) != 0)
        return rnnd__fail(RNND_EFILE, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return rnnd__fail(RNND_EFILE, "%s: is a folder, not an HDF5 file", path);
    if (!S_ISREG(info.st_mode))
        return rnnd__fail(RNND_EFILE, "%s: not a regular file", path);
    if (info.st_size == 0)
        return rnnd__fail(RNND_EDATA, "%s: is empty, not an HDF5 file", path);
    *size = info.st_size;
    return 0;
}

bool rnnd__hdf_mentions(const char *path, const char *text)
{
    int fd;
    off_t size;
    bool found =
        open_readable(path, &fd, &size) == 0 && rnnd__output_mentions(fd, size, text);
    if (fd >= 0)
        close(fd);
    return found;
}

int rnnd__hdf_open_id(struct rnnd__hdf *file)
{
    GUARD;
    HELD access = rnnd__hdf_access();
    /* Without this the library reads 64 kB for each row that is requested. */
    if (access >= 0 && H5Pset_sieve_buf_size(access, SIEVE) < 0)
        return rnnd__hdf_fail(file, "cannot be opened");
    htri_t is_hdf5 = access < 0 ? -1 : H5Fis_hdf5(file->path);
    if (is_hdf5 == 0)
        return rnnd__fail(RNND_EDATA, "%s: not an HDF5 file", file->path);
    if (is_hdf5 > 0)
        file->id = H5Fopen(file->path, H5F_ACC_RDONLY, access);
    return file->id < 0 ? rnnd__hdf_fail(file, "cannot be opened") : 0;
}

/* must_have: a checksum over the whole file. */
static int open_checked(const char *path, bool must_have, struct rnnd__hdf **out)
{
    struct rnnd__hdf *file = NULL;
    int status, fd = -1;
    off_t size;
    RNND_TRY_GOTO(open_readable(path, &fd, &size));
    RNND_TRY_GOTO(rnnd__hdf_handle(path, &file));
    file->size = size;
    RNND_TRY_GOTO(rnnd__hdf_verify_checksum(fd, path, size, &file->has_checksum));
    if (!file->has_checksum) {
        RNND_TRY_GOTO(rnnd__hdf_check_end(fd, path, size));
        if (must_have)
            RNND_TRY_GOTO(rnnd__fail(RNND_EFILE,
                                     "%s: has no checksum at its end: cut short, or "
                                     "changed by another program",
                                     path));
        RNND_TRY_GOTO(rnnd__hdf_probe_file(fd, path, &file->texts));
    }
    RNND_TRY_GOTO(rnnd__hdf_open_id(file));
    *out = file;
    file = NULL;
done:
    rnnd__hdf_close(file);
    if (fd >= 0)
        close(fd);
    return status;
}

int rnnd__hdf_open(const char *path, struct rnnd__hdf **out)
{
    return open_checked(path, false, out);
}

int rnnd__hdf_open_own(const char *path, struct rnnd__hdf **out)
{
    return open_checked(path, true, out);
}

void rnnd__hdf_close(struct rnnd__hdf *file)
{
    if (!file)
        return;
    if (file->id >= 0) {
        GUARD;
        H5Fclose(file->id);
    }
    rnnd__output_drop(file->output);
    free(file->path);
    free(file);
}

const char *rnnd__hdf_path(const struct rnnd__hdf *file)
{
    return file->path;
}

bool rnnd__hdf_ends_with_checksum(const struct rnnd__hdf *file)
{
    return file->has_checksum;
}

/* ---- objects */

bool rnnd__hdf_has(struct rnnd__hdf *file, const char *object)
{
    GUARD;
    bool there;
    return rnnd__hdf_is_there(file, object, &there) < 0 || there;
}

enum rnnd__hdf_kind rnnd__hdf_kind_of(hid_t type)
{
    switch (H5Tget_class(type)) {
    case H5T_ENUM: /* booleans of h5py */
    case H5T_INTEGER:
        return H5Tget_size(type) <= 8 ? RNND_HDF_INT : RNND_HDF_OTHER;
    case H5T_FLOAT:
        return RNND_HDF_FLOAT;
    case H5T_STRING:
        return RNND_HDF_STRING;
    default:
        return RNND_HDF_OTHER;
    }
}

static int measure(struct rnnd__hdf *file, const char *object,
                   struct rnnd__hdf_array *a)
{
    hsize_t dim[H5S_MAX_RANK];
    /* also when read as a wider type, of up to 8 times the size */
    int64_t bytes = (int64_t)(sizeof(int64_t) * H5Tget_size(a->type));
    if (H5Sget_simple_extent_type(a->space) == H5S_NULL)
        return FAIL_OBJECT(file, object, "has no values (null dataspace)");
    a->shape.kind = rnnd__hdf_kind_of(a->type);
    a->shape.size = (int64_t)H5Tget_size(a->type);
    a->shape.rank = H5Sget_simple_extent_dims(a->space, dim, NULL);
    if (a->shape.rank < 0)
        return rnnd__hdf_fail_object(file, object, "cannot be read");
    if (a->shape.rank > RNND_HDF_MAX_RANK)
        return FAIL_OBJECT(file, object, "%d dimensions, at most %d are supported",
                           a->shape.rank, RNND_HDF_MAX_RANK);
    a->width = 1;
    for (int d = 0; d < a->shape.rank; d++) {
        a->shape.dim[d] = (int64_t)dim[d];
        if (dim[d] > INT64_MAX ||
            __builtin_mul_overflow(bytes, a->shape.dim[d], &bytes))
            return FAIL_OBJECT(file, object, "impossible size");
        a->width *= d ? a->shape.dim[d] : 1;
    }
    return 0;
}

void rnnd__hdf_drop_array(struct rnnd__hdf_array *array)
{
    rnnd__hdf_drop_id(&array->space);
    rnnd__hdf_drop_id(&array->type);
    rnnd__hdf_drop_id(&array->id);
}

H5Z_filter_t rnnd__hdf_filter_of(hid_t made, int i, char *name, size_t size)
{
    unsigned flags, config;
    size_t values = 0;
    H5Z_filter_t id =
        H5Pget_filter2(made, (unsigned)i, &flags, &values, NULL, size, name, &config);
    if (name)
        name[size - 1] = 0;
    return id;
}

/* The first filter of an array that this library lacks; 0 = none. */
static int lacking_filter(hid_t array, char *name, size_t size)
{
    HELD made = H5Dget_create_plist(array);
    int filters = made < 0 ? 0 : H5Pget_nfilters(made);
    for (int i = 0; i < filters; i++) {
        H5Z_filter_t id = rnnd__hdf_filter_of(made, i, name, size);
        if (id > 0 && H5Zfilter_avail(id) == 0)
            return id;
    }
    return 0;
}

int rnnd__hdf_fail_values(struct rnnd__hdf *file, const char *object, hid_t array)
{
    char name[64] = "";
    struct reason why = library_reason(file);
    int filter = lacking_filter(array, name, sizeof name);
    if (filter)
        return FAIL_OBJECT(
            file, object,
            "cannot be read: uses filter %d%s%s, which this HDF5 library "
            "lacks; every library has gzip",
            filter, *name ? " " : "", name);
    return rnnd__fail(why.status, "%s: %s%s: cannot be read: %s", file->path,
                      AT(object), why.text);
}

int rnnd__hdf_array_of(struct rnnd__hdf *file, const char *object,
                       struct rnnd__hdf_array *out)
{
    HELD_ARRAY a = NO_ARRAY;
    bool there;
    RNND_TRY(rnnd__hdf_is_there(file, object, &there));
    if (!there)
        return FAIL_OBJECT(file, object, "missing");
    HELD access = rnnd__hdf_link_access();
    HELD any = access < 0 ? -1 : H5Oopen(file->id, object, access);
    if (any < 0)
        return rnnd__hdf_fail_object(file, object, "cannot be opened");
    if (H5Iget_type(any) != H5I_DATASET)
        return FAIL_OBJECT(file, object, "not an array");
    a.id = rnnd__hdf_take(&any);
    RNND_TRY(rnnd__hdf_check_storage(file, object, a.id));
    a.type = H5Dget_type(a.id);
    a.space = a.type < 0 ? -1 : H5Dget_space(a.id);
    if (a.space < 0)
        return rnnd__hdf_fail_object(file, object, "cannot be read");
    RNND_TRY(measure(file, object, &a));
    RNND_TRY(rnnd__hdf_check_claim(file, object, &a));
    *out = a;
    a = (struct rnnd__hdf_array)NO_ARRAY;
    return 0;
}

int rnnd__hdf_shape(struct rnnd__hdf *file, const char *object,
                    struct rnnd__hdf_shape *out)
{
    GUARD;
    HELD_ARRAY a = NO_ARRAY;
    RNND_TRY(rnnd__hdf_array_of(file, object, &a));
    *out = a.shape;
    return 0;
}

hid_t rnnd__hdf_select_rows(const struct rnnd__hdf_array *a, int64_t first,
                            int64_t count)
{
    hsize_t start[RNND_HDF_MAX_RANK] = {(hsize_t)first};
    hsize_t size[RNND_HDF_MAX_RANK] = {(hsize_t)count};
    hsize_t elements = (hsize_t)(count * a->width);
    for (int d = 1; d < a->shape.rank; d++)
        size[d] = (hsize_t)a->shape.dim[d];
    if (a->shape.rank &&
        H5Sselect_hyperslab(a->space, H5S_SELECT_SET, start, NULL, size, NULL) < 0)
        return -1;
    return H5Screate_simple(1, &elements, NULL);
}

int rnnd__hdf_check_rows(const char *path, const char *object, int64_t rows,
                         int64_t first, int64_t count)
{
    if (first < 0 || count < 0 || first > rows || count > rows - first)
        return rnnd__fail(RNND_EDATA,
                          "%s: %s%s: rows %lld to %lld requested, it has %lld", path,
                          AT(object), (long long)first, (long long)(first + count - 1),
                          (long long)rows);
    return 0;
}

hid_t rnnd__hdf_memory_type(enum rnnd__hdf_type type)
{
    switch (type) {
    case RNND_I32:
        return H5T_NATIVE_INT32;
    case RNND_I64:
        return H5T_NATIVE_INT64;
    case RNND_F32:
        return H5T_NATIVE_FLOAT;
    case RNND_F64:
        return H5T_NATIVE_DOUBLE;
    case RNND_U8:
        return H5T_NATIVE_UINT8;
    }
    return -1;
}

size_t rnnd__hdf_size_of(enum rnnd__hdf_type type)
{
    switch (type) {
    case RNND_I32:
        return sizeof(int32_t);
    case RNND_I64:
        return sizeof(int64_t);
    case RNND_F32:
        return sizeof(float);
    case RNND_F64:
        return sizeof(double);
    case RNND_U8:
        return sizeof(uint8_t);
    }
    return 0;
}

int rnnd__hdf_has_checksum(struct rnnd__hdf *file, const char *object, bool *out)
{
    GUARD;
    HELD_ARRAY a = NO_ARRAY;
    RNND_TRY(rnnd__hdf_array_of(file, object, &a));
    HELD made = H5Dget_create_plist(a.id);
    int filters = made < 0 ? -1 : H5Pget_nfilters(made);
    if (filters < 0)
        return rnnd__hdf_fail_object(file, object, "cannot be read");
    /* Compact values are part of the object header, which has a checksum. */
    bool found = H5Pget_layout(made) == H5D_COMPACT ||
                 H5Sget_simple_extent_npoints(a.space) == 0;
    for (int i = 0; i < filters && !found; i++)
        found = rnnd__hdf_filter_of(made, i, NULL, 0) == H5Z_FILTER_FLETCHER32;
    *out = found;
    return 0;
}

/* ---- prefetch */

bool rnnd__hdf_place(struct rnnd__hdf *file, const char *object, int64_t *offset,
                     int64_t *row)
{
    GUARD;
    HELD_ARRAY a = NO_ARRAY;
    if (rnnd__hdf_array_of(file, object, &a) < 0)
        return false;
    haddr_t at = H5Dget_offset(a.id); /* of contiguous arrays only */
    if (at == HADDR_UNDEF || at > INT64_MAX)
        return false;
    *offset = (int64_t)at;
    *row = a.width * (int64_t)H5Tget_size(a.type);
    return true;
}

void rnnd__hdf_prefetch(struct rnnd__hdf *file, int64_t offset, int64_t bytes)
{
    GUARD;
    void *fd;
    if (H5Fget_vfd_handle(file->id, H5P_DEFAULT, &fd) >= 0)
        posix_fadvise(*(int *)fd, offset, bytes, POSIX_FADV_WILLNEED);
}
