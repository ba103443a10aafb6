/*
 * csv_columns.c - chooses the columns of a table: those that options name, or all that
 * are numeric.
 */
#include "formats/csv_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/range.h"
#include "base/task.h"

/* What the first pass finds out about a column. */
struct column {
    char *name;
    /* an option names it, so it is not a feature by default */
    bool used;
    /* cells that are numbers, including NaN and infinities */
    int64_t numbers;
    /* all of them rise or fall from row to row of each file */
    bool monotonic;
    /* of the finite ones */
    struct rnnd__range range;
    /* numbers that follow another one of their file */
    int64_t compared;
    /* of the last number: its file, its value, and whether it rose (1) or fell (-1) */
    int last_file, direction;
    double last;
    /* line of the first cell that is not a number, 0 = none */
    int64_t word_line;
    int word_file;
    char word[48];
};

static int split_names(const char *option, const char *list, struct rnnd__list *out)
{
    out->size = sizeof(char *);
    while (list) {
        size_t n = strcspn(list, ",");
        const char *name = list;
        list = list[n] ? list + n + 1 : NULL;
        rnnd__text_trim(&name, &n);
        if (n == 0)
            return rnnd__fail(RNND_EUSAGE, "%s: empty column name", option);
        RNND_TRY(rnnd__list_add_text(out, name, n));
    }
    return 0;
}

/* What identifies a sequence, and at most one kind of target. */
static int check_wants(const struct rnnd_options *opt)
{
    int answers = !!opt->label + !!opt->step_label + !!opt->target +
                  !!opt->step_target + opt->label_from_folder + !!opt->labels_from;
    if (!opt->sequence && !opt->sequence_per_file)
        return rnnd__fail(RNND_EUSAGE,
                          "pack csv needs --sequence COLUMN, which identifies the "
                          "sequence of a row, or --sequence-per-file");
    if (opt->sequence && opt->sequence_per_file)
        return rnnd__fail(RNND_EUSAGE,
                          "--sequence cannot be used with --sequence-per-file");
    if (answers > 1)
        return rnnd__fail(RNND_EUSAGE,
                          "only one of --label, --step-label, --target, "
                          "--step-target, --label-from-folder and --labels-from can "
                          "be given");
    if (opt->labels && opt->labels_from)
        return rnnd__fail(RNND_EUSAGE,
                          "--labels cannot be used with --labels-from: one class for "
                          "each sequence, or a string of labels, for ctc");
    if (opt->labels && (opt->step_label || opt->step_target || opt->label_from_folder))
        return rnnd__fail(RNND_EUSAGE,
                          "--labels has a row per sequence: of the columns, only "
                          "--label or --target can be in it");
    if (opt->label_from_folder && !opt->sequence_per_file)
        return rnnd__fail(RNND_EUSAGE, "--label-from-folder needs --sequence-per-file");
    return 0;
}

static enum rnnd_task task_of(const struct rnnd_options *opt)
{
    if (opt->labels_from)
        return RNND_CTC;
    if (opt->step_label)
        return RNND_TAG;
    if (opt->target)
        return RNND_REGRESS;
    if (opt->step_target)
        return opt->task == RNND_MULTILABEL ? RNND_MULTILABEL : RNND_REGRESS_STEPS;
    return opt->label || opt->labels || opt->label_from_folder ? RNND_CLASSIFY
                                                               : RNND_NO_TASK;
}

/* Reads the options that name columns. */
int rnnd__csv_read_wants(struct rnnd__csv_table *t)
{
    const struct rnnd_options *opt = t->opt;
    struct rnnd__csv_wanted *want = &t->want;
    struct rnnd__contents *out = t->out;
    const char *targets = opt->target ? opt->target : opt->step_target;
    RNND_TRY(check_wants(opt));
    want->sequence = opt->sequence;
    want->label = opt->labels_from ? "labels"
                  : opt->label     ? opt->label
                                   : opt->step_label;
    want->table = opt->labels ? opt->labels : opt->labels_from;
    want->by_step = opt->step_label || opt->step_target;
    want->elsewhere = want->table || opt->label_from_folder;
    if (opt->features)
        RNND_TRY(split_names("--features", opt->features, &want->features));
    if (targets)
        RNND_TRY(split_names(opt->target ? "--target" : "--step-target", targets,
                             &want->targets));
    out->task = task_of(opt);
    out->outputs = want->targets.count;
    if (opt->task >= 0 && opt->task != (int)out->task)
        return rnnd__fail(
            RNND_EUSAGE, "--task %s does not match the given columns, which make it %s",
            rnnd_task_name((enum rnnd_task)opt->task), rnnd_task_name(out->task));
    if (opt->classes_from && !rnnd__task_has_classes(out->task))
        return rnnd__fail(RNND_EUSAGE,
                          "--classes-from needs classes: --label, --step-label, "
                          "--labels, --labels-from or --label-from-folder");
    return 0;
}

/* ---- the first pass: which columns exist, and which are numeric */

static struct column *find_column(const struct rnnd__csv_table *t, const char *name)
{
    int64_t i = rnnd__csv_names_find(&t->known, name);
    return i < 0 ? NULL : (struct column *)t->columns.at + i;
}

/* The number of a column in this file, by its name, which must be unique. */
int rnnd__csv_locate(const struct rnnd__csv *csv, const char *name, int64_t *out)
{
    int64_t found = rnnd__csv_column(csv, name);
    if (found == -2)
        return rnnd__text_fail(csv->text.path, csv->line, "two columns are named %s",
                               name);
    if (found < 0)
        return rnnd__csv_no_column(csv, name);
    *out = found;
    return 0;
}

/* Takes the columns from the header of the first file. */
static int take_header(struct rnnd__csv_table *t, const struct rnnd__csv *csv)
{
    t->columns.size = sizeof(struct column);
    for (int64_t i = 0; i < csv->cells; i++) {
        struct column c = {.name = strdup(rnnd__csv_cell(csv, i)),
                           .monotonic = true,
                           .range = rnnd__range_none,
                           .last_file = -1};
        if (!c.name || rnnd__list_add(&t->columns, &c, 1) < 0) {
            free(c.name);
            return rnnd__fail_memory(1, "columns");
        }
        RNND_TRY(rnnd__csv_names_add(&t->known, c.name, i));
    }
    return 0;
}

static void look_at_number(struct column *c, double value, int file)
{
    int direction = (value > c->last) - (value < c->last);
    rnnd__range_add(&c->range, value);
    if (c->last_file == file) {
        c->compared++;
        c->monotonic = c->monotonic && direction != 0 && c->direction != -direction;
        c->direction = direction;
    }
    c->last = value;
    c->last_file = file;
}

static void look_at_cell(struct column *c, const struct rnnd__csv *csv, int64_t i,
                         int file)
{
    const char *cell = rnnd__csv_cell(csv, i);
    float value;
    enum rnnd__field kind = rnnd__text_number(cell, strlen(cell), &value);
    c->numbers += kind == RNND_FIELD_NUMBER || kind == RNND_FIELD_NOT_FINITE;
    if (kind == RNND_FIELD_NUMBER)
        look_at_number(c, strtod(cell, NULL), file);
    if (kind == RNND_FIELD_WORD && !c->word_line) {
        c->word_line = csv->line;
        c->word_file = file;
        rnnd__text_shown(cell, strlen(cell), c->word);
    }
}

/* Whether a first row holds values instead of names: numbers, but not the 0, 1, 2, ...
   that pandas gives to columns without names, behind its index or not. */
static bool is_row_of_values(const struct rnnd__csv *csv)
{
    bool counted = true;
    int64_t numbers = 0, first = *rnnd__csv_cell(csv, 0) == '\0';
    for (int64_t i = 0; i < csv->cells; i++) {
        const char *cell = rnnd__csv_cell(csv, i);
        float value;
        enum rnnd__field kind = rnnd__text_number(cell, strlen(cell), &value);
        if (kind == RNND_FIELD_WORD)
            return false;
        numbers += kind == RNND_FIELD_NUMBER;
        counted = counted && (i < first || value == (float)(i - first));
    }
    return numbers > 0 && !counted;
}

/* Where each file is a sequence, no name need be found in the header. */
static int check_header(const struct rnnd__csv_table *t, const struct rnnd__csv *csv)
{
    if (t->want.sequence || !is_row_of_values(csv))
        return 0;
    return rnnd__text_fail(csv->text.path, csv->line,
                           "the first line must name the columns, but it holds numbers "
                           "only; if they are names, list them with --features");
}

/* Warns of columns that the first file does not have, of each name once. */
static int note_strangers(struct rnnd__csv_table *t, const struct rnnd__csv *csv)
{
    for (int64_t i = 0; i < csv->cells; i++) {
        const char *name = rnnd__csv_cell(csv, i);
        int64_t known = t->strangers.texts.texts.count;
        if (find_column(t, name))
            continue;
        RNND_TRY(rnnd__csv_names_add(&t->strangers, name, i));
        if (t->strangers.texts.texts.count > known)
            rnnd__log_warn("%s: column %s is left out: the first file has none",
                           csv->text.path, name);
    }
    return 0;
}

int rnnd__csv_survey(struct rnnd__csv_table *t, struct rnnd__csv *csv, int file)
{
    bool more;
    RNND_TRY(rnnd__csv_header(csv));
    RNND_TRY(check_header(t, csv));
    if (file == 0)
        RNND_TRY(take_header(t, csv));
    RNND_TRY(note_strangers(t, csv));
    struct column **column = NULL;
    RNND_TRY(RNND_NEW(&column, csv->cells, "columns"));
    for (int64_t i = 0; i < csv->cells; i++)
        column[i] = find_column(t, rnnd__csv_cell(csv, i));
    int status;
    for (;;) {
        RNND_TRY_GOTO(rnnd__csv_row(csv, &more));
        if (!more)
            break;
        for (int64_t i = 0; i < csv->cells; i++)
            if (column[i])
                look_at_cell(column[i], csv, i, file);
    }
done:
    free(column);
    return status;
}

static void mark_used(struct rnnd__csv_table *t, const char *name)
{
    struct column *c = name ? find_column(t, name) : NULL;
    if (c)
        c->used = true;
}

/* ---- columns that look like numbers or words, but are neither */

/* "1,5" */
static bool has_decimal_comma(const char *word)
{
    int end = 0;
    sscanf(word, "%*[-+0-9.],%*[0-9]%n", &end);
    return end > 0 && word[end] == '\0';
}

/* "2024-01-31", "31.1.2024", "2024/01/31 12:30", "12:30:05" */
static bool is_date(const char *word)
{
    int a, b, c, end = 0;
    char first[2], second[2];
    if (sscanf(word, "%4d%1[-/.]%2d%1[-/.]%4d", &a, first, &b, second, &c) == 5)
        return *first == *second && (*first != '.' || a > 999 || c > 999) && a >= 0 &&
               b >= 1 && c >= 1 &&
               ((b <= 12 && (a <= 31 || c <= 31)) || (a <= 12 && b <= 31));
    sscanf(word, "%*2[0-9]:%*2[0-9]%n", &end);
    return end > 0 && strspn(word + end, ":.0123456789") == strlen(word + end);
}

/* Whole seconds, or thousandths, millionths, billionths, since 1970, from 2001 on. */
static bool is_time_stamp(const struct column *c)
{
    const struct rnnd__range *r = &c->range;
    double unit = 1;
    for (int i = 0; i < 4 && r->integers && r->low <= r->high; i++, unit *= 1000)
        if (r->low >= 1e9 * unit && r->high < 2.2e9 * unit)
            return true;
    return false;
}

/* In fewer rows, values may rise by chance. */
static bool is_row_number(const struct column *c)
{
    enum { ENOUGH = 10 };
    return c->range.integers && c->monotonic && c->compared >= ENOUGH - 1;
}

/* What pandas calls a column without a name is one. */
static bool is_nameless(const struct column *c)
{
    return !*c->name || strncmp(c->name, "Unnamed: ", 9) == 0;
}

static int choose_words(const struct column *c, const char *path)
{
    if (has_decimal_comma(c->word))
        return rnnd__text_fail(path, c->word_line,
                               "column %s: \"%s\" has a comma; the decimal sign of "
                               "numbers must be a point",
                               c->name, c->word);
    if (is_date(c->word))
        return rnnd__text_fail(
            path, c->word_line,
            "column %s: \"%s\" is a date or time, not a feature; use "
            "--features to name the columns that are",
            c->name, c->word);
    rnnd__log_warn("column %s is left out: \"%s\" is not a number (%s:%lld)", c->name,
                   c->word, path, (long long)c->word_line);
    return 0;
}

static int choose_numbers(struct rnnd__csv_table *t, const struct column *c,
                          const char *path)
{
    if (is_time_stamp(c))
        return rnnd__fail(
            RNND_EDATA,
            "%s: column %s: values from %.0f to %.0f are time stamps, not "
            "features; use --features to name the columns that are",
            path, c->name, c->range.low, c->range.high);
    if (!is_row_number(c)) {
        rnnd__range_warn(&c->range, "column %s", c->name);
        return rnnd__list_add_text(&t->want.features, c->name, strlen(c->name));
    }
    rnnd__log_warn("column %s is left out: from row to row it only %s, as a row number "
                   "does; --features can take it",
                   c->name, c->direction > 0 ? "rises" : "falls");
    return 0;
}

/* Takes all numeric columns that no option names, and warns of the others. */
int rnnd__csv_choose_features(struct rnnd__csv_table *t, char *const *inputs)
{
    struct column *c = t->columns.at;
    char **target = t->want.targets.at;
    mark_used(t, t->want.sequence);
    mark_used(t, t->want.label);
    for (int64_t k = 0; k < t->want.targets.count; k++)
        mark_used(t, target[k]);
    t->want.features.size = sizeof(char *);
    for (int64_t i = 0; i < t->columns.count; i++) {
        if (c[i].used && t->want.elsewhere &&
            (!t->want.sequence || strcmp(c[i].name, t->want.sequence) != 0))
            rnnd__log_warn("column %s is left out: it is read in %s", c[i].name,
                           t->want.table);
        if (c[i].used)
            continue;
        if (is_nameless(&c[i]))
            rnnd__log_warn("column %lld, \"%s\", is left out: it has no name",
                           (long long)i + 1, c[i].name);
        else if (c[i].word_line)
            RNND_TRY(choose_words(&c[i], inputs[c[i].word_file]));
        else if (c[i].numbers)
            RNND_TRY(choose_numbers(t, &c[i], inputs[0]));
        else if (find_column(t, c[i].name) == &c[i]) /* the first of this name */
            rnnd__log_warn("column %s is left out: it has no values", c[i].name);
    }
    if (t->want.features.count == 0)
        return rnnd__fail(RNND_EDATA, "%s: no numeric column is left for the features",
                          inputs[0]);
    return 0;
}

void rnnd__csv_clear_columns(struct rnnd__csv_table *t)
{
    for (int64_t i = 0; i < t->columns.count; i++)
        free(((struct column *)t->columns.at)[i].name);
    rnnd__list_clear(&t->columns);
    rnnd__csv_names_clear(&t->known);
    rnnd__csv_names_clear(&t->strangers);
}
