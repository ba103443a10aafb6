/*
 * statedict_parts.c - which arrays of a file count, and those that PyTorch keeps in two
 * parts: weight_norm stores a matrix as gain and direction, w = g v / |v|, with a norm
 * for each row, or for each column.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "checkpoint/statedict.h"

/* ---- a prefix */

static bool has_prefix(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 && (n == 0 || strchr("./", prefix[n - 1]) ||
                                             (name[n] && strchr("./", name[n])));
}

int rnnd__statedict_choose(struct rnnd__statedict *sd)
{
    int kept = 0, all = sd->count;
    for (int i = 0; i < all; i++)
        kept += has_prefix(sd->tensor[i].name, sd->prefix);
    if (kept == 0 && *sd->prefix)
        return rnnd__statedict_fail(sd, "no name begins with that of --prefix");
    sd->count = 0;
    for (int i = 0; i < all; i++) {
        struct rnnd__tensor t = sd->tensor[i];
        if (has_prefix(t.name, sd->prefix))
            sd->tensor[sd->count++] = t;
        else
            free(t.name);
    }
    if (kept < all)
        rnnd__log_info("%s: %d of %d arrays are not below %s and left out", sd->path,
                       all - kept, all, sd->prefix);
    return 0;
}

/* ---- weight_norm */

/* The names of parts: for the matrix MODULE.weight, MODULE.weight_g and weight_v, or
   MODULE.parametrizations.weight.original0 and original1. */
static const struct {
    const char *inner, *gain, *direction;
} forms[] = {
    {"", "_g", "_v"},
    {"parametrizations", "original0", "original1"},
};
enum { FORMS = sizeof forms / sizeof *forms };

/* The array with the name of the first, whose last characters are exchanged; -1 =
   none. */
static int find_partner(const struct rnnd__statedict *sd, const char *gain,
                        const char *old_tail, const char *new_tail)
{
    size_t n = strlen(gain) - strlen(old_tail);
    for (int i = 0; i < sd->count; i++) {
        const char *name = sd->tensor[i].name;
        if (strncmp(name, gain, n) == 0 && strcmp(name + n, new_tail) == 0)
            return i;
    }
    return -1;
}

/* The name of the matrix, in text [size]; false where this is no gain of this form. */
static bool matrix_of(const char *gain, int form, char *text, size_t size)
{
    size_t n = strlen(gain), m = strlen(forms[form].gain);
    if (n <= m || n - m >= size || strcmp(gain + n - m, forms[form].gain) != 0)
        return false;
    snprintf(text, size, "%.*s", (int)(n - m), gain);
    if (!*forms[form].inner)
        return true;
    /* MODULE.parametrizations.NAME. */
    char *inner = strstr(text, forms[form].inner);
    size_t k = strlen(forms[form].inner);
    if (!inner || !inner[k] || (inner != text && !strchr("./", inner[-1])))
        return false;
    memmove(inner, inner + k + 1, strlen(inner + k + 1) + 1);
    n = strlen(text);
    if (n == 0 || !strchr("./", text[n - 1]))
        return false;
    text[n - 1] = '\0';
    return true;
}

static bool is_gain_of(const struct rnnd__tensor *g, const struct rnnd__tensor *v)
{
    return g->rank == 2 && v->rank == 2 &&
           ((g->rows == v->rows && g->cols == 1) ||
            (g->rows == 1 && g->cols == v->cols));
}

static int join(struct rnnd__statedict *sd, int gain, int form)
{
    char name[256];
    if (!matrix_of(sd->tensor[gain].name, form, name, sizeof name) ||
        find_partner(sd, name, "", "") >= 0)
        return 0;
    int direction = find_partner(sd, sd->tensor[gain].name, forms[form].gain,
                                 forms[form].direction);
    if (direction < 0 || !is_gain_of(&sd->tensor[gain], &sd->tensor[direction]))
        return 0;
    struct rnnd__tensor whole = sd->tensor[direction];
    if (sd->tensor[gain].type == RNND_TENSOR_OTHER)
        whole.type = RNND_TENSOR_OTHER;
    whole.gain = gain + 1;
    whole.direction = direction + 1;
    RNND_TRY(rnnd__statedict_add(sd, name, &whole));
    sd->tensor[gain].is_part = sd->tensor[direction].is_part = true;
    return 0;
}

int rnnd__statedict_join(struct rnnd__statedict *sd)
{
    int count = sd->count;
    for (int i = 0; i < count; i++)
        for (int form = 0; form < FORMS; form++)
            RNND_TRY(join(sd, i, form));
    return 0;
}

int rnnd__statedict_scale(const struct rnnd__statedict *sd,
                          const struct rnnd__tensor *t, const float *gain, float *value)
{
    bool by_row = sd->tensor[t->gain - 1].cols == 1;
    int64_t count = by_row ? t->rows : t->cols, length = by_row ? t->cols : t->rows;
    int64_t next = by_row ? 1 : t->cols, start = by_row ? t->cols : 1;
    for (int64_t i = 0; i < count; i++) {
        float *v = value + i * start;
        double squares = 0;
        for (int64_t k = 0; k < length; k++)
            squares += (double)v[k * next] * (double)v[k * next];
        if (squares == 0)
            return rnnd__fail(RNND_EDATA,
                              "%s: %s: %s %lld is zero and has no direction", sd->path,
                              sd->tensor[t->direction - 1].name,
                              by_row ? "row" : "column", (long long)i);
        for (int64_t k = 0; k < length; k++)
            v[k * next] =
                (float)((double)gain[i] * (double)v[k * next] / sqrt(squares));
    }
    return 0;
}
