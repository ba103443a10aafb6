/*
 * text.c - text files for the readers: a whole file in memory, lines, numbers.
 */
#include "formats/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"

int rnnd__text_fail_at(const char *path, int64_t line, const char *format, ...)
{
    char problem[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    return rnnd__fail(RNND_EDATA, "%s:%lld: %s", path, (long long)line, problem);
}

/* Text contains no NUL bytes. */
static int check_text(const struct rnnd__text *text)
{
    const char *nul = memchr(text->data, 0, text->size);
    int64_t line = 1;
    if (!nul)
        return 0;
    for (const char *c = text->data; c < nul; c++)
        line += *c == '\n';
    return rnnd__text_fail(text->path, line, "not a text file: it contains a NUL byte");
}

int rnnd__text_read(const char *path, struct rnnd__text *out)
{
    struct rnnd__text text = {.path = path};
    RNND_TRY(rnnd__file_read(path, &text.data, &text.size));
    int status = check_text(&text);
    if (status < 0) {
        free(text.data);
        return status;
    }
    if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        text.at = 3;
    *out = text;
    return 0;
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
