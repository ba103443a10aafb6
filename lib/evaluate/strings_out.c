/*
 * strings_out.c - label strings of predictions, in HDF5 and CSV.
 */
#include "evaluate/strings_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/status.h"
#include "data/strings.h"
#include "evaluate/predict_strings.h"

/* Strings one after another. */
struct strings {
    /* int32_t; int64_t, where each string begins, and the end of the last */
    struct rnnd__list labels, offsets;
};

struct rnnd__strings_out {
    const struct rnnd_dataset *data;
    const struct rnnd_model *model;
    const int64_t *steps;
    bool top, align, targets;
    /* the best string of each sequence; with --top, all strings of all sequences */
    struct strings best, all;
    /* of these: int64_t, where those of a sequence begin; double */
    struct rnnd__list ranked, log_p;
    /* of the sequences of a pool, or of a sequence: int32_t [steps]; int64_t [labels];
       double */
    struct rnnd__list at_step, first, last, path;
    /* char, a field of a table */
    struct rnnd__list field;
};

static int start(struct strings *s)
{
    s->labels.size = sizeof(int32_t);
    s->offsets.size = sizeof(int64_t);
    return rnnd__list_add(&s->offsets, NULL, 1);
}

int rnnd__strings_out_new(const struct rnnd_options *opt,
                          const struct rnnd_dataset *data,
                          const struct rnnd_model *model,
                          struct rnnd__strings_out **out)
{
    struct rnnd__strings_out *o;
    int status;
    RNND_TRY(RNND_NEW(&o, 1, "strings"));
    o->data = data;
    o->model = model;
    o->steps = rnnd_dataset_offsets(data);
    o->top = opt->top > 0;
    o->align = opt->align;
    o->ranked.size = o->first.size = o->last.size = sizeof(int64_t);
    o->log_p.size = o->path.size = sizeof(double);
    o->at_step.size = sizeof(int32_t);
    o->field.size = 1;
    RNND_TRY_GOTO(start(&o->best));
    RNND_TRY_GOTO(start(&o->all));
    RNND_TRY_GOTO(rnnd__list_add(&o->ranked, NULL, 1));
    *out = o;
    return 0;
done:
    rnnd__strings_out_free(o);
    return status;
}

void rnnd__strings_out_free(struct rnnd__strings_out *o)
{
    if (!o)
        return;
    struct rnnd__list *all[] = {&o->best.labels, &o->best.offsets, &o->all.labels,
                                &o->all.offsets, &o->ranked,       &o->log_p,
                                &o->at_step,     &o->first,        &o->last,
                                &o->path,        &o->field};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rnnd__list_clear(all[i]);
    free(o);
}

/* ---- alignments */

/* Adds those of a sequence: its steps, and the steps of its labels. */
static int add_places(struct rnnd__strings_out *o, int64_t sequence,
                      struct rnnd__record *record)
{
    int64_t count, T = o->steps[sequence + 1] - o->steps[sequence];
    const int32_t *label = rnnd__string_of(o->data, sequence, &count);
    double log_p;
    const int32_t *place = rnnd__record_places(record, &log_p);
    int64_t before = o->first.count;
    RNND_TRY(rnnd__list_add(&o->path, &log_p, 1));
    for (int64_t i = 0; i < count; i++) {
        RNND_TRY(rnnd__list_add(&o->first, &(int64_t){-1}, 1));
        RNND_TRY(rnnd__list_add(&o->last, &(int64_t){-1}, 1));
    }
    for (int64_t t = 0; t < T; t++) {
        int32_t at = !place ? -2 : place[t] < 0 ? -1 : label[place[t]];
        RNND_TRY(rnnd__list_add(&o->at_step, &at, 1));
        if (at < 0)
            continue;
        int64_t *first = (int64_t *)o->first.at + before + place[t];
        *first = *first < 0 ? t : *first;
        ((int64_t *)o->last.at)[before + place[t]] = t;
    }
    return 0;
}

static void forget_places(struct rnnd__strings_out *o)
{
    o->at_step.count = o->first.count = o->last.count = o->path.count = 0;
}

/* ---- HDF5 */

static int write_list(struct rnnd__hdf *file, const char *object,
                      enum rnnd__hdf_type type, const struct rnnd__list *list)
{
    return rnnd__hdf_write(file, object, type, 1, &list->count, false, list->at);
}

int rnnd__strings_out_create(struct rnnd__strings_out *o, struct rnnd__hdf *file)
{
    int64_t sequences = rnnd_dataset_info(o->data)->sequences, ends = sequences + 1;
    const int64_t *at = rnnd_dataset_target_offsets(o->data);
    if (!o->align)
        return 0;
    RNND_TRY(rnnd__hdf_write(file, "/alignment/steps", RNND_I32, 1,
                             &o->steps[sequences], false, NULL));
    RNND_TRY(rnnd__hdf_write(file, "/alignment/log_probability", RNND_F64, 1,
                             &sequences, false, NULL));
    RNND_TRY(rnnd__hdf_write(file, "/alignment/label_offsets", RNND_I64, 1, &ends,
                             false, at));
    RNND_TRY(rnnd__hdf_write(file, "/alignment/first", RNND_I64, 1, &at[sequences],
                             false, NULL));
    return rnnd__hdf_write(file, "/alignment/last", RNND_I64, 1, &at[sequences], false,
                           NULL);
}

static int write_places(struct rnnd__strings_out *o, struct rnnd__hdf *file,
                        int64_t sequence)
{
    int64_t label = rnnd_dataset_target_offsets(o->data)[sequence];
    RNND_TRY(rnnd__hdf_write_rows(file, "/alignment/steps", o->steps[sequence],
                                  o->at_step.count, RNND_I32, o->at_step.at));
    RNND_TRY(rnnd__hdf_write_rows(file, "/alignment/log_probability", sequence,
                                  o->path.count, RNND_F64, o->path.at));
    RNND_TRY(rnnd__hdf_write_rows(file, "/alignment/first", label, o->first.count,
                                  RNND_I64, o->first.at));
    return rnnd__hdf_write_rows(file, "/alignment/last", label, o->last.count, RNND_I64,
                                o->last.at);
}

static int keep(struct strings *s, const int32_t *label, int64_t count)
{
    RNND_TRY(rnnd__list_add(&s->labels, label, count));
    return rnnd__list_add(&s->offsets, &s->labels.count, 1);
}

static int keep_record(struct rnnd__strings_out *o, int64_t sequence,
                       const int32_t *words)
{
    struct rnnd__record record;
    rnnd__record_open(words, &record);
    for (bool best = true; record.strings > 0; best = false) {
        int64_t count;
        double log_p;
        const int32_t *label = rnnd__record_string(&record, &count, &log_p);
        if (best)
            RNND_TRY(keep(&o->best, label, count));
        if (!o->top)
            continue;
        RNND_TRY(keep(&o->all, label, count));
        RNND_TRY(rnnd__list_add(&o->log_p, &log_p, 1));
    }
    RNND_TRY(rnnd__list_add(&o->ranked, &o->log_p.count, 1));
    return o->align ? add_places(o, sequence, &record) : 0;
}

int rnnd__strings_out_keep(struct rnnd__strings_out *o, struct rnnd__hdf *file,
                           const struct rnnd__predict_pool *pool)
{
    forget_places(o);
    for (int64_t i = pool->first; i < pool->end; i++)
        RNND_TRY(keep_record(o, i, pool->string[i - pool->first]));
    return o->align ? write_places(o, file, pool->first) : 0;
}

int rnnd__strings_out_end(struct rnnd__strings_out *o, struct rnnd__hdf *file)
{
    RNND_TRY(write_list(file, "/label_offsets", RNND_I64, &o->best.offsets));
    RNND_TRY(write_list(file, "/labels", RNND_I32, &o->best.labels));
    if (!o->top)
        return 0;
    RNND_TRY(write_list(file, "/top/offsets", RNND_I64, &o->ranked));
    RNND_TRY(write_list(file, "/top/log_probability", RNND_F64, &o->log_p));
    RNND_TRY(write_list(file, "/top/label_offsets", RNND_I64, &o->all.offsets));
    return write_list(file, "/top/labels", RNND_I32, &o->all.labels);
}

/* ---- CSV */

void rnnd__strings_out_header(struct rnnd__strings_out *o, FILE *f, bool targets)
{
    o->targets = targets;
    fprintf(f, "sequence%s,prediction%s%s%s\n", o->top ? ",rank" : "",
            o->top ? ",log_probability" : "", targets ? ",target" : "",
            o->align ? ",alignment,first,last" : "");
}

static int add_word(struct rnnd__strings_out *o, const char *text)
{
    if (o->field.count > 0)
        RNND_TRY(rnnd__list_add(&o->field, " ", 1));
    return rnnd__list_add(&o->field, text, (int64_t)strlen(text));
}

static int put_field(struct rnnd__strings_out *o, FILE *f)
{
    RNND_TRY(rnnd__list_add(&o->field, NULL, 1));
    fputc(',', f);
    rnnd__predict_put_text(f, o->field.at);
    o->field.count = 0;
    return 0;
}

/* The text of a class: its name or its number. */
static int add_label(struct rnnd__strings_out *o, int32_t label)
{
    char number[16];
    const char *text = label < 0 ? "?" : rnnd_model_class(o->model, label);
    snprintf(number, sizeof number, "%d", (int)label);
    return add_word(o, text ? text : number);
}

/* A field: the texts of the labels, separated by blanks. */
static int put_string(struct rnnd__strings_out *o, FILE *f, const int32_t *label,
                      int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        RNND_TRY(add_label(o, label[i]));
    return put_field(o, f);
}

static int put_steps(struct rnnd__strings_out *o, FILE *f,
                     const struct rnnd__list *steps)
{
    char number[24];
    for (int64_t i = 0; i < steps->count; i++) {
        snprintf(number, sizeof number, "%lld",
                 (long long)((const int64_t *)steps->at)[i]);
        RNND_TRY(add_word(o, number));
    }
    return put_field(o, f);
}

/* Three fields: what each step is, and the first and the last step of each label. They
   are empty where there is no alignment. */
static int put_places(struct rnnd__strings_out *o, FILE *f)
{
    const int32_t *at = o->at_step.at;
    if (isnan(*(const double *)o->path.at)) {
        fputs(",,,", f);
        return 0;
    }
    for (int64_t t = 0; t < o->at_step.count; t++)
        RNND_TRY(at[t] < 0 ? add_word(o, "<blank>") : add_label(o, at[t]));
    RNND_TRY(put_field(o, f));
    RNND_TRY(put_steps(o, f, &o->first));
    return put_steps(o, f, &o->last);
}

/* What a sequence's lines have in common: the target, and its alignment. */
static int put_rest(struct rnnd__strings_out *o, FILE *f, int64_t sequence)
{
    int64_t count;
    if (o->targets) {
        const int32_t *label = rnnd__string_of(o->data, sequence, &count);
        RNND_TRY(put_string(o, f, label, count));
    }
    return o->align ? put_places(o, f) : 0;
}

static void put_number(FILE *f, double number)
{
    if (isnan(number))
        fputc(',', f);
    else
        fprintf(f, ",%.9g", number);
}

static int put_lines(struct rnnd__strings_out *o, FILE *f, int64_t sequence,
                     const int32_t *words)
{
    struct rnnd__record record, rest;
    rnnd__record_open(words, &record);
    rest = record;
    forget_places(o);
    if (o->align) {
        int64_t count;
        double log_p;
        while (rest.strings > 0)
            rnnd__record_string(&rest, &count, &log_p);
        RNND_TRY(add_places(o, sequence, &rest));
    }
    for (int64_t rank = 1; record.strings > 0; rank++) {
        int64_t count;
        double log_p;
        const int32_t *label = rnnd__record_string(&record, &count, &log_p);
        rnnd__predict_put_name(f, o->data, sequence);
        if (o->top)
            fprintf(f, ",%lld", (long long)rank);
        RNND_TRY(put_string(o, f, label, count));
        if (o->top)
            put_number(f, log_p);
        RNND_TRY(put_rest(o, f, sequence));
        fputc('\n', f);
    }
    return 0;
}

int rnnd__strings_out_lines(struct rnnd__strings_out *o, FILE *f,
                            const struct rnnd__predict_pool *pool)
{
    for (int64_t i = pool->first; i < pool->end; i++)
        RNND_TRY(put_lines(o, f, i, pool->string[i - pool->first]));
    return 0;
}
