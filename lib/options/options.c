/*
 * options.c - the table of options, their defaults, and setting and getting one option.
 *
 * Values are passed as text and checked against kind and range. Knows no command line
 * and no file (options_parse.c, options_config.c), nor which combinations are valid
 * (options_check.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "options/options_table.h"

/* ---- the table */

/* Commands that take an option. */
#define TRAINERS (RNND_CMD_TRAIN | RNND_CMD_VERIFY | RNND_CMD_BENCH | RNND_CMD_INFO)
#define SCORERS  (RNND_CMD_EVAL | RNND_CMD_PREDICT)
#define USERS    (SCORERS | RNND_CMD_SAMPLE)
#define EVERYONE (~0u)

/* Headings of the help. */
#define DATA      "Data"
#define BATCH     "Batch"
#define MODEL     "Model"
#define WINDOWS   "Truncated backpropagation through time"
#define OPTIMIZER "Optimizer"
#define LENGTH    "Length"
#define DEVICE    "Device and communication"
#define RUN       "Run"
#define OUTPUT    "Output"
#define PREDICT   "Result"
#define SAMPLE    "Sampling"
#define INFO      "Plan"
#define EXCHANGE  "Files of other programs"
#define PACK      "Input"
#define GENERAL   "General"

#define OFFSET(field) offsetof(struct rnnd_options, field)

const struct rnnd__option rnnd__options[OPT_COUNT] = {
#define SWITCH(group, name, field, commands, life, help) \
    {group, name, RNND_SWITCH, OFFSET(field), "no", NULL, NULL, commands, life, help},
#define INTEGER(group, name, field, preset, range, arg, commands, life, help) \
    {group, name, RNND_INTEGER, OFFSET(field), preset,                        \
     range, arg,  commands,     life,          help},
#define REAL(group, name, field, preset, range, arg, commands, life, help) \
    {group, name, RNND_REAL, OFFSET(field), preset, range, arg, commands, life, help},
#define CHOICE(group, name, field, preset, words, commands, life, help) \
    {group, name,  RNND_CHOICE, OFFSET(field), preset,                  \
     NULL,  words, commands,    life,          help},
#define TEXT(group, name, field, preset, arg, commands, life, help) \
    {group, name, RNND_TEXT, OFFSET(field), preset, NULL, arg, commands, life, help},
#include "options/options.def"
};

static const char *const commands[] = {
    "train",  "eval",   "predict", "sample", "pack", "inspect", "export",
    "import", "report", "verify",  "bench",  "info", "help",    NULL};

const char *rnnd__command_name(int index)
{
    int known = sizeof commands / sizeof *commands - 1;
    return index >= 0 && index < known ? commands[index] : NULL;
}

int rnnd__option_find(const char *name)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (strcmp(rnnd__options[i].name, name) == 0)
            return i;
    return -1;
}

const char *rnnd__options_preset(const char *name)
{
    int i = rnnd__option_find(name);
    return i >= 0 ? rnnd__options[i].preset : NULL;
}

static void *field_of(struct rnnd_options *opt, const struct rnnd__option *option)
{
    return (char *)opt + option->offset;
}

static const void *value_of(const struct rnnd_options *opt,
                            const struct rnnd__option *option)
{
    return (const char *)opt + option->offset;
}

/* ---- all options */

int rnnd_options_init(struct rnnd_options *opt)
{
    memset(opt, 0, sizeof *opt);
    opt->task = -1;
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!rnnd__options[i].preset)
            continue;
        int status =
            rnnd__option_set(opt, i, rnnd__options[i].preset, RNND_FROM_DEFAULT);
        if (status < 0) {
            rnnd_options_clear(opt);
            return status;
        }
    }
    return 0;
}

void rnnd_options_clear(struct rnnd_options *opt)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct rnnd__option *option = &rnnd__options[i];
        if (option->kind == RNND_TEXT) {
            char **text = field_of(opt, option);
            free(*text);
            *text = NULL;
        }
    }
}

bool rnnd__options_given(const struct rnnd_options *opt, const char *name)
{
    int i = rnnd__option_find(name);
    return i >= 0 && opt->given[i] != RNND_FROM_DEFAULT;
}

static bool is_in(const char *const *list, const char *word)
{
    while (*list && strcmp(*list, word) != 0)
        list++;
    return *list != NULL;
}

const char *rnnd__options_other(const struct rnnd_options *opt,
                                enum rnnd__command command, const char *const *taken)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct rnnd__option *option = &rnnd__options[i];
        if (option->commands & command && opt->given[i] != RNND_FROM_DEFAULT &&
            !is_in(taken, option->name))
            return option->name;
    }
    return NULL;
}

int rnnd__options_overlay(struct rnnd_options *opt, const struct rnnd_options *over)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        if (over->given[i] == RNND_FROM_DEFAULT)
            continue;
        char *value;
        RNND_TRY(rnnd__option_get(over, i, &value));
        opt->given[i] = RNND_FROM_DEFAULT; /* over wins, from any source */
        int status = rnnd__option_set(opt, i, value, over->given[i]);
        free(value);
        RNND_TRY(status);
    }
    if (over->given[OPT_batch] != over->given[OPT_batch_tokens]) {
        /* the one that over does not set gives way to the other */
        int other = over->given[OPT_batch] ? OPT_batch_tokens : OPT_batch;
        if (!over->given[other])
            opt->given[other] = RNND_FROM_DEFAULT;
    }
    rnnd__options_settle(opt);
    return 0;
}

void rnnd__options_settle(struct rnnd_options *opt)
{
    if (opt->given[OPT_batch] > opt->given[OPT_batch_tokens])
        opt->batch_tokens = 0;
}

/* ---- numbers and their ranges */

struct interval {
    char low[24], high[24];
    bool low_open, high_open;
};

/* From "[0, 1)". The text comes from the table, so it is well formed. */
static struct interval interval_of(const char *range)
{
    struct interval v = {{0}, {0}, range[0] == '(', false};
    char close = ']';
    sscanf(range + 1, "%23[^,], %23[^])]%c", v.low, v.high, &close);
    v.high_open = close == ')';
    return v;
}

/* "X > 0" from "(0, inf)", "0 <= P < 1" from "[0, 1)". */
static void range_text(const struct rnnd__option *option, char *text, size_t size)
{
    struct interval v = interval_of(option->range);
    if (strcmp(v.high, "inf") == 0)
        snprintf(text, size, "%s %s %s", option->arg, v.low_open ? ">" : ">=", v.low);
    else
        snprintf(text, size, "%s %s %s %s %s", v.low,
                 v.low_open ? "<" : "<=", option->arg,
                 v.high_open ? "<" : "<=", v.high);
}

static int fail_range(const struct rnnd__option *option, const char *value)
{
    char range[96];
    range_text(option, range, sizeof range);
    return rnnd__fail(RNND_EUSAGE, "--%s %s is out of range: %s", option->name, value,
                      range);
}

/* Whether the number may be left to the program. */
static bool has_auto(const struct rnnd__option *option)
{
    return option->kind == RNND_INTEGER && option->preset &&
           strcmp(option->preset, "auto") == 0;
}

static int fail_number(const struct rnnd__option *option, const char *value)
{
    char range[96];
    range_text(option, range, sizeof range);
    return rnnd__fail(RNND_EUSAGE, "--%s must be %s%s (%s), not \"%s\"", option->name,
                      has_auto(option) ? "auto or " : "",
                      option->kind == RNND_INTEGER ? "an integer" : "a number", range,
                      value);
}

static int parse_integer(const struct rnnd__option *option, const char *value,
                         int64_t *out)
{
    const char *digits = value + (*value == '-' || *value == '+');
    if (has_auto(option) && strcmp(value, "auto") == 0) {
        *out = 0;
        return 0;
    }
    if (!*digits || digits[strspn(digits, "0123456789")])
        return fail_number(option, value);
    errno = 0;
    int64_t number = strtoll(value, NULL, 10);
    struct interval v = interval_of(option->range);
    int64_t low = strtoll(v.low, NULL, 10);
    bool bounded = strcmp(v.high, "inf") != 0;
    int64_t high = bounded ? strtoll(v.high, NULL, 10) : INT64_MAX;
    if (errno || number < low || number > high)
        return fail_range(option, value);
    *out = number;
    return 0;
}

static int parse_real(const struct rnnd__option *option, const char *value, double *out)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || strchr(" \t\n\v\f\r", *value))
        return fail_number(option, value);
    struct interval v = interval_of(option->range);
    double low = strtod(v.low, NULL), high = strtod(v.high, NULL);
    bool inside = (v.low_open ? number > low : number >= low) &&
                  (v.high_open ? number < high : number <= high);
    if (!inside || !isfinite(number))
        return fail_range(option, value);
    *out = number + 0.0; /* turns -0 into 0 */
    return 0;
}

void rnnd__real_text(double value, char text[32])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

/* ---- words */

/* The index of a word in "a|b|c", -1 = none. */
static int word_index(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int i = 0;; i++) {
        size_t n = strcspn(words, "|");
        if (n == length && strncmp(words, word, n) == 0)
            return i;
        if (!words[n])
            return -1;
        words += n + 1;
    }
}

/* "auto, yes or no" from "auto|yes|no"; malloc'ed, NULL without memory. */
static char *list_words(const char *words)
{
    char *text = malloc(4 * strlen(words) + 1), *to = text;
    if (!text)
        return NULL;
    for (const char *last = strrchr(words, '|'); *words; words++)
        if (*words != '|')
            *to++ = *words;
        else
            to = stpcpy(to, words == last ? " or " : ", ");
    *to = '\0';
    return text;
}

static int parse_choice(const struct rnnd__option *option, const char *value, int *out)
{
    int index = word_index(option->arg, value);
    if (index < 0) {
        char *words = list_words(option->arg);
        int status = rnnd__fail(RNND_EUSAGE, "--%s must be %s, not \"%s\"",
                                option->name, words ? words : option->arg, value);
        free(words);
        return status;
    }
    *out = index;
    return 0;
}

/* Word number `index` of "a|b|c", "" if there is none. */
static void word_at(const char *words, int index, char word[32])
{
    for (; words && index > 0; index--) {
        words = strchr(words, '|');
        words += words != NULL;
    }
    bool found = words && index == 0;
    snprintf(word, 32, "%.*s", found ? (int)strcspn(words, "|") : 0,
             found ? words : "");
}

void rnnd__options_word(const char *name, int index, char word[32])
{
    int i = rnnd__option_find(name);
    bool choice = i >= 0 && rnnd__options[i].kind == RNND_CHOICE;
    word_at(choice ? rnnd__options[i].arg : NULL, index, word);
}

/* ---- one option */

/* A value of any kind, parsed before the field is changed. */
union value {
    bool yes;
    int choice;
    int64_t integer;
    double real;
    char *text;
};

/* An empty text, as rnnd__option_get() gives for an option that is not set. */
static int parse_unset(const struct rnnd__option *option, union value *out)
{
    if (option->preset)
        return rnnd__fail(RNND_EUSAGE, "--%s needs a value", option->name);
    memset(out, 0, sizeof *out);
    if (option->kind == RNND_CHOICE)
        out->choice = -1;
    return 0;
}

static int parse_value(const struct rnnd__option *option, const char *value,
                       union value *out)
{
    if (!*value)
        return parse_unset(option, out);
    switch (option->kind) {
    case RNND_SWITCH:
        out->yes = strcmp(value, "yes") == 0;
        if (!out->yes && strcmp(value, "no") != 0)
            return rnnd__fail(RNND_EUSAGE, "--%s must be yes or no, not \"%s\"",
                              option->name, value);
        return 0;
    case RNND_INTEGER:
        return parse_integer(option, value, &out->integer);
    case RNND_REAL:
        return parse_real(option, value, &out->real);
    case RNND_CHOICE:
        return parse_choice(option, value, &out->choice);
    case RNND_TEXT:
        out->text = strdup(value);
        return out->text ? 0 : rnnd__fail_memory(strlen(value), option->name);
    }
    return 0;
}

int rnnd__option_set(struct rnnd_options *opt, int i, const char *value,
                     enum rnnd__source source)
{
    const struct rnnd__option *option = &rnnd__options[i];
    void *field = field_of(opt, option);
    union value v;
    RNND_TRY(parse_value(option, value, &v));
    if (opt->given[i] > source) { /* valid, but a stronger source has set the option */
        if (option->kind == RNND_TEXT)
            free(v.text);
        return 0;
    }
    opt->given[i] = (unsigned char)source;
    switch (option->kind) {
    case RNND_SWITCH:
        *(bool *)field = v.yes;
        break;
    case RNND_INTEGER:
        *(int64_t *)field = v.integer;
        break;
    case RNND_REAL:
        *(double *)field = v.real;
        break;
    case RNND_CHOICE:
        /* an enum, or an int for options that may be -1 */
        memcpy(field, &v.choice, sizeof v.choice);
        break;
    case RNND_TEXT:
        free(*(char **)field);
        *(char **)field = v.text;
        break;
    }
    return 0;
}

int rnnd__options_set(struct rnnd_options *opt, const char *name, const char *value,
                      enum rnnd__source source)
{
    int i = rnnd__option_find(name);
    if (i < 0)
        return rnnd__option_unknown(name, ~0u, "--");
    return rnnd__option_set(opt, i, value, source);
}

/* Without a preset, 0 means "not set". */
static void integer_text(const struct rnnd__option *option, int64_t value,
                         char text[32])
{
    text[0] = '\0';
    if (!value && has_auto(option))
        strcpy(text, "auto");
    else if (value || option->preset)
        snprintf(text, 32, "%" PRId64, value);
}

static void real_text(const struct rnnd__option *option, double value, char text[32])
{
    text[0] = '\0';
    if (value != 0 || option->preset)
        rnnd__real_text(value, text);
}

int rnnd__option_get(const struct rnnd_options *opt, int i, char **value)
{
    const struct rnnd__option *option = &rnnd__options[i];
    const void *field = value_of(opt, option);
    char short_text[32] = "";
    const char *text = short_text;
    int choice;
    switch (option->kind) {
    case RNND_SWITCH:
        text = *(const bool *)field ? "yes" : "no";
        break;
    case RNND_INTEGER:
        integer_text(option, *(const int64_t *)field, short_text);
        break;
    case RNND_REAL:
        real_text(option, *(const double *)field, short_text);
        break;
    case RNND_CHOICE:
        memcpy(&choice, field, sizeof choice);
        word_at(option->arg, choice, short_text);
        break;
    case RNND_TEXT:
        text = *(char *const *)field ? *(char *const *)field : "";
        break;
    }
    char *copy = strdup(text);
    if (!copy)
        return rnnd__fail_memory(strlen(text), "the value of an option");
    *value = copy;
    return 0;
}
