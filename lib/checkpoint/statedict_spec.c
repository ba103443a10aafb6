/*
 * statedict_spec.c - derives a model from named arrays and from what a file says
 * about it.
 *
 * Widths come from the arrays; task, cell, pooling and the rest from the file's texts
 * and from options. Reads no values.
 */
#include "checkpoint/statedict.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "options/options.h"

/* ---- shapes */

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

/* Matrices have two dimensions, vectors one; none is empty or larger than a BLAS can
   count, so products of them cannot overflow. */
static int check_shape(const struct rnnd__statedict *sd, const struct rnnd__tensor *t)
{
    bool vector = ends_with(t->ours, ".bias") ||
                  strncmp(t->ours, "rnn.bias_", 9) == 0 ||
                  strncmp(t->ours, "input.", 6) == 0;
    int rank = vector ? 1 : 2;
    char shape[64];
    if (t->rank == rank && t->rows >= 1 && t->rows <= INT32_MAX &&
        (vector || (t->cols >= 1 && t->cols <= INT32_MAX)))
        return 0;
    rnnd__statedict_shape(t, shape);
    return rnnd__fail(
        RNND_EDATA, "%s: %s is %s, expected %s from 1 to %d for %s", sd->path, t->name,
        shape, vector ? "one dimension" : "two dimensions, each", INT32_MAX, t->ours);
}

static int check_shapes(const struct rnnd__statedict *sd)
{
    for (int i = 0; i < sd->count; i++)
        if (sd->tensor[i].ours[0])
            RNND_TRY(check_shape(sd, &sd->tensor[i]));
    return 0;
}

/* Mean and standard deviation come in pairs, and are for features. normalize: the
   file's option. */
static int check_moments(const struct rnnd__statedict *sd, bool normalize, bool tokens)
{
    bool mean = rnnd__statedict_find(sd, "input.mean") != NULL;
    bool std = rnnd__statedict_find(sd, "input.std") != NULL;
    if (mean != std)
        return rnnd__fail(RNND_EDATA, "%s: has input.%s, but no input.%s", sd->path,
                          mean ? "mean" : "std", mean ? "std" : "mean");
    if (mean && tokens)
        return rnnd__fail(RNND_EDATA,
                          "%s: has input.mean and input.std, which are for features, "
                          "but its model reads tokens",
                          sd->path);
    if (normalize && !mean)
        return rnnd__fail(RNND_EDATA,
                          "%s: says normalize = yes, but has no input.mean and "
                          "input.std",
                          sd->path);
    return 0;
}

/* ---- widths and options */

/* The status for a bad option: EUSAGE if the user gave it, EDATA if the file did. */
static int blame(const struct rnnd_options *opt, const char *name)
{
    return opt && rnnd__options_given(opt, name) ? RNND_EUSAGE : RNND_EDATA;
}

/* The embedding; a tied matrix may have the head's name alone. */
static const struct rnnd__tensor *find_embedding(const struct rnnd__statedict *sd,
                                                 const struct rnnd_options *o,
                                                 const struct rnnd__tensor *ih)
{
    const struct rnnd__tensor *embed = rnnd__statedict_find(sd, "embed.weight");
    const struct rnnd__tensor *head = rnnd__statedict_find(sd, "head.weight");
    bool tied = o->tie_weights || o->task == RNND_LM;
    return embed || !tied || !head || head->cols != ih->cols ? embed : head;
}

/* Widths, from the shapes of the arrays. */
static int measure(const struct rnnd__statedict *sd, const struct rnnd_options *o,
                   struct rnnd_model_spec *spec, int *gates)
{
    RNND_TRY(check_shapes(sd));
    const struct rnnd__tensor *ih = rnnd__statedict_find(sd, "rnn.weight_ih_l0");
    const struct rnnd__tensor *hh = rnnd__statedict_find(sd, "rnn.weight_hh_l0");
    const struct rnnd__tensor *bias = rnnd__statedict_find(sd, "head.bias");
    if (!ih || !hh || !bias || hh->cols < 1 || hh->rows % hh->cols != 0) {
        char found[1200];
        rnnd__statedict_list(sd, found, sizeof found);
        return rnnd__fail(
            RNND_EDATA,
            "%s: a model needs at least rnn.weight_ih_l0 [G*H, I], "
            "rnn.weight_hh_l0 [G*H, H] and head.bias [O]; the file has %s",
            sd->path, found);
    }
    const struct rnnd__tensor *embed = find_embedding(sd, o, ih);
    *gates = (int)(hh->rows / hh->cols);
    spec->hidden = hh->cols;
    spec->outputs = bias->rows;
    spec->bidirectional = rnnd__statedict_find(sd, "rnn.weight_ih_l0_reverse") != NULL;
    spec->no_bias = !rnnd__statedict_find(sd, "rnn.bias_ih_l0") &&
                    !rnnd__statedict_find(sd, "rnn.bias_hh_l0");
    spec->normalize = !embed && rnnd__statedict_find(sd, "input.mean") != NULL;
    spec->vocab = embed ? embed->rows : 0;
    spec->embed = embed ? embed->cols : 0;
    spec->inputs = embed ? 0 : ih->cols;
    char name[48];
    do
        snprintf(name, sizeof name, "rnn.weight_ih_l%d", (int)++spec->layers);
    while (rnnd__statedict_find(sd, name));
    return check_moments(sd, o->normalize, embed != NULL);
}

static int settle_cell(const struct rnnd__statedict *sd, const struct rnnd_options *opt,
                       const struct rnnd_options *o, int gates, enum rnnd_cell *out)
{
    enum rnnd_cell cell = o->cell;
    if (gates != 1 && gates != 3 && gates != 4)
        return rnnd__fail(RNND_EDATA,
                          "%s: rnn.weight_hh_l0 has %d times as many rows as columns, "
                          "but no cell has %d gates (an LSTM with proj_size is not "
                          "supported)",
                          sd->path, gates, gates);
    if (!rnnd__options_given(o, "cell"))
        cell = gates == 4 ? RNND_LSTM : gates == 3 ? RNND_GRU : RNND_RNN_TANH;
    if (rnnd__cell_gates(cell) != gates)
        return rnnd__fail(blame(opt, "cell"), "%s: its arrays have %d gates, %s has %d",
                          sd->path, gates,
                          opt && rnnd__options_given(opt, "cell")
                              ? "--cell"
                              : "the cell in its options",
                          rnnd__cell_gates(cell));
    *out = cell;
    return 0;
}

static int settle_task(const struct rnnd__statedict *sd, const struct rnnd_options *opt,
                       const struct rnnd_options *o, const struct rnnd_model_spec *spec,
                       enum rnnd_task *out)
{
    enum rnnd_task task = o->task >= 0 ? (enum rnnd_task)o->task : RNND_LM;
    bool fits = spec->vocab && spec->vocab == spec->outputs && !spec->bidirectional;
    if (o->task < 0 && !fits)
        return rnnd__fail(
            RNND_EUSAGE,
            "%s: does not name the task of its model; convert it with rnn_dist import "
            "--task TASK",
            sd->path);
    if (task == RNND_LM && !fits)
        return rnnd__fail(blame(opt, "task"),
                          "%s: task lm needs an embedding, one direction, and as many "
                          "outputs as tokens; it has %lld tokens, %d directions, %lld "
                          "outputs",
                          sd->path, (long long)spec->vocab, spec->bidirectional ? 2 : 1,
                          (long long)spec->outputs);
    *out = task;
    return 0;
}

/* Tied if the options say so, or if a language model does not have both matrices. */
static int settle_tie(const struct rnnd__statedict *sd, const struct rnnd_options *opt,
                      const struct rnnd_options *o, struct rnnd_model_spec *spec)
{
    bool both = rnnd__statedict_find(sd, "embed.weight") &&
                rnnd__statedict_find(sd, "head.weight");
    if (o->tie_weights && spec->task != RNND_LM)
        return rnnd__fail(blame(opt, "tie-weights"),
                          "%s: --tie-weights is for task lm, its task is %s", sd->path,
                          rnnd_task_name(spec->task));
    spec->tie_weights = o->tie_weights || (spec->task == RNND_LM && !both);
    if (spec->tie_weights && spec->embed != spec->hidden)
        return rnnd__fail(
            blame(opt, "tie-weights"),
            "%s: tied weights need an embedding as wide as the hidden state; the "
            "widths are %lld and %lld",
            sd->path, (long long)spec->embed, (long long)spec->hidden);
    return 0;
}

int rnnd__statedict_options(const struct rnnd__statedict *sd,
                            const struct rnnd_options *opt, struct rnnd_options *out)
{
    if (opt)
        RNND_TRY(rnnd__options_overlay(out, opt));
    bool task_given = rnnd__options_given(out, "task");
    int status = 0;
    if (sd->config)
        status = rnnd__options_read_record(out, sd->config, sd->path);
    if (status == RNND_EUSAGE) /* not on a command line */
        return RNND_EDATA;
    if (status < 0 || !sd->task || task_given)
        return status;
    status = rnnd__options_set(out, "task", sd->task, RNND_FROM_FILE);
    if (status == RNND_EUSAGE)
        return rnnd__fail(RNND_EDATA, "%s: its task: %s", sd->path,
                          rnnd_status_detail());
    return status;
}

int rnnd__statedict_spec(const struct rnnd__statedict *sd,
                         const struct rnnd_options *opt, struct rnnd_model_spec *out)
{
    struct rnnd_model_spec spec = {0};
    struct rnnd_options o;
    int gates = 0, status = 0;
    RNND_TRY(rnnd_options_init(&o));
    RNND_TRY_GOTO(rnnd__statedict_options(sd, opt, &o));
    RNND_TRY_GOTO(measure(sd, &o, &spec, &gates));
    RNND_TRY_GOTO(settle_cell(sd, opt, &o, gates, &spec.cell));
    RNND_TRY_GOTO(settle_task(sd, opt, &o, &spec, &spec.task));
    RNND_TRY_GOTO(settle_tie(sd, opt, &o, &spec));
    spec.pool = o.pool;
    spec.dropout = spec.layers > 1 ? o.dropout : 0;
    spec.dropout_embed = spec.vocab ? o.dropout_embed : 0;
    spec.dropout_head = o.dropout_head;
    spec.dropout_kind = o.dropout_kind;
    *out = spec;
done:
    rnnd_options_clear(&o);
    return status;
}

int rnnd__statedict_config(const struct rnnd_model *model,
                           const struct rnnd_options *opt, char **text)
{
    const struct rnnd_model_spec *spec = rnnd_model_spec(model);
    struct rnnd_options defaults, o;
    RNND_TRY(rnnd_options_init(&defaults));
    o = opt ? *opt : defaults; /* borrows the texts */
    o.task = (int)spec->task;
    o.of_features = spec->vocab == 0;
    o.cell = spec->cell;
    o.hidden = spec->hidden;
    o.layers = spec->layers;
    o.bidirectional = spec->bidirectional;
    o.no_bias = spec->no_bias;
    o.pool = spec->pool;
    o.tie_weights = spec->tie_weights;
    o.normalize = spec->normalize;
    if (spec->vocab)
        o.embed = spec->embed;
    if (!opt) {
        o.dropout = spec->dropout;
        o.dropout_embed = spec->dropout_embed;
        o.dropout_head = spec->dropout_head;
        o.dropout_kind = spec->dropout_kind;
    }
    int status = rnnd__options_text(&o, text);
    rnnd_options_clear(&defaults);
    return status;
}

/* ---- texts of exported files */

int rnnd__statedict_describe(
    const struct rnnd_model *model, const struct rnnd_options *opt,
    int (*put)(void *context, const char *key, const char *text), void *context)
{
    char *config = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd__statedict_config(model, opt, &config));
    RNND_TRY_GOTO(
        put(context, RNND_KEY_TASK, rnnd_task_name(rnnd_model_spec(model)->task)));
    RNND_TRY_GOTO(put(context, RNND_KEY_CONFIG, config));
    status = rnnd__statedict_describe_axes(model, put, context);
done:
    free(config);
    return status;
}
