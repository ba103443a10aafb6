/*
 * options_table.h - options.def as a table in memory, and the helpers that the files of
 * this room share.
 *
 * Knows the fields of struct rnnd_options by offset and kind only; combinations of
 * options are in options_check.c.
 */
#ifndef RNND_OPTIONS_TABLE_H
#define RNND_OPTIONS_TABLE_H

#include "options/options.h"

/* The index of each option, named after its field: OPT_lr and so on. */
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
               "given[] in struct rnnd_options is too short for all options");

/* How long a value is kept; options.def explains the words. */
enum rnnd__option_life { IDENTITY, TRAINING, RUNTIME, CALL };

struct rnnd__option {
    /* heading in the help */
    const char *group;
    const char *name;
    enum rnnd__option_kind kind;
    /* offset of the field in struct rnnd_options */
    size_t offset;
    /* default; NULL = none: the field is 0, NULL, or -1 for a choice */
    const char *preset;
    /* numbers only, else NULL */
    const char *range;
    /* name of the value, for a choice its words; NULL for a switch */
    const char *arg;
    unsigned commands;
    enum rnnd__option_life life;
    const char *help;
};

extern const struct rnnd__option rnnd__options[OPT_COUNT];

/* The index of an option by name, -1 = none. */
int rnnd__option_find(const char *name);
/* Sets option i; messages call it "--name". */
RNND_CHECKED int rnnd__option_set(struct rnnd_options *opt, int i, const char *value,
                                  enum rnnd__source source);
/* The value of option i as text that rnnd__option_set() reads back to the same bits;
   malloc'ed. */
RNND_CHECKED int rnnd__option_get(const struct rnnd_options *opt, int i, char **value);
/* Fails for an option that the command does not take: suggests the option that was
   meant, or names the commands that take it. dash is "--" or "", as in the source of
   the name. */
RNND_CHECKED int rnnd__option_unknown(const char *name, unsigned command,
                                      const char *dash);

/* Why an option has no effect in combination with the others, such as "without
   --valid"; NULL if it has an effect. task: -1 = not known yet. */
const char *rnnd__option_idle(const struct rnnd_options *opt, int task, int i);
/* Resolves --batch against --batch-tokens: the one from the stronger source wins. */
void rnnd__options_settle(struct rnnd_options *opt);

#endif
