/*
 * statedict_names.c - decides which array of a file is which parameter.
 *
 * Prefixes that PyTorch's wrappers add to all names are ignored. Arrays with our own
 * names are what they say. Of the others: the recurrent layers are the arrays that
 * share the prefix of the only "weight_ih_l0" or, of a cell, "weight_ih"; the head is
 * the only other module with weight and bias; the embedding is the only weight without
 * a bias. Nothing is guessed where there are several candidates.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "checkpoint/statedict.h"

int rnnd__statedict_add(struct rnnd__statedict *sd, const char *name,
                        const struct rnnd__tensor *t)
{
    RNND_TRY(RNND_GROW(&sd->tensor, (size_t)sd->count + 1, "named arrays"));
    struct rnnd__tensor *added = &sd->tensor[sd->count];
    *added = *t;
    added->name = strdup(name);
    if (!added->name)
        return rnnd__fail_memory(strlen(name), "a name");
    sd->count++;
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

void rnnd__statedict_shape(const struct rnnd__tensor *t, char text[64])
{
    if (t->rank == 2)
        snprintf(text, 64, "[%lld, %lld]", (long long)t->rows, (long long)t->cols);
    else if (t->rank == 1)
        snprintf(text, 64, "[%lld]", (long long)t->rows);
    else
        snprintf(text, 64, "of %d dimensions", t->rank);
}

void rnnd__statedict_list_add(char *text, size_t size, const char *name,
                              const struct rnnd__tensor *t)
{
    static const char more[] = ", ...";
    size_t n = strlen(text);
    char shape[64], one[160];
    if (n >= strlen(more) && strcmp(text + n - strlen(more), more) == 0)
        return;
    rnnd__statedict_shape(t, shape);
    snprintf(one, sizeof one, "%s%.80s %s", n ? ", " : "", name, shape);
    bool fits = n + strlen(one) + sizeof more <= size;
    strcpy(text + n, fits ? one : more);
}

void rnnd__statedict_list(const struct rnnd__statedict *sd, char *text, size_t size)
{
    snprintf(text, size, "%s", sd->count ? "" : "no arrays");
    for (int i = 0; i < sd->count; i++)
        if (!sd->tensor[i].gain)
            rnnd__statedict_list_add(text, size, sd->tensor[i].name, &sd->tensor[i]);
}

int rnnd__statedict_fail(const struct rnnd__statedict *sd, const char *problem)
{
    char found[1200];
    rnnd__statedict_list(sd, found, sizeof found);
    return rnnd__fail(RNND_EUSAGE, "%s: %s; the file has %s", sd->path, problem, found);
}

/* ---- parts of names */

static bool is_separator(char c)
{
    return c == '.' || c == '/';
}

/* Whether a name is PREFIX + tail, with a prefix that is empty or ends in a dot, or a
   slash where modules are HDF5 groups. *prefix: its length. */
static bool ends_in(const char *name, const char *tail, size_t *prefix)
{
    size_t n = strlen(name), m = strlen(tail);
    if (n < m || strcmp(name + n - m, tail) != 0 ||
        (n > m && !is_separator(name[n - m - 1])))
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

/* Length of the prefix that was asked for, and of those that DataParallel, an enclosing
   module and torch.compile add to every name. */
static size_t wrapping(const struct rnnd__statedict *sd)
{
    static const char *const wrappers[] = {"module.", "model.", "_orig_mod."};
    enum { COUNT = sizeof wrappers / sizeof *wrappers };
    size_t n = strlen(sd->prefix);
    if (n && !is_separator(sd->prefix[n - 1]))
        n++;
    for (int i = 0; i < COUNT; i++)
        if (all_begin_with(sd, n, wrappers[i])) {
            n += strlen(wrappers[i]);
            i = -1; /* they come in any order */
        }
    return n;
}

static bool is_recurrent(const char *rest)
{
    return strncmp(rest, "weight_", 7) == 0 || strncmp(rest, "bias_", 5) == 0;
}

/* The names in nn.LSTMCell and the like, which is one layer. */
static bool is_of_cell(const char *rest)
{
    static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(rest, names[i]) == 0)
            return true;
    return false;
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

static void set_name(struct rnnd__tensor *t, const char *ours)
{
    snprintf(t->ours, sizeof t->ours, "%s", ours);
}

static bool is_unnamed(const struct rnnd__tensor *t)
{
    return t->ours[0] == 0;
}

/* ---- recurrent layers, head, embedding */

/* The only array whose name ends so, NULL = none; *prefix: length of what is before. */
static int find_only(const struct rnnd__statedict *sd, const char *tail,
                     const char *several, const char **name, size_t *prefix)
{
    *name = NULL;
    for (int i = 0; i < sd->count; i++) {
        size_t n;
        if (!ends_in(sd->tensor[i].name, tail, &n))
            continue;
        if (*name)
            return rnnd__statedict_fail(sd, several);
        *name = sd->tensor[i].name;
        *prefix = n;
    }
    return 0;
}

static int name_recurrent(struct rnnd__statedict *sd)
{
    const char *first;
    size_t prefix;
    RNND_TRY(find_only(sd, "weight_ih_l0",
                       "several recurrent modules, none of them named rnn; import "
                       "--prefix chooses one",
                       &first, &prefix));
    bool cell = !first;
    if (cell)
        RNND_TRY(find_only(sd, "weight_ih",
                           "several recurrent cells, and their names do not tell how "
                           "they are connected; rename those of layer K as "
                           "rnn.weight_ih_lK and so on",
                           &first, &prefix));
    if (!first)
        return rnnd__statedict_fail(
            sd, "no recurrent layers (no name ends in weight_ih_l0 or weight_ih)");
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        const char *rest = t->name + prefix;
        if (strncmp(t->name, first, prefix) == 0 && !t->is_part &&
            (cell ? is_of_cell(rest) : is_recurrent(rest)) &&
            strlen(rest) + sizeof "rnn._l0" <= sizeof t->ours)
            snprintf(t->ours, sizeof t->ours, "rnn.%s%s", rest, cell ? "_l0" : "");
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
        if (is_unnamed(t) && t->rank == 2 && t->rows == rows &&
            ends_in(t->name, "weight", &n) && n == prefix &&
            strncmp(t->name, name, n) == 0)
            return t;
    }
    return NULL;
}

/* A tied head may have only its bias. */
static int name_head(struct rnnd__statedict *sd)
{
    struct rnnd__tensor *weight = NULL, *bias = NULL, *lone = NULL;
    int modules = 0, lone_biases = 0;
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        size_t prefix;
        if (!is_unnamed(t) || t->rank != 1 || !ends_in(t->name, "bias", &prefix))
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
        return rnnd__statedict_fail(
            sd, "several modules could be the head, none of them named "
                "head");
    if (weight) {
        set_name(weight, "head.weight");
        set_name(bias, "head.bias");
    } else if (lone_biases == 1) {
        set_name(lone, "head.bias");
    }
    return 0;
}

static int name_embedding(struct rnnd__statedict *sd)
{
    struct rnnd__tensor *found = NULL;
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        size_t prefix;
        if (!is_unnamed(t) || t->rank != 2 || !ends_in(t->name, "weight", &prefix))
            continue;
        if (found)
            return rnnd__statedict_fail(
                sd, "several arrays could be the embedding, none of them named "
                    "embed.weight");
        found = t;
    }
    if (found)
        set_name(found, "embed.weight");
    return 0;
}

/* A cell has names of its own, also in a module called rnn. */
static bool is_cell_of_rnn(const char *name)
{
    return strncmp(name, "rnn.", 4) == 0 && is_of_cell(name + 4);
}

int rnnd__statedict_name(struct rnnd__statedict *sd)
{
    RNND_TRY(rnnd__statedict_choose(sd));
    RNND_TRY(rnnd__statedict_join(sd));
    size_t skipped = wrapping(sd);
    for (int i = 0; i < sd->count; i++) {
        struct rnnd__tensor *t = &sd->tensor[i];
        const char *name = t->name + skipped;
        if (is_ours(name) && !is_cell_of_rnn(name) && !t->is_part &&
            strlen(name) < sizeof t->ours)
            set_name(t, name);
    }
    if (!rnnd__statedict_find(sd, "rnn.weight_ih_l0"))
        RNND_TRY(name_recurrent(sd));
    if (!rnnd__statedict_find(sd, "head.bias"))
        RNND_TRY(name_head(sd));
    return rnnd__statedict_find(sd, "embed.weight") ? 0 : name_embedding(sd);
}
