/*
 * sample.c - generates text from a language model, token by token, carrying its state.
 *
 * A vocabulary with <eos> consists of words: they are joined by spaces, and <eos> ends
 * a line. Any other vocabulary consists of characters.
 */
#include "commands/sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plain.h"
#include "base/random.h"
#include "base/status.h"

struct sampler {
    struct rnnd_model *model;
    const struct rnnd_options *opt;
    FILE *out;
    int64_t vocab;
    bool words;
    struct rnnd_batch *batch;
    struct rnnd_state *state;
    /* [tokens of a pass, V] */
    float *scores;
    /* [V] unnormalized probabilities */
    double *weight;
    /* the next token is the first of its line */
    bool line_begins;
};

/* The id of the token text [n bytes]; 0 (<unk>) if there is none. */
static int32_t find_token(const struct sampler *s, const char *text, size_t n)
{
    for (int64_t v = 0; v < s->vocab; v++) {
        const char *t = rnnd_model_class(s->model, v);
        if (strlen(t) == n && memcmp(t, text, n) == 0)
            return (int32_t)v;
    }
    return 0;
}

/* Bytes of the token at p: a word, or a UTF-8 character. */
static size_t token_bytes(const struct sampler *s, const char *p)
{
    size_t n = 1;
    if (s->words)
        return strcspn(p, " \t\r\n");
    while (((unsigned char)p[n] & 0xC0) == 0x80)
        n++;
    return n;
}

/* Writes the ids of a text to token, at most one per byte; returns their number. */
static int64_t encode(const struct sampler *s, const char *text, int32_t *token)
{
    int64_t count = 0, unknown = 0;
    for (const char *p = text; *p;) {
        p += s->words ? strspn(p, " \t\r\n") : 0;
        size_t n = *p ? token_bytes(s, p) : 0;
        if (n == 0)
            break;
        token[count] = find_token(s, p, n);
        unknown += token[count++] == 0;
        p += n;
    }
    if (unknown)
        rnnd__log_warn("%lld tokens of the prompt are not in the vocabulary",
                       (long long)unknown);
    return count;
}

static void put_token(struct sampler *s, int32_t token)
{
    const char *text = rnnd_model_class(s->model, token);
    bool ends_line = strcmp(text, s->words ? "<eos>" : "\n") == 0;
    if (s->words && !ends_line && !s->line_begins)
        fputc(' ', s->out);
    if (ends_line || strcmp(text, "\t") == 0)
        fputs(ends_line ? "\n" : text, s->out);
    else
        rnnd__plain_put(s->out, text);
    s->line_begins = ends_line;
}

/* Runs the tokens, continuing from the state; the scores after the last one are moved
   to scores[0..V-1]. */
static int run(struct sampler *s, const int32_t *token, int64_t count)
{
    struct rnnd_pass pass = {.state = s->state};
    RNND_TRY(rnnd_batch_load_steps(s->batch, token, count));
    RNND_TRY(rnnd_model_scores(s->model, s->batch, &pass, s->scores));
    rnnd_state_advance(s->state);
    memmove(s->scores, s->scores + (count - 1) * s->vocab,
            (size_t)s->vocab * sizeof(float));
    return 0;
}

/* Draws a token by its probability at the temperature; the likeliest at temperature
   0. */
static int32_t draw(struct sampler *s, uint64_t key, int64_t number)
{
    int64_t best = 0;
    double sum = 0, t = s->opt->temperature;
    for (int64_t v = 1; v < s->vocab; v++)
        best = s->scores[v] > s->scores[best] ? v : best;
    if (t == 0)
        return (int32_t)best;
    for (int64_t v = 0; v < s->vocab; v++)
        sum += s->weight[v] = exp((s->scores[v] - s->scores[best]) / t);
    struct rnnd__random r =
        rnnd__philox(key, (uint32_t)number, (uint32_t)(number >> 32), 0, 0);
    double at = sum * (((uint64_t)r.word[0] << 21) ^ (r.word[1] >> 11)) * 0x1p-53;
    for (int64_t v = 0; v < s->vocab; v++)
        if ((at -= s->weight[v]) < 0)
            return (int32_t)v;
    return (int32_t)best;
}

static int write_text(struct sampler *s, int32_t *token)
{
    uint64_t key = rnnd__random_key((uint64_t)s->opt->seed, RNND_FOR_SAMPLE, 0, 0);
    const char *prompt = s->opt->prompt ? s->opt->prompt : "";
    int64_t count = encode(s, prompt, token);
    s->line_begins = true;
    fputs(prompt, s->out);
    if (count)
        s->line_begins = prompt[strlen(prompt) - 1] == '\n';
    else /* start as if a line had just ended */
        token[count++] = find_token(s, s->words ? "<eos>" : "\n", s->words ? 5 : 1);
    for (int64_t i = 0; i < s->opt->length; i++) {
        RNND_TRY(run(s, token, count));
        token[0] = draw(s, key, i);
        count = 1;
        put_token(s, token[0]);
    }
    if (!s->line_begins)
        fputc('\n', s->out);
    return fflush(s->out) == 0
               ? 0
               : rnnd__fail(RNND_EFILE, "cannot write the text: %s", strerror(errno));
}

int rnnd__sample(struct rnnd_model *model, const struct rnnd_options *opt, FILE *out)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(model);
    struct sampler s = {.model = model, .opt = opt, .out = out, .vocab = spec->vocab};
    size_t most = (opt->prompt ? strlen(opt->prompt) : 0) + 1;
    int32_t *token = NULL;
    int status = 0;
    if (spec->task != RNND_LM)
        return rnnd__fail(RNND_EUSAGE,
                          "the model was made for %s; only language models (lm) "
                          "generate text",
                          rnnd_task_name(spec->task));
    if (!rnnd_model_class(model, 0))
        return rnnd__fail(RNND_EUSAGE,
                          "the model does not contain its vocabulary: it was "
                          "trained on data without /vocab");
    s.words = s.vocab > 1 && strcmp(rnnd_model_class(model, 1), "<eos>") == 0;
    size_t V = (size_t)s.vocab;
    RNND_TRY_GOTO(RNND_NEW(&token, most, "prompt"));
    RNND_TRY_GOTO(RNND_NEW(&s.scores, most * V, "scores"));
    RNND_TRY_GOTO(RNND_NEW(&s.weight, V, "scores"));
    RNND_TRY_GOTO(rnnd_model_batch(model, &s.batch));
    RNND_TRY_GOTO(rnnd_state_new(model, 1, &s.state));
    RNND_TRY_GOTO(write_text(&s, token));
done:
    rnnd_state_free(s.state);
    rnnd_batch_free(s.batch);
    free(s.weight);
    free(s.scores);
    free(token);
    return status;
}
