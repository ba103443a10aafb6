/*
 * hdf_read.c - rows, texts and attributes of HDF5 files, converted to what is asked.
 *
 * Where a value of the file may not fit the asked type, it is read wide, looked at and
 * narrowed, since the library itself would clamp it in silence.
 */
#include "hdf/hdf_room.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers */

/* How values are read before they are looked at one by one. */
enum wide { AS_ASKED, WIDE_INT, WIDE_UINT, WIDE_FLOAT };

static const size_t memory_size[] = {
    [RNND_I32] = 4, [RNND_I64] = 8, [RNND_F32] = 4, [RNND_F64] = 8, [RNND_U8] = 1,
};

/* AS_ASKED where the asked type holds every value of the stored one. */
static enum wide wide_for(hid_t stored, enum rnnd__hdf_type want)
{
    size_t size = H5Tget_size(stored), room = memory_size[want];
    bool want_float = want == RNND_F32 || want == RNND_F64;
    if (rnnd__hdf_kind_of(stored) == RNND_HDF_FLOAT)
        return want_float && size <= (want == RNND_F64 ? SIZE_MAX : 4) ? AS_ASKED
                                                                       : WIDE_FLOAT;
    if (want_float)
        return AS_ASKED;
    HELD base =
        H5Tget_class(stored) == H5T_ENUM ? H5Tget_super(stored) : H5Tcopy(stored);
    bool is_signed = H5Tget_sign(base) != H5T_SGN_NONE;
    bool fits = want == RNND_U8 ? size == 1 && !is_signed
                                : size < room || (size == room && is_signed);
    return fits ? AS_ASKED : is_signed ? WIDE_INT : WIDE_UINT;
}

static hid_t wide_type(enum wide wide, enum rnnd__hdf_type want)
{
    switch (wide) {
    case WIDE_INT:
        return H5T_NATIVE_INT64;
    case WIDE_UINT:
        return H5T_NATIVE_UINT64;
    case WIDE_FLOAT:
        return H5T_NATIVE_DOUBLE;
    case AS_ASKED:
        break;
    }
    return rnnd__hdf_memory_type(want);
}

/* One wide value. */
union value {
    int64_t i;
    uint64_t u;
    double f;
};

/* What is wrong with a value, or NULL, and the value then in *out. */
static const char *to_int(enum wide wide, union value v, enum rnnd__hdf_type want,
                          int64_t *out)
{
    int64_t low = want == RNND_U8 ? 0 : want == RNND_I32 ? INT32_MIN : INT64_MIN;
    int64_t high = want == RNND_U8    ? UINT8_MAX
                   : want == RNND_I32 ? INT32_MAX
                                      : INT64_MAX;
    const char *too_large = want == RNND_U8    ? "does not fit 8 bits without sign"
                            : want == RNND_I32 ? "does not fit 32 bits"
                                               : "does not fit 64 bits";
    if (wide == WIDE_FLOAT) {
        if (!isfinite(v.f) || v.f != floor(v.f))
            return "not an integer";
        if (v.f < (double)low || v.f >= (double)high + 1)
            return too_large;
        v.i = (int64_t)v.f;
    } else if (wide == WIDE_UINT && v.u > INT64_MAX) {
        return too_large;
    }
    *out = v.i;
    return v.i < low || v.i > high ? too_large : NULL;
}

/* The same, stored as element i of an array. */
static const char *narrow(enum wide wide, union value v, enum rnnd__hdf_type want,
                          int64_t i, void *out)
{
    int64_t whole = 0;
    if (want == RNND_F32) { /* from a wider float */
        ((float *)out)[i] = (float)v.f;
        return isfinite(v.f) && isinf((float)v.f) ? "too large for a 32-bit float"
                                                  : NULL;
    }
    const char *wrong = to_int(wide, v, want, &whole);
    if (want == RNND_U8)
        ((uint8_t *)out)[i] = (uint8_t)whole;
    else if (want == RNND_I32)
        ((int32_t *)out)[i] = (int32_t)whole;
    else
        ((int64_t *)out)[i] = whole;
    return wrong;
}

/* ---- rows */

/* A read under way. */
struct reading {
    struct rnnd__hdf *file;
    const char *object;
    const struct rnnd__hdf_array *array;
    enum rnnd__hdf_type want;
    enum wide wide;
};

/* "[3, 5]" of an element, counted from the array's first. */
static const char *index_text(const struct rnnd__hdf_shape *shape, int64_t element,
                              char text[128])
{
    int64_t at[RNND_HDF_MAX_RANK];
    int n = 0;
    for (int d = shape->rank - 1; d >= 0; d--) {
        at[d] = element % shape->dim[d];
        element /= shape->dim[d];
    }
    text[0] = 0;
    for (int d = 0; d < shape->rank; d++)
        n += snprintf(text + n, 128 - (size_t)n, "%s%lld%s", d ? ", " : "[",
                      (long long)at[d], d == shape->rank - 1 ? "]" : "");
    return text;
}

static int fail_value(const struct reading *r, union value v, int64_t element,
                      const char *wrong)
{
    char index[128], value[64];
    if (r->wide == WIDE_FLOAT)
        snprintf(value, sizeof value, "%.9g", v.f);
    else if (r->wide == WIDE_UINT)
        snprintf(value, sizeof value, "%llu", (unsigned long long)v.u);
    else
        snprintf(value, sizeof value, "%lld", (long long)v.i);
    return rnnd__fail(RNND_EDATA, "%s: %s%s%s = %s: %s", r->file->path, AT(r->object),
                      index_text(&r->array->shape, element, index), value, wrong);
}

static int read_rows(const struct reading *r, int64_t first, int64_t count, void *out)
{
    const struct rnnd__hdf_array *a = r->array;
    hsize_t start[RNND_HDF_MAX_RANK] = {(hsize_t)first};
    hsize_t size[RNND_HDF_MAX_RANK] = {(hsize_t)count};
    hsize_t elements = (hsize_t)(count * a->width);
    for (int d = 1; d < a->shape.rank; d++)
        size[d] = (hsize_t)a->shape.dim[d];
    HELD memory = H5Screate_simple(1, &elements, NULL);
    if (memory < 0 ||
        (a->shape.rank &&
         H5Sselect_hyperslab(a->space, H5S_SELECT_SET, start, NULL, size, NULL) < 0) ||
        H5Dread(a->id, wide_type(r->wide, r->want), memory, a->space, H5P_DEFAULT,
                out) < 0)
        return rnnd__hdf_fail_values(r->file, r->object, r->array->id);
    return 0;
}

static int read_narrowed(const struct reading *r, int64_t first, int64_t count,
                         void *out)
{
    int64_t width = r->array->width, block = 65536 / width + 1;
    OWNED union value *values = NULL;
    if (block > count)
        block = count;
    RNND_TRY(RNND_NEW(&values, block * width, "reading"));
    for (int64_t done = 0; done < count; done += block) {
        int64_t rows = block < count - done ? block : count - done;
        char *to = (char *)out + (size_t)(done * width) * memory_size[r->want];
        RNND_TRY(read_rows(r, first + done, rows, values));
        for (int64_t i = 0; i < rows * width; i++) {
            const char *wrong = narrow(r->wide, values[i], r->want, i, to);
            if (wrong)
                return fail_value(r, values[i], (first + done) * width + i, wrong);
        }
    }
    return 0;
}

int rnnd__hdf_read(struct rnnd__hdf *file, const char *object, int64_t first,
                   int64_t count, enum rnnd__hdf_type type, void *out)
{
    GUARD;
    HELD_ARRAY a = NO_ARRAY;
    RNND_TRY(rnnd__hdf_array_of(file, object, &a));
    if (a.shape.kind != RNND_HDF_INT && a.shape.kind != RNND_HDF_FLOAT)
        return rnnd__fail(RNND_EDATA, "%s: %s%s: %s, where numbers are wanted",
                          file->path, AT(object),
                          a.shape.kind == RNND_HDF_STRING ? "texts" : "compounds");
    int64_t rows = a.shape.rank ? a.shape.dim[0] : 1;
    if (first < 0 || count < 0 || first > rows || count > rows - first)
        return rnnd__fail(RNND_EDATA,
                          "%s: %s%s: rows %lld to %lld are asked for, it has %lld",
                          file->path, AT(object), (long long)first,
                          (long long)(first + count - 1), (long long)rows);
    if (count * a.width == 0)
        return 0;
    struct reading r = {file, object, &a, type, wide_for(a.type, type)};
    return r.wide == AS_ASKED ? read_rows(&r, first, count, out)
                              : read_narrowed(&r, first, count, out);
}

/* ---- reading ahead */

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

/* Advice: what the system makes of it shows in the time only. */
void rnnd__hdf_prefetch(struct rnnd__hdf *file, int64_t offset, int64_t bytes)
{
    GUARD;
    void *fd;
    if (H5Fget_vfd_handle(file->id, H5P_DEFAULT, &fd) >= 0)
        posix_fadvise(*(int *)fd, offset, bytes, POSIX_FADV_WILLNEED);
}

/* ---- texts, of an array or of an attribute */

struct text_source {
    hid_t id, type, space;
    bool attribute;
    int64_t count;
};

static herr_t read_source(const struct text_source *from, hid_t type, void *out)
{
    if (from->count == 0)
        return 0;
    return from->attribute
               ? H5Aread(from->id, type, out)
               : H5Dread(from->id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
}

/* One block: pointers first, then the characters. */
static int join_texts(const char *const *text, const size_t *length, int64_t count,
                      char ***out)
{
    size_t bytes = (size_t)count * sizeof(char *) + 1;
    char **block;
    for (int64_t i = 0; i < count; i++)
        bytes += length[i] + 1;
    RNND_TRY(rnnd__new(1, bytes, "texts", &block));
    char *to = (char *)(block + count);
    for (int64_t i = 0; i < count; i++) {
        block[i] = to;
        memcpy(to, text[i], length[i]);
        to += length[i] + 1; /* the block is zeroed */
    }
    *out = block;
    return 0;
}

/* The length of a text in a field of fixed size. */
static size_t field_length(const char *field, size_t size, H5T_str_t pad)
{
    size_t n = strnlen(field, size);
    while (pad == H5T_STR_SPACEPAD && n && field[n - 1] == ' ')
        n--;
    return n;
}

/* As the next: 1 where the library failed. text, length [count] are room for the
   work. */
static int read_fixed(const struct text_source *from, const char **text, size_t *length,
                      char ***out)
{
    size_t size = H5Tget_size(from->type);
    H5T_str_t pad = H5Tget_strpad(from->type);
    OWNED char *field = NULL;
    RNND_TRY(rnnd__new((size_t)from->count, size, "texts", &field));
    if (read_source(from, from->type, field) < 0)
        return 1;
    for (int64_t i = 0; i < from->count; i++) {
        text[i] = field + (size_t)i * size;
        length[i] = field_length(text[i], size, pad);
    }
    return join_texts(text, length, from->count, out);
}

static int read_variable(const struct text_source *from, const char **text,
                         size_t *length, char ***out)
{
    OWNED char **field = NULL;
    RNND_TRY(RNND_NEW(&field, from->count, "texts"));
    HELD type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 ||
        H5Tset_cset(type, H5Tget_cset(from->type)) < 0 ||
        read_source(from, type, field) < 0)
        return 1;
    for (int64_t i = 0; i < from->count; i++) {
        text[i] = field[i] ? field[i] : "";
        length[i] = strlen(text[i]);
    }
    int status = join_texts(text, length, from->count, out);
    if (from->count)
        H5Dvlen_reclaim(type, from->space, H5P_DEFAULT, field);
    return status;
}

static int read_texts(const struct text_source *from, char ***out)
{
    OWNED const char **text = NULL;
    OWNED size_t *length = NULL;
    RNND_TRY(RNND_NEW(&text, from->count, "texts"));
    RNND_TRY(RNND_NEW(&length, from->count, "texts"));
    return H5Tis_variable_str(from->type) > 0 ? read_variable(from, text, length, out)
                                              : read_fixed(from, text, length, out);
}

int rnnd__hdf_read_strings(struct rnnd__hdf *file, const char *object, char ***out,
                           int64_t *count)
{
    GUARD;
    HELD_ARRAY a = NO_ARRAY;
    RNND_TRY(rnnd__hdf_array_of(file, object, &a));
    if (a.shape.kind != RNND_HDF_STRING)
        return rnnd__fail(RNND_EDATA, "%s: %s%s: texts are wanted here", file->path,
                          AT(object));
    if (a.shape.rank != 1)
        return rnnd__fail(RNND_EDATA, "%s: %s%s: %d dimensions, 1 is wanted",
                          file->path, AT(object), a.shape.rank);
    struct text_source from = {a.id, a.type, a.space, false, a.shape.dim[0]};
    int status = read_texts(&from, out);
    if (status > 0)
        return rnnd__hdf_fail_values(file, object, a.id);
    RNND_TRY(status);
    *count = from.count;
    return 0;
}

/* ---- attributes of the root group */

bool rnnd__hdf_has_attribute(struct rnnd__hdf *file, const char *name)
{
    GUARD;
    return H5Aexists(file->id, name) != 0;
}

/* Opens an attribute that holds one value; its parts are HELD by the caller. */
static int open_attribute(struct rnnd__hdf *file, const char *name, hid_t *attribute,
                          hid_t *type, hid_t *space)
{
    htri_t there = H5Aexists(file->id, name);
    if (there == 0)
        return rnnd__fail(RNND_EDATA, "%s: attribute %s: missing", file->path, name);
    *attribute = there < 0 ? -1 : H5Aopen(file->id, name, H5P_DEFAULT);
    *type = *attribute < 0 ? -1 : H5Aget_type(*attribute);
    *space = *type < 0 ? -1 : H5Aget_space(*attribute);
    if (*space < 0)
        return rnnd__hdf_fail_attribute(file, name, "cannot be read");
    if (H5Sget_simple_extent_npoints(*space) != 1)
        return rnnd__fail(RNND_EDATA, "%s: attribute %s: one value is wanted",
                          file->path, name);
    return 0;
}

/* As an integer or as a float; which of the two is asked for by the one that is not
   NULL. */
static int get_number(struct rnnd__hdf *file, const char *name, int64_t *whole,
                      double *real)
{
    HELD attribute = -1;
    HELD type = -1;
    HELD space = -1;
    union value v = {0};
    RNND_TRY(open_attribute(file, name, &attribute, &type, &space));
    enum rnnd__hdf_kind kind = rnnd__hdf_kind_of(type);
    if (kind != RNND_HDF_INT && kind != RNND_HDF_FLOAT)
        return rnnd__fail(RNND_EDATA, "%s: attribute %s: a number is wanted",
                          file->path, name);
    enum rnnd__hdf_type want = whole ? RNND_I64 : RNND_F64;
    enum wide wide = wide_for(type, want);
    if (H5Aread(attribute, wide_type(wide, want), &v) < 0)
        return rnnd__hdf_fail_attribute(file, name, "cannot be read");
    if (whole && to_int(wide == AS_ASKED ? WIDE_INT : wide, v, RNND_I64, &v.i))
        return rnnd__fail(RNND_EDATA, "%s: attribute %s: a (64-bit) integer is wanted",
                          file->path, name);
    if (whole)
        *whole = v.i;
    else
        *real = v.f;
    return 0;
}

int rnnd__hdf_get_int(struct rnnd__hdf *file, const char *name, int64_t *out)
{
    GUARD;
    return get_number(file, name, out, NULL);
}

int rnnd__hdf_get_double(struct rnnd__hdf *file, const char *name, double *out)
{
    GUARD;
    return get_number(file, name, NULL, out);
}

static int get_text(struct rnnd__hdf *file, const char *name, char **out)
{
    HELD attribute = -1;
    HELD type = -1;
    HELD space = -1;
    OWNED char **text = NULL;
    RNND_TRY(open_attribute(file, name, &attribute, &type, &space));
    if (rnnd__hdf_kind_of(type) != RNND_HDF_STRING)
        return rnnd__fail(RNND_EDATA, "%s: attribute %s: a text is wanted", file->path,
                          name);
    struct text_source from = {attribute, type, space, true, 1};
    int status = read_texts(&from, &text);
    if (status > 0)
        return rnnd__hdf_fail_attribute(file, name, "cannot be read");
    RNND_TRY(status);
    char *copy = strdup(text[0]);
    if (!copy)
        return rnnd__fail_memory(strlen(text[0]), "a text");
    *out = copy;
    return 0;
}

int rnnd__hdf_get_string(struct rnnd__hdf *file, const char *name, char **out)
{
    GUARD;
    return get_text(file, name, out);
}
