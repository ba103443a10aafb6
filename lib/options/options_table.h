/*
 * options_table.h - the table of options.def as data, and the helpers that the files of
 * the options room share (options.c, options_parse.c, options_text.c, options_check.c,
 * ...).
 *
 * Knows fields of struct rnnd_options by offset and kind only; what options mean
 * together is in options_check.c.
 */
#ifndef RNND_OPTIONS_TABLE_H
#define RNND_OPTIONS_TABLE_H

#include "options/options.h"

/* One number an option: OPT_lr and the like, by its field. */
enum rnnd__option_index {
#define SWITCH(group, name, field, commands, life, help) OPT_##field,
#define INTEGER(group, name, field, preset, range, arg, commands, life, help) \
    OPT_##field,
#define REAL(group, name, field, preset, range, arg, commands, life, help) OPT_##field,
#define CHOICE(group, name, field, preset, words, commands, life, help)    OPT_##field,
#define TEXT(group, name, field, preset, arg, commands, life, help)        OPT_##field,
#include "options/options.def"
#undef SWITCH
#undef INTEGER
#undef REAL
#undef CHOICE
#undef TEXT
    OPT_COUNT
};

_Static_assert(OPT_COUNT <= sizeof((struct rnnd_options *)0)->given,
               "struct rnnd_options has no room to say where each option came from");

/* How long a value matters: what the words of options.def mean. */
enum rnnd__option_life { IDENTITY, TRAINING, RUNTIME, CALL };

struct rnnd__option {
    /* heading in help */
    const char *group;
    const char *name;
    enum rnnd__option_kind kind;
    /* of the field in struct rnnd_options */
    size_t offset;
    /* NULL = none: 0, NULL, or -1 of a choice */
    const char *preset;
    /* NULL unless a number */
    const char *range;
    /* of a choice its words; NULL of a switch */
    const char *arg;
    unsigned commands;
    enum rnnd__option_life life;
    const char *help;
};

extern const struct rnnd__option rnnd__options[OPT_COUNT];

/* The index of an option by name, -1 = none. */
int rnnd__option_find(const char *name);
/* Sets option i; where messages call it "--name". */
RNND_CHECKED int rnnd__option_set(struct rnnd_options *opt, int i, const char *value,
                                  enum rnnd__source source);
/* Its value as malloc'ed text. */
RNND_CHECKED int rnnd__option_get(const struct rnnd_options *opt, int i, char **value);
/* Fails with the option that a misspelt one was meant to be, or with the commands that
   take it. dash is "--" or "", as names are written where it stood. */
RNND_CHECKED int rnnd__option_unknown(const char *name, unsigned command,
                                      const char *dash);

/* Why an option has no effect beside the others, such as "without --valid"; NULL where
   it has one. task: -1 = not known yet. */
const char *rnnd__option_idle(const struct rnnd_options *opt, int task, int i);
/* Settles --batch against --batch-tokens: the one from the stronger source holds. */
void rnnd__options_settle(struct rnnd_options *opt);

#endif
