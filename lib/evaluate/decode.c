/*
 * decode.c - strings of labels from scores, and their edit distance.
 */
#include "evaluate/decode.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "base/task.h"
#include "evaluate/beam.h"

/* ---- the decoder */

struct rnnd__decoder {
    int64_t outputs;
    /* NULL: the best path */
    struct rnnd__beam *beam;
    /* [room] */
    const float **row;
    int32_t *label;
    int64_t room;
    /* strings that the beam has found; of the best path, the length */
    int64_t found, count;
};

/* Options that need this task, or one another. */
static int check_options(const struct rnnd_options *opt,
                         const struct rnnd_model_spec *spec)
{
    const char *option = opt->beam > 0 ? "beam" : opt->align ? "align" : NULL;
    if (option && !rnnd__task_has_strings(spec->task))
        return rnnd__fail(RNND_EUSAGE, "--%s is for task ctc, not %s", option,
                          rnnd_task_name(spec->task));
    if (opt->top > 0 && opt->beam == 0)
        return rnnd__fail(RNND_EUSAGE,
                          "--top %lld needs --beam W, which searches for strings (ctc)",
                          (long long)opt->top);
    if (opt->top > opt->beam)
        return rnnd__fail(
            RNND_EUSAGE, "--top %lld: --beam %lld finds no more than %lld strings",
            (long long)opt->top, (long long)opt->beam, (long long)opt->beam);
    return 0;
}

int rnnd__decoder_new(const struct rnnd_options *opt,
                      const struct rnnd_model_spec *spec, struct rnnd__decoder **out)
{
    struct rnnd__decoder *d;
    *out = NULL;
    RNND_TRY(check_options(opt, spec));
    if (!rnnd__task_has_strings(spec->task))
        return 0;
    RNND_TRY(RNND_NEW(&d, 1, "strings"));
    d->outputs = spec->outputs;
    int status = opt->beam > 0 ? rnnd__beam_new(opt->beam, spec->outputs, &d->beam) : 0;
    if (status < 0)
        free(d);
    else
        *out = d;
    return status;
}

void rnnd__decoder_free(struct rnnd__decoder *d)
{
    if (!d)
        return;
    rnnd__beam_free(d->beam);
    free(d->row);
    free(d->label);
    free(d);
}

int rnnd__decoder_rows(struct rnnd__decoder *d, int64_t T, const float ***row)
{
    if (T > d->room || !d->row) {
        RNND_TRY(RNND_GROW(&d->row, T, "strings"));
        RNND_TRY(RNND_GROW(&d->label, T, "strings"));
        d->room = T;
    }
    *row = d->row;
    return 0;
}

int rnnd__decoder_string(struct rnnd__decoder *d, int64_t T, const int32_t **label,
                         int64_t *count)
{
    double log_p;
    if (d->beam)
        RNND_TRY(rnnd__beam_search(d->beam, d->row, T, &d->found));
    else
        d->count = rnnd__decode_best(d->row, T, d->outputs, d->label);
    (void)rnnd__decoder_ranked(d, 0, label, count, &log_p);
    return 0;
}

/* Where the scores are no numbers, a beam finds nothing: the string is empty. */
bool rnnd__decoder_ranked(struct rnnd__decoder *d, int64_t rank, const int32_t **label,
                          int64_t *count, double *log_p)
{
    *label = d->label;
    *count = d->beam ? 0 : d->count;
    *log_p = NAN;
    if (rank < d->found && d->beam)
        rnnd__beam_string(d->beam, rank, d->label, count, log_p);
    return rank == 0 || rank < d->found;
}

/* ---- the best path */

int64_t rnnd__decode_step(const float *score, int64_t outputs)
{
    int64_t best = -1;
    for (int64_t k = 0; k < outputs; k++)
        if (best < 0 ? !isnan(score[k]) : score[k] > score[best])
            best = k;
    return best;
}

int64_t rnnd__decode_best(const float *const *row, int64_t T, int64_t outputs,
                          int32_t *label)
{
    int64_t count = 0, before = 0;
    for (int64_t t = 0; t < T; t++) {
        int64_t k = rnnd__decode_step(row[t], outputs);
        if (k > 0 && k != before)
            label[count++] = (int32_t)k - 1;
        before = k;
    }
    return count;
}

/* ---- sums, and distances */

double rnnd__decode_total(const float *score, int64_t outputs)
{
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < outputs; k++)
        top = (double)score[k] > top ? (double)score[k] : top;
    for (int64_t k = 0; k < outputs; k++)
        sum += exp((double)score[k] - top);
    return top + log(sum);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t rnnd__decode_distance(const int32_t *a, int64_t m, const int32_t *b, int64_t n,
                              int64_t *work)
{
    for (int64_t j = 0; j <= n; j++)
        work[j] = j;
    for (int64_t i = 0; i < m; i++) {
        int64_t corner = work[0]; /* of the row before */
        work[0] = i + 1;
        for (int64_t j = 0; j < n; j++) {
            int64_t replaced = corner + (a[i] != b[j]);
            corner = work[j + 1];
            work[j + 1] = least(replaced, 1 + least(corner, work[j]));
        }
    }
    return work[n];
}
