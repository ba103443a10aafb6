/*
 * kaldi.c - Kaldi's archives of features, or lists of the places of matrices in them
 * (scp), and a text of labels for each utterance.
 *
 * A line of a list: the utterance, and a file with a byte behind a colon; in brackets,
 * a part of the rows. A command, which ends with |, is not run.
 */
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "formats/ark.h"
#include "formats/classes.h"
#include "formats/text.h"

struct kaldi {
    const struct rnnd_options *opt;
    struct rnnd__contents *out;
    /* utterances in the order of the features, and of the text */
    struct rnnd__dictionary names, labelled;
    /* int32_t, the labels of all lines of the text, and int64_t, where each ends */
    struct rnnd__list labels, ends;
    /* by first appearance, or as in another data set */
    struct rnnd__dictionary classes;
    /* the archive that a list named last, and its path, which is owned */
    struct rnnd__ark ark;
    char *path;
};

/* ---- features */

/* Values that are no numbers are missing; infinite ones are refused. */
static int check_values(struct kaldi *k, const char *where, const char *name,
                        int64_t before)
{
    const float *value = (const float *)k->out->features.at + before;
    int64_t count = k->out->features.count - before, columns = k->out->inputs;
    for (int64_t i = 0; i < count; i++) {
        if (isinf(value[i]))
            return rnnd__fail(RNND_EDATA,
                              "%s: utterance \"%.60s\": row %lld, column %lld is not a "
                              "finite 32-bit float",
                              where, name, (long long)(i / columns),
                              (long long)(i % columns));
        if (isnan(value[i]))
            RNND_TRY(rnnd__contents_gap(
                k->out, "%s: utterance \"%.60s\": row %lld, column %lld", where, name,
                (long long)(i / columns), (long long)(i % columns)));
    }
    return 0;
}

/* Rows of a matrix that a list wants. */
struct part {
    int64_t first, last;
};

/* Keeps a part of the rows that were appended. */
static int cut(struct kaldi *k, const struct part *part, int64_t before, int64_t *rows,
               int64_t columns)
{
    if (part->last >= *rows)
        return rnnd__fail(RNND_EDATA, "rows %lld to %lld of a matrix of %lld rows",
                          (long long)part->first, (long long)part->last,
                          (long long)*rows);
    struct rnnd__list *all = &k->out->features;
    int64_t count = part->last - part->first + 1;
    memmove((float *)all->at + before,
            (float *)all->at + before + part->first * columns,
            (size_t)(count * columns) * sizeof(float));
    all->count = before + count * columns;
    *rows = count;
    return 0;
}

/* The matrix that begins here is the next utterance. part: NULL = all rows. */
static int take_utterance(struct kaldi *k, struct rnnd__ark *ark, const char *name,
                          const struct part *part)
{
    struct rnnd__contents *out = k->out;
    int64_t before = out->features.count, at = ark->at, number, rows, columns;
    RNND_TRY(rnnd__dictionary_add(&k->names, name, strlen(name), &number));
    if (number != out->offsets.count - 1)
        return rnnd__fail(RNND_EDATA,
                          "%s: byte %lld: a second matrix of utterance \"%.60s\"",
                          ark->path, (long long)at, name);
    RNND_TRY(rnnd__ark_matrix(ark, &out->features, &rows, &columns));
    if (part && cut(k, part, before, &rows, columns) < 0)
        return rnnd__fail(RNND_EDATA, "%s: utterance \"%.60s\": %s", ark->path, name,
                          rnnd_status_detail());
    if (rows > 0 && out->inputs == 0)
        out->inputs = columns;
    if (rows > 0 && columns != out->inputs)
        return rnnd__fail(RNND_EDATA,
                          "%s: byte %lld: the matrix of utterance \"%.60s\" has %lld "
                          "columns, the first one %lld",
                          ark->path, (long long)at, name, (long long)columns,
                          (long long)out->inputs);
    RNND_TRY(check_values(k, ark->path, name, before));
    int64_t end = out->inputs ? out->features.count / out->inputs : 0;
    return rnnd__list_add(&out->offsets, &end, 1);
}

static int read_archive(struct kaldi *k, const char *path)
{
    struct rnnd__list key = {.size = 1};
    struct rnnd__ark ark;
    bool more;
    int status;
    RNND_TRY(rnnd__ark_open(path, &ark));
    for (;;) {
        RNND_TRY_GOTO(rnnd__ark_key(&ark, &key, &more));
        if (!more)
            break;
        RNND_TRY_GOTO(take_utterance(k, &ark, key.at, NULL));
    }
done:
    rnnd__list_clear(&key);
    rnnd__ark_close(&ark);
    return status;
}

/* ---- lists */

/* A line of a list. */
struct entry {
    char *name, *path;
    int64_t at;
    bool has_part;
    struct part part;
};

/* "PATH[FIRST:LAST]": takes off the brackets. False if they hold anything else. */
static bool split_part(struct entry *e)
{
    size_t n = strlen(e->path);
    char *open = strrchr(e->path, '[');
    long long first, last;
    int end = 0;
    if (!open || e->path[n - 1] != ']')
        return true;
    if (sscanf(open, "[%lld:%lld]%n", &first, &last, &end) != 2 || open[end] ||
        first < 0 || last < first || last == LLONG_MAX)
        return false;
    e->has_part = true;
    e->part = (struct part){first, last};
    *open = 0;
    return true;
}

/* "PATH:BYTE": takes off the byte. */
static bool split_byte(struct entry *e)
{
    char *colon = strrchr(e->path, ':'), *end;
    e->at = 0;
    if (!colon || !isdigit((unsigned char)colon[1]))
        return true;
    long long at = strtoll(colon + 1, &end, 10);
    if (*end)
        return true;
    *colon = 0;
    e->at = at;
    return at < LLONG_MAX;
}

/* The line is changed: its parts end with NULs. */
static int parse_line(const struct rnnd__text *text, char *line, struct entry *e)
{
    e->name = line;
    e->path = line + strcspn(line, " \t");
    if (*e->path)
        *e->path++ = 0;
    e->path += strspn(e->path, " \t");
    size_t n = strlen(e->path);
    while (n > 0 && isspace((unsigned char)e->path[n - 1]))
        e->path[--n] = 0;
    if (!*e->name || n == 0)
        return rnnd__text_fail(text->path, text->line,
                               "an utterance and its place are expected, as in "
                               "utt1 feats.ark:5");
    if (e->path[n - 1] == '|')
        return rnnd__text_fail(text->path, text->line,
                               "\"%.60s\" is a command, which is not run; write its "
                               "output to an archive",
                               e->path);
    if (!split_part(e))
        return rnnd__text_fail(text->path, text->line,
                               "in brackets, rows are expected, as in [0:99]");
    if (!split_byte(e))
        return rnnd__text_fail(text->path, text->line, "a byte beyond any file");
    return 0;
}

/* Archives stay open from line to line. */
static int open_again(struct kaldi *k, const char *path)
{
    if (k->path && strcmp(k->path, path) == 0)
        return 0;
    rnnd__ark_close(&k->ark);
    free(k->path);
    k->path = strdup(path);
    if (!k->path)
        return rnnd__fail_memory(1, "a path");
    return rnnd__ark_open(k->path, &k->ark);
}

static int read_entry(struct kaldi *k, const struct rnnd__text *text, char *line)
{
    struct entry e = {0};
    RNND_TRY(parse_line(text, line, &e));
    int status = open_again(k, e.path);
    if (status == 0)
        status = rnnd__ark_seek(&k->ark, e.at);
    if (status == 0)
        status = take_utterance(k, &k->ark, e.name, e.has_part ? &e.part : NULL);
    if (status == 0)
        return 0;
    return rnnd__fail((enum rnnd_status)status, "%s:%lld: %s", text->path,
                      (long long)text->line, rnnd_status_detail());
}

static int read_list(struct kaldi *k, const char *path)
{
    struct rnnd__text text;
    const char *line;
    size_t n;
    int status = 0;
    RNND_TRY(rnnd__text_read(path, &text));
    while (status == 0 && rnnd__text_line(&text, &line, &n)) {
        char *copy = strndup(line, n);
        if (!copy)
            status = rnnd__fail_memory(n, "a line");
        else if (copy[strspn(copy, " \t")])
            status = read_entry(k, &text, copy);
        free(copy);
    }
    rnnd__text_clear(&text);
    return status;
}

static bool is_list(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".scp") == 0;
}

/* ---- labels */

/* The next word of a line, *n bytes; 0 at its end. */
static const char *next_word(const char **line, const char *end, size_t *n)
{
    const char *at = *line;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    const char *from = at;
    while (at < end && *at != ' ' && *at != '\t')
        at++;
    *n = (size_t)(at - from);
    *line = at;
    return from;
}

static int take_label(struct kaldi *k, const struct rnnd__text *text, const char *word,
                      size_t n)
{
    int64_t number;
    char shown[48];
    size_t length = rnnd__text_class(word, n);
    RNND_TRY(rnnd__classes_number(k->opt, &k->classes, word, length, &number));
    if (number < 0)
        return rnnd__text_fail(text->path, text->line,
                               "\"%s\" is not a class of the data set given by "
                               "--classes-from",
                               rnnd__text_shown(word, n, shown));
    return rnnd__list_add(&k->labels, &(int32_t){(int32_t)number}, 1);
}

static int take_line(struct kaldi *k, const struct rnnd__text *text, const char *line,
                     size_t length)
{
    const char *end = line + length;
    char shown[48];
    size_t n;
    int64_t number;
    const char *name = next_word(&line, end, &n);
    if (n == 0)
        return 0;
    RNND_TRY(rnnd__dictionary_add(&k->labelled, name, n, &number));
    if (number != k->ends.count)
        return rnnd__text_fail(text->path, text->line,
                               "a second line of utterance \"%s\"",
                               rnnd__text_shown(name, n, shown));
    for (;;) {
        const char *word = next_word(&line, end, &n);
        if (n == 0)
            break;
        RNND_TRY(take_label(k, text, word, n));
    }
    return rnnd__list_add(&k->ends, &k->labels.count, 1);
}

static int read_text(struct kaldi *k)
{
    struct rnnd__text text;
    const char *line;
    size_t n;
    int status = 0;
    RNND_TRY(rnnd__text_read(k->opt->labels_from, &text));
    while (status == 0 && rnnd__text_line(&text, &line, &n))
        status = take_line(k, &text, line, n);
    rnnd__text_clear(&text);
    return status;
}

static int64_t line_of(const struct kaldi *k, int64_t utterance)
{
    const char *name = rnnd__dictionary_text(&k->names, utterance);
    return rnnd__dictionary_find(&k->labelled, name, strlen(name));
}

/* Of utterances without a line, which end it; of lines without features, which do
   not. */
static int check_missing(const struct kaldi *k)
{
    int64_t lost = 0, first = -1, unused = 0, spare = -1;
    int64_t utterances = k->names.texts.count, lines = k->labelled.texts.count;
    char shown[48];
    for (int64_t i = 0; i < utterances; i++)
        if (line_of(k, i) < 0) {
            first = lost++ ? first : i;
        }
    if (lost) {
        const char *name = rnnd__dictionary_text(&k->names, first);
        return rnnd__fail(RNND_EDATA,
                          "%s: has no line for utterance \"%s\", the first of %lld "
                          "without one (%lld in all)",
                          k->opt->labels_from,
                          rnnd__text_shown(name, strlen(name), shown), (long long)lost,
                          (long long)utterances);
    }
    for (int64_t i = 0; i < lines; i++) {
        const char *name = rnnd__dictionary_text(&k->labelled, i);
        if (rnnd__dictionary_find(&k->names, name, strlen(name)) < 0)
            spare = unused++ ? spare : i;
    }
    if (unused) {
        const char *name = rnnd__dictionary_text(&k->labelled, spare);
        rnnd__log_warn("%s: %lld of %lld utterances are not among the features, the "
                       "first \"%s\"",
                       k->opt->labels_from, (long long)unused, (long long)lines,
                       rnnd__text_shown(name, strlen(name), shown));
    }
    return 0;
}

static int label_utterances(struct kaldi *k)
{
    struct rnnd__contents *out = k->out;
    const int64_t *end = k->ends.at;
    RNND_TRY(check_missing(k));
    for (int64_t i = 0; i < k->names.texts.count; i++) {
        int64_t line = line_of(k, i), from = line ? end[line - 1] : 0;
        RNND_TRY(rnnd__list_add(&out->labels, (const int32_t *)k->labels.at + from,
                                end[line] - from));
        RNND_TRY(rnnd__contents_end_string(out));
    }
    if (!k->opt->classes_from)
        RNND_TRY(rnnd__classes_sort(&k->classes, out));
    out->classes = out->class.count;
    if (out->classes == 0)
        return rnnd__fail(RNND_EDATA, "%s: contains no labels", k->opt->labels_from);
    return 0;
}

/* ---- the reader */

static int read_inputs(struct kaldi *k, char *const *inputs, int count)
{
    for (int i = 0; i < count; i++)
        RNND_TRY(is_list(inputs[i]) ? read_list(k, inputs[i])
                                    : read_archive(k, inputs[i]));
    if (k->out->offsets.count > 1 && k->out->inputs == 0)
        return rnnd__fail(RNND_EDATA, "%s: all matrices are empty", inputs[0]);
    return 0;
}

static int read_kaldi(const struct rnnd_options *opt, char *const *inputs, int count,
                      struct rnnd__contents *out)
{
    struct kaldi k = {.opt = opt,
                      .out = out,
                      .labels.size = sizeof(int32_t),
                      .ends.size = sizeof(int64_t)};
    int status;
    out->task = opt->labels_from ? RNND_CTC : RNND_NO_TASK;
    if (opt->classes_from && !opt->labels_from)
        return rnnd__fail(RNND_EUSAGE, "--classes-from needs classes: --labels-from");
    if (opt->classes_from)
        RNND_TRY_GOTO(rnnd__classes_take(opt->classes_from, &k.classes, out));
    if (opt->labels_from)
        RNND_TRY_GOTO(read_text(&k));
    RNND_TRY_GOTO(read_inputs(&k, inputs, count));
    if (opt->labels_from)
        RNND_TRY_GOTO(label_utterances(&k));
    out->names = k.names.texts;
    k.names.texts = (struct rnnd__list){.size = sizeof(char *)};
done:
    rnnd__ark_close(&k.ark);
    free(k.path);
    rnnd__dictionary_clear(&k.names);
    rnnd__dictionary_clear(&k.labelled);
    rnnd__dictionary_clear(&k.classes);
    rnnd__list_clear(&k.labels);
    rnnd__list_clear(&k.ends);
    return status;
}

static const char *const options[] = {"labels-from", "classes-from", "missing",
                                      "split",       "seed",         NULL};
const struct rnnd__format rnnd__format_kaldi = {"kaldi", options, read_kaldi};
