/*
 * cmd_help.c - `rnn_dist help`: commands, options, and the completion script.
 */
#include <string.h>

#include "bin.h"
#include "formats/formats.h"

/* Prints the lines of a synopsis, the first after "Usage:". */
static void print_synopsis(const char *synopsis, FILE *out)
{
    const char *before = "Usage: ";
    while (*synopsis) {
        int length = (int)strcspn(synopsis, "\n");
        fprintf(out, "%srnn_dist %.*s\n", before, length, synopsis);
        synopsis += length + (synopsis[length] == '\n');
        before = "       ";
    }
}

void bin_print_help(const struct bin_command *command, FILE *out)
{
    print_synopsis(command->synopsis, out);
    fprintf(out, "%c%s.\n", command->summary[0] - 'a' + 'A', command->summary + 1);
    rnnd__options_help(command->bit, out);
}

static void print_commands(FILE *out)
{
    fputs("Usage: rnn_dist [train] --data FILE [options]\n"
          "       rnn_dist COMMAND [options] [operands]\n"
          "       mpirun -np N rnn_dist ...\n"
          "Train recurrent networks on sequences of unequal length, on any number of\n"
          "processes.\n\nCommands\n",
          out);
    for (const struct bin_command *c = bin_commands; c->summary; c++)
        fprintf(out, "  %-8s  %s\n", bin_name(c), c->summary);
    fputs("\nrnn_dist help COMMAND lists the options of a command.\n", out);
}

static void print_completion(FILE *out)
{
    char kinds[128] = "";
    const char *name;
    for (int i = 0; (name = rnnd__format_name(i)); i++) {
        size_t n = strlen(kinds);
        snprintf(kinds + n, sizeof kinds - n, "%s%s", i ? " " : "", name);
    }
    rnnd__options_completion(kinds, out);
}

int cmd_help(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)comm;
    const struct bin_command *command = argc > 0 ? bin_find(argv[0]) : NULL;
    if (argc > 0 && !command)
        return bin_unknown(argv[0]);
    if (opt->completion)
        print_completion(stdout);
    else if (command && opt->list_options)
        rnnd__options_list(command->bit, stdout);
    else if (command)
        bin_print_help(command, stdout);
    else
        print_commands(stdout);
    return 0;
}
