/*
 * contents.c - a data set in memory: filled in by the readers, split, and written as a
 * data file.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/output.h"
#include "base/random.h"
#include "base/range.h"
#include "base/task.h"
#include "formats/symbols.h"
#include "formats/text.h"
#include "hdf/hdf.h"
#include "options/options.h"

int rnnd__contents_init(struct rnnd__contents *contents)
{
    *contents = (struct rnnd__contents){
        .task = RNND_NO_TASK,
        .offsets.size = sizeof(int64_t),
        .features.size = sizeof(float),
        .tokens.size = sizeof(int32_t),
        .labels.size = sizeof(int32_t),
        .string_offsets.size = sizeof(int64_t),
        .values.size = sizeof(float),
        .names.size = sizeof(char *),
        .class.size = sizeof(char *),
        .token.size = sizeof(char *),
        .feature.size = sizeof(char *),
    };
    return rnnd__list_add(&contents->offsets, NULL, 1);
}

void rnnd__contents_clear(struct rnnd__contents *contents)
{
    free(contents->first_gap);
    contents->first_gap = NULL;
    rnnd__list_clear(&contents->offsets);
    rnnd__list_clear(&contents->features);
    rnnd__list_clear(&contents->tokens);
    rnnd__list_clear(&contents->labels);
    rnnd__list_clear(&contents->string_offsets);
    rnnd__list_clear(&contents->values);
    rnnd__list_clear_texts(&contents->names);
    rnnd__list_clear_texts(&contents->class);
    rnnd__list_clear_texts(&contents->token);
    rnnd__list_clear_texts(&contents->feature);
}

int64_t rnnd__contents_sequences(const struct rnnd__contents *contents)
{
    return contents->offsets.count - 1;
}

int64_t rnnd__contents_steps(const struct rnnd__contents *contents)
{
    return contents->vocab || !contents->inputs
               ? contents->tokens.count
               : contents->features.count / contents->inputs;
}

int rnnd__contents_end_sequence(struct rnnd__contents *contents)
{
    int64_t end = rnnd__contents_steps(contents);
    return rnnd__list_add(&contents->offsets, &end, 1);
}

int rnnd__contents_end_string(struct rnnd__contents *contents)
{
    if (contents->string_offsets.count == 0)
        RNND_TRY(rnnd__list_add(&contents->string_offsets, NULL, 1));
    return rnnd__list_add(&contents->string_offsets, &contents->labels.count, 1);
}

int rnnd__contents_gap(struct rnnd__contents *contents, const char *format, ...)
{
    va_list args;
    if (contents->gaps++)
        return 0;
    va_start(args, format);
    int n = vasprintf(&contents->first_gap, format, args);
    va_end(args);
    if (n < 0)
        contents->first_gap = NULL;
    return n < 0 ? rnnd__fail_memory(1, "a message") : 0;
}

void rnnd__contents_rounded(struct rnnd__contents *contents, float value,
                            const char *format, ...)
{
    char where[2048];
    va_list args;
    if (contents->rounded)
        return;
    contents->rounded = true;
    va_start(args, format);
    vsnprintf(where, sizeof where, format, args);
    va_end(args);
    rnnd__range_warn_rounded(where, value);
}

/* ---- formats */

static const struct rnnd__format *const formats[] = {
    &rnnd__format_ts,         &rnnd__format_csv,        &rnnd__format_npz,
    &rnnd__format_text_words, &rnnd__format_text_chars, &rnnd__format_music,
    &rnnd__format_kaldi,
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

const char *rnnd__format_name(int i)
{
    return i < FORMATS ? formats[i]->name : NULL;
}

int rnnd__format_find(const char *name, const struct rnnd__format **out)
{
    const char *names[FORMATS + 1] = {NULL};
    char known[128] = "";
    for (int i = 0; i < FORMATS; i++) {
        names[i] = formats[i]->name;
        if (strcmp(name, names[i]) == 0) {
            *out = formats[i];
            return 0;
        }
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", names[i]);
    }
    const char *meant = rnnd__options_nearest(name, names);
    if (meant)
        return rnnd__fail(RNND_EUSAGE, "pack: unknown kind %s; did you mean %s?", name,
                          meant);
    return rnnd__fail(RNND_EUSAGE, "pack: unknown kind %s; known kinds: %s", name,
                      known);
}

/* The place of each class in `names`, -1 for one that is not there. */
static int place_classes(const struct rnnd__contents *c, const struct rnnd__list *names,
                         int32_t **out)
{
    struct rnnd__dictionary known = {0};
    int64_t number;
    int status = 0;
    for (int64_t i = 0; i < names->count && status == 0; i++) {
        const char *name = rnnd__list_text(names, i);
        status = rnnd__dictionary_add(&known, name,
                                      rnnd__text_class(name, strlen(name)), &number);
    }
    if (status == 0)
        status = RNND_NEW(out, c->classes, "classes");
    for (int64_t i = 0; i < c->classes && status == 0; i++) {
        const char *name = c->class.count ? rnnd__list_text(&c->class, i) : NULL;
        (*out)[i] = name ? (int32_t)rnnd__dictionary_find(
                               &known, name, rnnd__text_class(name, strlen(name)))
                         : (int32_t)(i < names->count ? i : -1);
    }
    rnnd__dictionary_clear(&known);
    return status;
}

/* Numbers the classes as in another data set: by name or, where they have none, as they
   are. */
static int use_classes(struct rnnd__contents *c, const char *path, const char *input)
{
    struct rnnd__list names = {.size = sizeof(char *)};
    int32_t *place = NULL, *label = c->labels.at;
    int status;
    RNND_TRY_GOTO(rnnd__format_texts_of(path, "/classes", &names));
    RNND_TRY_GOTO(place_classes(c, &names, &place));
    for (int64_t i = 0; i < c->labels.count; i++) {
        if (label[i] < 0)
            continue;
        if (place[label[i]] < 0)
            RNND_TRY_GOTO(rnnd__fail(
                RNND_EDATA,
                "%s: class %d \"%s\" is not a class of the data set given by "
                "--classes-from",
                input, label[i],
                c->class.count ? rnnd__list_text(&c->class, label[i]) : ""));
        label[i] = place[label[i]];
    }
    struct rnnd__list swap = c->class;
    c->class = names;
    c->classes = names.count;
    names = swap;
done:
    free(place);
    rnnd__list_clear_texts(&names);
    return status;
}

int rnnd__format_read(const struct rnnd__format *format, const struct rnnd_options *opt,
                      char *const *inputs, int count, struct rnnd__contents *out)
{
    RNND_TRY(format->read(opt, inputs, count, out));
    if (opt->classes_from && out->classes)
        RNND_TRY(use_classes(out, opt->classes_from, inputs[0]));
    RNND_TRY(rnnd__contents_fill(out, opt->missing));
    if (rnnd__contents_sequences(out) == 0)
        return rnnd__fail(RNND_EDATA, "%s: contains no sequences", inputs[0]);
    if (rnnd__contents_sequences(out) >= INT32_MAX)
        return rnnd__fail(RNND_EDATA, "%s: more than 2^31-2 sequences", inputs[0]);
    return 0;
}

int rnnd__format_texts_of(const char *path, const char *object, struct rnnd__list *out)
{
    struct rnnd__hdf *file;
    char **text = NULL;
    int64_t count;
    if (rnnd__symbols_in(path))
        return rnnd__symbols_read(path, out);
    RNND_TRY(rnnd__hdf_open(path, &file));
    int status;
    RNND_TRY_GOTO(rnnd__hdf_read_strings(file, object, &text, &count));
    for (int64_t i = 0; i < count; i++) {
        if (!rnnd__text_is_utf8(text[i]))
            RNND_TRY_GOTO(rnnd__fail(RNND_EDATA, "%s: %s[%lld] is not UTF-8", path,
                                     object, (long long)i));
        RNND_TRY_GOTO(rnnd__list_add_text(out, text[i], strlen(text[i])));
    }
done:
    free(text);
    rnnd__hdf_close(file);
    return status;
}

/* ---- split */

/* Marks `count` of the sequences 0..n-1, by the first steps of a Fisher-Yates
   shuffle. */
static int draw(int64_t n, int64_t count, uint64_t seed, bool **out)
{
    uint64_t key = rnnd__random_key(seed, RNND_FOR_SPLIT, 0, 0);
    int64_t *order;
    bool *drawn;
    RNND_TRY(RNND_NEW(&drawn, n, "a split"));
    int status = RNND_NEW(&order, n, "a split");
    if (status < 0) {
        free(drawn);
        return status;
    }
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = 0; i < count; i++) {
        struct rnnd__random r =
            rnnd__philox(key, (uint32_t)i, (uint32_t)(i >> 32), 0, 0);
        uint64_t word = (uint64_t)r.word[1] << 32 | r.word[0];
        int64_t j = i + (int64_t)(((unsigned __int128)word * (uint64_t)(n - i)) >> 64);
        drawn[order[j]] = true;
        order[j] = order[i];
    }
    free(order);
    *out = drawn;
    return 0;
}

static int copy_rows(struct rnnd__list *to, const struct rnnd__list *from,
                     int64_t first, int64_t rows, int64_t width)
{
    if (from->count == 0)
        return 0;
    return rnnd__list_add(to,
                          (const char *)from->at + (size_t)(first * width) * from->size,
                          rows * width);
}

/* Moves a string from one list to another, which then owns it. */
static int move_text(struct rnnd__list *to, struct rnnd__list *from, int64_t i)
{
    if (from->count == 0)
        return 0;
    char **text = (char **)from->at + i;
    RNND_TRY(rnnd__list_add(to, text, 1));
    *text = NULL;
    return 0;
}

static int copy_string(struct rnnd__contents *to, const struct rnnd__contents *from,
                       int64_t i)
{
    const int64_t *at = (const int64_t *)from->string_offsets.at + i;
    RNND_TRY(copy_rows(&to->labels, &from->labels, at[0], at[1] - at[0], 1));
    return rnnd__contents_end_string(to);
}

static int move_sequence(struct rnnd__contents *to, struct rnnd__contents *from,
                         int64_t i)
{
    const int64_t *at = (const int64_t *)from->offsets.at + i;
    int64_t steps = at[1] - at[0];
    bool by_step = rnnd_task_is_stepwise(from->task);
    int64_t row = by_step ? at[0] : i, rows = by_step ? steps : 1;
    RNND_TRY(copy_rows(&to->features, &from->features, at[0], steps, from->inputs));
    RNND_TRY(copy_rows(&to->tokens, &from->tokens, at[0], steps, 1));
    if (from->string_offsets.count)
        RNND_TRY(copy_string(to, from, i));
    else
        RNND_TRY(copy_rows(&to->labels, &from->labels, row, rows, 1));
    RNND_TRY(copy_rows(&to->values, &from->values, row, rows, from->outputs));
    RNND_TRY(move_text(&to->names, &from->names, i));
    int64_t end = ((int64_t *)to->offsets.at)[to->offsets.count - 1] + steps;
    return rnnd__list_add(&to->offsets, &end, 1);
}

/* Copies what belongs to the data set as a whole. */
static int copy_head(struct rnnd__contents *to, const struct rnnd__contents *from)
{
    to->task = from->task;
    to->inputs = from->inputs;
    to->vocab = from->vocab;
    to->classes = from->classes;
    to->outputs = from->outputs;
    to->keeps_gaps = from->keeps_gaps;
    RNND_TRY(rnnd__list_add_texts(&to->class, &from->class));
    RNND_TRY(rnnd__list_add_texts(&to->feature, &from->feature));
    return rnnd__list_add_texts(&to->token, &from->token);
}

int rnnd__contents_split(struct rnnd__contents *contents, double fraction,
                         uint64_t seed, struct rnnd__contents *rest)
{
    int64_t n = rnnd__contents_sequences(contents);
    int64_t count = (int64_t)llround(fraction * (double)n);
    bool *drawn = NULL;
    struct rnnd__contents kept = {0};
    if (n < 2)
        return rnnd__fail(RNND_EDATA, "--split needs at least two sequences");
    count = count < 1 ? 1 : count > n - 1 ? n - 1 : count;
    int status;
    RNND_TRY_GOTO(draw(n, count, seed, &drawn));
    RNND_TRY_GOTO(rnnd__contents_init(&kept));
    RNND_TRY_GOTO(copy_head(&kept, contents));
    RNND_TRY_GOTO(copy_head(rest, contents));
    for (int64_t i = 0; i < n; i++)
        RNND_TRY_GOTO(move_sequence(drawn[i] ? rest : &kept, contents, i));
    struct rnnd__contents swap = *contents;
    *contents = kept;
    kept = swap;
done:
    rnnd__contents_clear(&kept);
    free(drawn);
    return status;
}

/* Multilabel targets that are all 0 or 1 are stored as bytes. */
static int write_values(struct rnnd__hdf *file, const struct rnnd__contents *c,
                        int64_t rows)
{
    int64_t dim[] = {rows, c->outputs}, count = c->values.count;
    const float *value = c->values.at;
    bool bits = c->task == RNND_MULTILABEL;
    for (int64_t i = 0; i < count && bits; i++)
        bits = value[i] == 0 || value[i] == 1;
    if (!bits)
        return rnnd__hdf_write(file, "/targets", RNND_F32, 2, dim, false, value);
    uint8_t *byte;
    RNND_TRY(RNND_NEW(&byte, count, "targets"));
    for (int64_t i = 0; i < count; i++)
        byte[i] = (uint8_t)value[i];
    int status = rnnd__hdf_write(file, "/targets", RNND_U8, 2, dim, false, byte);
    free(byte);
    return status;
}

static int write_texts(struct rnnd__hdf *file, const char *object,
                       const struct rnnd__list *texts)
{
    return texts->count == 0
               ? 0
               : rnnd__hdf_write_strings(file, object, (const char *const *)texts->at,
                                         texts->count);
}

static const char data_format[] = "rnn_dist-data";

static int write_head(struct rnnd__hdf *file, const struct rnnd__contents *c)
{
    RNND_TRY(rnnd__hdf_set_string(file, "format", data_format));
    RNND_TRY(rnnd__hdf_set_int(file, "version", 1));
    RNND_TRY(rnnd__hdf_set_int(file, "checksum", 1)); /* that commit() appends one */
    RNND_TRY(rnnd__hdf_set_string(file, "task", rnnd_task_name(c->task)));
    if (c->vocab)
        RNND_TRY(rnnd__hdf_set_int(file, "vocab_size", c->vocab));
    if (c->classes)
        RNND_TRY(rnnd__hdf_set_int(file, "num_classes", c->classes));
    if (c->keeps_gaps)
        RNND_TRY(rnnd__hdf_set_string(file, "missing", "mean"));
    return 0;
}

static int write_contents(struct rnnd__hdf *file, const struct rnnd__contents *c)
{
    int64_t S = rnnd__contents_steps(c), N = rnnd__contents_sequences(c);
    int64_t rows = rnnd__task_has_strings(c->task)  ? c->labels.count
                   : rnnd_task_is_stepwise(c->task) ? S
                                                    : N;
    RNND_TRY(write_head(file, c));
    RNND_TRY(rnnd__hdf_write(file, "/offsets", RNND_I64, 1, &c->offsets.count, false,
                             c->offsets.at));
    if (c->vocab)
        RNND_TRY(
            rnnd__hdf_write(file, "/inputs", RNND_I32, 1, &S, false, c->tokens.at));
    else
        RNND_TRY(rnnd__hdf_write(file, "/inputs", RNND_F32, 2,
                                 (int64_t[]){S, c->inputs}, false, c->features.at));
    if (c->outputs)
        RNND_TRY(write_values(file, c, rows));
    else if (c->classes)
        RNND_TRY(
            rnnd__hdf_write(file, "/targets", RNND_I32, 1, &rows, false, c->labels.at));
    if (c->string_offsets.count)
        RNND_TRY(rnnd__hdf_write(file, "/target_offsets", RNND_I64, 1,
                                 &c->string_offsets.count, false,
                                 c->string_offsets.at));
    RNND_TRY(write_texts(file, "/names", &c->names));
    RNND_TRY(write_texts(file, "/features", &c->feature));
    RNND_TRY(write_texts(file, "/classes", &c->class));
    return write_texts(file, "/vocab", &c->token);
}

static const struct rnnd__kind kind = {
    "a data file of rnn_dist", {RNND_HDF_START}, data_format};

int rnnd__contents_check(const char *path)
{
    return rnnd__output_check(path, &kind);
}

int rnnd__contents_write(const struct rnnd__contents *const *contents,
                         const char *const *paths, int count)
{
    struct rnnd__hdf *file[2] = {NULL, NULL};
    int status = 0, done = 0;
    if (count > 2)
        return rnnd__fail(RNND_EUSAGE, "at most two files can be written");
    for (int i = 0; i < count && status == 0; i++) {
        RNND_TRY_GOTO(rnnd__hdf_create_as(paths[i], &kind, &file[i]));
        RNND_TRY_GOTO(write_contents(file[i], contents[i]));
    }
    while (done < count) {
        struct rnnd__hdf *next = file[done];
        file[done++] = NULL;
        RNND_TRY_GOTO(rnnd__hdf_commit(next));
    }
done:
    for (int i = 0; i < 2; i++)
        rnnd__hdf_close(file[i]);
    return status;
}
