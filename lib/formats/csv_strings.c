/*
 * csv_strings.c - the label strings of sequences, from a table of their own: one row
 * per sequence, with its labels separated by blanks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "formats/csv_table.h"

static const char labels_column[] = "labels";

/* The strings as they come in the table. */
struct table {
    struct rnnd__csv csv;
    int64_t sequence, labels;
    /* int32_t, of all strings */
    struct rnnd__list label;
    /* [N] first label and number of labels of each sequence; -1: not seen yet */
    int64_t *first, *count;
    /* rows of sequences that the data do not have, and the line of the first */
    int64_t strange, strange_line;
};

static int add_labels(struct rnnd__csv_table *t, struct table *s)
{
    static const char blanks[] = " \t\r\n";
    const char *at = rnnd__csv_cell(&s->csv, s->labels);
    for (at += strspn(at, blanks); *at; at += strspn(at, blanks)) {
        size_t n = strcspn(at, blanks);
        char shown[48];
        int64_t number;
        RNND_TRY(rnnd__csv_class(t, at, n, &number));
        if (number < 0)
            return rnnd__text_fail(
                s->csv.text.path, s->csv.line,
                "column %s: \"%s\" is not a class of the data set given by "
                "--classes-from",
                labels_column, rnnd__text_shown(at, n, shown));
        RNND_TRY(rnnd__list_add(&s->label, &(int32_t){(int32_t)number}, 1));
        at += n;
    }
    return 0;
}

static int read_row(struct rnnd__csv_table *t, struct table *s)
{
    const char *cell = rnnd__csv_cell(&s->csv, s->sequence);
    size_t n = strlen(cell);
    char shown[48];
    rnnd__text_trim(&cell, &n);
    int64_t i = rnnd__dictionary_find(&t->names, cell, n);
    if (i < 0) {
        if (s->strange++ == 0)
            s->strange_line = s->csv.line;
        return 0;
    }
    if (s->first[i] >= 0)
        return rnnd__text_fail(s->csv.text.path, s->csv.line,
                               "column %s: a second row for sequence \"%s\"",
                               t->want.sequence, rnnd__text_shown(cell, n, shown));
    s->first[i] = s->label.count;
    RNND_TRY(add_labels(t, s));
    s->count[i] = s->label.count - s->first[i];
    return 0;
}

static int read_rows(struct rnnd__csv_table *t, struct table *s)
{
    bool more = true;
    RNND_TRY(rnnd__csv_header(&s->csv));
    RNND_TRY(rnnd__csv_locate(&s->csv, t->want.sequence, &s->sequence));
    RNND_TRY(rnnd__csv_locate(&s->csv, labels_column, &s->labels));
    while (more) {
        RNND_TRY(rnnd__csv_row(&s->csv, &more));
        if (more)
            RNND_TRY(read_row(t, s));
    }
    if (s->strange)
        rnnd__log_warn("%s: %lld rows are left out, the first in line %lld: the data "
                       "have no steps of their sequences",
                       s->csv.text.path, (long long)s->strange,
                       (long long)s->strange_line);
    return 0;
}

/* The strings in the order of the sequences. */
static int put_strings(struct rnnd__csv_table *t, const struct table *s)
{
    const int32_t *label = s->label.at;
    for (int64_t i = 0; i < t->names.texts.count; i++) {
        const char *name = rnnd__dictionary_text(&t->names, i);
        char shown[48];
        if (s->first[i] < 0)
            return rnnd__fail(RNND_EDATA, "%s: has no row for sequence \"%s\"",
                              s->csv.text.path,
                              rnnd__text_shown(name, strlen(name), shown));
        if (s->count[i])
            RNND_TRY(rnnd__list_add(&t->out->labels, label + s->first[i], s->count[i]));
        RNND_TRY(rnnd__contents_end_string(t->out));
    }
    return 0;
}

int rnnd__csv_read_strings(struct rnnd__csv_table *t)
{
    struct table s = {.label.size = sizeof(int32_t)};
    int64_t N = t->names.texts.count;
    int status;
    RNND_TRY(rnnd__csv_open(t->want.strings, &s.csv));
    RNND_TRY_GOTO(RNND_NEW(&s.first, N, "label strings"));
    RNND_TRY_GOTO(RNND_NEW(&s.count, N, "label strings"));
    for (int64_t i = 0; i < N; i++)
        s.first[i] = -1;
    RNND_TRY_GOTO(read_rows(t, &s));
    RNND_TRY_GOTO(put_strings(t, &s));
done:
    free(s.first);
    free(s.count);
    rnnd__list_clear(&s.label);
    rnnd__csv_close(&s.csv);
    return status;
}
