/*
 * csv_files.c - one file per sequence: names from the names of the files, and classes
 * or targets from a second table or from the names of folders.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "formats/classes.h"
#include "formats/csv_table.h"

/* ---- names */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The length of a file's name without its suffix, and without .gz behind it. */
static size_t stem_of(const char *base)
{
    size_t n = strlen(base);
    if (n > 3 && strcmp(base + n - 3, ".gz") == 0)
        n -= 3;
    for (size_t i = n; i > 1; i--)
        if (base[i - 1] == '.')
            return i - 1;
    return n;
}

/* The name of the folder in a path; *n = 0 if the path has none. */
static const char *folder_of(const char *path, size_t *n)
{
    const char *end = base_of(path);
    while (end > path && end[-1] == '/')
        end--;
    const char *from = end;
    while (from > path && from[-1] != '/')
        from--;
    *n = (size_t)(end - from);
    return from;
}

/* Adds the name of each file to a list, with its folder or without. *twice: a file
   whose name is that of another, -1 = none. */
static int list_names(char *const *inputs, int count, bool with_folder,
                      struct rnnd__list *out, int *twice)
{
    struct rnnd__dictionary known = {0};
    int status = 0;
    *twice = -1;
    for (int i = 0; i < count && status == 0; i++) {
        const char *base = base_of(inputs[i]);
        size_t folder = 0, n = stem_of(base);
        const char *from = with_folder ? folder_of(inputs[i], &folder) : base;
        int64_t number;
        n += folder ? (size_t)(base - from) : 0;
        from = folder ? from : base;
        status = rnnd__list_add_text(out, from, n);
        if (status == 0)
            status = rnnd__dictionary_add(&known, from, n, &number);
        if (status == 0 && number != i && *twice < 0)
            *twice = i;
    }
    rnnd__dictionary_clear(&known);
    return status;
}

/* The files' names, if need be with their folders. */
int rnnd__csv_name_files(struct rnnd__csv_table *t, char *const *inputs, int count)
{
    int twice;
    RNND_TRY(list_names(inputs, count, false, &t->file_names, &twice));
    if (twice < 0)
        return 0;
    rnnd__list_clear_texts(&t->file_names);
    t->file_names.size = sizeof(char *);
    RNND_TRY(list_names(inputs, count, true, &t->file_names, &twice));
    if (twice < 0)
        return 0;
    return rnnd__fail(RNND_EUSAGE,
                      "%s: another input has the same name and folder, so that two "
                      "sequences would be named \"%s\"",
                      inputs[twice], rnnd__list_text(&t->file_names, twice));
}

/* ---- classes by folder */

static int class_of_folder(struct rnnd__csv_table *t, const char *path, int32_t *out)
{
    size_t n;
    int64_t number;
    const char *folder = folder_of(path, &n);
    if (n == 0 || (folder[0] == '.' && n <= 2 && folder[n - 1] == '.'))
        return rnnd__fail(RNND_EUSAGE,
                          "%s: --label-from-folder needs paths that name the folder, "
                          "as CLASS/FILE.csv",
                          path);
    RNND_TRY(rnnd__classes_number(t->opt, &t->classes, folder, n, &number));
    if (number < 0)
        return rnnd__fail(RNND_EDATA,
                          "%s: \"%.*s\" is not a class of the data set given by "
                          "--classes-from",
                          path, (int)n, folder);
    *out = (int32_t)number;
    return 0;
}

/* ---- classes or targets from a second table */

/* Of which each row is about a sequence. */
struct labels {
    struct rnnd__csv csv;
    /* the columns that are read */
    int64_t sequence, label, *target;
    /* the sequences of the rows */
    struct rnnd__csv_names rows;
    /* int32_t [rows], for ctc all strings; float [rows, O] */
    struct rnnd__list class, values;
    /* int64_t [rows], of strings: the classes up to the end of each row */
    struct rnnd__list end;
    /* bool [rows]: some sequence is that of the row */
    bool *used;
};

/* The column that says which sequence a row is about: that of --sequence, if there is
   one of this name, else the first. */
static int locate_sequence(const struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                           int64_t *out)
{
    *out = 0;
    if (!t->want.sequence || rnnd__csv_column(csv, t->want.sequence) == -1)
        return 0;
    return rnnd__csv_locate(csv, t->want.sequence, out);
}

/* Without --label and --target, the other one of two columns is the class. */
static int choose_label(struct rnnd__csv_table *t, struct rnnd__csv *csv)
{
    int64_t sequence;
    RNND_TRY(rnnd__csv_header(csv));
    if (csv->columns != 2)
        return rnnd__text_fail(csv->text.path, csv->line,
                               "%lld columns; use --label to name the one that holds "
                               "the class of the sequence in the first column",
                               (long long)csv->columns);
    RNND_TRY(locate_sequence(t, csv, &sequence));
    t->second = strdup(rnnd__csv_cell(csv, 1 - sequence));
    if (!t->second)
        return rnnd__fail_memory(1, "columns");
    t->want.label = t->second;
    return 0;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

int rnnd__csv_choose_label(struct rnnd__csv_table *t, char *const *inputs, int count)
{
    struct rnnd__csv csv;
    for (int i = 0; t->want.table && i < count; i++)
        if (is_same_file(inputs[i], t->want.table))
            return rnnd__fail(RNND_EUSAGE, "%s: is the table of %s, and also an input",
                              inputs[i], t->opt->labels ? "--labels" : "--labels-from");
    if (!t->want.table || t->want.label || t->want.targets.count)
        return 0;
    RNND_TRY(rnnd__csv_open(t->want.table, &csv));
    int status = choose_label(t, &csv);
    rnnd__csv_close(&csv);
    return status;
}

static int locate_answers(struct rnnd__csv_table *t, struct labels *l)
{
    int64_t O = t->want.targets.count;
    RNND_TRY(locate_sequence(t, &l->csv, &l->sequence));
    RNND_TRY(RNND_NEW(&l->target, O, "columns"));
    for (int64_t i = 0; i < O; i++)
        RNND_TRY(rnnd__csv_locate(&l->csv, rnnd__list_text(&t->want.targets, i),
                                  &l->target[i]));
    return O ? 0 : rnnd__csv_locate(&l->csv, t->want.label, &l->label);
}

static int read_answer(struct rnnd__csv_table *t, struct labels *l, float *values)
{
    const struct rnnd__csv *csv = &l->csv;
    const char *name = rnnd__csv_cell(csv, l->sequence);
    size_t n = strlen(name);
    char shown[48];
    int32_t class;
    int64_t number;
    rnnd__text_trim(&name, &n);
    RNND_TRY(rnnd__dictionary_add(&l->rows.texts, name, n, &number));
    if (number != l->rows.first.count)
        return rnnd__text_fail(csv->text.path, csv->line,
                               "sequence \"%s\" has a row on line %lld already",
                               rnnd__text_shown(name, n, shown),
                               (long long)((const int64_t *)l->rows.first.at)[number]);
    RNND_TRY(rnnd__list_add(&l->rows.first, &csv->line, 1));
    if (t->want.targets.count) {
        RNND_TRY(rnnd__csv_read_targets(t, csv, l->target, values));
        return rnnd__list_add(&l->values, values, t->want.targets.count);
    }
    if (t->out->task == RNND_CTC) {
        RNND_TRY(rnnd__csv_read_string(t, csv, l->label, &l->class));
        return rnnd__list_add(&l->end, &l->class.count, 1);
    }
    RNND_TRY(rnnd__csv_read_class(t, csv, l->label, &class));
    return rnnd__list_add(&l->class, &class, 1);
}

static int read_answers(struct rnnd__csv_table *t, struct labels *l, float *values)
{
    bool more = true;
    RNND_TRY(rnnd__csv_header(&l->csv));
    RNND_TRY(locate_answers(t, l));
    while (more) {
        RNND_TRY(rnnd__csv_row(&l->csv, &more));
        if (more)
            RNND_TRY(read_answer(t, l, values));
    }
    return RNND_NEW(&l->used, l->rows.first.count, "labels");
}

/* The row about a sequence, by its name, the name of its file or the whole path; -1 =
   none, -2 = several. Where the name needs the folder, so does that of the file. */
static int64_t row_of(const struct labels *l, const char *name, const char *path)
{
    const char *base = path && !strchr(name, '/') ? base_of(path) : name;
    const char *names[] = {name, base, path ? path : name};
    int64_t found = -1;
    for (int i = 0; i < 3; i++) {
        int64_t row = rnnd__dictionary_find(&l->rows.texts, names[i], strlen(names[i]));
        if (row >= 0 && found != row)
            found = found == -1 ? row : -2;
    }
    return found;
}

/* All sequences need one row; a table may be about others, too. */
static int fail_without_row(const struct labels *l, const struct rnnd__list *names,
                            char *const *inputs)
{
    int64_t lost = 0, first = -1, twice = -1;
    char shown[48];
    for (int64_t i = 0; i < names->count; i++) {
        int64_t row = row_of(l, rnnd__list_text(names, i), inputs ? inputs[i] : NULL);
        lost += row == -1;
        first = row == -1 && first < 0 ? i : first;
        twice = row == -2 && twice < 0 ? i : twice;
    }
    const char *name = rnnd__list_text(names, first < 0 ? twice : first);
    rnnd__text_shown(name, strlen(name), shown);
    if (first < 0)
        return rnnd__fail(
            RNND_EDATA,
            "%s: has several rows for sequence \"%s\", by its name and by "
            "its file",
            l->csv.text.path, shown);
    return rnnd__fail(RNND_EDATA,
                      "%s: has no row for sequence \"%s\", the first of %lld without "
                      "one (%lld in all)",
                      l->csv.text.path, shown, (long long)lost,
                      (long long)names->count);
}

/* Gives the answer in a row to the next sequence. */
static int take_answer(struct rnnd__contents *out, const struct labels *l, int64_t row)
{
    const int32_t *class = l->class.at;
    const int64_t *end = l->end.at;
    int64_t O = out->outputs;
    if (O)
        return rnnd__list_add(&out->values, (const float *)l->values.at + row * O, O);
    if (out->task != RNND_CTC)
        return rnnd__list_add(&out->labels, class + row, 1);
    int64_t from = row ? end[row - 1] : 0;
    if (end[row] > from)
        RNND_TRY(rnnd__list_add(&out->labels, class + from, end[row] - from));
    return rnnd__contents_end_string(out);
}

static int take_answers(struct rnnd__csv_table *t, struct labels *l,
                        char *const *inputs)
{
    int64_t unused = 0;
    const struct rnnd__list *names = &t->names.texts;
    for (int64_t i = 0; i < names->count; i++) {
        int64_t row = row_of(l, rnnd__list_text(names, i), inputs ? inputs[i] : NULL);
        if (row < 0)
            return fail_without_row(l, names, inputs);
        l->used[row] = true;
        RNND_TRY(take_answer(t->out, l, row));
    }
    for (int64_t i = 0; i < l->rows.first.count; i++)
        unused += !l->used[i];
    if (unused)
        rnnd__log_info("%s: %lld of %lld rows are of sequences that are not among the "
                       "inputs",
                       l->csv.text.path, (long long)unused,
                       (long long)l->rows.first.count);
    return 0;
}

static int label_by_table(struct rnnd__csv_table *t, char *const *inputs)
{
    struct labels l = {.class.size = sizeof(int32_t),
                       .values.size = sizeof(float),
                       .end.size = sizeof(int64_t)};
    float *values = NULL;
    int status;
    l.rows.first.size = sizeof(int64_t);
    RNND_TRY(rnnd__csv_open(t->want.table, &l.csv));
    RNND_TRY_GOTO(RNND_NEW(&values, t->want.targets.count, "targets"));
    RNND_TRY_GOTO(read_answers(t, &l, values));
    RNND_TRY_GOTO(take_answers(t, &l, inputs));
done:
    free(values);
    free(l.used);
    free(l.target);
    rnnd__list_clear(&l.class);
    rnnd__list_clear(&l.values);
    rnnd__list_clear(&l.end);
    rnnd__csv_names_clear(&l.rows);
    rnnd__csv_close(&l.csv);
    return status;
}

/* Where each file is a sequence, sequence i is that of input i. */
int rnnd__csv_label_sequences(struct rnnd__csv_table *t, char *const *inputs, int count)
{
    if (t->want.table)
        return label_by_table(t, t->want.sequence ? NULL : inputs);
    for (int i = 0; i < count; i++) {
        int32_t class;
        RNND_TRY(class_of_folder(t, inputs[i], &class));
        RNND_TRY(rnnd__list_add(&t->out->labels, &class, 1));
    }
    return 0;
}
