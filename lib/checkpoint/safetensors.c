/*
 * safetensors.c - reads files in the safetensors format:
 *
 * 8 bytes of little-endian length, a header of that many bytes of JSON, then the
 * elements:
 *   {"NAME": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, ...,
 *    "__metadata__": {text: text}}
 * Metadata written by safetensors_write.c describe the model.
 */
#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "checkpoint/statedict.h"

enum { HEADER_MOST = 100 << 20 }; /* bytes */

static const struct dtype {
    const char *name;
    enum rnnd__float_type type;
    size_t size;
} dtypes[] = {{"F32", RNND_TENSOR_F32, sizeof(float)},
              {"F64", RNND_TENSOR_F64, sizeof(double)},
              {"F16", RNND_TENSOR_F16, sizeof(uint16_t)},
              {"BF16", RNND_TENSOR_BF16, sizeof(uint16_t)},
              {"I64", RNND_TENSOR_OTHER, sizeof(int64_t)},
              {"U64", RNND_TENSOR_OTHER, sizeof(uint64_t)},
              {"I32", RNND_TENSOR_OTHER, sizeof(int32_t)},
              {"U32", RNND_TENSOR_OTHER, sizeof(uint32_t)},
              {"I16", RNND_TENSOR_OTHER, sizeof(int16_t)},
              {"U16", RNND_TENSOR_OTHER, sizeof(uint16_t)},
              {"I8", RNND_TENSOR_OTHER, sizeof(int8_t)},
              {"U8", RNND_TENSOR_OTHER, sizeof(uint8_t)},
              {"BOOL", RNND_TENSOR_OTHER, sizeof(uint8_t)}};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- reading the header */

static int fail_format(const struct rnnd__statedict *sd, const char *name,
                       const char *what)
{
    return rnnd__fail(RNND_EDATA, "%s: invalid safetensors file: %s%s%s", sd->path,
                      name, name[0] ? ": " : "", what);
}

static int read_bytes(const struct rnnd__statedict *sd, void *out, size_t bytes,
                      int64_t at)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(sd->fd, (char *)out + done, bytes - done, at + (int64_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return rnnd__fail(RNND_EFILE, "%s: cannot be read: %s", sd->path,
                              n < 0 ? strerror(errno) : "unexpected end of file");
        done += (size_t)n;
    }
    return 0;
}

/* The number of elements of a shape, -1 where it is not a shape. */
static int64_t elements_of(const json_t *shape)
{
    int64_t n = 1;
    for (size_t d = 0; d < json_array_size(shape); d++) {
        const json_t *v = json_array_get(shape, d);
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            __builtin_mul_overflow(n, (int64_t)json_integer_value(v), &n))
            return -1;
    }
    return json_is_array(shape) ? n : -1;
}

static const struct dtype *dtype_of(const json_t *value)
{
    const char *name = json_string_value(value);
    for (size_t i = 0; name && i < DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

/* Where an array begins among the elements; false unless it has so many bytes. */
static bool range_of(const json_t *offsets, int64_t bytes, int64_t *begin)
{
    const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return false;
    int64_t b = json_integer_value(from), e = json_integer_value(to);
    *begin = b;
    return b >= 0 && b <= e && e - b == bytes;
}

static int add_tensor(struct rnnd__statedict *sd, const char *name, const json_t *entry,
                      int64_t data, int64_t room)
{
    const json_t *shape = json_object_get(entry, "shape");
    const struct dtype *dtype = dtype_of(json_object_get(entry, "dtype"));
    struct rnnd__tensor t = {.rank = (int)json_array_size(shape)};
    int64_t elements = elements_of(shape);
    if (!json_is_object(entry) || elements < 0)
        return fail_format(sd, name, "malformed entry");
    if (!dtype)
        return fail_format(sd, name, "unsupported dtype");
    if (__builtin_mul_overflow(elements, (int64_t)dtype->size, &t.bytes) ||
        !range_of(json_object_get(entry, "data_offsets"), t.bytes, &t.at))
        return fail_format(sd, name, "data_offsets do not match dtype and shape");
    if (t.at + t.bytes > room)
        return rnnd__fail(
            RNND_EFILE,
            "%s: truncated: %s ends at byte %lld of the elements, of which "
            "there are %lld",
            sd->path, name, (long long)(t.at + t.bytes), (long long)room);
    t.type = dtype->type;
    t.at += data;
    if (t.rank == 1 || t.rank == 2) {
        t.rows = json_integer_value(json_array_get(shape, 0));
        t.cols = t.rank == 2 ? json_integer_value(json_array_get(shape, 1)) : 0;
    }
    return rnnd__statedict_add(sd, name, &t);
}

/* meta: a JSON object. */
static int get_text(void *meta, const char *key, char **out)
{
    const char *value = json_string_value(json_object_get(meta, key));
    if (value && !(*out = strdup(value)))
        return rnnd__fail_memory(strlen(value), "metadata");
    return 0;
}

static int take_metadata(struct rnnd__statedict *sd, json_t *meta)
{
    RNND_TRY(get_text(meta, RNND_KEY_TASK, &sd->task));
    RNND_TRY(get_text(meta, RNND_KEY_CONFIG, &sd->config));
    return rnnd__statedict_take_axes(sd, get_text, meta);
}

static int take_header(struct rnnd__statedict *sd, json_t *header, int64_t data,
                       int64_t room)
{
    const char *name;
    json_t *entry;
    if (!json_is_object(header))
        return fail_format(sd, "", "the header is not a JSON object");
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            RNND_TRY(take_metadata(sd, entry));
        else
            RNND_TRY(add_tensor(sd, name, entry, data, room));
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct rnnd__tensor *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                          : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The format requires that the arrays cover all bytes after the header exactly once, so
   that all readers see the same file. Sorts the arrays by place. */
static int check_cover(struct rnnd__statedict *sd, int64_t data, int64_t room)
{
    int64_t end = data;
    if (sd->count)
        qsort(sd->tensor, (size_t)sd->count, sizeof *sd->tensor, by_place);
    for (int i = 0; i < sd->count; i++) {
        const struct rnnd__tensor *t = &sd->tensor[i];
        if (t->at < end)
            return fail_format(sd, t->name, "overlaps another array");
        if (t->at > end)
            return rnnd__fail(RNND_EDATA,
                              "%s: invalid safetensors file: %s: %lld bytes before it "
                              "belong to no array",
                              sd->path, t->name, (long long)(t->at - end));
        end += t->bytes;
    }
    if (end < data + room)
        return rnnd__fail(
            RNND_EDATA,
            "%s: invalid safetensors file: %lld bytes at the end belong to no array",
            sd->path, (long long)(data + room - end));
    return 0;
}

/* The length of the header. */
static int read_length(const struct rnnd__statedict *sd, int64_t size, uint64_t *out)
{
    uint64_t length;
    if (size < (int64_t)sizeof length)
        return rnnd__fail(
            RNND_EDATA, "%s: neither a checkpoint nor a safetensors file (%lld bytes)",
            sd->path, (long long)size);
    RNND_TRY(read_bytes(sd, &length, sizeof length, 0));
    if (memcmp(&length, "PK\3\4", 4) == 0)
        return rnnd__fail(
            RNND_EDATA,
            "%s: is a ZIP archive, as torch.save writes, or NumPy; save it "
            "with safetensors.torch.save_file(model.state_dict(), FILE)",
            sd->path);
    length = le64toh(length);
    if (length > HEADER_MOST)
        return rnnd__fail(RNND_EDATA, "%s: neither a checkpoint nor a safetensors file",
                          sd->path);
    if (length > (uint64_t)size - sizeof length)
        return rnnd__fail(
            RNND_EFILE,
            "%s: truncated: the header has %llu bytes, of which there are "
            "%llu",
            sd->path, (unsigned long long)length,
            (unsigned long long)((uint64_t)size - sizeof length));
    *out = length;
    return 0;
}

int rnnd__safetensors_open(struct rnnd__statedict *sd)
{
    struct stat info;
    uint64_t length;
    char *text = NULL;
    json_t *header = NULL;
    json_error_t error;
    int status = 0;
    if (fstat(sd->fd, &info) != 0)
        return rnnd__fail(RNND_EFILE, "%s: %s", sd->path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return rnnd__fail(RNND_EFILE, "%s: is a folder, not a file of parameters",
                          sd->path);
    if (!S_ISREG(info.st_mode)) /* arrays are read out of order */
        return rnnd__fail(RNND_EFILE, "%s: not a regular file", sd->path);
    RNND_TRY(read_length(sd, info.st_size, &length));
    RNND_TRY_GOTO(RNND_NEW(&text, length, "the header of a safetensors file"));
    RNND_TRY_GOTO(read_bytes(sd, text, length, sizeof length));
    header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        RNND_TRY_GOTO(fail_format(sd, "header", error.text));
    int64_t data = (int64_t)(sizeof length + length), room = info.st_size - data;
    RNND_TRY_GOTO(take_header(sd, header, data, room));
    RNND_TRY_GOTO(check_cover(sd, data, room));
done:
    json_decref(header);
    free(text);
    return status;
}

/* ---- reading elements */

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31,
             part = h & 1023;
    if (exponent == 31)
        return from_bits(sign | 0x7f800000 | part << 13);
    if (exponent)
        return from_bits(sign | (exponent + 112) << 23 | part << 13);
    float tiny = (float)part * 0x1p-24f;
    return sign ? -tiny : tiny;
}

/* Returns the first element that does not fit a float; count if all do. */
static size_t convert(enum rnnd__float_type type, const unsigned char *raw,
                      size_t count, float *out)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        uint32_t word;
        uint64_t wide;
        double x;
        switch (type) {
        case RNND_TENSOR_F16:
        case RNND_TENSOR_BF16:
            memcpy(&half, raw + i * sizeof half, sizeof half);
            half = le16toh(half);
            out[i] = type == RNND_TENSOR_F16 ? from_half(half)
                                             : from_bits((uint32_t)half << 16);
            break;
        case RNND_TENSOR_F64:
            memcpy(&wide, raw + i * sizeof wide, sizeof wide);
            wide = le64toh(wide);
            memcpy(&x, &wide, sizeof x);
            out[i] = (float)x;
            if (isfinite(x) && !isfinite(out[i]))
                return i;
            break;
        default:
            memcpy(&word, raw + i * sizeof word, sizeof word);
            out[i] = from_bits(le32toh(word));
        }
    }
    return count;
}

static size_t size_of(enum rnnd__float_type type)
{
    size_t i = 0;
    while (i + 1 < DTYPES && dtypes[i].type != type)
        i++;
    return dtypes[i].size;
}

int rnnd__safetensors_read(const struct rnnd__statedict *sd,
                           const struct rnnd__tensor *t, float *out)
{
    enum { BLOCK = 1 << 16 };
    size_t size = size_of(t->type);
    int64_t total = t->rows * (t->cols ? t->cols : 1);
    unsigned char *raw = NULL;
    int status = 0;
    RNND_TRY(rnnd__new(BLOCK, size, t->name, &raw));
    for (int64_t done = 0; done < total; done += BLOCK) {
        size_t count = (size_t)(total - done < BLOCK ? total - done : BLOCK);
        RNND_TRY_GOTO(read_bytes(sd, raw, count * size, t->at + done * (int64_t)size));
        size_t fit = convert(t->type, raw, count, out + done);
        if (fit < count)
            RNND_TRY_GOTO(rnnd__fail(RNND_EDATA,
                                     "%s: %s: element %lld is too large for a 32-bit "
                                     "float",
                                     sd->path, t->name,
                                     (long long)(done + (int64_t)fit)));
    }
done:
    free(raw);
    return status;
}
