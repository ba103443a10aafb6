/*
 * hdf_read.c - reads rows, strings and attributes, converted to the requested type.
 *
 * Where a value may not fit the requested type, it is read into a wide one, checked and
 * narrowed: the library itself would clamp it silently.
 */
#include "hdf/hdf_room.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers */

/* The type that values are read as before each is checked; DIRECT: as the requested
   type, without checks. */
enum wide { DIRECT, WIDE_INT, WIDE_UINT, WIDE_FLOAT };

/* DIRECT where the requested type holds every value of the stored one. */
static enum wide wide_for(hid_t stored, enum rnnd__hdf_type want)
{
    size_t size = H5Tget_size(stored), room = rnnd__hdf_size_of(want);
    bool want_float = want == RNND_F32 || want == RNND_F64;
    if (rnnd__hdf_kind_of(stored) == RNND_HDF_FLOAT)
        return want == RNND_F64 || (want_float && size <= room) ? DIRECT : WIDE_FLOAT;
    if (want_float)
        return DIRECT;
    HELD base =
        H5Tget_class(stored) == H5T_ENUM ? H5Tget_super(stored) : H5Tcopy(stored);
    bool is_signed = H5Tget_sign(base) != H5T_SGN_NONE;
    bool fits = want == RNND_U8 ? size == 1 && !is_signed
                                : size < room || (size == room && is_signed);
    return fits ? DIRECT : is_signed ? WIDE_INT : WIDE_UINT;
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
    case DIRECT:
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

/* Converts to an integer of type want. Returns NULL, or what is wrong with the value.
   */
static const char *to_int(enum wide wide, union value v, enum rnnd__hdf_type want,
                          int64_t *out)
{
    int64_t low = want == RNND_U8 ? 0 : want == RNND_I32 ? INT32_MIN : INT64_MIN;
    int64_t high = want == RNND_U8    ? UINT8_MAX
                   : want == RNND_I32 ? INT32_MAX
                                      : INT64_MAX;
    const char *too_large = want == RNND_U8 ? "does not fit an unsigned 8-bit integer"
                            : want == RNND_I32 ? "does not fit a 32-bit integer"
                                               : "does not fit a 64-bit integer";
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

/* The same for any type, into element i of an array. */
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

/* A read in progress. */
struct reading {
    struct rnnd__hdf *file;
    const char *object;
    const struct rnnd__hdf_array *array;
    enum rnnd__hdf_type want;
    enum wide wide;
};

/* "[3, 5]": the index of an element, given its number in row-major order. */
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
    HELD memory = rnnd__hdf_select_rows(a, first, count);
    if (memory < 0 || H5Dread(a->id, wide_type(r->wide, r->want), memory, a->space,
                              H5P_DEFAULT, out) < 0)
        return rnnd__hdf_fail_values(r->file, r->object, a->id);
    return 0;
}

static int read_narrowed(const struct reading *r, int64_t first, int64_t count,
                         void *out)
{
    int64_t width = r->array->width, block = 65536 / width + 1; /* rows */
    OWNED union value *values = NULL;
    if (block > count)
        block = count;
    RNND_TRY(RNND_NEW(&values, block * width, "a read buffer"));
    for (int64_t done = 0; done < count; done += block) {
        int64_t rows = block < count - done ? block : count - done;
        char *to = (char *)out + (size_t)(done * width) * rnnd__hdf_size_of(r->want);
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
        return FAIL_OBJECT(file, object, "%s; expected numbers",
                           a.shape.kind == RNND_HDF_STRING ? "strings"
                                                           : "values of another type");
    RNND_TRY(rnnd__hdf_check_rows(file->path, object, a.shape.rank ? a.shape.dim[0] : 1,
                                  first, count));
    if (count * a.width == 0)
        return 0;
    struct reading r = {file, object, &a, type, wide_for(a.type, type)};
    return r.wide == DIRECT ? read_rows(&r, first, count, out)
                            : read_narrowed(&r, first, count, out);
}

/* ---- strings of an array or of an attribute */

struct text_source {
    struct rnnd__hdf *file;
    /* name of the array or attribute */
    const char *name;
    hid_t id, type, space;
    bool attribute;
    int64_t count;
};

/* Memory for strings that the library reads, released together. Thousands of elements
   may refer to one long string, so that the file's size bounds it. */
struct purse {
    int64_t left;
    /* more was wanted */
    bool over;
    struct coin *last;
};

struct coin {
    struct coin *before;
    char bytes[];
};

static void *purse_take(size_t size, void *context)
{
    struct purse *purse = context;
    purse->over = size > (size_t)purse->left;
    struct coin *coin = purse->over ? NULL : malloc(sizeof *coin + size);
    if (!coin)
        return NULL;
    purse->left -= (int64_t)size;
    coin->before = purse->last;
    purse->last = coin;
    return coin->bytes;
}

static void purse_give(void *bytes, void *context)
{
    (void)bytes, (void)context; /* all at once, in drop_purse() */
}

static void drop_purse(struct purse *purse)
{
    while (purse->last) {
        struct coin *before = purse->last->before;
        free(purse->last);
        purse->last = before;
    }
}

/* To be called before any other call of the library. */
static int fail_source(const struct text_source *from)
{
    return from->attribute
               ? rnnd__hdf_fail_attribute(from->file, from->name, "cannot be read")
               : rnnd__hdf_fail_values(from->file, from->name, from->id);
}

/* purse: for strings of variable length in an array, else NULL. */
static int read_source(const struct text_source *from, hid_t type, struct purse *purse,
                       void *out)
{
    HELD transfer = purse ? H5Pcreate(H5P_DATASET_XFER) : H5P_DEFAULT;
    if (from->count == 0)
        return 0;
    if (purse && !from->attribute &&
        H5Pset_vlen_mem_manager(transfer, purse_take, purse, purse_give, purse) < 0)
        return fail_source(from);
    herr_t read = from->attribute
                      ? H5Aread(from->id, type, out)
                      : H5Dread(from->id, type, H5S_ALL, H5S_ALL, transfer, out);
    return read < 0 ? fail_source(from) : 0;
}

/* One block: pointers first, then the characters. */
static int join_texts(const char *const *text, const size_t *length, int64_t count,
                      char ***out)
{
    size_t bytes = (size_t)count * sizeof(char *) + 1;
    char **block;
    for (int64_t i = 0; i < count; i++)
        bytes += length[i] + 1;
    RNND_TRY(rnnd__new(1, bytes, "strings", &block));
    char *to = (char *)(block + count);
    for (int64_t i = 0; i < count; i++) {
        block[i] = to;
        memcpy(to, text[i], length[i]);
        to += length[i] + 1; /* the block is zeroed */
    }
    *out = block;
    return 0;
}

/* The length of a string in a field of fixed size. */
static size_t field_length(const char *field, size_t size, H5T_str_t pad)
{
    size_t n = strnlen(field, size);
    while (pad == H5T_STR_SPACEPAD && n && field[n - 1] == ' ')
        n--;
    return n;
}

/* text, length [count] are scratch. */
static int read_fixed(const struct text_source *from, const char **text, size_t *length,
                      char ***out)
{
    size_t size = H5Tget_size(from->type);
    H5T_str_t pad = H5Tget_strpad(from->type);
    OWNED char *field = NULL;
    if (size > (size_t)rnnd__hdf_most_bytes(from->file))
        return rnnd__fail(RNND_EDATA, "%s: %s: impossible size", from->file->path,
                          from->name);
    RNND_TRY(rnnd__new((size_t)from->count, size, "strings", &field));
    RNND_TRY(read_source(from, from->type, NULL, field));
    for (int64_t i = 0; i < from->count; i++) {
        text[i] = field + (size_t)i * size;
        length[i] = field_length(text[i], size, pad);
    }
    return join_texts(text, length, from->count, out);
}

static int read_variable(const struct text_source *from, const char **text,
                         size_t *length, char ***out)
{
    struct purse purse __attribute__((cleanup(drop_purse))) = {
        .left = rnnd__hdf_most_bytes(from->file)};
    OWNED char **field = NULL;
    RNND_TRY(RNND_NEW(&field, from->count, "strings"));
    HELD type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 ||
        H5Tset_cset(type, H5Tget_cset(from->type)) < 0)
        return fail_source(from);
    int status = read_source(from, type, &purse, field);
    if (purse.over)
        return FAIL_OBJECT(
            from->file, from->name,
            "impossible size: its strings take more bytes than a file of "
            "%lld can hold",
            (long long)from->file->size);
    RNND_TRY(status);
    for (int64_t i = 0; i < from->count; i++) {
        text[i] = field[i] ? field[i] : "";
        length[i] = strlen(text[i]);
    }
    status = join_texts(text, length, from->count, out);
    if (from->attribute && from->count)
        H5Dvlen_reclaim(type, from->space, H5P_DEFAULT, field);
    return status;
}

/* A file of unknown origin: the child that walked through it has read them. */
static int recall_variable(const struct text_source *from, const char **text,
                           size_t *length, char ***out)
{
    OWNED char *key = NULL;
    if (asprintf(&key, "%s%s",
                 from->attribute        ? RNND_HDF_ATTRIBUTE
                 : from->name[0] == '/' ? ""
                                        : "/",
                 from->name) < 0)
        return rnnd__fail_memory(strlen(from->name), "a name");
    RNND_TRY(rnnd__hdf_recall(from->file, key, from->count, text));
    for (int64_t i = 0; i < from->count; i++)
        length[i] = strlen(text[i]);
    return join_texts(text, length, from->count, out);
}

static int read_texts(const struct text_source *from, char ***out)
{
    OWNED const char **text = NULL;
    OWNED size_t *length = NULL;
    RNND_TRY(RNND_NEW(&text, from->count, "strings"));
    RNND_TRY(RNND_NEW(&length, from->count, "strings"));
    if (H5Tis_variable_str(from->type) <= 0)
        return read_fixed(from, text, length, out);
    return from->file->texts ? recall_variable(from, text, length, out)
                             : read_variable(from, text, length, out);
}

int rnnd__hdf_read_strings(struct rnnd__hdf *file, const char *object, char ***out,
                           int64_t *count)
{
    GUARD;
    HELD_ARRAY a = NO_ARRAY;
    RNND_TRY(rnnd__hdf_array_of(file, object, &a));
    if (a.shape.kind != RNND_HDF_STRING)
        return FAIL_OBJECT(file, object, "expected strings");
    if (a.shape.rank != 1)
        return FAIL_OBJECT(file, object, "%d dimensions, expected 1", a.shape.rank);
    struct text_source from = {file,    object, a.id,          a.type,
                               a.space, false,  a.shape.dim[0]};
    RNND_TRY(read_texts(&from, out));
    *count = from.count;
    return 0;
}

/* ---- attributes of the root group */

bool rnnd__hdf_has_attribute(struct rnnd__hdf *file, const char *name)
{
    GUARD;
    htri_t there = H5Aexists(file->id, name);
    return rnnd__hdf_lacks_memory(file) || there != 0;
}

/* Opens an attribute that holds one value. The caller HELDs all three. */
static int open_attribute(struct rnnd__hdf *file, const char *name, hid_t *attribute,
                          hid_t *type, hid_t *space)
{
    htri_t there = H5Aexists(file->id, name);
    if (there == 0 && !rnnd__hdf_lacks_memory(file))
        return FAIL_ATTRIBUTE(file, name, "missing");
    *attribute = there <= 0 ? -1 : H5Aopen(file->id, name, H5P_DEFAULT);
    *type = *attribute < 0 ? -1 : H5Aget_type(*attribute);
    *space = *type < 0 ? -1 : H5Aget_space(*attribute);
    if (*space < 0)
        return rnnd__hdf_fail_attribute(file, name, "cannot be read");
    if (H5Sget_simple_extent_npoints(*space) != 1)
        return FAIL_ATTRIBUTE(file, name, "expected one value");
    return 0;
}

static int get_int(struct rnnd__hdf *file, const char *name, int64_t *out)
{
    HELD attribute = -1;
    HELD type = -1;
    HELD space = -1;
    union value v = {0};
    RNND_TRY(open_attribute(file, name, &attribute, &type, &space));
    enum rnnd__hdf_kind kind = rnnd__hdf_kind_of(type);
    if (kind != RNND_HDF_INT && kind != RNND_HDF_FLOAT)
        return FAIL_ATTRIBUTE(file, name, "expected a number");
    enum wide wide = wide_for(type, RNND_I64);
    if (H5Aread(attribute, wide_type(wide, RNND_I64), &v) < 0)
        return rnnd__hdf_fail_attribute(file, name, "cannot be read");
    const char *wrong = to_int(wide == DIRECT ? WIDE_INT : wide, v, RNND_I64, out);
    return wrong ? FAIL_ATTRIBUTE(file, name, "%s", wrong) : 0;
}

int rnnd__hdf_get_int(struct rnnd__hdf *file, const char *name, int64_t *out)
{
    GUARD;
    return get_int(file, name, out);
}

static int get_text(struct rnnd__hdf *file, const char *name, char **out)
{
    HELD attribute = -1;
    HELD type = -1;
    HELD space = -1;
    OWNED char **text = NULL;
    RNND_TRY(open_attribute(file, name, &attribute, &type, &space));
    if (rnnd__hdf_kind_of(type) != RNND_HDF_STRING)
        return FAIL_ATTRIBUTE(file, name, "expected a string");
    struct text_source from = {file, name, attribute, type, space, true, 1};
    RNND_TRY(read_texts(&from, &text));
    char *copy = strdup(text[0]);
    if (!copy)
        return rnnd__fail_memory(strlen(text[0]), "a string");
    *out = copy;
    return 0;
}

int rnnd__hdf_get_string(struct rnnd__hdf *file, const char *name, char **out)
{
    GUARD;
    return get_text(file, name, out);
}

int rnnd__hdf_check_format(struct rnnd__hdf *file, const char *format, int64_t version)
{
    char *found;
    int64_t found_version;
    if (!rnnd__hdf_has_attribute(file, "format"))
        return FAIL_ATTRIBUTE(file, "format", "missing, expected \"%s\"", format);
    RNND_TRY(rnnd__hdf_get_string(file, "format", &found));
    int status = 0;
    if (strcmp(found, format) != 0)
        status =
            rnnd__fail(RNND_EDATA, "%s: attribute format = \"%.40s\", expected \"%s\"",
                       file->path, found, format);
    free(found);
    RNND_TRY(status);
    RNND_TRY(rnnd__hdf_get_int(file, "version", &found_version));
    if (found_version != version)
        return rnnd__fail(RNND_EDATA, "%s: attribute version = %lld, expected %lld",
                          file->path, (long long)found_version, (long long)version);
    return 0;
}
