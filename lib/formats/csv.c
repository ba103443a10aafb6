/*
 * csv.c - a table with a header line, comma-separated and quoted as RFC 4180 says; a row is a
 * step, and one column tells which sequence it belongs to.
 *
 * The text is walked twice: once to see which columns are numbers, once to take the rows.
 */
#include "csv.h"

#include "log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns */

/* What a column is good for, found by the first walk. */
struct column {
    char *name;
    bool used;                     /* by an option: not a feature by default */
    int64_t numbers;               /* cells that are numbers, or would be but for NaN */
    int64_t word_line;             /* first cell that is a word, 0 = none */
    int word_file;
    char word[48];
};

/* What the options say, as names. */
struct wanted {
    const char *sequence;
    struct rnnd_list features, targets; /* char * */
    const char *label;
    bool by_step;                  /* label or targets belong to steps */
};

struct table {
    const struct rnnd_options *opt;
    struct wanted want;
    struct rnnd_list columns;      /* struct column, in the order of the first file */
    struct rnnd_contents *out;
    struct rnnd_dictionary names, classes;
    bool fixed_classes;            /* --classes-from: nothing is added */
    struct rnnd_list row_sequence; /* int64_t, one a step, as the rows come */
    struct rnnd_list last_file;    /* int32_t, one a sequence: where its last row was */
    bool continues;                /* a sequence goes on in another file */
};

static int fail_cell(const struct rnnd_csv *csv, const char *column, const char *problem)
{
    return rnnd_fail(RNND_EDATA, "%s:%lld: column %s: %s", csv->text.path,
                     (long long)csv->line, column, problem);
}

static int split_names(const char *list, struct rnnd_list *out)
{
    out->size = sizeof(char *);
    while (list) {
        size_t n = strcspn(list, ",");
        const char *name = list;
        list = list[n] ? list + n + 1 : NULL;
        rnnd_text_trim(&name, &n);
        if (n == 0)
            return rnnd_fail(RNND_EUSAGE, "a column name is empty in a list of columns");
        RNND_TRY(rnnd_list_add_text(out, name, n));
    }
    return 0;
}

/* What the options ask for; one kind of target at most. */
static int read_wants(const struct rnnd_options *opt, struct wanted *want,
                      struct rnnd_contents *out)
{
    const char *targets = opt->target ? opt->target : opt->step_target;
    if (!opt->sequence)
        return rnnd_fail(RNND_EUSAGE, "pack csv needs --sequence COLUMN: what tells the "
                                      "sequences apart");
    if (!!opt->label + !!opt->step_label + !!opt->target + !!opt->step_target > 1)
        return rnnd_fail(RNND_EUSAGE, "only one of --label, --step-label, --target and "
                                      "--step-target can be given");
    want->sequence = opt->sequence;
    want->label = opt->label ? opt->label : opt->step_label;
    want->by_step = opt->step_label || opt->step_target;
    if (opt->features)
        RNND_TRY(split_names(opt->features, &want->features));
    if (targets)
        RNND_TRY(split_names(targets, &want->targets));
    out->task = opt->label         ? RNND_CLASSIFY
                : opt->step_label  ? RNND_TAG
                : opt->target      ? RNND_REGRESS
                : opt->step_target ? RNND_REGRESS_STEPS
                                   : RNND_NO_TASK;
    out->outputs = want->targets.count;
    if (opt->task == RNND_MULTILABEL && out->task == RNND_REGRESS_STEPS)
        out->task = RNND_MULTILABEL;
    if (opt->task >= 0 && opt->task != (int)out->task)
        return rnnd_fail(RNND_EUSAGE, "--task %s: the columns that are given make it %s",
                         rnnd_task_name((enum rnnd_task)opt->task), rnnd_task_name(out->task));
    if (opt->classes_from && !want->label)
        return rnnd_fail(RNND_EUSAGE, "--classes-from needs --label or --step-label");
    return 0;
}

/* ---- the first walk: which columns are there, and which are numbers */

static struct column *find_column(const struct table *t, const char *name)
{
    struct column *c = t->columns.at;
    for (int64_t i = 0; i < t->columns.count; i++)
        if (strcmp(c[i].name, name) == 0)
            return &c[i];
    return NULL;
}

/* Number of a column in this file, by name; it must stand there once. */
static int locate(const struct rnnd_csv *csv, const char *name, int64_t *out)
{
    int64_t found = -1;
    for (int64_t i = 0; i < csv->cells; i++)
        if (strcmp(rnnd_csv_cell(csv, i), name) == 0) {
            if (found >= 0)
                return rnnd_fail(RNND_EDATA, "%s:%lld: two columns are called %s",
                                 csv->text.path, (long long)csv->line, name);
            found = i;
        }
    if (found < 0) {
        bool other = csv->cells == 1 && strpbrk(rnnd_csv_cell(csv, 0), ";\t");
        return rnnd_fail(RNND_EDATA, "%s:%lld: no column is called %s%s", csv->text.path,
                         (long long)csv->line, name,
                         other ? "; cells are separated by commas only" : "");
    }
    *out = found;
    return 0;
}

/* The columns of the first file's header. */
static int take_header(struct table *t, const struct rnnd_csv *csv)
{
    t->columns.size = sizeof(struct column);
    for (int64_t i = 0; i < csv->cells; i++) {
        struct column c = {.name = strdup(rnnd_csv_cell(csv, i))};
        if (!c.name || rnnd_list_add(&t->columns, &c, 1) < 0) {
            free(c.name);
            return rnnd_fail_memory(1, "columns");
        }
    }
    return 0;
}

static void look_at_cell(struct column *c, const struct rnnd_csv *csv, int64_t i, int file)
{
    const char *cell = rnnd_csv_cell(csv, i);
    float value;
    enum rnnd_field kind = rnnd_text_number(cell, strlen(cell), &value);
    c->numbers += kind == RNND_FIELD_NUMBER || kind == RNND_FIELD_NOT_FINITE;
    if (kind == RNND_FIELD_WORD && !c->word_line) {
        c->word_line = csv->line;
        c->word_file = file;
        rnnd_text_shown(cell, strlen(cell), c->word);
    }
}

static int survey(struct table *t, struct rnnd_csv *csv, int file)
{
    bool more;
    RNND_TRY(rnnd_csv_header(csv));
    if (file == 0)
        RNND_TRY(take_header(t, csv));
    struct column **column = NULL;
    RNND_TRY(rnnd_new((size_t)csv->cells, sizeof *column, "columns", (void **)&column));
    for (int64_t i = 0; i < csv->cells; i++)
        column[i] = find_column(t, rnnd_csv_cell(csv, i));
    int status;
    for (;;) {
        RNND_TRY_GOTO(rnnd_csv_row(csv, &more));
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

/* All columns that are numbers and that no option names; the others are told of. */
static int choose_features(struct table *t, char *const *inputs)
{
    struct column *c = t->columns.at;
    char **target = t->want.targets.at;
    for (int64_t i = 0; i < t->columns.count; i++) {
        c[i].used = strcmp(c[i].name, t->want.sequence) == 0
                    || (t->want.label && strcmp(c[i].name, t->want.label) == 0);
        for (int64_t k = 0; k < t->want.targets.count; k++)
            c[i].used |= strcmp(c[i].name, target[k]) == 0;
    }
    t->want.features.size = sizeof(char *);
    for (int64_t i = 0; i < t->columns.count; i++) {
        if (c[i].used)
            continue;
        if (c[i].numbers && !c[i].word_line) {
            RNND_TRY(rnnd_list_add_text(&t->want.features, c[i].name, strlen(c[i].name)));
        } else if (c[i].word_line) {
            rnnd_log_warn("column %s is left out: \"%s\" is not a number (%s:%lld)", c[i].name,
                          c[i].word, inputs[c[i].word_file], (long long)c[i].word_line);
        } else {
            rnnd_log_warn("column %s is left out: it is empty", c[i].name);
        }
    }
    if (t->want.features.count == 0)
        return rnnd_fail(RNND_EDATA, "%s: no column of numbers is left for the features",
                         inputs[0]);
    return 0;
}

/* ---- the second walk: rows */

/* Where this file has what is wanted. */
struct places {
    int64_t sequence, label;
    int64_t *feature, *target;
};

static int locate_list(const struct rnnd_csv *csv, const struct rnnd_list *names, int64_t **out)
{
    char **name = names->at;
    RNND_TRY(rnnd_new((size_t)names->count, sizeof **out, "columns", (void **)out));
    for (int64_t i = 0; i < names->count; i++)
        RNND_TRY(locate(csv, name[i], &(*out)[i]));
    return 0;
}

static int locate_all(const struct table *t, const struct rnnd_csv *csv, struct places *at)
{
    RNND_TRY(locate(csv, t->want.sequence, &at->sequence));
    if (t->want.label)
        RNND_TRY(locate(csv, t->want.label, &at->label));
    RNND_TRY(locate_list(csv, &t->want.features, &at->feature));
    return locate_list(csv, &t->want.targets, &at->target);
}

static int read_features(struct table *t, const struct rnnd_csv *csv, const struct places *at)
{
    char **name = t->want.features.at, problem[80], shown[48];
    for (int64_t i = 0; i < t->want.features.count; i++) {
        const char *cell = rnnd_csv_cell(csv, at->feature[i]);
        size_t n = strlen(cell);
        float value;
        enum rnnd_field kind = rnnd_text_number(cell, n, &value);
        if (kind == RNND_FIELD_EMPTY)
            return fail_cell(csv, name[i], "an empty cell; features must be there");
        if (kind != RNND_FIELD_NUMBER) {
            snprintf(problem, sizeof problem, "\"%s\" is not a finite number",
                     rnnd_text_shown(cell, n, shown));
            return fail_cell(csv, name[i], problem);
        }
        RNND_TRY(rnnd_list_add(&t->out->features, &value, 1));
    }
    return 0;
}

/* The class of a row, -1 where its cell is empty. */
static int read_label(struct table *t, const struct rnnd_csv *csv, const struct places *at,
                      int32_t *out)
{
    const char *cell = rnnd_csv_cell(csv, at->label);
    size_t n = strlen(cell);
    char problem[120], shown[48];
    int64_t number = -1;
    rnnd_text_trim(&cell, &n);
    if (n && t->fixed_classes) {
        number = rnnd_dictionary_find(&t->classes, cell, n);
        if (number < 0) {
            snprintf(problem, sizeof problem, "\"%s\" is not a class of the data set given by "
                                              "--classes-from",
                     rnnd_text_shown(cell, n, shown));
            return fail_cell(csv, t->want.label, problem);
        }
    } else if (n) {
        RNND_TRY(rnnd_dictionary_add(&t->classes, cell, n, &number));
    }
    *out = (int32_t)number;
    return 0;
}

/* Values of a row; an empty cell is NaN: the row does not count as a target. */
static int read_targets(struct table *t, const struct rnnd_csv *csv, const struct places *at,
                        float *out)
{
    char **name = t->want.targets.at, problem[100], shown[48];
    for (int64_t i = 0; i < t->want.targets.count; i++) {
        const char *cell = rnnd_csv_cell(csv, at->target[i]);
        size_t n = strlen(cell);
        enum rnnd_field kind = rnnd_text_number(cell, n, &out[i]);
        bool answer = t->out->task != RNND_MULTILABEL || (out[i] >= 0 && out[i] <= 1);
        if (kind == RNND_FIELD_EMPTY) {
            out[i] = NAN;
        } else if (kind != RNND_FIELD_NUMBER || !answer) {
            snprintf(problem, sizeof problem, "\"%s\" is not a %s",
                     rnnd_text_shown(cell, n, shown),
                     kind == RNND_FIELD_NUMBER ? "number from 0 to 1" : "finite number");
            return fail_cell(csv, name[i], problem);
        }
    }
    return 0;
}

static int fail_changed(const struct rnnd_csv *csv, const struct table *t, const char *column,
                        int64_t sequence)
{
    char problem[160], shown[48];
    const char *name = rnnd_dictionary_text(&t->names, sequence);
    snprintf(problem, sizeof problem, "not the same in all rows of sequence \"%s\"",
             rnnd_text_shown(name, strlen(name), shown));
    return fail_cell(csv, column, problem);
}

/* Keeps a label: of each step, or once of a sequence, where later rows must agree. */
static int keep_label(struct table *t, const struct rnnd_csv *csv, int64_t sequence, bool fresh,
                      int32_t label)
{
    if (t->want.by_step || fresh)
        return rnnd_list_add(&t->out->labels, &label, 1);
    if (((int32_t *)t->out->labels.at)[sequence] != label)
        return fail_changed(csv, t, t->want.label, sequence);
    return 0;
}

static int keep_targets(struct table *t, const struct rnnd_csv *csv, int64_t sequence,
                        bool fresh, const float *row)
{
    int64_t O = t->want.targets.count;
    if (t->want.by_step || fresh)
        return rnnd_list_add(&t->out->values, row, O);
    const float *kept = (const float *)t->out->values.at + sequence * O;
    for (int64_t i = 0; i < O; i++)
        if (kept[i] != row[i] && !(isnan(kept[i]) && isnan(row[i])))
            return fail_changed(csv, t, ((char **)t->want.targets.at)[i], sequence);
    return 0;
}

static int read_row(struct table *t, const struct rnnd_csv *csv, const struct places *at,
                    int32_t file, float *targets)
{
    int64_t sequence, known = t->names.texts.count;
    int32_t label = 0;
    const char *cell = rnnd_csv_cell(csv, at->sequence);
    size_t n = strlen(cell);
    rnnd_text_trim(&cell, &n);
    if (n == 0)
        return fail_cell(csv, t->want.sequence, "an empty cell; each row needs a sequence");
    RNND_TRY(rnnd_dictionary_add(&t->names, cell, n, &sequence));
    bool fresh = sequence == known;
    if (fresh)
        RNND_TRY(rnnd_list_add(&t->last_file, &file, 1));
    int32_t *last = (int32_t *)t->last_file.at + sequence;
    t->continues |= *last != file;
    *last = file;
    RNND_TRY(rnnd_list_add(&t->row_sequence, &sequence, 1));
    RNND_TRY(read_features(t, csv, at));
    if (t->want.label) {
        RNND_TRY(read_label(t, csv, at, &label));
        RNND_TRY(keep_label(t, csv, sequence, fresh, label));
    }
    if (t->want.targets.count) {
        RNND_TRY(read_targets(t, csv, at, targets));
        RNND_TRY(keep_targets(t, csv, sequence, fresh, targets));
    }
    return 0;
}

static int read_rows(struct table *t, struct rnnd_csv *csv, int32_t file)
{
    struct places at = {0};
    float *targets = NULL;
    bool more;
    int status;
    RNND_TRY_GOTO(rnnd_csv_header(csv));
    RNND_TRY_GOTO(locate_all(t, csv, &at));
    RNND_TRY_GOTO(rnnd_new((size_t)t->want.targets.count, sizeof *targets, "targets",
                           (void **)&targets));
    for (;;) {
        RNND_TRY_GOTO(rnnd_csv_row(csv, &more));
        if (!more)
            break;
        RNND_TRY_GOTO(read_row(t, csv, &at, file, targets));
    }
done:
    free(targets);
    free(at.feature);
    free(at.target);
    return status;
}

/* ---- rows into sequences */

/* Reorders rows of `width` elements so that row i goes to place[i]. */
static int permute(struct rnnd_list *rows, int64_t width, const int64_t *place, int64_t count)
{
    struct rnnd_list sorted = {.size = rows->size};
    size_t row = (size_t)width * rows->size;
    if (rows->count == 0)
        return 0;
    RNND_TRY(rnnd_list_add(&sorted, NULL, rows->count));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)sorted.at + (size_t)place[i] * row, (char *)rows->at + (size_t)i * row,
               row);
    rnnd_list_clear(rows);
    *rows = sorted;
    return 0;
}

/* Sequences in the order of their first rows, each with its rows as they came. */
static int group_rows(struct table *t)
{
    const int64_t *uses = t->names.uses.at, *sequence = t->row_sequence.at;
    int64_t N = t->names.texts.count, S = t->row_sequence.count, end = 0;
    int64_t *place, *next;
    bool sorted = true;
    RNND_TRY(rnnd_new((size_t)(S + N), sizeof *place, "rows", (void **)&place));
    next = place + S;
    int status = 0;
    for (int64_t i = 0; i < N && status == 0; i++) {
        next[i] = end;
        end += uses[i];
        status = rnnd_list_add(&t->out->offsets, &end, 1);
    }
    for (int64_t i = 0; i < S; i++) {
        place[i] = next[sequence[i]]++;
        sorted = sorted && place[i] == i;
    }
    if (status == 0 && !sorted)
        status = permute(&t->out->features, t->out->inputs, place, S);
    if (status == 0 && !sorted && t->want.by_step)
        status = t->want.label ? permute(&t->out->labels, 1, place, S)
                               : permute(&t->out->values, t->out->outputs, place, S);
    free(place);
    return status;
}

/* ---- classes */

struct class {
    const char *text;
    int64_t number;                /* as first seen */
    double value;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct class *)a)->text, ((const struct class *)b)->text);
}

static int by_value(const void *a, const void *b)
{
    double x = ((const struct class *)a)->value, y = ((const struct class *)b)->value;
    return x < y ? -1 : x > y ? 1 : by_text(a, b);
}

/* Numbers the classes: by value if all are numbers, else by their bytes. */
static int sort_classes(struct table *t)
{
    int64_t C = t->classes.texts.count;
    struct class *class;
    int32_t *label = t->out->labels.at;
    bool numbers = true;
    RNND_TRY(rnnd_new((size_t)C, sizeof *class, "classes", (void **)&class));
    for (int64_t i = 0; i < C; i++) {
        float value;
        const char *text = rnnd_dictionary_text(&t->classes, i);
        class[i] = (struct class){text, i, 0};
        numbers &= rnnd_text_number(text, strlen(text), &value) == RNND_FIELD_NUMBER;
        class[i].value = numbers ? strtod(text, NULL) : 0;
    }
    qsort(class, (size_t)C, sizeof *class, numbers ? by_value : by_text);
    int status = 0;
    int64_t *rank = NULL;
    RNND_TRY_GOTO(rnnd_new((size_t)C, sizeof *rank, "classes", (void **)&rank));
    for (int64_t i = 0; i < C; i++) {
        rank[class[i].number] = i;
        RNND_TRY_GOTO(rnnd_list_add_text(&t->out->class, class[i].text, strlen(class[i].text)));
    }
    for (int64_t i = 0; i < t->out->labels.count; i++)
        label[i] = label[i] < 0 ? -1 : (int32_t)rank[label[i]];
done:
    free(rank);
    free(class);
    return status;
}

/* The classes of another data set, in its order. */
static int read_classes(struct table *t)
{
    int64_t number;
    RNND_TRY(rnnd_format_texts_of(t->opt->classes_from, "/classes", &t->out->class));
    for (int64_t i = 0; i < t->out->class.count; i++) {
        const char *name = ((char **)t->out->class.at)[i];
        RNND_TRY(rnnd_dictionary_add(&t->classes, name, strlen(name), &number));
    }
    t->fixed_classes = true;
    return 0;
}

/* ---- all of it */

static int each_file(struct table *t, char *const *inputs, int count,
                     int (*walk)(struct table *, struct rnnd_csv *, int file))
{
    int status = 0;
    for (int i = 0; i < count && status == 0; i++) {
        struct rnnd_csv csv;
        RNND_TRY(rnnd_csv_open(inputs[i], &csv));
        status = walk(t, &csv, i);
        rnnd_csv_close(&csv);
    }
    return status;
}

static int finish(struct table *t)
{
    struct rnnd_contents *out = t->out;
    RNND_TRY(group_rows(t));
    if (t->want.label) {
        if (!t->fixed_classes)
            RNND_TRY(sort_classes(t));
        out->classes = out->class.count;
        if (out->classes == 0 && out->labels.count)
            return rnnd_fail(RNND_EDATA, "column %s: all cells are empty", t->want.label);
    }
    if (t->continues)
        rnnd_log_warn("a sequence has rows in several files; they are joined");
    out->names = t->names.texts;
    t->names.texts = (struct rnnd_list){.size = sizeof(char *)};
    return 0;
}

static int read_csv(const struct rnnd_options *opt, char *const *inputs, int count,
                    struct rnnd_contents *out)
{
    struct table t = {.opt = opt, .out = out, .row_sequence.size = sizeof(int64_t),
                      .last_file.size = sizeof(int32_t)};
    int status;
    RNND_TRY_GOTO(read_wants(opt, &t.want, out));
    if (opt->classes_from)
        RNND_TRY_GOTO(read_classes(&t));
    if (!opt->features) {
        RNND_TRY_GOTO(each_file(&t, inputs, count, survey));
        RNND_TRY_GOTO(choose_features(&t, inputs));
    }
    out->inputs = t.want.features.count;
    RNND_TRY_GOTO(each_file(&t, inputs, count, read_rows));
    RNND_TRY_GOTO(finish(&t));
done:
    for (int64_t i = 0; i < t.columns.count; i++)
        free(((struct column *)t.columns.at)[i].name);
    rnnd_list_clear(&t.columns);
    rnnd_list_clear_texts(&t.want.features);
    rnnd_list_clear_texts(&t.want.targets);
    rnnd_dictionary_clear(&t.names);
    rnnd_dictionary_clear(&t.classes);
    rnnd_list_clear(&t.row_sequence);
    rnnd_list_clear(&t.last_file);
    return status;
}

const struct rnnd_format rnnd_format_csv = {
    "csv", " task sequence features label step-label target step-target classes-from ",
    read_csv};
