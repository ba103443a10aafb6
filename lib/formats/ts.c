/*
 * ts.c - the .ts text format of the UEA and UCR archives: a header of @ lines, then one
 * case per line. Colons separate dimensions, commas their values; the class comes last.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "formats/text.h"

struct ts {
    struct rnnd__text text;
    struct rnnd__contents *out;
    /* 0 = not known yet */
    int64_t dimensions;
    /* @equalLength: all cases have the same length, */
    bool equal;
    /* @seriesLength, 0 = not given */
    int64_t length;
    /* a case ends with a class, or with a number */
    bool labels, targets;
    struct rnnd__dictionary classes;
    /* float [dimensions, steps] of one case */
    struct rnnd__list values;
    /* cases whose last steps are padding */
    int64_t padded;
};

/* Fails at the current line. */
#define fail_line(ts, ...) \
    rnnd__text_fail((ts)->text.path, (ts)->text.line, __VA_ARGS__)

/* ---- header */

struct word {
    const char *at;
    size_t length;
};

/* The next word of a line, of length 0 at its end. */
static struct word next_word(const char **at, const char *end)
{
    const char *from = *at;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    const char *to = from;
    while (to < end && *to != ' ' && *to != '\t')
        to++;
    *at = to;
    return (struct word){from, (size_t)(to - from)};
}

static bool is(struct word w, const char *text)
{
    return rnnd__text_is(w.at, w.length, text);
}

static int read_truth(const struct ts *ts, struct word key, struct word w, bool *out)
{
    if (!is(w, "true") && !is(w, "false"))
        return fail_line(ts, "%.*s must be true or false", (int)key.length, key.at);
    *out = is(w, "true");
    return 0;
}

static int read_count(const struct ts *ts, struct word key, struct word w, int64_t *out)
{
    char *end;
    long long n = strtoll(w.at, &end, 10);
    if (w.length == 0 || end != w.at + w.length || n < 1 || n > INT32_MAX)
        return fail_line(ts, "%.*s must be a positive integer", (int)key.length,
                         key.at);
    *out = n;
    return 0;
}

static int read_classes(struct ts *ts, const char *at, const char *end)
{
    int64_t number;
    for (struct word w; (w = next_word(&at, end)).length;) {
        int64_t before = ts->classes.texts.count;
        w.length = rnnd__text_class(w.at, w.length);
        RNND_TRY(rnnd__dictionary_add(&ts->classes, w.at, w.length, &number));
        if (ts->classes.texts.count == before)
            return fail_line(ts, "class %.*s is listed twice", (int)w.length, w.at);
    }
    if (ts->classes.texts.count == 0)
        return fail_line(ts, "@classLabel true lists no classes");
    return 0;
}

static int read_header_line(struct ts *ts, const char *line, size_t length)
{
    const char *at = line, *end = line + length;
    struct word key = next_word(&at, end), value = next_word(&at, end);
    bool truth;
    if (is(key, "@dimensions") || is(key, "@dimension"))
        return read_count(ts, key, value, &ts->dimensions);
    if (is(key, "@seriesLength") && !is(value, "-1") && !is(value, "0"))
        return read_count(ts, key, value, &ts->length);
    if (is(key, "@equalLength"))
        return read_truth(ts, key, value, &ts->equal);
    if (is(key, "@univariate")) {
        RNND_TRY(read_truth(ts, key, value, &truth));
        ts->dimensions = truth ? 1 : ts->dimensions;
    } else if (is(key, "@timeStamps")) {
        RNND_TRY(read_truth(ts, key, value, &truth));
        if (truth)
            return fail_line(ts, "@timeStamps true is not supported: steps must be "
                                 "equally spaced");
    } else if (is(key, "@classLabel")) {
        RNND_TRY(read_truth(ts, key, value, &ts->labels));
        if (ts->labels)
            return read_classes(ts, at, end);
    } else if (is(key, "@targetLabel")) {
        return read_truth(ts, key, value, &ts->targets);
    } /* @problemName, @missing and others are not needed */
    return 0;
}

/* An empty line counts as one. */
static bool is_comment(const char *line, size_t length)
{
    return length == 0 || line[0] == '#' || line[0] == '%';
}

/* Reads the header, including the line @data. */
static int read_header(struct ts *ts)
{
    const char *line;
    size_t length;
    while (rnnd__text_line(&ts->text, &line, &length)) {
        rnnd__text_trim(&line, &length);
        if (is_comment(line, length))
            continue;
        if (rnnd__text_is(line, length, "@data")) {
            if (ts->labels && ts->targets)
                return rnnd__fail(RNND_EDATA,
                                  "%s: both @classLabel and @targetLabel are true",
                                  ts->text.path);
            return 0;
        }
        if (line[0] != '@')
            return fail_line(ts, "header lines must begin with @");
        RNND_TRY(read_header_line(ts, line, length));
    }
    return rnnd__fail(RNND_EDATA, "%s: not a .ts file: it has no @data line",
                      ts->text.path);
}

/* ---- cases */

/* In this format, "?" is missing, too. */
static bool is_missing(const char *field, size_t length)
{
    rnnd__text_trim(&field, &length);
    return rnnd__text_is(field, length, "?") || rnnd__text_missing(field, length);
}

/* A number, or NaN if it is missing; false for anything else. */
static bool read_number(const char *field, size_t length, float *value)
{
    *value = NAN;
    return is_missing(field, length) ||
           rnnd__text_number(field, length, value) == RNND_FIELD_NUMBER;
}

/* Values of one dimension, appended to ts->values. */
static int read_dimension(struct ts *ts, const char *at, const char *end,
                          int64_t dimension)
{
    char shown[48];
    if (at == end)
        return 0;
    for (int64_t n = 1; at <= end; n++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *to = comma ? comma : end;
        float value;
        if (!read_number(at, (size_t)(to - at), &value))
            return fail_line(
                ts, "dimension %lld, value %lld: \"%s\" is not a finite number",
                (long long)dimension, (long long)n,
                rnnd__text_shown(at, (size_t)(to - at), shown));
        if (rnnd__text_is_rounded(at, (size_t)(to - at), value))
            rnnd__contents_rounded(
                ts->out, value, "%s:%lld: dimension %lld, value %lld: %s",
                ts->text.path, (long long)ts->text.line, (long long)dimension,
                (long long)n, rnnd__text_shown(at, (size_t)(to - at), shown));
        RNND_TRY(rnnd__list_add(&ts->values, &value, 1));
        at = to + 1;
    }
    return 0;
}

/* The class of this name; else the only one that differs from it in the case of its
   letters; -1 = none, -2 = several. */
static int32_t find_class(const struct ts *ts, const char *name, size_t length)
{
    length = rnnd__text_class(name, length);
    int32_t found = (int32_t)rnnd__dictionary_find(&ts->classes, name, length);
    if (found >= 0)
        return found;
    for (int64_t i = 0; i < ts->classes.texts.count; i++)
        if (rnnd__text_is(name, length, rnnd__dictionary_text(&ts->classes, i)))
            found = found == -1 ? (int32_t)i : -2;
    return found;
}

static int read_label(struct ts *ts, const char *at, size_t length)
{
    char shown[48];
    rnnd__text_trim(&at, &length);
    bool missing = is_missing(at, length);
    int32_t label = missing ? -1 : find_class(ts, at, length);
    if (label < 0 && !missing)
        return fail_line(ts, "class \"%s\" is not listed by @classLabel",
                         rnnd__text_shown(at, length, shown));
    return rnnd__list_add(&ts->out->labels, &label, 1);
}

static int read_target(struct ts *ts, const char *at, size_t length)
{
    char shown[48];
    float value;
    if (!read_number(at, length, &value))
        return fail_line(ts, "target \"%s\" is not a finite number",
                         rnnd__text_shown(at, length, shown));
    return rnnd__list_add(&ts->out->values, &value, 1);
}

/* The steps of a case without its padding: steps at its end that have no value in any
   dimension. */
static int64_t without_padding(const struct ts *ts, int64_t steps)
{
    const float *value = ts->values.at;
    for (int64_t t = steps; t > 0; t--)
        for (int64_t i = 0; i < ts->dimensions; i++)
            if (!isnan(value[i * steps + t - 1]))
                return t;
    return 0;
}

/* Transposes the values of a case from [dimensions, steps] to [steps, dimensions]. */
static int add_steps(struct ts *ts, int64_t steps)
{
    int64_t I = ts->dimensions, before = ts->out->features.count;
    int64_t kept = without_padding(ts, steps);
    ts->padded += kept < steps;
    if (kept == 0)
        return rnnd__contents_end_sequence(ts->out);
    RNND_TRY(rnnd__list_add(&ts->out->features, NULL, kept * I));
    float *to = (float *)ts->out->features.at + before;
    const float *from = ts->values.at;
    for (int64_t t = 0; t < kept; t++)
        for (int64_t i = 0; i < I; i++) {
            *to = from[i * steps + t];
            if (isnan(*to++))
                RNND_TRY(rnnd__contents_gap(
                    ts->out, "%s:%lld: dimension %lld, value %lld", ts->text.path,
                    (long long)ts->text.line, (long long)i + 1, (long long)t + 1));
        }
    return rnnd__contents_end_sequence(ts->out);
}

static int64_t count_fields(const char *line, const char *end)
{
    int64_t n = 1;
    for (; line < end; line++)
        n += *line == ':';
    return n;
}

/* The dimensions of a case. Without labels, its last field may be an empty label: the
   one field too many or, in the first case of a file that does not tell its dimensions,
   an empty one after others that are not. */
static int64_t count_cells(const struct ts *ts, const char *line, const char *end)
{
    int64_t fields = count_fields(line, end);
    if (ts->labels || ts->targets)
        return fields - 1;
    const char *last = end;
    while (last > line && last[-1] != ':')
        last--;
    bool more = ts->dimensions ? fields == ts->dimensions + 1 : *line != ':';
    return fields > 1 && more && is_missing(last, (size_t)(end - last)) ? fields - 1
                                                                        : fields;
}

static int read_case(struct ts *ts, const char *line, size_t length)
{
    const char *at = line, *end = line + length;
    int64_t fields = count_cells(ts, line, end), steps = 0;
    if (fields < 1)
        return fail_line(ts, "no values before the class or target");
    if (ts->dimensions == 0)
        ts->dimensions = fields;
    if (fields != ts->dimensions)
        return fail_line(ts, "%lld dimensions, expected %lld", (long long)fields,
                         (long long)ts->dimensions);
    ts->out->inputs = ts->dimensions;
    ts->values.count = 0;
    for (int64_t d = 1; d <= fields; d++) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *to = colon ? colon : end;
        int64_t before = ts->values.count;
        RNND_TRY(read_dimension(ts, at, to, d));
        int64_t n = ts->values.count - before;
        if (d == 1)
            steps = n;
        if (n != steps)
            return fail_line(ts,
                             "dimension %lld has %lld values, but dimension 1 has %lld",
                             (long long)d, (long long)n, (long long)steps);
        at = to + 1;
    }
    if (ts->equal && ts->length && steps != ts->length)
        return fail_line(ts, "%lld steps, but @seriesLength is %lld", (long long)steps,
                         (long long)ts->length);
    if (ts->labels)
        RNND_TRY(read_label(ts, at, (size_t)(end - at)));
    if (ts->targets)
        RNND_TRY(read_target(ts, at, (size_t)(end - at)));
    return add_steps(ts, steps);
}

static int read_cases(struct ts *ts)
{
    const char *line;
    size_t length;
    while (rnnd__text_line(&ts->text, &line, &length)) {
        rnnd__text_trim(&line, &length);
        if (!is_comment(line, length))
            RNND_TRY(read_case(ts, line, length));
    }
    return 0;
}

/* ---- files */

/* Checks what must be the same in all inputs. */
static int compare_headers(const struct ts *ts, const struct ts *first)
{
    const char *path = ts->text.path, *other = first->text.path;
    int64_t n = ts->classes.texts.count;
    if (ts->labels != first->labels || ts->targets != first->targets)
        return rnnd__fail(RNND_EDATA, "%s: @classLabel or @targetLabel differs from %s",
                          path, other);
    bool same = n == first->classes.texts.count;
    for (int64_t i = 0; i < n && same; i++)
        same = strcmp(rnnd__dictionary_text(&ts->classes, i),
                      rnnd__dictionary_text(&first->classes, i)) == 0;
    if (!same)
        return rnnd__fail(RNND_EDATA, "%s: @classLabel differs from %s", path, other);
    if (ts->dimensions && first->dimensions && ts->dimensions != first->dimensions)
        return rnnd__fail(RNND_EDATA, "%s: %lld dimensions, but %s has %lld", path,
                          (long long)ts->dimensions, other,
                          (long long)first->dimensions);
    return 0;
}

static void clear(struct ts *ts)
{
    rnnd__text_clear(&ts->text);
    rnnd__dictionary_clear(&ts->classes);
    rnnd__list_clear(&ts->values);
}

/* first: the first file, NULL when reading that one. */
static int read_file(struct ts *ts, const char *path, struct ts *first)
{
    ts->values.size = sizeof(float);
    RNND_TRY(rnnd__text_read(path, &ts->text));
    RNND_TRY(read_header(ts));
    if (first) {
        RNND_TRY(compare_headers(ts, first));
        ts->dimensions = first->dimensions ? first->dimensions : ts->dimensions;
    }
    RNND_TRY(read_cases(ts));
    if (ts->padded)
        rnnd__log_info("%s: %lld cases end in steps without any value; such steps are "
                       "padding and left out",
                       path, (long long)ts->padded);
    if (first && !first->dimensions)
        first->dimensions = ts->dimensions;
    return 0;
}

static int name_classes(struct ts *ts, struct rnnd__contents *out)
{
    out->task = ts->labels ? RNND_CLASSIFY : ts->targets ? RNND_REGRESS : RNND_NO_TASK;
    out->outputs = ts->targets;
    out->classes = ts->classes.texts.count;
    return rnnd__list_add_texts(&out->class, &ts->classes.texts);
}

static int read_ts(const struct rnnd_options *opt, char *const *inputs, int count,
                   struct rnnd__contents *out)
{
    struct ts first = {.out = out};
    (void)opt;
    int status = read_file(&first, inputs[0], NULL);
    for (int i = 1; i < count && status == 0; i++) {
        struct ts next = {.out = out};
        status = read_file(&next, inputs[i], &first);
        clear(&next);
    }
    if (status == 0)
        status = name_classes(&first, out);
    clear(&first);
    return status;
}

static const char *const options[] = {"classes-from", "missing", "split", "seed", NULL};
const struct rnnd__format rnnd__format_ts = {"ts", options, read_ts};
