/*
 * words.c - text as words separated by blanks: a line is a sequence, ended by <eos>.
 */
#include <string.h>

#include "formats/tokens.h"

static const char *const fixed[] = {"<unk>", "<eos>", NULL};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static int read_line(struct rnnd__tokens *tokens, const char *line, size_t length)
{
    const char *end = line + length;
    while (line < end) {
        const char *from = line;
        while (line < end && !is_blank(*line))
            line++;
        if (line > from)
            RNND_TRY(rnnd__tokens_add(tokens, from, (size_t)(line - from)));
        while (line < end && is_blank(*line))
            line++;
    }
    RNND_TRY(rnnd__tokens_add(tokens, fixed[1], strlen(fixed[1])));
    return rnnd__tokens_end_line(tokens);
}

static int read_file(struct rnnd__tokens *tokens, const char *path)
{
    struct rnnd__text text;
    const char *line;
    size_t length;
    int status = 0;
    RNND_TRY(rnnd__text_read(path, &text));
    while (status == 0 && rnnd__text_line(&text, &line, &length))
        status = read_line(tokens, line, length);
    rnnd__text_clear(&text);
    return status;
}

static int read_words(const struct rnnd_options *opt, char *const *inputs, int count,
                      struct rnnd__contents *out)
{
    struct rnnd__tokens tokens;
    int status = 0;
    rnnd__tokens_init(&tokens);
    for (int i = 0; i < count && status == 0; i++)
        status = read_file(&tokens, inputs[i]);
    if (status == 0)
        status = rnnd__tokens_finish(&tokens, opt, fixed, opt->vocab_size, out);
    rnnd__tokens_clear(&tokens);
    return status;
}

static const char *const options[] = {"vocab-size", "vocab-from", "block",
                                      "split",      "seed",       NULL};
const struct rnnd__format rnnd__format_text_words = {"text-words", options, read_words};
