/*
 * options_text.c - writes the options of a run as text, and compares two sets.
 *
 * The text is stored with a run: in config.ini, in checkpoints and in the start record
 * of the metrics. Reading it back gives the same bits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "options/options_table.h"

/* Whether an option is stored with a run and has an effect there. */
static bool in_force(const struct rnnd_options *opt, int i)
{
    const struct rnnd__option *option = &rnnd__options[i];
    return option->commands & RNND_CMD_TRAIN && option->life != CALL &&
           !rnnd__option_idle(opt, opt->task, i);
}

int rnnd__options_each(const struct rnnd_options *opt,
                       int (*visit)(void *context, const char *name,
                                    enum rnnd__option_kind kind, const char *value),
                       void *context)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!in_force(opt, i))
            continue;
        char *value;
        RNND_TRY(rnnd__option_get(opt, i, &value));
        int status =
            visit(context, rnnd__options[i].name, rnnd__options[i].kind, value);
        free(value);
        RNND_TRY(status);
    }
    return 0;
}

/* ---- text */

/* Whether a value can be written without quotes: the reader strips blanks at its ends,
   stops at a comment, and interprets a leading quote. */
static bool is_plain(const char *value)
{
    size_t length = strlen(value);
    if (!length || value[0] == '"' || value[0] == ' ' || value[length - 1] == ' ')
        return false;
    for (; *value; value++)
        if ((unsigned char)*value < ' ' || *value == 0x7f || *value == ';')
            return false;
    return true;
}

static void write_quoted(FILE *out, const char *value)
{
    putc('"', out);
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f || c == ';')
            fprintf(out, "\\x%02x", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

static void write_value(FILE *out, const char *value)
{
    if (is_plain(value))
        fputs(value, out);
    else
        write_quoted(out, value);
}

static int write_line(void *context, const char *name, enum rnnd__option_kind kind,
                      const char *value)
{
    FILE *out = context;
    (void)kind;
    fprintf(out, "%s = ", name);
    write_value(out, value);
    putc('\n', out);
    return 0;
}

static int write_record(const struct rnnd_options *opt, unsigned command, FILE *out)
{
    (void)command;
    return rnnd__options_each(opt, write_line, out);
}

/* Options that may differ by rank. None of them changes which work a rank gets, as
   --microbatch-tokens would: evaluation cuts its batches by it. */
static bool is_by_rank(int i)
{
    return i == OPT_config || i == OPT_device || i == OPT_rnn_path || i == OPT_threads;
}

static bool is_data(int i)
{
    return i == OPT_data || i == OPT_valid;
}

/* A default gives way to what is stored with a run or model, a given value does not: so
   the two differ even where the value is the same. */
static int write_launch(const struct rnnd_options *opt, unsigned command, FILE *out)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        char *value;
        if (!(rnnd__options[i].commands & command) || is_by_rank(i))
            continue;
        RNND_TRY(rnnd__option_get(opt, i, &value));
        fprintf(out, "--%s", rnnd__options[i].name);
        if (*value) {
            putc(is_data(i) ? '\t' : ' ', out);
            write_value(out, value);
        }
        if (opt->given[i] == RNND_FROM_DEFAULT)
            fputs(*value ? " by default" : " unset", out);
        putc('\n', out);
        free(value);
    }
    return 0;
}

static int as_text(const struct rnnd_options *opt, unsigned command,
                   int (*write)(const struct rnnd_options *opt, unsigned command,
                                FILE *out),
                   char **text)
{
    char *all = NULL;
    size_t size;
    FILE *out = open_memstream(&all, &size);
    if (!out)
        return rnnd__fail_memory(0, "the options as text");
    int status = write(opt, command, out);
    bool whole = !ferror(out);
    whole = fclose(out) == 0 && whole;
    if (status == 0 && !whole)
        status = rnnd__fail_memory(size, "the options as text");
    if (status < 0) {
        free(all);
        return status;
    }
    *text = all;
    return 0;
}

int rnnd__options_text(const struct rnnd_options *opt, char **text)
{
    return as_text(opt, RNND_CMD_TRAIN, write_record, text);
}

int rnnd__options_launch(const struct rnnd_options *opt, enum rnnd__command command,
                         char **text)
{
    return as_text(opt, command, write_launch, text);
}

/* ---- differences */

int rnnd__options_diff(const struct rnnd_options *a, const struct rnnd_options *b,
                       int (*visit)(void *context, const char *name,
                                    enum rnnd__option_effect effect,
                                    const char *a_value, const char *b_value),
                       void *context)
{
    static const enum rnnd__option_effect effects[] = {
        [IDENTITY] = RNND_EFFECT_IDENTITY,
        [TRAINING] = RNND_EFFECT_TRAINING,
        [RUNTIME] = RNND_EFFECT_NONE};
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!in_force(a, i) && !in_force(b, i))
            continue;
        char *a_value = NULL, *b_value = NULL;
        int status = rnnd__option_get(a, i, &a_value);
        if (status == 0)
            status = rnnd__option_get(b, i, &b_value);
        if (status == 0 && strcmp(a_value, b_value) != 0)
            status =
                visit(context, rnnd__options[i].name, effects[rnnd__options[i].life],
                      *a_value ? a_value : "unset", *b_value ? b_value : "unset");
        free(a_value);
        free(b_value);
        RNND_TRY(status);
    }
    return 0;
}
