/*
 * options_config.c - options from configuration text, "name = value" lines.
 *
 * Takes a file or the record in a checkpoint, gives values to options.c one by one.
 * inih splits the lines; quotes, lines that are long and line numbers are dealt with
 * here.
 */
#include "base/status.h"
#include "options/options_table.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

/* What is known while inih goes through a text. */
struct reading {
    struct rnnd_options *opt;
    enum rnnd__source source;
    /* over what is written, whatever that is */
    bool given_wins;
    const char *path;
    /* of the text */
    const char *rest;
    /* of the line that inih works on */
    const char *content_end, *line_end;
    /* its number */
    int line;
    /* read and not yet set; a long line comes in pieces */
    char *name, *value;
    int value_line;
    /* the line that gave an option, 0 = none */
    int set_on[OPT_COUNT];
    int status;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Where a comment begins in a line of n characters: at a ";" behind a blank; n if
   nowhere. */
static size_t comment_start(const char *line, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (line[i] == ';' && is_blank(line[i - 1]))
            return i;
    return n;
}

/* A line begins: what it holds without a comment. */
static void begin_line(struct reading *r)
{
    r->line++;
    r->rest +=
        strspn(r->rest, " \t"); /* inih takes an indented line for a further piece */
    r->line_end = r->rest + strcspn(r->rest, "\n");
    size_t n = (size_t)(r->line_end - r->rest);
    bool comment = strchr("#;", *r->rest) && n; /* strchr finds the end, too */
    n = comment ? 0 : comment_start(r->rest, n);
    while (n && is_blank(r->rest[n - 1]))
        n--;
    r->content_end = r->rest + n;
    bool pair = memchr(r->rest, '=', n) || memchr(r->rest, ':', n) || *r->rest == '[';
    if (n && !pair && r->status == 0)
        r->status =
            rnnd__fail(RNND_EUSAGE, "%s:%d: \"%.*s\" is not of the form name = value",
                       r->path, r->line, (int)(n < 40 ? n : 40), r->rest);
}

/* How much of n characters to hand on where not all have room. inih strips blanks at
   the ends of a piece, and takes one that begins like a comment for a comment. */
static size_t piece_length(const char *text, size_t n, size_t room)
{
    if (n <= room)
        return n;
    size_t length = room;
    while (length > 1 &&
           (is_blank(text[length - 1]) || strchr(" \t\r#;", text[length])))
        length--;
    return length;
}

/* fgets for inih, which has room for short lines only: a longer one comes in pieces,
   each after the first indented, and inih reports them under the same name. */
static char *read_line(char *to, int size, void *stream)
{
    struct reading *r = stream;
    if (!*r->rest)
        return NULL;
    bool further = r->rest < r->content_end;
    if (!further)
        begin_line(r);
    size_t n =
        piece_length(r->rest, (size_t)(r->content_end - r->rest), (size_t)size - 3);
    snprintf(to, (size_t)size, "%s%.*s\n", further ? " " : "", (int)n, r->rest);
    r->rest += n;
    if (r->rest == r->content_end)
        r->rest = r->line_end + (*r->line_end == '\n');
    return to;
}

/* The text in double quotes, in place; false where an escape or quote is not right. */
static bool unquote(char *text)
{
    char *to = text;
    const char *from = text + 1;
    for (; *from && *from != '"'; from++) {
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        unsigned code;
        int used = 0;
        from++;
        if (*from == 'x' && sscanf(from + 1, "%2x%n", &code, &used) == 1 && used == 2 &&
            code)
            *to++ = (char)code, from += 2;
        else if (*from == 'n')
            *to++ = '\n';
        else if (*from == '"' || *from == '\\')
            *to++ = *from;
        else
            return false;
    }
    bool closed = from[0] == '"' && !from[1];
    *to = '\0';
    return closed;
}

static int set_from_text(struct reading *r)
{
    int i = rnnd__option_find(r->name);
    if (i < 0 || !(rnnd__options[i].commands & RNND_CMD_TRAIN))
        return rnnd__option_unknown(r->name, RNND_CMD_TRAIN, "");
    if (i == OPT_config || i == OPT_help || i == OPT_version)
        return rnnd__fail(RNND_EUSAGE, "%s does not belong in a configuration file",
                          r->name);
    if (r->set_on[i]) /* which of the two is meant, nobody knows */
        return rnnd__fail(RNND_EUSAGE, "%s is given twice, on line %d already", r->name,
                          r->set_on[i]);
    r->set_on[i] = r->value_line;
    if (r->given_wins && r->opt->given[i] != RNND_FROM_DEFAULT)
        return 0;
    if (r->value[0] == '"' && !unquote(r->value))
        return rnnd__fail(RNND_EUSAGE, "%s: the value in quotes is not well formed",
                          r->name);
    return rnnd__option_set(r->opt, i, r->value, r->source);
}

/* Sets what was read last, now that all pieces of it are here. */
static void finish_value(struct reading *r)
{
    if (r->name && r->status == 0) {
        r->status = set_from_text(r);
        if (r->status < 0)
            r->status = rnnd__fail(r->status, "%s:%d: %s", r->path, r->value_line,
                                   rnnd_status_detail());
    }
    free(r->name);
    free(r->value);
    r->name = r->value = NULL;
}

static bool begin_value(struct reading *r, const char *name, const char *value)
{
    r->name = strdup(name);
    r->value = strdup(value);
    r->value_line = r->line;
    return r->name && r->value;
}

static bool append_value(struct reading *r, const char *more)
{
    size_t length = strlen(r->value), extra = strlen(more);
    char *value = realloc(r->value, length + extra + 1);
    if (!value)
        return false;
    memcpy(value + length, more, extra + 1);
    r->value = value;
    return true;
}

/* Called by inih for "name = value", and for each further piece of a long line. */
static int take_value(void *context, const char *section, const char *name,
                      const char *value)
{
    struct reading *r = context;
    bool same_line = r->name && r->value_line == r->line;
    bool fits;
    if (same_line) {
        fits = append_value(r, value);
    } else {
        finish_value(r);
        fits = begin_value(r, name, value);
    }
    if (!fits && r->status == 0)
        r->status = rnnd__fail_memory(strlen(value), r->path);
    if (*section && r->status == 0)
        r->status =
            rnnd__fail(RNND_EUSAGE, "%s:%d: sections such as [%s] have no meaning here",
                       r->path, r->line, section);
    return r->status == 0;
}

static int read_lines(struct reading *r, const char *text)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* some editors begin UTF-8 with it */
    if (!strncmp(text, mark, strlen(mark)))
        text += strlen(mark);
    r->rest = r->content_end = text;
    int line = ini_parse_stream(read_line, r, take_value, r);
    finish_value(r);
    RNND_TRY(r->status);
    if (line != 0) /* no line that passed begin_line() */
        return rnnd__fail(RNND_EUSAGE, "%s: a line is not of the form name = value",
                          r->path);
    rnnd__options_settle(r->opt);
    return 0;
}

int rnnd__options_read_text(struct rnnd_options *opt, const char *text,
                            const char *path, enum rnnd__source source)
{
    struct reading r = {.opt = opt, .source = source, .path = path};
    return read_lines(&r, text);
}

int rnnd__options_read_record(struct rnnd_options *opt, const char *text,
                              const char *path)
{
    struct reading r = {
        .opt = opt, .source = RNND_FROM_FILE, .path = path, .given_wins = true};
    return read_lines(&r, text);
}

/* All of a file as text; *length tells where a NUL in it is not its end. */
static int read_all(FILE *file, const char *path, char **text, size_t *length)
{
    size_t size = 4096;
    char *all = NULL;
    *length = 0;
    for (;;) {
        int status = rnnd__grow(size + 1, 1, path, &all);
        if (status < 0) {
            free(all);
            return status;
        }
        *length += fread(all + *length, 1, size - *length, file);
        if (*length < size)
            break;
        size *= 2;
    }
    all[*length] = '\0';
    *text = all;
    return 0;
}

int rnnd__options_read_file(struct rnnd_options *opt, const char *path)
{
    char *text = NULL;
    size_t length;
    FILE *file = fopen(path, "r");
    if (!file)
        return rnnd__fail(RNND_EFILE, "cannot open %s: %s", path, strerror(errno));
    int status = read_all(file, path, &text, &length);
    if (status == 0 && ferror(file))
        status = rnnd__fail(RNND_EFILE, "cannot read %s: %s", path, strerror(errno));
    else if (status == 0 && strlen(text) != length)
        status =
            rnnd__fail(RNND_EUSAGE, "%s is no text: it holds a NUL character", path);
    else if (status == 0)
        status = rnnd__options_read_text(opt, text, path, RNND_FROM_FILE);
    fclose(file);
    free(text);
    return status;
}
