/*
 * options_config.c - reads options from "name = value" lines.
 *
 * Takes a file or the options stored in a checkpoint, and passes values to options.c.
 * inih splits the lines; quotes, long lines and line numbers are handled here.
 */
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "options/options_table.h"

/* State while inih reads a text. */
struct reading {
    struct rnnd_options *opt;
    enum rnnd__source source;
    /* an option that was given keeps its value, without reading the text's */
    bool given_wins;
    const char *path;
    /* the unread part of the text */
    const char *rest;
    /* ends of the current line, without and with its comment */
    const char *content_end, *line_end;
    /* number of the current line */
    int line;
    /* read but not yet set; a long line comes in pieces */
    char *name, *value;
    int value_line;
    /* the line that set an option, 0 = none */
    int set_on[OPT_COUNT];
    int status;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The start of a comment in a line of n characters: a ";" after a blank; n if there is
   none. */
static size_t comment_start(const char *line, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (line[i] == ';' && is_blank(line[i - 1]))
            return i;
    return n;
}

/* Starts the next line: finds its content without comment and checks its form. */
static void begin_line(struct reading *r)
{
    r->line++;
    /* inih takes an indented line as a continuation */
    r->rest += strspn(r->rest, " \t");
    r->line_end = r->rest + strcspn(r->rest, "\n");
    size_t n = (size_t)(r->line_end - r->rest);
    bool comment = n && strchr("#;", *r->rest);
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

/* inih strips blanks at both ends of a line, and takes a line that starts like a
   comment as one. Such characters of a value pass through it under cover, as two that
   it leaves alone. */
enum { COVER = 1, COVERED = 64 };

static bool is_covered(char c)
{
    return is_blank(c) || c == ';' || c == '#' || c == COVER;
}

static void uncover(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        *to++ = *from == COVER ? (char)(*++from - COVERED) : *from;
    *to = '\0';
}

/* Passes on the name of the line that begins, with "=" but without the blanks behind
   it; a line without a value as it is. */
static char *put_name(struct reading *r, char *to, const char *end)
{
    size_t n = (size_t)(r->content_end - r->rest), name = strcspn(r->rest, "=:") + 1;
    bool whole = *r->rest == '[' || name > n;
    size_t length = whole ? n : name, room = (size_t)(end - to);
    if (length > room)
        length = room;
    memcpy(to, r->rest, length);
    r->rest += length;
    while (r->rest < r->content_end && is_blank(*r->rest))
        r->rest++;
    return to + length;
}

/* fgets() for inih, whose line buffer is short: a long line is passed in pieces, all
   but the first indented, and inih reports them under the same name. */
static char *read_line(char *to, int size, void *stream)
{
    struct reading *r = stream;
    char *at = to, *end = to + size - 2; /* room for the line's end */
    if (!*r->rest)
        return NULL;
    if (r->rest < r->content_end) {
        *at++ = ' ';
    } else {
        begin_line(r);
        at = put_name(r, at, end);
    }
    while (r->rest < r->content_end && end - at >= 2) {
        bool covered = is_covered(*r->rest);
        if (covered)
            *at++ = COVER;
        *at++ = (char)(*r->rest++ + (covered ? COVERED : 0));
    }
    memcpy(at, "\n", 2);
    if (r->rest == r->content_end)
        r->rest = r->line_end + (*r->line_end == '\n');
    return to;
}

/* Replaces text in double quotes by its value; false if a quote or escape is wrong. */
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
        return rnnd__fail(RNND_EUSAGE, "%s cannot be set in a configuration file",
                          r->name);
    if (r->set_on[i])
        return rnnd__fail(RNND_EUSAGE, "%s is already set on line %d", r->name,
                          r->set_on[i]);
    r->set_on[i] = r->value_line;
    if (r->given_wins && r->opt->given[i] != RNND_FROM_DEFAULT)
        return 0;
    if (r->value[0] == '"' && !unquote(r->value))
        return rnnd__fail(RNND_EUSAGE, "%s: the quoted value is malformed", r->name);
    return rnnd__option_set(r->opt, i, r->value, r->source);
}

/* Sets the option that was read last, once all its pieces are there. */
static void finish_value(struct reading *r)
{
    if (r->name && r->status == 0) {
        uncover(r->value);
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

/* Called by inih for "name = value", and for each continuation of a long line. */
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
            rnnd__fail(RNND_EUSAGE, "%s:%d: sections such as [%s] are not supported",
                       r->path, r->line, section);
    return r->status == 0;
}

static int read_lines(struct reading *r, const char *text)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* byte order mark */
    if (strncmp(text, mark, strlen(mark)) == 0)
        text += strlen(mark);
    r->rest = r->content_end = text;
    int line = ini_parse_stream(read_line, r, take_value, r);
    finish_value(r);
    RNND_TRY(r->status);
    if (line != 0) /* begin_line() rejects such lines first */
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

int rnnd__options_read_file(struct rnnd_options *opt, const char *path)
{
    char *text;
    size_t size;
    FILE *file; /* all ranks read it, so that it cannot be a pipe */
    RNND_TRY(rnnd__file_open(path, &file));
    if (file)
        fclose(file);
    RNND_TRY(rnnd__file_read(path, &text, &size));
    int status = strlen(text) == size
                     ? rnnd__options_read_text(opt, text, path, RNND_FROM_FILE)
                     : rnnd__fail(RNND_EUSAGE,
                                  "%s: not a text file: it contains a NUL byte", path);
    free(text);
    return status;
}
