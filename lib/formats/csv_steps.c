/*
 * csv_steps.c - turns rows of a table into steps (features, classes, values), and
 * groups them into sequences.
 */
#include "formats/csv_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

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
    RNND_TRY(rnnd__csv_locate(csv, t->want.sequence, &at->sequence));
    if (t->want.label)
        RNND_TRY(rnnd__csv_locate(csv, t->want.label, &at->label));
    RNND_TRY(locate_list(csv, &t->want.features, &at->feature));
    return locate_list(csv, &t->want.targets, &at->target);
}

/* Warns of the first integer that a 32-bit float cannot hold. */
static void warn_of_rounding(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                             const char *name, const char *cell)
{
    double exact = strtod(cell, NULL);
    if (t->rounded || strpbrk(cell, ".eE") || (double)(float)exact == exact)
        return;
    t->rounded = true;
    rnnd__log_warn(
        "%s:%lld: column %s: %s is rounded to %.0f; integers beyond 2^24 may "
        "not fit into 32-bit floats",
        csv->text.path, (long long)csv->line, name, cell, (double)(float)exact);
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
        else if (fabsf(value) >= 0x1p24f)
            warn_of_rounding(t, csv, name, cell);
        RNND_TRY(rnnd__list_add(&t->out->features, &value, 1));
    }
    return 0;
}

/* The class of a row, -1 if it is missing. */
static int read_label(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                      const struct places *at, int32_t *out)
{
    const char *cell = rnnd__csv_cell(csv, at->label);
    size_t n = strlen(cell);
    char shown[48];
    int64_t number = -1;
    rnnd__text_trim(&cell, &n);
    if (!rnnd__text_missing(cell, n)) {
        RNND_TRY(rnnd__csv_class(t, cell, n, &number));
        if (number < 0)
            return fail_cell(
                csv, t->want.label,
                "\"%s\" is not a class of the data set given by --classes-from",
                rnnd__text_shown(cell, n, shown));
    }
    *out = (int32_t)number;
    return 0;
}

/* The target values of a row. A missing one is NaN, and the row no target. */
static int read_targets(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                        const struct places *at, float *out)
{
    char shown[48];
    for (int64_t i = 0; i < t->want.targets.count; i++) {
        const char *cell = rnnd__csv_cell(csv, at->target[i]);
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

static int read_row(struct rnnd__csv_table *t, const struct rnnd__csv *csv,
                    const struct places *at, int32_t file, float *targets)
{
    int64_t sequence, known = t->names.texts.count;
    int32_t label = 0;
    const char *cell = rnnd__csv_cell(csv, at->sequence);
    size_t n = strlen(cell);
    rnnd__text_trim(&cell, &n);
    if (n == 0)
        return fail_cell(csv, t->want.sequence,
                         "empty cell; every row needs a sequence");
    RNND_TRY(rnnd__dictionary_add(&t->names, cell, n, &sequence));
    bool fresh = sequence == known;
    if (fresh)
        RNND_TRY(rnnd__list_add(&t->last_file, &file, 1));
    int32_t *last = (int32_t *)t->last_file.at + sequence;
    t->continues |= *last != file;
    *last = file;
    RNND_TRY(rnnd__list_add(&t->row_sequence, &sequence, 1));
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
    const int64_t *uses = t->names.uses.at, *sequence = t->row_sequence.at;
    int64_t N = t->names.texts.count, S = t->row_sequence.count, end = 0;
    int64_t *place, *next;
    bool sorted = true;
    RNND_TRY(RNND_NEW(&place, S + N, "rows"));
    next = place + S;
    int status = 0;
    for (int64_t i = 0; i < N && status == 0; i++) {
        next[i] = end;
        end += uses[i];
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
