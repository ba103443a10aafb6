/*
 * missing.c - fills features without a value, by --missing.
 *
 * Readers leave NaN and count them. What stands for a value depends on its own sequence
 * only, so training and test data are filled alike. A mean is the model's to know: for
 * it, NaN stay in the data set, which says what they are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "formats/formats.h"
#include "options/options.h"

/* The value of the step before, zero at a sequence's first step. row [I]; before: NULL
   at the first step. */
static void fill(enum rnnd_missing policy, float *row, int64_t I, const float *before)
{
    for (int64_t i = 0; i < I; i++)
        if (isnan(row[i]))
            row[i] = policy == RNND_MISSING_LAST && before ? before[i] : 0;
}

/* Doubles the width: behind the features of a step, 1 for each that is missing. */
static int add_indicators(struct rnnd__contents *c)
{
    int64_t I = c->inputs, S = rnnd__contents_steps(c);
    struct rnnd__list wide = {.size = sizeof(float)};
    RNND_TRY(rnnd__list_add(&wide, NULL, 2 * S * I));
    const float *from = c->features.at;
    float *to = wide.at;
    for (int64_t s = 0; s < S; s++, from += I, to += 2 * I) {
        memcpy(to, from, (size_t)I * sizeof *to);
        for (int64_t i = 0; i < I; i++)
            to[I + i] = isnan(from[i]) ? 1 : 0;
    }
    rnnd__list_clear(&c->features);
    c->features = wide;
    c->inputs = 2 * I;
    return 0;
}

/* "NAME missing" for each feature, where features have names. */
static int name_indicators(struct rnnd__contents *c)
{
    int64_t count = c->feature.count;
    for (int64_t i = 0; i < count; i++) {
        char *name;
        if (asprintf(&name, "%s missing", rnnd__list_text(&c->feature, i)) < 0)
            return rnnd__fail_memory(0, "names of features");
        int status = rnnd__list_add_text(&c->feature, name, strlen(name));
        free(name);
        RNND_TRY(status);
    }
    return 0;
}

static void fill_all(struct rnnd__contents *c, enum rnnd_missing policy)
{
    const int64_t *at = c->offsets.at;
    int64_t I = c->inputs;
    for (int64_t n = 0; n < rnnd__contents_sequences(c); n++)
        for (int64_t s = at[n]; s < at[n + 1]; s++) {
            float *row = (float *)c->features.at + s * I;
            fill(policy, row, I, s > at[n] ? row - I : NULL);
        }
}

int rnnd__contents_fill(struct rnnd__contents *c, enum rnnd_missing policy)
{
    char word[32];
    int64_t values = c->features.count;
    if (c->gaps && policy == RNND_MISSING_NONE)
        return rnnd__fail(
            RNND_EDATA,
            "%s: a value is missing, the first of %lld (%lld values in "
            "all); --missing zero|last|indicator|mean says what stands for "
            "them",
            c->first_gap, (long long)c->gaps, (long long)values);
    if (policy == RNND_MISSING_NONE || c->vocab)
        return 0;
    if (policy == RNND_MISSING_INDICATOR) {
        RNND_TRY(add_indicators(c));
        RNND_TRY(name_indicators(c));
    }
    c->keeps_gaps = policy == RNND_MISSING_MEAN && c->gaps > 0;
    if (policy != RNND_MISSING_MEAN)
        fill_all(c, policy);
    rnnd__options_word("missing", (int)policy, word);
    rnnd__log_info("%lld of %lld feature values are missing (--missing %s)",
                   (long long)c->gaps, (long long)values, word);
    if (c->keeps_gaps)
        rnnd__log_info("they stay missing in the data set: a model trained with "
                       "--normalize takes the mean of its training data for them");
    return 0;
}
