/*
 * tokens.c - vocabularies, token ids and sequences of text.
 */
#include "formats/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

void rnnd__tokens_init(struct rnnd__tokens *tokens)
{
    *tokens = (struct rnnd__tokens){.ids.size = sizeof(int32_t),
                                    .ends.size = sizeof(int64_t)};
}

void rnnd__tokens_clear(struct rnnd__tokens *tokens)
{
    rnnd__dictionary_clear(&tokens->seen);
    rnnd__list_clear(&tokens->ids);
    rnnd__list_clear(&tokens->ends);
}

int rnnd__tokens_add(struct rnnd__tokens *tokens, const char *text, size_t bytes)
{
    int64_t number;
    RNND_TRY(rnnd__dictionary_add(&tokens->seen, text, bytes, &number));
    if (number > INT32_MAX)
        return rnnd__fail(RNND_EDATA, "more than 2^31 different tokens");
    int32_t id = (int32_t)number;
    return rnnd__list_add(&tokens->ids, &id, 1);
}

int rnnd__tokens_end_line(struct rnnd__tokens *tokens)
{
    return rnnd__list_add(&tokens->ends, &tokens->ids.count, 1);
}

/* ---- vocabulary */

struct ranked {
    int64_t uses, number;
};

static int by_frequency(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->uses != y->uses)
        return x->uses > y->uses ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* Makes a vocabulary from the tokens read. */
static int count_vocabulary(const struct rnnd__tokens *t, const char *const *fixed,
                            int64_t size, struct rnnd__list *vocab)
{
    int64_t n = t->seen.texts.count;
    struct ranked *ranked;
    int status = 0;
    RNND_TRY(RNND_NEW(&ranked, n, "a vocabulary"));
    for (int64_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){((int64_t *)t->seen.uses.at)[i], i};
    for (int k = 0; fixed[k]; k++) {
        RNND_TRY_GOTO(rnnd__list_add_text(vocab, fixed[k], strlen(fixed[k])));
        int64_t there = rnnd__dictionary_find(&t->seen, fixed[k], strlen(fixed[k]));
        if (there >= 0)
            ranked[there].uses = 0; /* already in the vocabulary */
    }
    qsort(ranked, (size_t)n, sizeof *ranked, by_frequency);
    for (int64_t i = 0; i < n && ranked[i].uses && (!size || vocab->count < size);
         i++) {
        const char *text = rnnd__dictionary_text(&t->seen, ranked[i].number);
        RNND_TRY_GOTO(rnnd__list_add_text(vocab, text, strlen(text)));
    }
done:
    free(ranked);
    return status;
}

/* Turns numbers by first appearance into ids of the vocabulary; unknown tokens get the
   id of fixed[0]. */
static int renumber(const struct rnnd__tokens *t, const char *const *fixed,
                    struct rnnd__contents *out, int64_t *unknown)
{
    struct rnnd__dictionary places = {0};
    int32_t *place = NULL, *id = out->tokens.at;
    int status;
    int64_t number, n = t->seen.texts.count;
    RNND_TRY_GOTO(RNND_NEW(&place, n, "a vocabulary"));
    for (int64_t i = 0; i < out->token.count; i++) {
        const char *text = rnnd__list_text(&out->token, i);
        RNND_TRY_GOTO(rnnd__dictionary_add(&places, text, strlen(text), &number));
    }
    int32_t none = (int32_t)rnnd__dictionary_find(&places, fixed[0], strlen(fixed[0]));
    for (int64_t i = 0; i < n; i++) {
        const char *text = rnnd__dictionary_text(&t->seen, i);
        int64_t found = rnnd__dictionary_find(&places, text, strlen(text));
        place[i] = found < 0 ? none : (int32_t)found;
        if (found < 0)
            *unknown += ((int64_t *)t->seen.uses.at)[i];
    }
    for (int64_t i = 0; i < out->tokens.count; i++)
        id[i] = place[id[i]];
done:
    rnnd__dictionary_clear(&places);
    free(place);
    return status;
}

/* A vocabulary of another data set must have the fixed tokens and no duplicates. */
static int check_vocabulary(const char *path, const struct rnnd__list *vocab,
                            const char *const *fixed)
{
    struct rnnd__dictionary places = {0};
    int status = 0;
    for (int64_t i = 0; i < vocab->count && status == 0; i++) {
        int64_t number;
        const char *text = rnnd__list_text(vocab, i);
        status = rnnd__dictionary_add(&places, text, strlen(text), &number);
        if (status == 0 && number != i)
            status = rnnd__fail(RNND_EDATA,
                                "%s: /vocab[%lld] = \"%.40s\" repeats /vocab[%lld]",
                                path, (long long)i, text, (long long)number);
    }
    for (int k = 0; fixed[k] && status == 0; k++)
        if (rnnd__dictionary_find(&places, fixed[k], strlen(fixed[k])) < 0)
            status = rnnd__fail(RNND_EDATA, "%s: /vocab has no %s", path, fixed[k]);
    rnnd__dictionary_clear(&places);
    return status;
}

/* ---- sequences */

static int cut(const struct rnnd__tokens *t, int64_t block, struct rnnd__contents *out)
{
    int64_t total = t->ids.count;
    if (!block)
        return rnnd__list_add(&out->offsets, t->ends.at, t->ends.count);
    for (int64_t at = 0; at < total; at += block) {
        int64_t end = total - at < block ? total : at + block;
        RNND_TRY(rnnd__list_add(&out->offsets, &end, 1));
    }
    return 0;
}

int rnnd__tokens_finish(struct rnnd__tokens *tokens, const struct rnnd_options *opt,
                        const char *const *fixed, int64_t size,
                        struct rnnd__contents *out)
{
    int64_t unknown = 0;
    if (opt->vocab_from) {
        RNND_TRY(rnnd__format_texts_of(opt->vocab_from, "/vocab", &out->token));
        RNND_TRY(check_vocabulary(opt->vocab_from, &out->token, fixed));
    } else {
        RNND_TRY(count_vocabulary(tokens, fixed, size, &out->token));
    }
    RNND_TRY(cut(tokens, opt->block, out));
    out->task = RNND_LM;
    out->vocab = out->token.count;
    out->tokens = tokens->ids;
    tokens->ids = (struct rnnd__list){.size = sizeof(int32_t)};
    RNND_TRY(renumber(tokens, fixed, out, &unknown));
    if (unknown)
        rnnd__log_info("%lld of %lld tokens are not in the vocabulary and become %s",
                       (long long)unknown, (long long)out->tokens.count, fixed[0]);
    return 0;
}
