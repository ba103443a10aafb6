/*
 * names.c - what the indices of a data set or a model mean.
 */
#include "base/names.h"

#include <string.h>

#include "base/hash.h"
#include "base/status.h"

void rnnd__names_clear(struct rnnd__names *names)
{
    for (int a = 0; a < RNND_AXES; a++)
        rnnd__dictionary_clear(&names->of[a]);
}

int rnnd__names_set(struct rnnd__names *names, enum rnnd_axis axis, char *const *text,
                    int64_t count)
{
    struct rnnd__dictionary *d = &names->of[axis];
    int status = 0;
    rnnd__dictionary_clear(d);
    for (int64_t i = 0; text && i < count; i++) {
        int64_t number;
        RNND_TRY_GOTO(rnnd__dictionary_add(d, text[i], strlen(text[i]), &number));
        if (number != i)
            RNND_TRY_GOTO(rnnd__fail(RNND_EDATA,
                                     "\"%.80s\" is listed twice among the %s, as "
                                     "number %lld and %lld",
                                     text[i], rnnd__names_word(axis), (long long)number,
                                     (long long)i));
    }
    return 0;
done:
    rnnd__dictionary_clear(d);
    return status;
}

int rnnd__names_copy(struct rnnd__names *names, const struct rnnd__names *from)
{
    for (int a = 0; a < RNND_AXES; a++) {
        int64_t count;
        char *const *text = rnnd__names_texts(from, (enum rnnd_axis)a, &count);
        RNND_TRY(rnnd__names_set(names, (enum rnnd_axis)a, text, count));
    }
    return 0;
}

const char *rnnd__names_text(const struct rnnd__names *names, enum rnnd_axis axis,
                             int64_t i)
{
    const struct rnnd__dictionary *d = &names->of[axis];
    return i >= 0 && i < d->texts.count ? rnnd__dictionary_text(d, i) : NULL;
}

char *const *rnnd__names_texts(const struct rnnd__names *names, enum rnnd_axis axis,
                               int64_t *count)
{
    *count = names->of[axis].texts.count;
    return names->of[axis].texts.at;
}

int rnnd__names_join(const struct rnnd__names *names, enum rnnd_axis axis, char **block,
                     int64_t size[2])
{
    int64_t count;
    size_t bytes = 0;
    char *const *text = rnnd__names_texts(names, axis, &count), *all;
    for (int64_t i = 0; i < count; i++)
        bytes += strlen(text[i]) + 1;
    RNND_TRY(rnnd__new(bytes, 1, "names", &all));
    char *to = all;
    for (int64_t i = 0; i < count; i++)
        to = stpcpy(to, text[i]) + 1;
    *block = all;
    size[0] = count;
    size[1] = (int64_t)bytes;
    return 0;
}

int64_t rnnd__names_find(const struct rnnd__names *names, enum rnnd_axis axis,
                         const char *text)
{
    return rnnd__dictionary_find(&names->of[axis], text, strlen(text));
}

uint64_t rnnd__names_fingerprint(const struct rnnd__names *names)
{
    struct rnnd__hash hash;
    rnnd__hash_start(&hash);
    for (int a = 0; a < RNND_AXES; a++) {
        int64_t count;
        char *const *text = rnnd__names_texts(names, (enum rnnd_axis)a, &count);
        rnnd__hash_add(&hash, &count, sizeof count);
        for (int64_t i = 0; i < count; i++)
            rnnd__hash_add(&hash, text[i], strlen(text[i]) + 1);
    }
    return rnnd__hash_end(&hash);
}

bool rnnd__names_equal(const struct rnnd__names *a, const struct rnnd__names *b,
                       enum rnnd_axis axis)
{
    int64_t count, other;
    char *const *x = rnnd__names_texts(a, axis, &count);
    char *const *y = rnnd__names_texts(b, axis, &other);
    for (int64_t i = 0; count == other && i < count; i++)
        if (strcmp(x[i], y[i]) != 0)
            return false;
    return count == other;
}

const char *rnnd__names_word(enum rnnd_axis axis)
{
    static const char *const word[] = {
        [RNND_AXIS_FEATURE] = "features",
        [RNND_AXIS_TOKEN] = "tokens",
        [RNND_AXIS_CLASS] = "classes",
    };
    return word[axis];
}

void rnnd__names_list(const struct rnnd__names *names, enum rnnd_axis axis,
                      char text[RNND__NAMES_LIST])
{
    enum { TAIL = 40 };
    int64_t count;
    char *const *name = rnnd__names_texts(names, axis, &count);
    int n = snprintf(text, RNND__NAMES_LIST, "%s", count ? "" : "no names");
    for (int64_t i = 0; i < count; i++) {
        int room = RNND__NAMES_LIST - TAIL - n;
        int need = (int)strnlen(name[i], RNND__NAMES_LIST) + 4;
        if (need > room) {
            snprintf(text + n, RNND__NAMES_LIST - (size_t)n, "%s... (%lld)",
                     i ? ", " : "", (long long)count);
            return;
        }
        n += snprintf(text + n, (size_t)need + 1, "%s\"%s\"", i ? ", " : "", name[i]);
    }
}
