/*
 * predict_strings.c - records of what is predicted of label strings.
 *
 * A record: the number of its words, that of its strings, and each string as the number
 * of its labels, its probability and its labels. With alignments, whether there is one,
 * its probability and the places of all steps. Of two words are counts and doubles.
 */
#include "evaluate/predict_strings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/task.h"
#include "data/strings.h"
#include "evaluate/align.h"
#include "evaluate/decode.h"

struct rnnd__predict_strings {
    const struct rnnd_dataset *data;
    int64_t outputs, top;
    struct rnnd__decoder *decoder;
    /* NULL: no alignments */
    struct rnnd__aligner *aligner;
    struct rnnd__list words;
};

enum { WORDS_OF_TWO = sizeof(int64_t) / sizeof(int32_t) };

/* ---- making them */

static int check_data(const struct rnnd_options *opt,
                      const struct rnnd_model_spec *spec,
                      const struct rnnd_dataset *data)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
    if (!opt->align)
        return 0;
    if (info->task != spec->task)
        return rnnd__fail(RNND_EUSAGE,
                          "--align needs label strings in the data set; %s is of task "
                          "%s",
                          info->path, rnnd_task_name(info->task));
    return rnnd_dataset_check_strings(data, RNND_UNREACHABLE_SKIP);
}

int rnnd__predict_strings_new(const struct rnnd_options *opt,
                              const struct rnnd_model_spec *spec,
                              const struct rnnd_dataset *data,
                              struct rnnd__predict_strings **out)
{
    struct rnnd__decoder *decoder;
    struct rnnd__predict_strings *p = NULL;
    int status;
    *out = NULL;
    RNND_TRY(rnnd__decoder_new(opt, spec, &decoder));
    if (!decoder)
        return 0;
    RNND_TRY_GOTO(check_data(opt, spec, data));
    RNND_TRY_GOTO(RNND_NEW(&p, 1, "strings"));
    p->data = data;
    p->outputs = spec->outputs;
    p->top = opt->top > 0 ? opt->top : 1;
    p->words.size = sizeof(int32_t);
    if (opt->align)
        RNND_TRY_GOTO(rnnd__aligner_new(spec->outputs, &p->aligner));
    p->decoder = decoder;
    *out = p;
    return 0;
done:
    free(p);
    rnnd__decoder_free(decoder);
    return status;
}

void rnnd__predict_strings_free(struct rnnd__predict_strings *p)
{
    if (!p)
        return;
    rnnd__decoder_free(p->decoder);
    rnnd__aligner_free(p->aligner);
    rnnd__list_clear(&p->words);
    free(p);
}

void rnnd__predict_strings_begin(struct rnnd__predict_strings *p)
{
    p->words.count = 0;
}

const struct rnnd__list *rnnd__predict_strings_all(
    const struct rnnd__predict_strings *p)
{
    return &p->words;
}

/* ---- writing */

static int put_two(struct rnnd__list *words, const void *value)
{
    return rnnd__list_add(words, value, WORDS_OF_TWO);
}

static void set_two(struct rnnd__list *words, int64_t at, int64_t value)
{
    memcpy((int32_t *)words->at + at, &value, sizeof value);
}

static int put_strings(struct rnnd__predict_strings *p, int64_t T, int64_t *strings)
{
    const int32_t *label;
    int64_t count, rank = 0;
    double log_p;
    RNND_TRY(rnnd__decoder_string(p->decoder, T, &label, &count));
    for (; rank < p->top &&
           rnnd__decoder_ranked(p->decoder, rank, &label, &count, &log_p);
         rank++) {
        RNND_TRY(put_two(&p->words, &count));
        RNND_TRY(put_two(&p->words, &log_p));
        RNND_TRY(rnnd__list_add(&p->words, label, count));
    }
    *strings = rank;
    return 0;
}

/* Of strings that fit, and whose labels the model knows. */
static int put_places(struct rnnd__predict_strings *p, int64_t sequence, int64_t T,
                      const float *const *row)
{
    struct rnnd__alignment a = {NULL, NAN};
    int64_t count, found;
    const int32_t *label = rnnd__string_of(p->data, sequence, &count);
    if (rnnd__string_kind(p->data, sequence) == RNND__STRING_TARGET)
        RNND_TRY(rnnd__align(p->aligner, row, T, label, count, &a));
    found = a.place != NULL;
    RNND_TRY(put_two(&p->words, &found));
    RNND_TRY(put_two(&p->words, &a.log_p));
    return found ? rnnd__list_add(&p->words, a.place, T) : 0;
}

int rnnd__predict_strings_add(struct rnnd__predict_strings *p, int64_t sequence,
                              int64_t T, const float *score)
{
    const float **row;
    int64_t start = p->words.count, strings;
    RNND_TRY(rnnd__decoder_rows(p->decoder, T, &row));
    for (int64_t t = 0; t < T; t++)
        row[t] = score + t * p->outputs;
    RNND_TRY(rnnd__list_add(&p->words, NULL, 2 * WORDS_OF_TWO));
    RNND_TRY(put_strings(p, T, &strings));
    if (p->aligner)
        RNND_TRY(put_places(p, sequence, T, row));
    set_two(&p->words, start, p->words.count - start);
    set_two(&p->words, start + WORDS_OF_TWO, strings);
    return 0;
}

/* ---- reading */

static void take_two(const int32_t **at, void *value)
{
    memcpy(value, *at, sizeof(int64_t));
    *at += WORDS_OF_TWO;
}

const int32_t *rnnd__record_next(const int32_t *record)
{
    const int32_t *at = record;
    int64_t words;
    take_two(&at, &words);
    return record + words;
}

void rnnd__record_open(const int32_t *record, struct rnnd__record *out)
{
    out->next = record + WORDS_OF_TWO;
    take_two(&out->next, &out->strings);
}

const int32_t *rnnd__record_string(struct rnnd__record *r, int64_t *count,
                                   double *log_p)
{
    take_two(&r->next, count);
    take_two(&r->next, log_p);
    const int32_t *label = r->next;
    r->next += *count;
    r->strings--;
    return label;
}

const int32_t *rnnd__record_places(struct rnnd__record *r, double *log_p)
{
    int64_t found;
    take_two(&r->next, &found);
    take_two(&r->next, log_p);
    return found ? r->next : NULL;
}
