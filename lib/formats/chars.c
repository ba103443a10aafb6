/*
 * chars.c - text as UTF-8 characters: a line is a sequence, and its newline the last
 * token.
 */
#include "formats/tokens.h"

static const char *const fixed[] = {"<unk>", NULL};

/* The number of bytes of the character at c; 0 if it is invalid, such as an overlong
   form, a surrogate or a code point above U+10FFFF. */
static size_t character(const unsigned char *c, size_t room)
{
    size_t n = c[0] < 0x80   ? 1
               : c[0] < 0xc2 ? 0
               : c[0] < 0xe0 ? 2
               : c[0] < 0xf0 ? 3
                             : 4;
    if (n == 0 || n > room || c[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool second_low = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool second_high = (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf4 && c[1] > 0x8f);
    return n > 1 && (second_low || second_high) ? 0 : n;
}

static int read_text(struct rnnd__tokens *tokens, const struct rnnd__text *text)
{
    int64_t line = 1;
    size_t at = text->at, start = at;
    while (at < text->size) {
        const char *c = text->data + at;
        size_t n = character((const unsigned char *)c, text->size - at);
        if (n == 0)
            return rnnd__text_fail(text->path, line,
                                   "byte %zu of the line is not valid UTF-8",
                                   at - start + 1);
        RNND_TRY(rnnd__tokens_add(tokens, c, n));
        at += n;
        if (*c == '\n') {
            RNND_TRY(rnnd__tokens_end_line(tokens));
            line++;
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
