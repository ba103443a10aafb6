/*
 * options_parse.c - reads options from the command line, and suggests corrections for
 * misspelt ones.
 *
 * Takes argv, passes values to options.c and leaves the operands. Knows the kinds and
 * commands of options, not their meaning.
 */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "options/options_table.h"

/* ---- suggestions */

enum { LONGEST_WORD = 64 };

/* The number of edits (insert, delete, replace, swap neighbours) from a to b; ignores
   case, and "_" instead of "-". */
static int edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n >= LONGEST_WORD || m >= LONGEST_WORD)
        return INT_MAX;
    int row[3][LONGEST_WORD + 1]; /* the last three rows of the table */
    int *old = row[0], *last = row[1], *now = row[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int x = a[i - 1] == '_' ? '-' : tolower((unsigned char)a[i - 1]);
            int best = last[j - 1] + (x != b[j - 1]);
            best = best < last[j] + 1 ? best : last[j] + 1;
            best = best < now[j - 1] + 1 ? best : now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                old[j - 2] + 1 < best)
                best = old[j - 2] + 1;
            now[j] = best;
        }
        int *free_row = old;
        old = last, last = now, now = free_row;
    }
    return last[m];
}

const char *rnnd__options_nearest(const char *word, const char *const *words)
{
    const char *nearest = NULL;
    int least = INT_MAX;
    size_t length = strlen(word);
    for (; *words; words++) {
        int distance = edit_distance(word, *words);
        if (length >= 3 && strncmp(word, *words, length) == 0)
            distance = 1; /* an abbreviation */
        int allowed = length <= 1 ? 0 : length <= 3 ? 1 : length <= 6 ? 2 : 3;
        if (distance <= allowed && distance < least) {
            least = distance;
            nearest = *words;
        }
    }
    return nearest;
}

/* "train, verify and bench" */
static void name_commands(unsigned commands, char *text, size_t size)
{
    unsigned known = 0, named = 0;
    for (int bit = 0; rnnd__command_name(bit); bit++)
        known |= 1u << bit;
    commands &= known;
    text[0] = '\0';
    for (int bit = 0; rnnd__command_name(bit); bit++) {
        if (!(commands & 1u << bit))
            continue;
        named |= 1u << bit;
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s",
                 !used               ? ""
                 : named == commands ? " and "
                                     : ", ",
                 rnnd__command_name(bit));
    }
}

/* What other programs call an option; NULL = nothing known. */
static const char *known_elsewhere(const char *name)
{
    static const char *const words[][2] = {{"batch-size", "batch"},
                                           {"bptt", "tbptt"},
                                           {"bidir", "bidirectional"},
                                           {"clip", "clip-norm"},
                                           {"clip-grad-norm", "clip-norm"},
                                           {"emb-size", "embed"},
                                           {"embed-dim", "embed"},
                                           {"embedding-dim", "embed"},
                                           {"emsize", "embed"},
                                           {"early-stopping", "patience"},
                                           {"grad-clip", "clip-norm"},
                                           {"hidden-dim", "hidden"},
                                           {"hidden-size", "hidden"},
                                           {"learning-rate", "lr"},
                                           {"log-interval", "log-every"},
                                           {"lr-scheduler", "lr-schedule"},
                                           {"max-epochs", "epochs"},
                                           {"max-grad-norm", "clip-norm"},
                                           {"max-steps", "max-updates"},
                                           {"nhid", "hidden"},
                                           {"nlayers", "layers"},
                                           {"num-epochs", "epochs"},
                                           {"num-layers", "layers"},
                                           {"num-threads", "threads"},
                                           {"optim", "optimizer"},
                                           {"output", "out"},
                                           {"output-dir", "run-dir"},
                                           {"quiet", "progress"},
                                           {"random-seed", "seed"},
                                           {"rnn-type", "cell"},
                                           {"save-dir", "run-dir"},
                                           {"tied", "tie-weights"},
                                           {"train-data", "data"},
                                           {"train-file", "data"},
                                           {"val-data", "valid"},
                                           {"validation", "valid"},
                                           {"validation-data", "valid"},
                                           {"verbose", "progress"},
                                           {"wd", "weight-decay"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (edit_distance(name, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}

/* The option of the command that a name was meant for; NULL = none is similar. */
static const char *meant_by(const char *name, unsigned command,
                            const char *const *names)
{
    const char *elsewhere = known_elsewhere(name);
    int i = elsewhere ? rnnd__option_find(elsewhere) : -1;
    if (i >= 0 && rnnd__options[i].commands & command)
        return elsewhere;
    return rnnd__options_nearest(name, names);
}

int rnnd__option_unknown(const char *name, unsigned command, const char *dash)
{
    int known = rnnd__option_find(name);
    if (known >= 0) {
        char takers[160], here[32];
        name_commands(rnnd__options[known].commands, takers, sizeof takers);
        name_commands(command, here, sizeof here);
        return rnnd__fail(RNND_EUSAGE, "%s%s is an option of %s, not of %s", dash, name,
                          takers, here);
    }
    const char *names[OPT_COUNT + 1];
    int count = 0;
    for (int i = 0; i < OPT_COUNT; i++)
        if (rnnd__options[i].commands & command)
            names[count++] = rnnd__options[i].name;
    names[count] = NULL;
    bool no = strncmp(name, "no-", 3) == 0;
    const char *meant = meant_by(name, command, names);
    const char *prefix = "";
    if (!meant && no && (meant = rnnd__options_nearest(name + 3, names)))
        prefix = "no-";
    if (!meant)
        return rnnd__fail(RNND_EUSAGE, "unknown option %s%s", dash, name);
    return rnnd__fail(RNND_EUSAGE, "unknown option %s%s; did you mean %s%s%s?", dash,
                      name, dash, prefix, meant);
}

/* ---- the command line */

struct arguments {
    enum rnnd__command command;
    int argc, next;
    char **argv;
};

static int set_switch(struct rnnd_options *opt, int i, bool on, const char *value)
{
    const char *name = rnnd__options[i].name;
    if (value)
        return rnnd__fail(RNND_EUSAGE, "--%s%s takes no value; use --%s or --no-%s",
                          on ? "" : "no-", name, name, name);
    return rnnd__option_set(opt, i, on ? "yes" : "no", RNND_FROM_COMMAND_LINE);
}

/* Whether a word is an option, such as "--lr" or "--lr=3", and so not a value. */
static bool is_option(const char *word)
{
    char name[LONGEST_WORD];
    if (sscanf(word, "--%63[^=]", name) != 1)
        return false;
    bool no = strncmp(name, "no-", 3) == 0;
    return rnnd__option_find(no ? name + 3 : name) >= 0;
}

/* Sets an option from `value`, the text after "=", or else from the next argument. */
static int set_valued(struct rnnd_options *opt, struct arguments *args, int i,
                      const char *value)
{
    const struct rnnd__option *option = &rnnd__options[i];
    if (!value && args->next < args->argc && !is_option(args->argv[args->next]))
        value = args->argv[args->next++];
    bool may_be_empty = i == OPT_prompt;
    if (!value || (!*value && !may_be_empty))
        return rnnd__fail(RNND_EUSAGE, "--%s needs a value: %s", option->name,
                          option->arg);
    if (i == OPT_config)
        RNND_TRY(rnnd__options_read_file(opt, value));
    return rnnd__option_set(opt, i, value, RNND_FROM_COMMAND_LINE);
}

static int set_named(struct rnnd_options *opt, struct arguments *args, const char *name,
                     const char *value)
{
    int i = rnnd__option_find(name);
    bool takes = i >= 0 && rnnd__options[i].commands & args->command;
    if (takes && rnnd__options[i].kind == RNND_SWITCH)
        return set_switch(opt, i, true, value);
    if (takes)
        return set_valued(opt, args, i, value);
    if (i < 0 && strncmp(name, "no-", 3) == 0) {
        int positive = rnnd__option_find(name + 3);
        if (positive >= 0 && rnnd__options[positive].kind != RNND_SWITCH)
            return rnnd__fail(RNND_EUSAGE,
                              "--%s: --%s is not a switch; it takes a value: %s", name,
                              name + 3, rnnd__options[positive].arg);
        if (positive >= 0 && rnnd__options[positive].commands & args->command)
            return set_switch(opt, positive, false, value);
        if (positive >= 0)
            name += 3;
    }
    return rnnd__option_unknown(name, args->command, "--");
}

/* "-h", "-V", "-q", "-o FILE" or "-oFILE". */
static int take_letter(struct rnnd_options *opt, struct arguments *args,
                       const char *word)
{
    static const char letters[] = "hVqo";
    static const int meant[] = {OPT_help, OPT_version, OPT_progress, OPT_out};
    const char *at = strchr(letters, word[1]);
    int i = at ? meant[at - letters] : -1;
    bool takes = i >= 0 && rnnd__options[i].commands & args->command;
    if (takes && i == OPT_out)
        return set_valued(opt, args, i, word[2] ? word + 2 : NULL);
    if (takes && !word[2])
        return rnnd__option_set(opt, i, i == OPT_progress ? "none" : "yes",
                                RNND_FROM_COMMAND_LINE);
    if (strcmp(word, "-n") == 0 || strcmp(word, "-np") == 0)
        return rnnd__fail(RNND_EUSAGE,
                          "unknown option %s; a number of ranks is for mpirun: "
                          "mpirun -np N rnn_dist ...",
                          word);
    return rnnd__fail(RNND_EUSAGE, "unknown option %s; options begin with --", word);
}

/* "--name" or "--name=value". */
static int take_option(struct rnnd_options *opt, struct arguments *args,
                       const char *word)
{
    if (word[1] != '-')
        return take_letter(opt, args, word);
    const char *equals = strchr(word, '=');
    char *name =
        equals ? strndup(word + 2, (size_t)(equals - word - 2)) : strdup(word + 2);
    if (!name)
        return rnnd__fail_memory(strlen(word), "an option");
    int status = set_named(opt, args, name, equals ? equals + 1 : NULL);
    free(name);
    return status;
}

int rnnd__options_parse(struct rnnd_options *opt, enum rnnd__command command, int argc,
                        char **argv, int *operands)
{
    struct arguments args = {command, argc, 0, argv};
    int kept = 0;
    bool options_end = false;
    while (args.next < argc) {
        char *word = argv[args.next++];
        if (options_end || word[0] != '-' || !word[1]) {
            argv[kept++] = word;
            continue;
        }
        options_end = strcmp(word, "--") == 0;
        if (!options_end)
            RNND_TRY(take_option(opt, &args, word));
        if (opt->help || opt->version) /* ignore everything else */
            break;
    }
    rnnd__options_settle(opt);
    *operands = kept;
    return 0;
}
