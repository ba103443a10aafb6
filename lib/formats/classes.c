/*
 * classes.c - the numbers of classes that have names.
 */
#include "formats/classes.h"

#include <stdlib.h>
#include <string.h>

#include "formats/text.h"

int rnnd__classes_number(const struct rnnd_options *opt, struct rnnd__dictionary *known,
                         const char *name, size_t n, int64_t *out)
{
    if (!opt->classes_from)
        return rnnd__dictionary_add(known, name, n, out);
    *out = rnnd__dictionary_find(known, name, n);
    return 0;
}

struct class
{
    const char *text;
    /* by first appearance */
    int64_t number;
    double value;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct class *)a)->text, ((const struct class *)b)->text);
}

static int by_value(const void *a, const void *b)
{
    double x = ((const struct class *)a)->value, y = ((const struct class *)b)->value;
    return x < y ? -1 : x > y ? 1 : by_text(a, b);
}

int rnnd__classes_sort(const struct rnnd__dictionary *known, struct rnnd__contents *out)
{
    int64_t C = known->texts.count;
    struct class *class;
    int32_t *label = out->labels.at;
    bool numbers = true;
    RNND_TRY(RNND_NEW(&class, C, "classes"));
    for (int64_t i = 0; i < C; i++) {
        float value;
        const char *text = rnnd__dictionary_text(known, i);
        class[i] = (struct class){text, i, 0};
        numbers &= rnnd__text_number(text, strlen(text), &value) == RNND_FIELD_NUMBER;
        class[i].value = numbers ? strtod(text, NULL) : 0;
    }
    qsort(class, (size_t)C, sizeof *class, numbers ? by_value : by_text);
    int status = 0;
    int64_t *rank = NULL;
    RNND_TRY_GOTO(RNND_NEW(&rank, C, "classes"));
    for (int64_t i = 0; i < C; i++) {
        rank[class[i].number] = i;
        RNND_TRY_GOTO(
            rnnd__list_add_text(&out->class, class[i].text, strlen(class[i].text)));
    }
    for (int64_t i = 0; i < out->labels.count; i++)
        label[i] = label[i] < 0 ? -1 : (int32_t)rank[label[i]];
done:
    free(rank);
    free(class);
    return status;
}

int rnnd__classes_take(const char *path, struct rnnd__dictionary *known,
                       struct rnnd__contents *out)
{
    int64_t number;
    RNND_TRY(rnnd__format_texts_of(path, "/classes", &out->class));
    for (int64_t i = 0; i < out->class.count; i++) {
        const char *name = rnnd__list_text(&out->class, i);
        size_t n = rnnd__text_class(name, strlen(name));
        RNND_TRY(rnnd__dictionary_add(known, name, n, &number));
        if (number != i)
            return rnnd__fail(RNND_EDATA,
                              "%s: /classes[%lld] = \"%.40s\" repeats /classes[%lld]",
                              path, (long long)i, name, (long long)number);
    }
    return 0;
}
