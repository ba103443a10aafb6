/*
 * chars.c - text as UTF-8 characters: a line is a sequence, and its newline the last
 * token.
 */
#include "formats/tokens.h"

static const char *const fixed[] = {"<unk>", NULL};

static int read_text(struct rnnd__tokens *tokens, const struct rnnd__text *text)
{
    size_t at = text->at, start = at;
    while (at < text->size) {
        const char *c = text->data + at;
        size_t n = rnnd__text_character(c, text->size - at);
        RNND_TRY(rnnd__tokens_add(tokens, c, n));
        at += n;
        if (*c == '\n') {
            RNND_TRY(rnnd__tokens_end_line(tokens));
            start = at;
        }
    }
    return at > start ? rnnd__tokens_end_line(tokens) : 0;
}

static int read_chars(const struct rnnd_options *opt, char *const *inputs, int count,
                      struct rnnd__contents *out)
{
    struct rnnd__tokens tokens;
    int status = 0;
    rnnd__tokens_init(&tokens);
    for (int i = 0; i < count && status == 0; i++) {
        struct rnnd__text text;
        RNND_TRY_GOTO(rnnd__text_read(inputs[i], &text));
        status = read_text(&tokens, &text);
        rnnd__text_clear(&text);
    }
    if (status == 0)
        status = rnnd__tokens_finish(&tokens, opt, fixed, 0, out);
done:
    rnnd__tokens_clear(&tokens);
    return status;
}

static const char *const options[] = {"vocab-from", "block", "split", "seed", NULL};
const struct rnnd__format rnnd__format_text_chars = {"text-chars", options, read_chars};
