/*
 * list.h - growing arrays, and a dictionary of strings.
 */
#ifndef RNND_LIST_H
#define RNND_LIST_H

#include "rnn_dist.h"

/* Elements of one size, contiguous. All zero but for size, it is empty. */
struct rnnd__list {
    void *at;
    int64_t count, room;
    size_t size;
};

/* Appends count elements, zeros if from is NULL. */
RNND_CHECKED int rnnd__list_add(struct rnnd__list *list, const void *from,
                                int64_t count);
/* Appends a copy of a string to a list of char *. */
RNND_CHECKED int rnnd__list_add_text(struct rnnd__list *list, const char *text,
                                     size_t bytes);
void rnnd__list_clear(struct rnnd__list *list);
/* Appends copies of all strings of another list of char *. */
RNND_CHECKED int rnnd__list_add_texts(struct rnnd__list *list,
                                      const struct rnnd__list *from);
/* String i of a list of char *. */
static inline const char *rnnd__list_text(const struct rnnd__list *list, int64_t i)
{
    return ((char *const *)list->at)[i];
}
/* Clears a list of char *, and frees the strings. */
void rnnd__list_clear_texts(struct rnnd__list *list);

/* Distinct strings, numbered in order of first appearance. All zero, it is empty. */
struct rnnd__dictionary {
    /* char * */
    struct rnnd__list texts;
    /* int64_t, how often each was added */
    struct rnnd__list uses;
    /* hash table of string numbers, -1 = free */
    int64_t *slot;
    int64_t slots;
};

void rnnd__dictionary_clear(struct rnnd__dictionary *dictionary);
/* Adds a string if it is new, counts one use of it and returns its number. */
RNND_CHECKED int rnnd__dictionary_add(struct rnnd__dictionary *dictionary,
                                      const char *text, size_t bytes, int64_t *number);
/* The number of a string, -1 if it is not in the dictionary. */
int64_t rnnd__dictionary_find(const struct rnnd__dictionary *dictionary,
                              const char *text, size_t bytes);
const char *rnnd__dictionary_text(const struct rnnd__dictionary *dictionary,
                                  int64_t number);

#endif
