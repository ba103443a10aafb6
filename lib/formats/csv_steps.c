/*
 * csv_steps.c - turns rows of a table into steps (features, classes, values), and
 * groups them into sequences.
 */
#include "formats/csv_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fails in a column of the current row; format is a literal. */
#define fail_cell(csv, column, format, ...)                                      \
    rnnd__text_fail((csv)->text.path, (csv)->line, "column %s: " format, column, \
                    ##__VA_ARGS__)

/* The columns of this file. */
struct places {
    int64_t sequence, label;
    int64_t *feature, *target;
};

static int locate_list(const struct rnnd__csv *csv, const struct rnnd__list *names,
                       int64_t **out)
{
    RNND_TRY(RNND_NEW(out, names->count, "columns"));
    for (int64_t i = 0; i < names->count; i++)
        RNND_TRY(rnnd__csv_locate(csv, rnnd__list_text(names, i), &(*out)[i]));
    return 0;
}

static int locate_all(const struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                      struct places *at)
{
    if (t->want.sequence)
        RNND_TRY(rnnd__csv_locate(csv, t->want.sequence, &at->sequence));
    RNND_TRY(locate_list(csv, &t->want.features, &at->feature));
    if (t->want.elsewhere)
        return 0;
    if (t->want.label)
        RNND_TRY(rnnd__csv_locate(csv, t->want.label, &at->label));
    return locate_list(csv, &t->want.targets, &at->target);
}

static int read_features(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                         const struct places *at)
{
    char shown[48];
    for (int64_t i = 0; i < t->want.features.count; i++) {
        const char *name = rnnd__list_text(&t->want.features, i);
        const char *cell = rnnd__csv_cell(csv, at->feature[i]);
        size_t n = strlen(cell);
        float value;
        enum rnnd__field kind = rnnd__text_number(cell, n, &value);
        if (kind == RNND_FIELD_MISSING)
            RNND_TRY(rnnd__contents_gap(t->out, "%s:%lld: column %s", csv->text.path,
                                        (long long)csv->line, name));
        else if (kind != RNND_FIELD_NUMBER)
            return fail_cell(csv, name, "\"%s\" is not a finite number",
                             rnnd__text_shown(cell, n, shown));
        else if (rnnd__text_is_rounded(cell, n, value))
            rnnd__contents_rounded(t->out, value, "%s:%lld: column %s: %s",
                                   csv->text.path, (long long)csv->line, name, cell);
        RNND_TRY(rnnd__list_add(&t->out->features, &value, 1));
    }
    return 0;
}

/* The number of a class in the current row. */
static int number_class(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                        const char *name, size_t length, int32_t *out)
{
    int64_t number;
    char shown[48];
    RNND_TRY(rnnd__csv_class(t, name, length, &number));
    if (number < 0)
        return fail_cell(
            csv, t->want.label,
            "\"%s\" is not a class of the data set given by --classes-from",
            rnnd__text_shown(name, length, shown));
    *out = (int32_t)number;
    return 0;
}

int rnnd__csv_read_class(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                         int64_t column, int32_t *out)
{
    const char *cell = rnnd__csv_cell(csv, column);
    size_t n = strlen(cell);
    rnnd__text_trim(&cell, &n);
    if (!rnnd__text_missing(cell, n))
        return number_class(t, csv, cell, n, out);
    *out = -1;
    return 0;
}

int rnnd__csv_read_string(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                          int64_t column, struct rnnd__list *out)
{
    static const char blanks[] = " \t\r\n";
    const char *at = rnnd__csv_cell(csv, column);
    for (at += strspn(at, blanks); *at; at += strspn(at, blanks)) {
        size_t n = strcspn(at, blanks);
        int32_t class;
        RNND_TRY(number_class(t, csv, at, n, &class));
        RNND_TRY(rnnd__list_add(out, &class, 1));
        at += n;
    }
    return 0;
}

int rnnd__csv_read_targets(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                           const int64_t *column, float *out)
{
    char shown[48];
    for (int64_t i = 0; i < t->want.targets.count; i++) {
        const char *cell = rnnd__csv_cell(csv, column[i]);
        size_t n = strlen(cell);
        enum rnnd__field kind = rnnd__text_number(cell, n, &out[i]);
        bool answer = t->out->task != RNND_MULTILABEL || (out[i] >= 0 && out[i] <= 1);
        if (kind != RNND_FIELD_MISSING && (kind != RNND_FIELD_NUMBER || !answer)) {
            const char *what =
                kind == RNND_FIELD_NUMBER ? "number from 0 to 1" : "finite number";
            return fail_cell(csv, rnnd__list_text(&t->want.targets, i),
                             "\"%s\" is not a %s", rnnd__text_shown(cell, n, shown),
                             what);
        }
    }
    return 0;
}

static int fail_changed(const struct rnnd__csv *csv, const struct rnnd__csv_table *t,
                        const char *column, int64_t sequence)
{
    char shown[48];
    const char *name = rnnd__dictionary_text(&t->names, sequence);
    return fail_cell(csv, column, "differs between rows of sequence \"%s\"",
                     rnnd__text_shown(name, strlen(name), shown));
}

/* Keeps the label of each step, or one per sequence, on which all its rows must
   agree. */
static int keep_label(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                      int64_t sequence, bool fresh, int32_t label)
{
    if (t->want.by_step || fresh)
        return rnnd__list_add(&t->out->labels, &label, 1);
    if (((int32_t *)t->out->labels.at)[sequence] != label)
        return fail_changed(csv, t, t->want.label, sequence);
    return 0;
}

static int keep_targets(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                        int64_t sequence, bool fresh, const float *row)
{
    int64_t O = t->want.targets.count;
    if (t->want.by_step || fresh)
        return rnnd__list_add(&t->out->values, row, O);
    const float *kept = (const float *)t->out->values.at + sequence * O;
    for (int64_t i = 0; i < O; i++)
        if (kept[i] != row[i] && !(isnan(kept[i]) && isnan(row[i])))
            return fail_changed(csv, t, rnnd__list_text(&t->want.targets, i), sequence);
    return 0;
}

/* The name of the sequence that the current row belongs to. */
static int name_of_row(const struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                       const struct places *at, int32_t file, const char **out)
{
    if (!t->want.sequence) {
        *out = rnnd__list_text(&t->file_names, file);
        return 0;
    }
    *out = rnnd__csv_cell(csv, at->sequence);
    if ((*out)[strspn(*out, " \t\r")] == '\0')
        return fail_cell(csv, t->want.sequence,
                         "empty cell; every row needs a sequence");
    return 0;
}

/* The sequence of a name, which is added if it is new. */
static int find_sequence(struct rnnd__csv_table *t, const char *name, int32_t file,
                         int64_t *out, bool *fresh)
{
    size_t n = strlen(name);
    int64_t known = t->names.texts.count;
    if (t->want.sequence)
        rnnd__text_trim(&name, &n);
    RNND_TRY(rnnd__dictionary_add(&t->names, name, n, out));
    *fresh = *out == known;
    if (*fresh)
        RNND_TRY(rnnd__list_add(&t->last_file, &file, 1));
    int32_t *last = (int32_t *)t->last_file.at + *out;
    t->continues |= *last != file;
    *last = file;
    return 0;
}

static int read_row(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                    const struct places *at, int32_t file, float *targets)
{
    int64_t sequence;
    int32_t label = 0;
    const char *name;
    bool fresh;
    RNND_TRY(name_of_row(t, csv, at, file, &name));
    RNND_TRY(find_sequence(t, name, file, &sequence, &fresh));
    RNND_TRY(rnnd__list_add(&t->row_sequence, &sequence, 1));
    RNND_TRY(read_features(t, csv, at));
    if (t->want.elsewhere)
        return 0;
    if (t->want.label) {
        RNND_TRY(rnnd__csv_read_class(t, csv, at->label, &label));
        RNND_TRY(keep_label(t, csv, sequence, fresh, label));
    }
    if (t->want.targets.count) {
        RNND_TRY(rnnd__csv_read_targets(t, csv, at->target, targets));
        RNND_TRY(keep_targets(t, csv, sequence, fresh, targets));
    }
    return 0;
}

/* A file without rows, where each file is a sequence, is one without steps, of which
   there is nothing to learn. */
static int keep_empty(struct rnnd__csv_table *t, int32_t file, float *targets)
{
    int64_t sequence;
    bool fresh;
    const int32_t none = -1;
    RNND_TRY(find_sequence(t, rnnd__list_text(&t->file_names, file), file, &sequence,
                           &fresh));
    if (!fresh || t->want.elsewhere || t->want.by_step)
        return 0;
    if (t->want.label)
        return rnnd__list_add(&t->out->labels, &none, 1);
    for (int64_t i = 0; i < t->want.targets.count; i++)
        targets[i] = NAN;
    return rnnd__list_add(&t->out->values, targets, t->want.targets.count);
}

int rnnd__csv_read_rows(struct rnnd__csv_table *t, struct rnnd__csv *csv, int32_t file)
{
    struct places at = {0};
    float *targets = NULL;
    bool more;
    int status;
    RNND_TRY_GOTO(rnnd__csv_header(csv));
    RNND_TRY_GOTO(locate_all(t, csv, &at));
    RNND_TRY_GOTO(RNND_NEW(&targets, t->want.targets.count, "targets"));
    for (;;) {
        RNND_TRY_GOTO(rnnd__csv_row(csv, &more));
        if (!more)
            break;
        RNND_TRY_GOTO(read_row(t, csv, &at, file, targets));
    }
    if (!t->want.sequence)
        RNND_TRY_GOTO(keep_empty(t, file, targets));
done:
    free(targets);
    free(at.feature);
    free(at.target);
    return status;
}

/* ---- sequences */

/* Reorders rows of `width` elements: row i moves to place[i]. */
static int permute(struct rnnd__list *rows, int64_t width, const int64_t *place,
                   int64_t count)
{
    struct rnnd__list sorted = {.size = rows->size};
    size_t row = (size_t)width * rows->size;
    if (rows->count == 0)
        return 0;
    RNND_TRY(rnnd__list_add(&sorted, NULL, rows->count));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)sorted.at + (size_t)place[i] * row,
               (char *)rows->at + (size_t)i * row, row);
    rnnd__list_clear(rows);
    *rows = sorted;
    return 0;
}

/* Orders sequences by their first rows, and keeps the order of rows within each. */
int rnnd__csv_group_rows(struct rnnd__csv_table *t)
{
    const int64_t *sequence = t->row_sequence.at;
    int64_t N = t->names.texts.count, S = t->row_sequence.count, end = 0;
    int64_t *place, *next;
    bool sorted = true;
    RNND_TRY(RNND_NEW(&place, S + N, "rows"));
    next = place + S;
    int status = 0;
    for (int64_t i = 0; i < S; i++)
        next[sequence[i]]++;
    for (int64_t i = 0; i < N && status == 0; i++) {
        int64_t rows = next[i];
        next[i] = end;
        end += rows;
        status = rnnd__list_add(&t->out->offsets, &end, 1);
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
