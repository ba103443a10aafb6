/*
 * list.c - growing arrays, and a dictionary of strings: an open-addressing hash table.
 */
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"

int rnnd__list_add(struct rnnd__list *list, const void *from, int64_t count)
{
    if (count == 0)
        return 0;
    if (count > list->room - list->count) {
        int64_t room = list->room + list->room / 2 + 16;
        if (room < list->count + count)
            room = list->count + count;
        RNND_TRY(rnnd__grow((size_t)room, list->size, "a list", &list->at));
        list->room = room;
    }
    char *to = (char *)list->at + (size_t)list->count * list->size;
    if (from)
        memcpy(to, from, (size_t)count * list->size);
    else
        memset(to, 0, (size_t)count * list->size);
    list->count += count;
    return 0;
}

int rnnd__list_add_text(struct rnnd__list *list, const char *text, size_t bytes)
{
    char *copy = strndup(text, bytes);
    if (!copy)
        return rnnd__fail_memory(bytes, "strings");
    int status = rnnd__list_add(list, &copy, 1);
    if (status < 0)
        free(copy);
    return status;
}

int rnnd__list_add_texts(struct rnnd__list *list, const struct rnnd__list *from)
{
    for (int64_t i = 0; i < from->count; i++) {
        const char *text = rnnd__list_text(from, i);
        RNND_TRY(rnnd__list_add_text(list, text, strlen(text)));
    }
    return 0;
}

void rnnd__list_clear(struct rnnd__list *list)
{
    free(list->at);
    *list = (struct rnnd__list){.size = list->size};
}

void rnnd__list_clear_texts(struct rnnd__list *list)
{
    char **text = list->at;
    for (int64_t i = 0; i < list->count; i++)
        free(text[i]);
    rnnd__list_clear(list);
}

/* ---- dictionary */

void rnnd__dictionary_clear(struct rnnd__dictionary *dictionary)
{
    rnnd__list_clear_texts(&dictionary->texts);
    rnnd__list_clear(&dictionary->uses);
    free(dictionary->slot);
    *dictionary = (struct rnnd__dictionary){0};
}

const char *rnnd__dictionary_text(const struct rnnd__dictionary *dictionary,
                                  int64_t number)
{
    return rnnd__list_text(&dictionary->texts, number);
}

/* The slot of a string, or the free slot where it would go. slots is a power of two,
   and at least one slot is free. */
static int64_t *find_slot(const struct rnnd__dictionary *d, const char *text,
                          size_t bytes)
{
    struct rnnd__hash hash;
    rnnd__hash_start(&hash);
    rnnd__hash_add(&hash, text, bytes);
    for (uint64_t i = rnnd__hash_end(&hash);; i++) {
        int64_t *slot = &d->slot[i & (uint64_t)(d->slots - 1)];
        const char *there = *slot < 0 ? NULL : rnnd__dictionary_text(d, *slot);
        if (!there || (strncmp(there, text, bytes) == 0 && there[bytes] == 0))
            return slot;
    }
}

static int grow_table(struct rnnd__dictionary *d)
{
    int64_t *old = d->slot, slots = d->slots ? 2 * d->slots : 64;
    int64_t *table;
    RNND_TRY(RNND_NEW(&table, slots, "a dictionary"));
    d->slot = table;
    d->slots = slots;
    for (int64_t i = 0; i < slots; i++)
        d->slot[i] = -1;
    for (int64_t i = 0; i < d->texts.count; i++) {
        const char *text = rnnd__dictionary_text(d, i);
        *find_slot(d, text, strlen(text)) = i;
    }
    free(old);
    return 0;
}

int rnnd__dictionary_add(struct rnnd__dictionary *dictionary, const char *text,
                         size_t bytes, int64_t *number)
{
    struct rnnd__dictionary *d = dictionary;
    if (!d->slots) {
        d->texts.size = sizeof(char *);
        d->uses.size = sizeof(int64_t);
    }
    if (2 * d->texts.count >= d->slots)
        RNND_TRY(grow_table(d));
    int64_t *slot = find_slot(d, text, bytes);
    if (*slot < 0) {
        RNND_TRY(rnnd__list_add(&d->uses, NULL, 1));
        RNND_TRY(rnnd__list_add_text(&d->texts, text, bytes));
        *slot = d->texts.count - 1;
    }
    ((int64_t *)d->uses.at)[*slot]++;
    *number = *slot;
    return 0;
}

int64_t rnnd__dictionary_find(const struct rnnd__dictionary *dictionary,
                              const char *text, size_t bytes)
{
    return dictionary->slots ? *find_slot(dictionary, text, bytes) : -1;
}
