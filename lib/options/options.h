/*
 * options.h - options of all commands: command line, configuration files, text stored
 * in checkpoints, checks, help and shell completion, all from one table (options.def).
 */
#ifndef RNND_OPTIONS_H
#define RNND_OPTIONS_H

#include "rnn_dist.h"

/* Commands, as bits. */
enum rnnd__command {
    RNND_CMD_TRAIN = 1 << 0,
    RNND_CMD_EVAL = 1 << 1,
    RNND_CMD_PREDICT = 1 << 2,
    RNND_CMD_SAMPLE = 1 << 3,
    RNND_CMD_PACK = 1 << 4,
    RNND_CMD_INSPECT = 1 << 5,
    RNND_CMD_EXPORT = 1 << 6,
    RNND_CMD_IMPORT = 1 << 7,
    RNND_CMD_REPORT = 1 << 8,
    RNND_CMD_VERIFY = 1 << 9,
    RNND_CMD_BENCH = 1 << 10,
    RNND_CMD_INFO = 1 << 11,
    RNND_CMD_HELP = 1 << 12
};

/* Where a value came from, in order of precedence. */
enum rnnd__source { RNND_FROM_DEFAULT, RNND_FROM_FILE, RNND_FROM_COMMAND_LINE };

/* Parses the arguments after the command word. Operands (arguments that are not
   options) are moved to argv[0 .. *operands-1]; "--" ends the options. Values from
   --config give way to the command line. EUSAGE names the option and suggests a similar
   one. */
RNND_CHECKED int rnnd__options_parse(struct rnnd_options *opt,
                                     enum rnnd__command command, int argc, char **argv,
                                     int *operands);
/* Reads "name = value" lines; switches are yes or no, "#" and ";" begin comments, and a
   value in double quotes may contain escapes (\" \\ \n \xHH). path is for messages. An
   option that a stronger source has set keeps its value; the text is still checked. */
RNND_CHECKED int rnnd__options_read_text(struct rnnd_options *opt, const char *text,
                                         const char *path, enum rnnd__source source);
/* As above, for the options stored with a model: an option that was given keeps its
   value, and its stored value is not read. */
RNND_CHECKED int rnnd__options_read_record(struct rnnd_options *opt, const char *text,
                                           const char *path);
RNND_CHECKED int rnnd__options_read_file(struct rnnd_options *opt, const char *path);
/* Sets one option from text. */
RNND_CHECKED int rnnd__options_set(struct rnnd_options *opt, const char *name,
                                   const char *value, enum rnnd__source source);
/* The word for value `index` of a choice, such as "gru" for option "cell"; "" if there
   is none. */
void rnnd__options_word(const char *name, int index, char word[32]);
/* Copies every option that was given in `over` to opt, where it counts as given. */
RNND_CHECKED int rnnd__options_overlay(struct rnnd_options *opt,
                                       const struct rnnd_options *over);
/* Whether a file or the command line has set an option. */
bool rnnd__options_given(const struct rnnd_options *opt, const char *name);
/* The first option of a command that was given and is not in the NULL-terminated list
   `taken`; NULL = none. */
const char *rnnd__options_other(const struct rnnd_options *opt,
                                enum rnnd__command command, const char *const *taken);
/* The default of an option as text; NULL = it has none. */
const char *rnnd__options_preset(const char *name);
/* The type of an option's value. */
enum rnnd__option_kind {
    /* yes or no */
    RNND_SWITCH,
    RNND_INTEGER,
    RNND_REAL,
    /* one of a list of words */
    RNND_CHOICE,
    RNND_TEXT
};
/* Calls visit for each train option that is stored with a run, in the order of the
   table. Leaves out options without effect and those of one invocation only (config,
   json, progress, resume, run-dir, trace). Stops at a failure and returns it. */
RNND_CHECKED int rnnd__options_each(const struct rnnd_options *opt,
                                    int (*visit)(void *context, const char *name,
                                                 enum rnnd__option_kind kind,
                                                 const char *value),
                                    void *context);
/* These options as "name = value" lines for rnnd__options_read_text(); malloc'ed. */
RNND_CHECKED int rnnd__options_text(const struct rnnd_options *opt, char **text);
/* What all ranks of a command must have been given alike, as lines for
   rnnd__comm_same(): its options, and whether they are defaults. Left out are options
   that may differ by rank, such as threads; of data sets only their presence counts,
   because hosts may have copies of their own. malloc'ed. */
RNND_CHECKED int rnnd__options_launch(const struct rnnd_options *opt,
                                      enum rnnd__command command, char **text);
/* Rejects invalid combinations of train options with EUSAGE, and warns of options
   without effect; task is that of the data set. What the device, model or data do not
   support is checked by their rooms. */
RNND_CHECKED int rnnd__options_check(const struct rnnd_options *opt,
                                     enum rnnd_task task);
/* The part of these checks that needs no data, so that usage errors are reported before
   any file is opened. */
RNND_CHECKED int rnnd__options_check_early(const struct rnnd_options *opt);
/* What a changed option means for a run that is resumed: nothing, a change that is
   applied and logged, or one that is refused. */
enum rnnd__option_effect {
    RNND_EFFECT_NONE,
    RNND_EFFECT_TRAINING,
    RNND_EFFECT_IDENTITY
};
/* Calls visit for each option that rnnd__options_each() visits for a or for b and whose
   values differ; a value that is not set is "unset". */
RNND_CHECKED int rnnd__options_diff(
    const struct rnnd_options *a, const struct rnnd_options *b,
    int (*visit)(void *context, const char *name, enum rnnd__option_effect effect,
                 const char *a_value, const char *b_value),
    void *context);
/* The shortest text that reads as the same double. */
void rnnd__real_text(double value, char text[32]);
/* Prints the options of a command, for its --help. */
void rnnd__options_help(enum rnnd__command command, FILE *out);
/* Prints the names of a command's options, one per line, without "no-NAME". */
void rnnd__options_list(enum rnnd__command command, FILE *out);
/* Prints the completion script for bash. kinds: of pack, with spaces between them. */
void rnnd__options_completion(const char *kinds, FILE *out);
/* The name of the command with bit number `index`, such as "train"; NULL beyond the
   last. */
const char *rnnd__command_name(int index);
/* The word in a NULL-terminated list that a mistyped word was probably meant to be;
   NULL if none is similar. */
const char *rnnd__options_nearest(const char *word, const char *const *words);

#endif
