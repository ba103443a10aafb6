/*
 * options_help.c - the table of options as help, list of names and completion script.
 */
#include "options/options_table.h"

#include <string.h>

enum { HELP_COLUMN = 30, HELP_WIDTH = 80 };

/* A blank at which lines do not break. */
#define TIED '\1'

/* Prints text from column HELP_COLUMN on, breaking lines at blanks; `column` is that of
   the cursor. */
static void print_wrapped(FILE *out, int column, const char *text)
{
    if (column > HELP_COLUMN - 2) {
        putc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", HELP_COLUMN - column, "");
    column = HELP_COLUMN;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word >= HELP_WIDTH) {
            fprintf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        bool first = column == HELP_COLUMN;
        if (!first)
            putc(' ', out);
        for (int i = 0; i < word; i++)
            putc(text[i] == TIED ? ' ' : text[i], out);
        column += word + !first;
        text += word + (text[word] == ' ');
    }
    putc('\n', out);
}

/* Prints the value's name; a long list of words goes on in the next line. Returns the
   column reached. */
static int print_argument(FILE *out, int column, const char *arg)
{
    enum { INDENT = 6 };
    while (*arg) {
        int word = (int)strcspn(arg, "|");
        word += arg[word] == '|';
        if (column + word >= HELP_WIDTH) {
            fprintf(out, "\n%*s", INDENT, "");
            column = INDENT;
        }
        column += fprintf(out, "%.*s", word, arg);
        arg += word;
    }
    return column;
}

static void print_option(FILE *out, int i)
{
    const struct rnnd__option *option = &rnnd__options[i];
    bool has_default = option->preset && option->kind != RNND_SWITCH;
    char text[256];
    snprintf(text, sizeof text, "%s", option->help);
    if (has_default)
        snprintf(text, sizeof text, "%s (default%c%s)", option->help, TIED,
                 option->preset);
    const char *letter = i == OPT_help      ? "-h, "
                         : i == OPT_version ? "-V, "
                         : i == OPT_out     ? "-o, "
                                            : "";
    int column =
        fprintf(out, "  %s--%s%s", letter, option->name, option->arg ? " " : "");
    if (option->arg)
        column = print_argument(out, column, option->arg);
    print_wrapped(out, column, text);
}

void rnnd__options_help(enum rnnd__command command, FILE *out)
{
    const char *group = "";
    bool switches = false;
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct rnnd__option *option = &rnnd__options[i];
        if (!(option->commands & command))
            continue;
        if (strcmp(option->group, group) != 0)
            fprintf(out, "\n%s\n", option->group);
        group = option->group;
        switches |= option->kind == RNND_SWITCH && i != OPT_help && i != OPT_version;
        print_option(out, i);
    }
    fprintf(out,
            "\nWrite --name=value or --name value. Names cannot be abbreviated.%s%s\n",
            switches ? "\n--no-name turns a switch off." : "",
            rnnd__options[OPT_progress].commands & command
                ? "\n-q is short for --progress none."
                : "");
}

void rnnd__options_list(enum rnnd__command command, FILE *out)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (rnnd__options[i].commands & command)
            fprintf(out, "%s\n", rnnd__options[i].name);
}

/* ---- completion for bash */

static void complete_options(FILE *out)
{
    fputs("    local options=\n    case $command in\n", out);
    for (int bit = 0; rnnd__command_name(bit); bit++) {
        fprintf(out, "    %s)\n        options='", rnnd__command_name(bit));
        for (int i = 0; i < OPT_COUNT; i++) {
            const struct rnnd__option *option = &rnnd__options[i];
            if (!(option->commands & 1u << bit))
                continue;
            fprintf(out, "--%s ", option->name);
            if (option->kind == RNND_SWITCH && i != OPT_help && i != OPT_version)
                fprintf(out, "--no-%s ", option->name);
        }
        fputs("' ;;\n", out);
    }
    fputs("    esac\n", out);
}

/* One case per option with a value: its words, files, directories, or nothing. */
static void complete_values(FILE *out)
{
    fputs("    case $prev in\n", out);
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct rnnd__option *option = &rnnd__options[i];
        if (!option->arg)
            continue;
        fprintf(out, "    --%s) ", option->name);
        if (option->kind == RNND_CHOICE) {
            fputs("words='", out);
            for (const char *c = option->arg; *c; c++)
                putc(*c == '|' ? ' ' : *c, out);
            putc('\'', out);
        } else {
            fputs(strcmp(option->arg, "FILE") == 0  ? "action='file'"
                  : strcmp(option->arg, "DIR") == 0 ? "action='directory'"
                                                    : "action=''",
                  out);
        }
        fputs(" ;;\n", out);
    }
    fputs("    *) return 1 ;;\n    esac\n", out);
}

void rnnd__options_completion(const char *kinds, FILE *out)
{
    fputs("# bash completion for rnn_dist, written by: rnn_dist help --completion\n\n"
          "# Completes the value of option $prev, if it takes one.\n"
          "_rnn_dist_value()\n{\n    local prev=$1 cur=$2 words='' action=''\n",
          out);
    complete_values(out);
    fputs("    if [ -n \"$words\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "    elif [ -n \"$action\" ]; then\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        mapfile -t COMPREPLY < <(compgen -A \"$action\" -- \"$cur\")\n"
          "    fi\n}\n\n"
          "_rnn_dist()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    COMPREPLY=()\n"
          "    if [ \"$cur\" = = ]; then\n"
          "        cur=''\n"
          "    elif [ \"$prev\" = = ]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    _rnn_dist_value \"$prev\" \"$cur\" && return\n"
          "    local commands='",
          out);
    for (int bit = 0; rnnd__command_name(bit); bit++)
        fprintf(out, "%s%s", bit ? " " : "", rnnd__command_name(bit));
    fprintf(out, "'\n    local kinds='%s'\n", kinds);
    fputs("    local command=train\n"
          "    case \" $commands \" in *\" ${COMP_WORDS[1]} \"*) "
          "command=${COMP_WORDS[1]} ;; esac\n",
          out);
    complete_options(out);
    fputs("    if [ \"$COMP_CWORD\" = 1 ] && [ \"${cur#-}\" = \"$cur\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
          "    elif [ \"${cur#-}\" != \"$cur\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
          "    elif [ \"$command\" = help ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
          "    elif [ \"$command\" = pack ] && [ \"$COMP_CWORD\" = 2 ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$kinds\" -- \"$cur\")\n"
          "    else\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
          "    fi\n}\n"
          "complete -F _rnn_dist rnn_dist\n",
          out);
}
