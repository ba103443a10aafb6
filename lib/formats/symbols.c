/*
 * symbols.c - tables of names and their numbers: a line for each, as "a 17".
 *
 * The numbers only say the order: tables begin with 0 or 1, and may have gaps.
 */
#include "formats/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/text.h"
#include "hdf/hdf.h"

struct symbol {
    /* in the text */
    const char *name;
    size_t length;
    int64_t number, line;
};

bool rnnd__symbols_in(const char *path)
{
    char start[sizeof RNND_HDF_START] = "";
    FILE *stream = NULL;
    if (rnnd__file_open(path, &stream) < 0 || !stream)
        return false;
    size_t n = fread(start, 1, sizeof start - 1, stream);
    fclose(stream);
    return n > 0 && strcmp(start, RNND_HDF_START) != 0;
}

static int by_number(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int parse_line(const struct rnnd__text *text, const char *line, size_t n,
                      struct symbol *out)
{
    char digits[24] = "", *end;
    const char *blank;
    rnnd__text_trim(&line, &n);
    for (blank = line; blank < line + n && *blank != ' ' && *blank != '\t'; blank++)
        continue;
    *out = (struct symbol){line, (size_t)(blank - line), -1, text->line};
    size_t left = n - out->length;
    rnnd__text_trim(&blank, &left);
    if (left > 0 && left < sizeof digits) {
        memcpy(digits, blank, left);
        errno = 0;
        out->number = strtoll(digits, &end, 10);
        if (*end || errno || digits[0] == '+')
            out->number = -1;
    }
    if (out->number < 0)
        return rnnd__text_fail(text->path, text->line,
                               "neither a data file nor a table of names: a name and "
                               "its number are expected");
    return 0;
}

static int read_lines(struct rnnd__text *text, struct rnnd__list *symbols)
{
    const char *line;
    size_t n;
    while (rnnd__text_line(text, &line, &n)) {
        struct symbol symbol;
        if (strspn(line, " \t") >= n)
            continue;
        RNND_TRY(parse_line(text, line, n, &symbol));
        RNND_TRY(rnnd__list_add(symbols, &symbol, 1));
    }
    return 0;
}

/* Symbol i; names and numbers occur once. */
static int take(const struct rnnd__text *text, const struct symbol *s, int64_t i,
                struct rnnd__dictionary *known, struct rnnd__list *out)
{
    int64_t same;
    if (i > 0 && s[i].number == s[i - 1].number)
        return rnnd__text_fail(text->path, s[i].line,
                               "number %lld is also that of line %lld",
                               (long long)s[i].number, (long long)s[i - 1].line);
    RNND_TRY(rnnd__dictionary_add(known, s[i].name, s[i].length, &same));
    if (same != i)
        return rnnd__text_fail(text->path, s[i].line,
                               "\"%.*s\" is also the name on line %lld",
                               (int)(s[i].length < 40 ? s[i].length : 40), s[i].name,
                               (long long)s[same].line);
    return rnnd__list_add_text(out, s[i].name, s[i].length);
}

int rnnd__symbols_read(const char *path, struct rnnd__list *out)
{
    struct rnnd__list symbols = {.size = sizeof(struct symbol)};
    struct rnnd__dictionary known = {0};
    struct rnnd__text text;
    RNND_TRY(rnnd__text_read(path, &text));
    int status = read_lines(&text, &symbols);
    if (status == 0 && symbols.count > 0)
        qsort(symbols.at, (size_t)symbols.count, symbols.size, by_number);
    for (int64_t i = 0; status == 0 && i < symbols.count; i++)
        status = take(&text, symbols.at, i, &known, out);
    rnnd__dictionary_clear(&known);
    rnnd__list_clear(&symbols);
    rnnd__text_clear(&text);
    return status;
}
