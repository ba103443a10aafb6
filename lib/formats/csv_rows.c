/*
 * csv_rows.c - rows and cells of comma-separated text, as in RFC 4180: a quoted cell
 * may contain commas, line ends and doubled quotes.
 */
#include "formats/csv.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "options/options.h"

/* The separator: that of a line "sep=;", which some programs write first, else the
   comma, semicolon or tab that is most frequent in the header, outside quotes. */
static char find_separator(struct rnnd__text *t)
{
    static const char known[] = ",;\t";
    const char *line = t->data + t->at;
    int count[3] = {0}, best = 0;
    bool quoted = false;
    if (strncasecmp(line, "sep=", 4) == 0 && line[4] && strchr("\r\n", line[5])) {
        size_t skipped = strcspn(line, "\n");
        t->at += skipped + (line[skipped] == '\n');
        t->line++;
        return line[4];
    }
    for (; *line && (quoted || *line != '\n'); line++) {
        const char *place = strchr(known, *line);
        quoted ^= *line == '"';
        if (place && !quoted)
            count[place - known]++;
    }
    for (int i = 1; i < 3; i++)
        best = count[i] > count[best] ? i : best;
    return known[best];
}

int rnnd__csv_open(const char *path, struct rnnd__csv *out)
{
    *out = (struct rnnd__csv){.start.size = sizeof(int64_t), .room.size = 1};
    RNND_TRY(rnnd__text_read(path, &out->text));
    out->text.line = 1;
    out->separator = find_separator(&out->text);
    return 0;
}

void rnnd__csv_close(struct rnnd__csv *csv)
{
    rnnd__text_clear(&csv->text);
    rnnd__list_clear(&csv->start);
    rnnd__list_clear(&csv->room);
    rnnd__csv_names_clear(&csv->names);
}

const char *rnnd__csv_cell(const struct rnnd__csv *csv, int64_t i)
{
    return (const char *)csv->room.at + ((const int64_t *)csv->start.at)[i];
}

#define fail_row(csv, ...) rnnd__text_fail((csv)->text.path, (csv)->line, __VA_ARGS__)

/* Reads a quoted cell, from after its first quote to after its last. */
static int read_quoted(struct rnnd__csv *csv)
{
    struct rnnd__text *t = &csv->text;
    for (;;) {
        const char *from = t->data + t->at;
        const char *quote = memchr(from, '"', t->size - t->at);
        if (!quote)
            return fail_row(csv, "unterminated quoted cell");
        bool twice = quote[1] == '"';
        size_t n = (size_t)(quote - from) + twice;
        for (size_t i = 0; i < n; i++)
            t->line += from[i] == '\n';
        RNND_TRY(rnnd__list_add(&csv->room, from, (int64_t)n));
        t->at += (size_t)(quote - from) + 1 + twice;
        if (!twice)
            return 0;
    }
}

static int read_bare(struct rnnd__csv *csv)
{
    struct rnnd__text *t = &csv->text;
    const char *from = t->data + t->at;
    size_t n = strcspn(from, (char[]){csv->separator, '\n', '"', '\0'});
    if (from[n] == '"')
        return fail_row(csv, "quote inside an unquoted cell");
    t->at += n;
    if (n && from[n - 1] == '\r' && from[n] != csv->separator)
        n--;
    return rnnd__list_add(&csv->room, from, (int64_t)n);
}

/* Skips the end of a row, if the text is at one. */
static bool take_end(struct rnnd__text *t)
{
    if (t->data[t->at] == '\r' && t->data[t->at + 1] == '\n')
        t->at++;
    if (t->at < t->size && t->data[t->at] != '\n')
        return false;
    t->line += t->at < t->size;
    t->at += t->at < t->size;
    return true;
}

static int read_cells(struct rnnd__csv *csv)
{
    struct rnnd__text *t = &csv->text;
    for (;;) {
        RNND_TRY(rnnd__list_add(&csv->start, &csv->room.count, 1));
        if (t->data[t->at] == '"') {
            t->at++;
            RNND_TRY(read_quoted(csv));
        } else {
            RNND_TRY(read_bare(csv));
        }
        RNND_TRY(rnnd__list_add(&csv->room, NULL, 1));
        csv->cells++;
        if (take_end(t))
            return 0;
        if (t->data[t->at] != csv->separator)
            return fail_row(csv, "text after the closing quote of a cell");
        t->at++;
    }
}

int rnnd__csv_row(struct rnnd__csv *csv, bool *more)
{
    struct rnnd__text *t = &csv->text;
    csv->cells = csv->start.count = csv->room.count = 0;
    while (t->at < t->size && take_end(t))
        ;
    csv->line = t->line;
    *more = t->at < t->size;
    if (!*more)
        return 0;
    RNND_TRY(read_cells(csv));
    if (csv->columns && csv->cells != csv->columns)
        return fail_row(csv, "%lld cells, but the header has %lld",
                        (long long)csv->cells, (long long)csv->columns);
    return 0;
}

/* Blanks around column names are ignored. */
int rnnd__csv_header(struct rnnd__csv *csv)
{
    bool more;
    RNND_TRY(rnnd__csv_row(csv, &more));
    if (!more)
        return rnnd__fail(RNND_EDATA, "%s: missing header line", csv->text.path);
    csv->columns = csv->cells;
    for (int64_t i = 0; i < csv->cells; i++) {
        const char *name = rnnd__csv_cell(csv, i);
        size_t n = strlen(name);
        rnnd__text_trim(&name, &n);
        ((int64_t *)csv->start.at)[i] = name - (const char *)csv->room.at;
        ((char *)csv->room.at)[name - (const char *)csv->room.at + (ptrdiff_t)n] = 0;
        RNND_TRY(rnnd__csv_names_add(&csv->names, name, i));
    }
    return 0;
}

int64_t rnnd__csv_column(const struct rnnd__csv *csv, const char *name)
{
    const struct rnnd__dictionary *texts = &csv->names.texts;
    int64_t number = rnnd__dictionary_find(texts, name, strlen(name));
    if (number >= 0 && ((const int64_t *)texts->uses.at)[number] > 1)
        return -2;
    return rnnd__csv_names_find(&csv->names, name);
}

int rnnd__csv_no_column(const struct rnnd__csv *csv, const char *name)
{
    const struct rnnd__list *texts = &csv->names.texts.texts;
    const char **names = NULL;
    char all[240] = "";
    RNND_TRY(RNND_NEW(&names, texts->count + 1, "column names"));
    for (int64_t i = 0; i < texts->count; i++) {
        size_t n = strlen(all);
        names[i] = ((char *const *)texts->at)[i];
        snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", names[i]);
    }
    bool cut = strlen(all) == sizeof all - 1;
    const char *meant = rnnd__options_nearest(name, names);
    free(names);
    if (meant)
        return rnnd__text_fail(csv->text.path, csv->line,
                               "no column is named %s; did you mean %s?", name, meant);
    return rnnd__text_fail(csv->text.path, csv->line,
                           "no column is named %s; the columns are %s%s", name, all,
                           cut ? "..." : "");
}

/* ---- column names */

int rnnd__csv_names_add(struct rnnd__csv_names *names, const char *name, int64_t i)
{
    int64_t number;
    names->first.size = sizeof(int64_t);
    RNND_TRY(rnnd__dictionary_add(&names->texts, name, strlen(name), &number));
    return number == names->first.count ? rnnd__list_add(&names->first, &i, 1) : 0;
}

int64_t rnnd__csv_names_find(const struct rnnd__csv_names *names, const char *name)
{
    int64_t number = rnnd__dictionary_find(&names->texts, name, strlen(name));
    return number < 0 ? -1 : ((const int64_t *)names->first.at)[number];
}

void rnnd__csv_names_clear(struct rnnd__csv_names *names)
{
    rnnd__dictionary_clear(&names->texts);
    rnnd__list_clear(&names->first);
}
