/*
 * csv.c - comma-separated tables with a header line, as in RFC 4180. A row is a step,
 * and one column, or its file, identifies its sequence.
 *
 * Without --features the text is read twice: first to find the numeric columns.
 */
#include "formats/csv_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/task.h"

/* ---- classes */

struct class
{
    const char *text;
    /* by first appearance */
    int64_t number;
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

/* Sorts the classes by value if all are numbers, else by their bytes. */
static int sort_classes(struct rnnd__csv_table *t)
{
    int64_t C = t->classes.texts.count;
    struct class *class;
    int32_t *label = t->out->labels.at;
    bool numbers = true;
    RNND_TRY(RNND_NEW(&class, C, "classes"));
    for (int64_t i = 0; i < C; i++) {
        float value;
        const char *text = rnnd__dictionary_text(&t->classes, i);
        class[i] = (struct class){text, i, 0};
        numbers &= rnnd__text_number(text, strlen(text), &value) == RNND_FIELD_NUMBER;
        class[i].value = numbers ? strtod(text, NULL) : 0;
    }
    qsort(class, (size_t)C, sizeof *class, numbers ? by_value : by_text);
    int status = 0;
    int64_t *rank = NULL;
    RNND_TRY_GOTO(RNND_NEW(&rank, C, "classes"));
    for (int64_t i = 0; i < C; i++) {
        rank[class[i].number] = i;
        RNND_TRY_GOTO(
            rnnd__list_add_text(&t->out->class, class[i].text, strlen(class[i].text)));
    }
    for (int64_t i = 0; i < t->out->labels.count; i++)
        label[i] = label[i] < 0 ? -1 : (int32_t)rank[label[i]];
done:
    free(rank);
    free(class);
    return status;
}

int rnnd__csv_class(struct rnnd__csv_table *t, const char *name, size_t length,
                    int64_t *out)
{
    size_t n = rnnd__text_class(name, length);
    if (!t->fixed_classes)
        return rnnd__dictionary_add(&t->classes, name, n, out);
    *out = rnnd__dictionary_find(&t->classes, name, n);
    return 0;
}

/* Takes the classes of another data set, in their order. */
static int read_classes(struct rnnd__csv_table *t)
{
    int64_t number;
    RNND_TRY(rnnd__format_texts_of(t->opt->classes_from, "/classes", &t->out->class));
    for (int64_t i = 0; i < t->out->class.count; i++) {
        const char *name = rnnd__list_text(&t->out->class, i);
        size_t n = rnnd__text_class(name, strlen(name));
        RNND_TRY(rnnd__dictionary_add(&t->classes, name, n, &number));
        if (number != i)
            return rnnd__fail(
                RNND_EDATA, "%s: /classes[%lld] = \"%.40s\" repeats /classes[%lld]",
                t->opt->classes_from, (long long)i, name, (long long)number);
    }
    t->fixed_classes = true;
    return 0;
}

/* ---- the reader */

static int each_file(struct rnnd__csv_table *t, char *const *inputs, int count,
                     int (*pass)(struct rnnd__csv_table *, struct rnnd__csv *,
                                 int file))
{
    int status = 0;
    for (int i = 0; i < count && status == 0; i++) {
        struct rnnd__csv csv;
        RNND_TRY(rnnd__csv_open(inputs[i], &csv));
        status = pass(t, &csv, i);
        rnnd__csv_close(&csv);
    }
    return status;
}

static int finish_classes(struct rnnd__csv_table *t)
{
    struct rnnd__contents *out = t->out;
    if (!t->fixed_classes)
        RNND_TRY(sort_classes(t));
    out->classes = out->class.count;
    if (out->classes == 0 && out->task == RNND_CTC)
        return rnnd__fail(RNND_EDATA, "%s: contains no labels", t->opt->labels_from);
    if (out->classes == 0 && out->labels.count)
        return rnnd__fail(RNND_EDATA, "column %s: no cell has a value", t->want.label);
    return 0;
}

static int finish(struct rnnd__csv_table *t, char *const *inputs, int count)
{
    struct rnnd__contents *out = t->out;
    RNND_TRY(rnnd__csv_group_rows(t));
    if (t->want.elsewhere)
        RNND_TRY(rnnd__csv_label_sequences(t, inputs, count));
    RNND_TRY(rnnd__list_add_texts(&out->feature, &t->want.features));
    RNND_TRY(rnnd__list_add_texts(&out->class, &t->want.targets));
    if (rnnd__task_has_classes(out->task))
        RNND_TRY(finish_classes(t));
    if (t->continues)
        rnnd__log_warn("some sequences have rows in several files; they are joined");
    out->names = t->names.texts;
    t->names.texts = (struct rnnd__list){.size = sizeof(char *)};
    return 0;
}

static int read_csv(const struct rnnd_options *opt, char *const *inputs, int count,
                    struct rnnd__contents *out)
{
    struct rnnd__csv_table t = {.opt = opt,
                                .out = out,
                                .file_names.size = sizeof(char *),
                                .row_sequence.size = sizeof(int64_t),
                                .last_file.size = sizeof(int32_t)};
    int status;
    RNND_TRY_GOTO(rnnd__csv_read_wants(&t));
    if (opt->classes_from)
        RNND_TRY_GOTO(read_classes(&t));
    RNND_TRY_GOTO(rnnd__csv_choose_label(&t, inputs, count));
    if (!t.want.sequence)
        RNND_TRY_GOTO(rnnd__csv_name_files(&t, inputs, count));
    if (!opt->features) {
        RNND_TRY_GOTO(each_file(&t, inputs, count, rnnd__csv_survey));
        RNND_TRY_GOTO(rnnd__csv_choose_features(&t, inputs));
    }
    out->inputs = t.want.features.count;
    RNND_TRY_GOTO(each_file(&t, inputs, count, rnnd__csv_read_rows));
    RNND_TRY_GOTO(finish(&t, inputs, count));
done:
    rnnd__csv_clear_columns(&t);
    rnnd__list_clear_texts(&t.want.features);
    rnnd__list_clear_texts(&t.want.targets);
    rnnd__dictionary_clear(&t.names);
    rnnd__dictionary_clear(&t.classes);
    rnnd__list_clear_texts(&t.file_names);
    free(t.second);
    rnnd__list_clear(&t.row_sequence);
    rnnd__list_clear(&t.last_file);
    return status;
}

static const char *const options[] = {"task",
                                      "sequence",
                                      "sequence-per-file",
                                      "features",
                                      "label",
                                      "step-label",
                                      "target",
                                      "step-target",
                                      "labels",
                                      "labels-from",
                                      "label-from-folder",
                                      "classes-from",
                                      "missing",
                                      "split",
                                      "seed",
                                      NULL};
const struct rnnd__format rnnd__format_csv = {"csv", options, read_csv};
