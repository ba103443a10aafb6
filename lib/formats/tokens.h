/*
 * tokens.h - shared by the two text readers: turns tokens into ids, a vocabulary and
 * sequences.
 */
#ifndef RNND_FORMATS_TOKENS_H
#define RNND_FORMATS_TOKENS_H

#include "formats/text.h"

/* Tokens as read, numbered by first appearance, and the ends of lines. */
struct rnnd__tokens {
    struct rnnd__dictionary seen;
    /* int32_t */
    struct rnnd__list ids;
    /* int64_t, one per line */
    struct rnnd__list ends;
};

void rnnd__tokens_init(struct rnnd__tokens *tokens);
void rnnd__tokens_clear(struct rnnd__tokens *tokens);
RNND_CHECKED int rnnd__tokens_add(struct rnnd__tokens *tokens, const char *text,
                                  size_t bytes);
RNND_CHECKED int rnnd__tokens_end_line(struct rnnd__tokens *tokens);
/* Numbers the tokens and cuts them into sequences: lines, or blocks of --block tokens.
   The vocabulary is that of --vocab-from, or else the `fixed` tokens followed by the
   others in order of falling frequency, then of first appearance: `size` tokens in all
   (0 = no limit). A token outside the vocabulary becomes fixed[0]. */
RNND_CHECKED int rnnd__tokens_finish(struct rnnd__tokens *tokens,
                                     const struct rnnd_options *opt,
                                     const char *const *fixed, int64_t size,
                                     struct rnnd__contents *out);

#endif
