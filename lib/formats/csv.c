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
#include "formats/classes.h"

/* ---- classes */

int rnnd__csv_class(struct rnnd__csv_table *t, const char *name, size_t length,
                    int64_t *out)
{
    size_t n = rnnd__text_class(name, length);
    return rnnd__classes_number(t->opt, &t->classes, name, n, out);
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
    if (!t->opt->classes_from)
        RNND_TRY(rnnd__classes_sort(&t->classes, out));
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
        RNND_TRY_GOTO(rnnd__classes_take(opt->classes_from, &t.classes, out));
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
