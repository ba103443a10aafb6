/*
 * npy.c - one array of NumPy's .npy format: a header, which is a Python dictionary,
 * then the elements. Supports booleans, integers, and floats of 2, 4 and 8 bytes.
 */
#include "formats/npy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rnnd__npy_clear(struct rnnd__npy *array)
{
    free(array->bytes);
    *array = (struct rnnd__npy){0};
}

/* ---- header */

/* The start of a key's value, NULL if there is none. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? strchr(at, ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static int parse_type(const char *name, const char *at, struct rnnd__npy *out)
{
    char order, shown[48];
    if (at && strncmp(at, "'|O'", 4) == 0)
        return rnnd__fail(
            RNND_EDATA,
            "%s: an array of Python objects, which is not read; in Python:\n"
            "  x = list(np.load(\"IN.npz\", allow_pickle=True)[\"inputs\"])\n"
            "  np.savez(\"OUT.npz\", inputs=np.concatenate(x), "
            "lengths=[len(s) for s in x], targets=...)",
            name);
    bool known =
        at && sscanf(at, "'%c%c%d'", &order, &out->kind, &out->size) == 3 &&
        strchr("<>|=", order) && strchr("biuf", out->kind) &&
        (out->size == 1 || out->size == 2 || out->size == 4 || out->size == 8) &&
        (out->kind != 'f' || out->size > 1);
    if (!known)
        return rnnd__fail(RNND_EDATA, "%s: element type %s is not supported", name,
                          at ? rnnd__text_shown(at, strcspn(at, ",}"), shown)
                             : "unknown");
    out->swapped = order == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
    return 0;
}

static int parse_shape(const char *name, const char *at, struct rnnd__npy *out)
{
    out->count = 1;
    if (!at || *at != '(')
        return rnnd__fail(RNND_EDATA, "%s: missing shape in the header", name);
    for (at++; *at && *at != ')';) {
        char *end;
        long long n = strtoll(at, &end, 10);
        if (end == at || n < 0 || out->rank == 4 ||
            __builtin_mul_overflow(out->count, (int64_t)n, &out->count))
            return rnnd__fail(RNND_EDATA, "%s: invalid shape in the header", name);
        out->dim[out->rank++] = n;
        at = end + strspn(end, ", L");
    }
    return 0;
}

int rnnd__npy_parse(const char *name, char *bytes, size_t size, struct rnnd__npy *out)
{
    const unsigned char *b = (const unsigned char *)bytes;
    size_t head = 0, start = 0, need;
    char *header = NULL;
    *out = (struct rnnd__npy){.bytes = bytes};
    if (size >= 12 && memcmp(bytes, "\x93NUMPY", 6) == 0) {
        start = b[6] == 1 ? 10 : 12;
        head = b[8] | (size_t)b[9] << 8;
        if (b[6] > 1)
            head |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    }
    if (head == 0 || head > size - start)
        return rnnd__fail(RNND_EDATA, "%s: not a NumPy array", name);
    header = strndup(bytes + start, head);
    if (!header)
        return rnnd__fail_memory(head, "a header");
    int status;
    RNND_TRY_GOTO(parse_type(name, value_of(header, "'descr'"), out));
    RNND_TRY_GOTO(parse_shape(name, value_of(header, "'shape'"), out));
    const char *order = value_of(header, "'fortran_order'");
    out->columns = order && strncmp(order, "True", 4) == 0;
    out->data = bytes + start + head;
    if (__builtin_mul_overflow((size_t)out->count, (size_t)out->size, &need) ||
        need > size - start - head)
        status = rnnd__fail(
            RNND_EDATA, "%s: truncated: %zu bytes, but %lld elements of %d bytes", name,
            size - start - head, (long long)out->count, out->size);
done:
    free(header);
    return status;
}

/* ---- elements */

static double half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -value : value;
}

/* Position in memory of element i of a column-major array. */
static int64_t by_columns(const struct rnnd__npy *a, int64_t i)
{
    int64_t at = 0, stride = a->count;
    for (int d = a->rank - 1; d >= 0; d--) {
        stride /= a->dim[d];
        at += i % a->dim[d] * stride;
        i /= a->dim[d];
    }
    return at;
}

long double rnnd__npy_exact(const struct rnnd__npy *array, int64_t i)
{
    const struct rnnd__npy *a = array;
    union {
        unsigned char byte[8];
        int8_t i1;
        int16_t i2;
        int32_t i4;
        int64_t i8;
        uint8_t u1;
        uint16_t u2;
        uint32_t u4;
        uint64_t u8;
        float f4;
        double f8;
    } v = {{0}};
    const char *from = a->data + (a->columns ? by_columns(a, i) : i) * a->size;
    for (int k = 0; k < a->size; k++)
        v.byte[k] = (unsigned char)from[a->swapped ? a->size - 1 - k : k];
    switch (a->kind) {
    case 'f':
        return a->size == 2 ? half(v.u2) : a->size == 4 ? (double)v.f4 : v.f8;
    case 'i':
        return a->size == 1   ? v.i1
               : a->size == 2 ? v.i2
               : a->size == 4 ? v.i4
                              : (long double)v.i8;
    case 'b':
        return v.u1 != 0;
    default:
        return a->size == 1   ? v.u1
               : a->size == 2 ? v.u2
               : a->size == 4 ? v.u4
                              : (long double)v.u8;
    }
}

double rnnd__npy_at(const struct rnnd__npy *array, int64_t i)
{
    return (double)rnnd__npy_exact(array, i);
}
