/*
 * stream.c - a model that answers each step as it arrives; uses the public header only.
 *
 *     ./stream model.h5 [STATE] <steps.csv
 *
 * Reads one step per line, its features separated by commas, and prints the scores
 * (before softmax) after that step. An empty line ends a sequence. STATE is a file: the
 * hidden state is read from it if it exists, and written to it at the end, so that the
 * next call continues where this one stopped.
 */
#include <errno.h>
#include <rnn_dist.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)             \
    do {                      \
        int status_ = (call); \
        if (status_ < 0)      \
            return status_;   \
    } while (0)

struct stream {
    struct rnnd_options opt;
    struct rnnd_backend *be;
    struct rnnd_model *model;
    struct rnnd_batch *batch;
    struct rnnd_state *state;
    /* [I], and [O] */
    float *features, *scores;
    /* the state on the host: h and then c, each [L,H] */
    float *host;
    size_t half;
};

/* What the library does not know goes to standard error here. */
static int fail(enum rnnd_status status, const char *what, const char *why)
{
    fprintf(stderr, "stream: %s: %s\n", what, why);
    return status;
}

static int set_up(struct stream *s, const char *path)
{
    const struct rnnd_limits one = {1, 1, 1, 0};

    TRY(rnnd_options_init(&s->opt));
    TRY(rnnd_backend_open(&s->opt, NULL, &s->be));
    TRY(rnnd_checkpoint_load_model(path, s->be, &s->model, NULL));
    const struct rnnd_model_spec *spec = rnnd_model_spec(s->model);
    if (spec->vocab)
        return fail(RNND_EUSAGE, path, "reads tokens, not features");
    if (spec->bidirectional)
        return fail(RNND_EUSAGE, path, "is bidirectional: it has to see the end first");
    if (!rnnd_task_is_stepwise(spec->task) && spec->pool != RNND_POOL_LAST)
        return fail(RNND_EUSAGE, path, "pools over all steps");
    TRY(rnnd_model_reserve(s->model, &one, false));
    TRY(rnnd_model_batch(s->model, &s->batch));
    TRY(rnnd_state_new(s->model, 1, &s->state));
    s->half = (size_t)(spec->layers * spec->hidden);
    s->features = calloc((size_t)spec->inputs, sizeof(float));
    s->scores = calloc((size_t)spec->outputs, sizeof(float));
    s->host = calloc(2 * s->half, sizeof(float));
    if (!s->features || !s->scores || !s->host)
        return fail(RNND_EDEVICE, path, "no memory");
    return 0;
}

static float *cells(const struct stream *s)
{
    return rnnd_model_spec(s->model)->cell == RNND_LSTM ? s->host + s->half : NULL;
}

/* ---- state in, state out */

static int load_state(struct stream *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return errno == ENOENT ? 0 : fail(RNND_EFILE, path, strerror(errno));
    size_t n = fread(s->host, sizeof(float), 2 * s->half, f);
    bool whole = n == 2 * s->half && fgetc(f) == EOF;
    fclose(f);
    if (!whole)
        return fail(RNND_EDATA, path, "is not a state of this model");
    return rnnd_state_set(s->state, s->host, cells(s));
}

static int save_state(struct stream *s, const char *path)
{
    TRY(rnnd_state_get(s->state, s->host, cells(s)));
    FILE *f = fopen(path, "wb");
    if (!f)
        return fail(RNND_EFILE, path, strerror(errno));
    size_t n = fwrite(s->host, sizeof(float), 2 * s->half, f);
    if (fclose(f) != 0 || n != 2 * s->half)
        return fail(RNND_EFILE, path, "cannot be written");
    return 0;
}

/* ---- steps */

/* The numbers of a line; false where there are more, fewer, or others. */
static bool parse(const struct stream *s, const char *line)
{
    int64_t inputs = rnnd_model_spec(s->model)->inputs;
    for (int64_t i = 0; i < inputs; i++) {
        char *end;
        s->features[i] = strtof(line, &end);
        if (end == line || *end != (i + 1 < inputs ? ',' : '\0'))
            return false;
        line = end + 1;
    }
    return true;
}

static int answer(struct stream *s)
{
    const struct rnnd_pass pass = {.state = s->state};
    int64_t outputs = rnnd_model_spec(s->model)->outputs;

    TRY(rnnd_batch_load_steps(s->batch, s->features, 1));
    TRY(rnnd_model_scores(s->model, s->batch, &pass, s->scores));
    rnnd_state_advance(s->state);
    for (int64_t k = 0; k < outputs; k++)
        printf("%s%.9g", k ? "," : "", (double)s->scores[k]);
    putchar('\n');
    return fflush(stdout) == 0 ? 0 : fail(RNND_EFILE, "output", strerror(errno));
}

static int run(struct stream *s)
{
    char *line = NULL, number[32];
    size_t room = 0;
    int status = 0;
    for (long at = 1; status == 0 && getline(&line, &room, stdin) >= 0; at++) {
        line[strcspn(line, "\r\n")] = '\0';
        snprintf(number, sizeof number, "line %ld", at);
        if (*line == '\0')
            rnnd_state_zero(s->state);
        else if (parse(s, line))
            status = answer(s);
        else
            status = fail(RNND_EDATA, number, "not the features of a step");
    }
    free(line);
    if (status == 0 && ferror(stdin))
        status = fail(RNND_EFILE, "input", strerror(errno));
    return status;
}

int main(int argc, char **argv)
{
    struct stream s = {.be = NULL};
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: stream MODEL [STATE] <STEPS\n");
        return 2;
    }
    int status = set_up(&s, argv[1]);
    if (status == 0 && argc == 3)
        status = load_state(&s, argv[2]);
    if (status == 0)
        status = run(&s);
    if (status == 0 && argc == 3)
        status = save_state(&s, argv[2]);
    if (status < 0 && *rnnd_status_detail())
        fprintf(stderr, "stream: %s\n", rnnd_status_detail());
    free(s.features);
    free(s.scores);
    free(s.host);
    rnnd_state_free(s.state);
    rnnd_batch_free(s.batch);
    rnnd_model_free(s.model);
    rnnd_backend_close(s.be);
    rnnd_options_clear(&s.opt);
    return -status;
}
