/*
 * tokens.h - what the two readers of running text share: from tokens with their texts
 * to numbered ids and sequences.
 */
#ifndef RNND_FORMATS_TOKENS_H
#define RNND_FORMATS_TOKENS_H

#include "formats/text.h"

/* Tokens as they come, numbered by first appearance, with the ends of lines. */
struct rnnd__tokens {
    struct rnnd__dictionary seen;
    /* int32_t */
    struct rnnd__list ids;
    /* int64_t, one a line */
    struct rnnd__list ends;
};

void rnnd__tokens_init(struct rnnd__tokens *tokens);
void rnnd__tokens_clear(struct rnnd__tokens *tokens);
RNND_CHECKED int rnnd__tokens_add(struct rnnd__tokens *tokens, const char *text,
                                  size_t bytes);
RNND_CHECKED int rnnd__tokens_end_line(struct rnnd__tokens *tokens);
/* Numbers the tokens and cuts sequences: a line each, or blocks. The vocabulary is
   that of --vocab-from, or: the `fixed` texts first, the others by falling
   frequency, equal ones as first seen, `size` in all (0 = no limit). A text outside
   it is fixed[0]. */
RNND_CHECKED int rnnd__tokens_finish(struct rnnd__tokens *tokens,
                                     const struct rnnd_options *opt,
                                     const char *const *fixed, int64_t size,
                                     struct rnnd__contents *out);

#endif
