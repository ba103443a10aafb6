/*
 * list.h - arrays that grow, and a dictionary of texts.
 */
#ifndef RNND_LIST_H
#define RNND_LIST_H

#include "rnn_dist.h"

/* Elements of one size, side by side. Zeroed, with size set, it is empty. */
struct rnnd__list {
    void *at;
    int64_t count, room;
    size_t size;
};

/* Appends count elements, zeros where from is NULL. */
RNND_CHECKED int rnnd__list_add(struct rnnd__list *list, const void *from,
                                int64_t count);
/* Appends a copy of a text to a list of char *. */
RNND_CHECKED int rnnd__list_add_text(struct rnnd__list *list, const char *text,
                                     size_t bytes);
void rnnd__list_clear(struct rnnd__list *list);
/* Of a list of char *: frees the texts too. */
void rnnd__list_clear_texts(struct rnnd__list *list);

/* Texts, each once, numbered in the order of their first appearance. */
struct rnnd__dictionary {
    /* char * */
    struct rnnd__list texts;
    /* int64_t, how often each was added */
    struct rnnd__list uses;
    /* hash table of numbers, -1 = free */
    int64_t *slot;
    int64_t slots;
};

void rnnd__dictionary_clear(struct rnnd__dictionary *dictionary);
/* Counts one use of a text and gives its number. An all-zero dictionary is empty. */
RNND_CHECKED int rnnd__dictionary_add(struct rnnd__dictionary *dictionary,
                                      const char *text, size_t bytes, int64_t *number);
/* -1 where the text is not there. */
int64_t rnnd__dictionary_find(const struct rnnd__dictionary *dictionary,
                              const char *text, size_t bytes);
const char *rnnd__dictionary_text(const struct rnnd__dictionary *dictionary,
                                  int64_t number);

#endif
