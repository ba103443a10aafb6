/*
 * options.h - one table of options (options.def) behind parser, help, configuration
 * file, the record in the checkpoint and the completion script.
 */
#ifndef RNND_OPTIONS_H
#define RNND_OPTIONS_H

#include "rnn_dist.h"

/* Commands, as bits: which options a command takes. */
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

/* Where a value came from; a later one wins over an earlier. */
enum rnnd__source { RNND_FROM_DEFAULT, RNND_FROM_FILE, RNND_FROM_COMMAND_LINE };

/* Parses arguments after the command word; operands (arguments that are no options) are
   left in argv[0 .. *operands-1], "--" ends options. --config files are read first.
   EUSAGE names the option and, where one is near, the option meant. */
RNND_CHECKED int rnnd__options_parse(struct rnnd_options *opt,
                                     enum rnnd__command command, int argc, char **argv,
                                     int *operands);
/* Reads "name = value" lines, switches as yes or no, "#" and ";" begin comments; a
   value in double quotes may hold escapes (\" \\ \n \xHH). path is for messages. What
   was given by a source that wins is checked and left alone. */
RNND_CHECKED int rnnd__options_read_text(struct rnnd_options *opt, const char *text,
                                         const char *path, enum rnnd__source source);
/* The same of what a file says of its own model: what was given wins, unread. */
RNND_CHECKED int rnnd__options_read_record(struct rnnd_options *opt, const char *text,
                                           const char *path);
RNND_CHECKED int rnnd__options_read_file(struct rnnd_options *opt, const char *path);
/* Sets one option from text. */
RNND_CHECKED int rnnd__options_set(struct rnnd_options *opt, const char *name,
                                   const char *value, enum rnnd__source source);
/* The value of one option as text that set() reads back to the same bits; malloc'ed,
   taken. */
RNND_CHECKED int rnnd__options_get(const struct rnnd_options *opt, const char *name,
                                   char **value);
/* Every option that was given to `over` is set in opt too, and counts as given
   there. */
RNND_CHECKED int rnnd__options_overlay(struct rnnd_options *opt,
                                       const struct rnnd_options *over);
/* Whether an option was given by file or command line. */
bool rnnd__options_given(const struct rnnd_options *opt, const char *name);
/* What a value is: where it is written as a JSON value, say. */
enum rnnd__option_kind {
    /* yes, no */
    RNND_SWITCH,
    RNND_INTEGER,
    RNND_REAL,
    /* one of some words */
    RNND_CHOICE,
    RNND_TEXT
};
/* Calls visit for each train option in force that is kept with a run, in the order of
   the table: not what has no effect beside the others, nor what concerns one call only
   (config, json, progress, resume, run-dir, trace). Stops at a failure and returns
   it. */
RNND_CHECKED int rnnd__options_each(const struct rnnd_options *opt,
                                    int (*visit)(void *context, const char *name,
                                                 enum rnnd__option_kind kind,
                                                 const char *value),
                                    void *context);
/* The same as "name = value" lines, for read_text; malloc'ed. */
RNND_CHECKED int rnnd__options_text(const struct rnnd_options *opt, char **text);
/* Refuses combinations of train options that make no sense, with the reason; task is
   the data's. Warns where they make little sense. */
RNND_CHECKED int rnnd__options_check(const struct rnnd_options *opt,
                                     enum rnnd_task task);
/* The part of that which needs no data: called before any file is opened, so that a
   usage error is found first. Device and precision are in it: EDEVICE for a device that
   this build does not have. */
RNND_CHECKED int rnnd__options_check_early(const struct rnnd_options *opt);
/* Options that make up a training run's identity: a change on resume is refused
   ("model", "plan"), else applied and logged. */
enum rnnd__option_effect {
    RNND_EFFECT_NONE,
    RNND_EFFECT_TRAINING,
    RNND_EFFECT_IDENTITY
};
/* Calls visit for each option of rnnd__options_each(), in force in a or in b, whose
   value differs; "unset" where there is none. */
RNND_CHECKED int rnnd__options_diff(
    const struct rnnd_options *a, const struct rnnd_options *b,
    int (*visit)(void *context, const char *name, enum rnnd__option_effect effect,
                 const char *a_value, const char *b_value),
    void *context);
/* The shortest text that reads as the same double. */
void rnnd__real_text(double value, char text[32]);
/* The option part of --help of a command. */
void rnnd__options_help(enum rnnd__command command, FILE *out);
/* The options of a command, a name per line ("no-NAME" of switches left out). */
void rnnd__options_list(enum rnnd__command command, FILE *out);
/* The completion script for bash. */
void rnnd__options_completion(FILE *out);
/* "train" and the like; NULL beyond the last command. index: the number of its bit. */
const char *rnnd__command_name(int index);
/* Of some words (ended by NULL) the one that a mistyped word was meant to be, NULL if
   there is none. */
const char *rnnd__options_nearest(const char *word, const char *const *words);

#endif
