/*
 * list.h - arrays that grow, and a dictionary of texts.
 */
#ifndef RNND_LIST_H
#define RNND_LIST_H

#include "rnn_dist.h"

/* Elements of one size, side by side. Zeroed, with size set, it is empty. */
struct rnnd_list {
    void *at;
    int64_t count, room;
    size_t size;
};

/* Appends count elements, zeros where from is NULL. */
RNND_CHECKED int rnnd_list_add(struct rnnd_list *list, const void *from, int64_t count);
/* Appends a copy of a text to a list of char *. */
RNND_CHECKED int rnnd_list_add_text(struct rnnd_list *list, const char *text,
                                    size_t bytes);
void rnnd_list_clear(struct rnnd_list *list);
/* Of a list of char *: frees the texts too. */
void rnnd_list_clear_texts(struct rnnd_list *list);

/* Texts, each once, numbered in the order of their first appearance. */
struct rnnd_dictionary {
    struct rnnd_list texts; /* char * */
    struct rnnd_list uses;  /* int64_t, how often each was added */
    int64_t *slot;          /* hash table of numbers, -1 = free */
    int64_t slots;
};

void rnnd_dictionary_clear(struct rnnd_dictionary *dictionary);
/* Counts one use of a text and gives its number. An all-zero dictionary is empty. */
RNND_CHECKED int rnnd_dictionary_add(struct rnnd_dictionary *dictionary,
                                     const char *text, size_t bytes, int64_t *number);
/* -1 where the text is not there. */
int64_t rnnd_dictionary_find(const struct rnnd_dictionary *dictionary, const char *text,
                             size_t bytes);
const char *rnnd_dictionary_text(const struct rnnd_dictionary *dictionary,
                                 int64_t number);

#endif
