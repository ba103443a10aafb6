/*
 * statedict_names.c - which array of a file is which parameter.
 *
 * What PyTorch's wrappers put before all names is left out of it. Our own names stand
 * for themselves. Of what they leave open, the recurrent layers are
 * what shares a prefix with the one "weight_ih_l0"; the head is the one other module
 * with weight and bias; the embedding is the one weight without a bias. Where two could
 * be meant, nothing is guessed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "checkpoint/statedict.h"

int rnnd__statedict_add(struct rnnd__statedict *sd, const struct rnnd__tensor *t)
{
    RNND_TRY(RNND_GROW(&sd->tensor, (size_t)sd->count + 1, "named arrays"));
    sd->tensor[sd->count++] = *t;
    return 0;
}

const struct rnnd__tensor *rnnd__statedict_find(const struct rnnd__statedict *sd,
                                                const char *ours)
{
    for (int i = 0; i < sd->count; i++)
        if (strcmp(sd->tensor[i].ours, ours) == 0)
            return &sd->tensor[i];
    return NULL;
}

void rnnd__statedict_list(const struct rnnd__statedict *sd, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < sd->count; i++) {
        const struct rnnd__tensor *t = &sd->tensor[i];
        char one[160];
        if (t->rank == 2)
            snprintf(one, sizeof one, "%s%.80s [%lld, %lld]", i ? ", " : "", t->name,
                     (long long)t->rows, (long long)t->cols);
        else if (t->rank == 1)
            snprintf(one, sizeof one, "%s%.80s [%lld]", i ? ", " : "", t->name,
                     (long long)t->rows);
        else
            snprintf(one, sizeof one, "%s%.80s (%d dimensions)", i ? ", " : "", t->name,
                     t->rank);
        if (n + strlen(one) + sizeof ", ..." > size) {
            strcpy(text + n, ", ...");
            return;
        }
        strcpy(text + n, one);
        n += strlen(one);
    }
}

static int fail_listing(const struct rnnd__statedict *sd, const char *what)
{
    char found[1200];
    rnnd__statedict_list(sd, found, sizeof found);
    return rnnd__fail(RNND_EUSAGE, "%s: %s; it holds %s", sd->path, what,
                      sd->count ? found : "no arrays");
}

/* ---- parts of names */

/* Whether a name is PREFIX + tail, the prefix being empty or ending in a dot (or a
   slash, of a group in HDF5); its length. */
static bool ends_in(const char *name, const char *tail, size_t *prefix)
{
    size_t n = strlen(name), m = strlen(tail);
    if (n < m || strcmp(name + n - m, tail) != 0 ||
        (n > m && !strchr("./", name[n - m - 1])))
        return false;
    *prefix = n - m;
    return true;
}

static bool all_begin_with(const struct rnnd__statedict *sd, size_t at,
                           const char *word)
{
    for (int i = 0; i < sd->count; i++)
        if (strncmp(sd->tensor[i].name + at, word, strlen(word)) != 0)
            return false;
    return sd->count > 0;
}

/* Length of what DataParallel, a module that holds the model, and torch.compile put
   before every name. */
static size_t wrapping(const struct rnnd__statedict *sd)
{
    static const char *const wrappers[] = {"module.", "model.", "_orig_mod."};
    enum { COUNT = sizeof wrappers / sizeof *wrappers };
    size_t n = 0;
    for (int i = 0; i < COUNT; i++)
        if (all_begin_with(sd, n, wrappers[i])) {
            n += strlen(wrappers[i]);
            i = -1; /* they may stand in any order */
        }
    return n;
}

static bool is_recurrent(const char *rest)
{
    return strncmp(rest, "weight_", 7) == 0 || strncmp(rest, "bias_", 5) == 0;
}

static bool is_ours(const char *name)
{
    static const char *const others[] = {"embed.weight", "head.weight", "head.bias",
                                         "input.mean", "input.std"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return strncmp(name, "rnn.", 4) == 0 && is_recurrent(name + 4);
}

static void call(struct rnnd__tensor *t, const char *ours)
{
    snprintf(t->ours, sizeof t->ours, "%s", ours);
}

static bool is_free(const struct rnnd__tensor *t)
{
    return t->ours[0] == 0;
}

/* ---- one kind after the other */

static int name_recurrent(struct rnnd__statedict *sd)
{
    const char *first = NULL;
    size_t prefix = 0, n;
    for (int i = 0; i < sd->count; i++) {
        if (!ends_in(sd->tensor[i].name, "weight_ih_l0", &n))
            continue;
        if (first)
            return fail_listing(sd,
                                "several recurrent modules, and none of them is `rnn`");
        first = sd->tensor[i].name;
        prefix = n;
    }
    if (!first)
        return fail_listing(sd,
                            "no recurrent layers (a name that ends in weight_ih_l0)");
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        if (strncmp(t->name, first, prefix) == 0 && is_recurrent(t->name + prefix) &&
            strlen(t->name + prefix) + sizeof "rnn." <= sizeof t->ours)
            snprintf(t->ours, sizeof t->ours, "rnn.%s", t->name + prefix);
    }
    return 0;
}

/* The weight of the module that a bias belongs to. */
static struct rnnd__tensor *weight_beside(struct rnnd__statedict *sd, const char *name,
                                          size_t prefix, int64_t rows)
{
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        size_t n;
        if (is_free(t) && t->rank == 2 && t->rows == rows &&
            ends_in(t->name, "weight", &n) && n == prefix &&
            strncmp(t->name, name, n) == 0)
            return t;
    }
    return NULL;
}

/* A tied head may have kept its bias only. */
static int name_head(struct rnnd__statedict *sd)
{
    struct rnnd__tensor *weight = NULL, *bias = NULL, *lone = NULL;
    int modules = 0, lone_biases = 0;
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        size_t prefix;
        if (!is_free(t) || t->rank != 1 || !ends_in(t->name, "bias", &prefix))
            continue;
        struct rnnd__tensor *beside = weight_beside(sd, t->name, prefix, t->rows);
        if (beside) {
            modules++;
            weight = beside;
            bias = t;
        } else {
            lone_biases++;
            lone = t;
        }
    }
    if (modules > 1)
        return fail_listing(sd,
                            "several modules could be the head, and none of them is "
                            "`head`");
    if (weight) {
        call(weight, "head.weight");
        call(bias, "head.bias");
    } else if (lone_biases == 1) {
        call(lone, "head.bias");
    }
    return 0;
}

static int name_embedding(struct rnnd__statedict *sd)
{
    struct rnnd__tensor *found = NULL;
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        size_t prefix;
        if (!is_free(t) || t->rank != 2 || !ends_in(t->name, "weight", &prefix))
            continue;
        if (found)
            return fail_listing(
                sd, "several arrays could be the embedding, and none of them "
                    "is `embed.weight`");
        found = t;
    }
    if (found)
        call(found, "embed.weight");
    return 0;
}

int rnnd__statedict_name(struct rnnd__statedict *sd)
{
    size_t skipped = wrapping(sd);
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        const char *name = t->name + skipped;
        if (is_ours(name) && strlen(name) < sizeof t->ours)
            call(t, name);
    }
    if (!rnnd__statedict_find(sd, "rnn.weight_ih_l0"))
        RNND_TRY(name_recurrent(sd));
    if (!rnnd__statedict_find(sd, "head.bias"))
        RNND_TRY(name_head(sd));
    return rnnd__statedict_find(sd, "embed.weight") ? 0 : name_embedding(sd);
}
