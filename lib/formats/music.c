/*
 * music.c - pieces of music as JSON: {"train": [[[60, 64], ...steps], ...pieces], ...}.
 * Notes 21..108 are the 88 keys of a piano, and -1 is silence. Step t is the
 * input, step t+1 the target.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "formats/text.h"

enum { LOWEST = 21, KEYS = 88, SILENCE = -1 };

/* Position in the file, for messages. */
struct place {
    const char *path, *part;
    size_t piece, step;
};

/* Turns a step into a row with 1 for each key that sounds. */
static int read_step(const struct place *at, const json_t *step, float row[KEYS])
{
    if (!json_is_array(step))
        return rnnd__fail(RNND_EDATA,
                          "%s: %s[%zu][%zu]: a step must be a list of notes", at->path,
                          at->part, at->piece, at->step);
    memset(row, 0, KEYS * sizeof *row);
    for (size_t i = 0; i < json_array_size(step); i++) {
        const json_t *note = json_array_get(step, i);
        double value = json_number_value(note);
        if (!json_is_number(note) || value != floor(value))
            return rnnd__fail(RNND_EDATA,
                              "%s: %s[%zu][%zu][%zu]: a note must be an integer",
                              at->path, at->part, at->piece, at->step, i);
        if (value == SILENCE)
            continue;
        if (value < LOWEST || value >= LOWEST + KEYS)
            return rnnd__fail(
                RNND_EDATA, "%s: %s[%zu][%zu][%zu] = %.0f: notes must be from %d to %d",
                at->path, at->part, at->piece, at->step, i, value, LOWEST,
                LOWEST + KEYS - 1);
        row[(int)value - LOWEST] = 1;
    }
    return 0;
}

static int read_piece(struct place *at, const json_t *piece, struct rnnd__contents *out)
{
    float row[KEYS];
    if (!json_is_array(piece))
        return rnnd__fail(RNND_EDATA, "%s: %s[%zu]: a piece must be a list of steps",
                          at->path, at->part, at->piece);
    size_t steps = json_array_size(piece);
    for (at->step = 0; at->step < steps; at->step++) {
        RNND_TRY(read_step(at, json_array_get(piece, at->step), row));
        if (at->step + 1 < steps)
            RNND_TRY(rnnd__list_add(&out->features, row, KEYS));
        if (at->step > 0)
            RNND_TRY(rnnd__list_add(&out->values, row, KEYS));
    }
    if (steps < 2)
        rnnd__log_warn("%s: %s[%zu] has %zu steps, which make an empty sequence",
                       at->path, at->part, at->piece, steps);
    return rnnd__contents_end_sequence(out);
}

/* Selects the part to read: the named one, or the only one. */
static int choose_part(const char *path, json_t *root, const char *name,
                       const char **part, json_t **pieces)
{
    const char *key;
    json_t *value;
    char known[200] = "";
    if (!json_is_object(root))
        return rnnd__fail(RNND_EDATA, "%s: not a JSON object of lists of pieces", path);
    json_object_foreach(root, key, value)
    {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", key);
        if (name ? strcmp(key, name) == 0 : json_object_size(root) == 1) {
            *part = key;
            *pieces = value;
            return 0;
        }
    }
    if (name)
        return rnnd__fail(RNND_EDATA, "%s: no part is named %s; parts: %s", path, name,
                          *known ? known : "none");
    if (!*known)
        return rnnd__fail(RNND_EDATA, "%s: contains no parts", path);
    return rnnd__fail(RNND_EUSAGE, "%s: use --part NAME to select a part; parts: %s",
                      path, known);
}

static int read_file(const char *path, const char *name, struct rnnd__contents *out)
{
    struct place at = {.path = path};
    struct rnnd__text text;
    json_error_t error;
    json_t *pieces = NULL;
    int status = 0;
    RNND_TRY(rnnd__text_read(path, &text));
    json_t *root = json_loadb(text.data + text.at, text.size - text.at, 0, &error);
    rnnd__text_clear(&text);
    if (!root)
        return rnnd__fail(RNND_EDATA, "%s:%d: column %d: %s", path, error.line,
                          error.column, error.text);
    RNND_TRY_GOTO(choose_part(path, root, name, &at.part, &pieces));
    if (!json_is_array(pieces))
        RNND_TRY_GOTO(
            rnnd__fail(RNND_EDATA, "%s: %s: not a list of pieces", path, at.part));
    for (at.piece = 0; at.piece < json_array_size(pieces); at.piece++)
        RNND_TRY_GOTO(read_piece(&at, json_array_get(pieces, at.piece), out));
done:
    json_decref(root);
    return status;
}

static int read_music(const struct rnnd_options *opt, char *const *inputs, int count,
                      struct rnnd__contents *out)
{
    out->task = RNND_MULTILABEL;
    out->inputs = out->outputs = KEYS;
    for (int i = 0; i < count; i++)
        RNND_TRY(read_file(inputs[i], opt->part, out));
    return 0;
}

static const char *const options[] = {"part", "split", "seed", NULL};
const struct rnnd__format rnnd__format_music = {"music-json", options, read_music};
