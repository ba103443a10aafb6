/*
 * text.c - text files for the readers: a whole file in memory, lines, numbers.
 */
#include "formats/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/file.h"

/* bytes that zlib takes or gives at a time */
enum { STEP = 1 << 30 };

int rnnd__text_fail_at(const char *path, int64_t line, const char *format, ...)
{
    char problem[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    return rnnd__fail(RNND_EDATA, "%s:%lld: %s", path, (long long)line, problem);
}

/* ---- gzip */

/* Inflates all members of a gzip file into *out, which grows. */
static int inflate_members(const struct rnnd__text *packed, z_stream *z, char **out,
                           size_t *size)
{
    size_t left = packed->size, room = packed->size + 65536;
    int code = Z_OK;
    z->next_in = (Bytef *)packed->data;
    while (left + z->avail_in > 0 || code != Z_STREAM_END) {
        room += *size + 1 >= room ? room : 0;
        RNND_TRY(RNND_GROW(out, room, packed->path));
        size_t space = room - 1 - *size;
        uInt in = z->avail_in ? z->avail_in : (uInt)(left < STEP ? left : STEP);
        left -= z->avail_in ? 0 : in;
        z->avail_in = in;
        z->avail_out = (uInt)(space < STEP ? space : STEP);
        z->next_out = (Bytef *)*out + *size;
        if (code == Z_STREAM_END)
            inflateReset(z); /* another member */
        uInt before = z->avail_out;
        code = inflate(z, Z_NO_FLUSH);
        *size += before - z->avail_out;
        if (code != Z_OK && code != Z_STREAM_END)
            return rnnd__fail(RNND_EDATA, "%s: cannot be decompressed: %s",
                              packed->path, z->msg ? z->msg : "truncated");
    }
    return 0;
}

/* Replaces the text by what gzip compressed. */
static int inflate_text(struct rnnd__text *text)
{
    z_stream z = {0};
    char *plain = NULL;
    size_t size = 0;
    if (inflateInit2(&z, 15 + 16) != Z_OK) /* 16: expects the header of gzip */
        return rnnd__fail_memory(sizeof z, "zlib");
    int status = inflate_members(text, &z, &plain, &size);
    inflateEnd(&z);
    if (status < 0) {
        free(plain);
        return status;
    }
    free(text->data);
    plain[size] = '\0';
    text->data = plain;
    text->size = size;
    return 0;
}

/* ---- a whole file */

size_t rnnd__text_character(const char *text, size_t room)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t n = c[0] < 0x80   ? 1
               : c[0] < 0xc2 ? 0
               : c[0] < 0xe0 ? 2
               : c[0] < 0xf0 ? 3
                             : 4;
    if (n == 0 || n > room || c[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool second_low = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool second_high = (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf4 && c[1] > 0x8f);
    return n > 1 && (second_low || second_high) ? 0 : n;
}

bool rnnd__text_is_utf8(const char *text)
{
    size_t n = 1;
    for (size_t left = strlen(text); left && n; left -= n, text += n)
        n = rnnd__text_character(text, left);
    return n > 0;
}

/* Text is UTF-8 without NUL bytes. Makes \n of each \r that is not before one. */
static int check_text(struct rnnd__text *text)
{
    int64_t line = 1;
    size_t start = text->at, n;
    for (size_t at = start; at < text->size; at += n) {
        char *c = text->data + at;
        n = rnnd__text_character(c, text->size - at);
        if (n == 0)
            return rnnd__text_fail(
                text->path, line,
                "byte %zu of the line, 0x%02x, is not UTF-8, which text must be",
                at - start + 1, (unsigned char)*c);
        if (*c == '\0')
            return rnnd__text_fail(text->path, line,
                                   "not a text file: it contains a NUL byte");
        if (*c == '\r' && c[1] != '\n')
            *c = '\n';
        if (*c == '\n') {
            line++;
            start = at + 1;
        }
    }
    return 0;
}

int rnnd__text_read(const char *path, struct rnnd__text *out)
{
    struct rnnd__text text = {.path = path};
    RNND_TRY(rnnd__file_read(path, &text.data, &text.size));
    int status;
    if (text.size >= 2 && memcmp(text.data, "\x1f\x8b", 2) == 0)
        RNND_TRY_GOTO(inflate_text(&text));
    if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        text.at = 3;
    RNND_TRY_GOTO(check_text(&text));
    *out = text;
    text.data = NULL;
done:
    free(text.data);
    return status;
}

void rnnd__text_clear(struct rnnd__text *text)
{
    free(text->data);
    *text = (struct rnnd__text){0};
}

bool rnnd__text_line(struct rnnd__text *text, const char **line, size_t *length)
{
    if (text->at >= text->size)
        return false;
    const char *start = text->data + text->at;
    const char *end = memchr(start, '\n', text->size - text->at);
    size_t n = end ? (size_t)(end - start) : text->size - text->at;
    text->at += n + (end != NULL);
    text->line++;
    *line = start;
    *length = n && start[n - 1] == '\r' ? n - 1 : n;
    return true;
}

void rnnd__text_trim(const char **field, size_t *length)
{
    const char *from = *field, *to = from + *length;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    *field = from;
    *length = (size_t)(to - from);
}

bool rnnd__text_is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

bool rnnd__text_missing(const char *field, size_t length)
{
    static const char *const words[] = {"", "NA", "NaN", "nan", "null"};
    rnnd__text_trim(&field, &length);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && memcmp(field, words[i], length) == 0)
            return true;
    return false;
}

size_t rnnd__text_class(const char *name, size_t length)
{
    size_t sign = length && (*name == '-' || *name == '+'), n = sign;
    while (n < length && name[n] >= '0' && name[n] <= '9')
        n++;
    size_t zeros = n + 1;
    while (zeros < length && name[zeros] == '0')
        zeros++;
    return n > sign && n < length && name[n] == '.' && zeros == length ? n : length;
}

enum rnnd__field rnnd__text_number(const char *field, size_t length, float *value)
{
    static const char *const not_finite[] = {"nan", "inf", "infinity"};
    char *end;
    rnnd__text_trim(&field, &length);
    if (rnnd__text_missing(field, length)) {
        *value = NAN;
        return RNND_FIELD_MISSING;
    }
    size_t sign = field[0] == '-' || field[0] == '+';
    for (int i = 0; i < 3; i++)
        if (rnnd__text_is(field + sign, length - sign, not_finite[i]))
            return RNND_FIELD_NOT_FINITE;
    for (size_t i = 0; i < length; i++)
        if (!strchr("0123456789+-.eE", field[i]))
            return RNND_FIELD_WORD;
    float v = strtof(field, &end);
    if (end != field + length)
        return RNND_FIELD_WORD;
    if (!isfinite(v))
        return RNND_FIELD_NOT_FINITE;
    *value = v;
    return RNND_FIELD_NUMBER;
}

bool rnnd__text_is_rounded(const char *field, size_t length, float value)
{
    if (fabsf(value) < 0x1p24f)
        return false;
    rnnd__text_trim(&field, &length);
    length = rnnd__text_class(field, length); /* without a fraction of zeros */
    for (size_t i = 0; i < length; i++)
        if (strchr(".eE", field[i]))
            return false;
    return strtold(field, NULL) != (long double)value;
}

const char *rnnd__text_shown(const char *text, size_t length, char shown[48])
{
    size_t n = length > 40 ? 40 : length;
    while (n && n < length && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--; /* do not split a character */
    memcpy(shown, text, n);
    shown[n] = 0;
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    if (n < length)
        strcpy(shown + n, "...");
    return shown;
}
