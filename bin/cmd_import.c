/*
 * cmd_import.c - `rnn_dist import IN OUT`: makes a checkpoint of arrays under PyTorch's
 * names, from safetensors or HDF5. Runs on rank 0.
 *
 * Widths and, except for plain cells, the cell follow from the arrays. The rest comes
 * from options, and from the file if rnn_dist exported it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plain.h"
#include "base/status.h"
#include "base/task.h"
#include "bin.h"
#include "checkpoint/statedict.h"
#include "formats/formats.h"

/* Errors in a file are not usage errors. */
static int as_data(int status)
{
    return status == RNND_EUSAGE ? rnnd__fail(RNND_EDATA, "%s", rnnd_status_detail())
                                 : status;
}

static int check_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".safetensors") == 0)
        return rnnd__fail(RNND_EUSAGE,
                          "%s: a checkpoint is an HDF5 file; use a name ending in .h5",
                          path);
    return 0;
}

/* ---- names of classes or tokens */

static int name_outputs(struct rnnd_model *model, const struct rnnd_options *opt)
{
    enum rnnd_task task = rnnd_model_spec(model)->task;
    bool classes = rnnd__task_has_classes(task), tokens = task == RNND_LM;
    struct rnnd_dataset *data;
    if (opt->classes_from && !classes)
        return rnnd__fail(RNND_EUSAGE, "--classes-from: task %s has no classes",
                          rnnd_task_name(task));
    if (opt->vocab_from && !tokens)
        return rnnd__fail(RNND_EUSAGE, "--vocab-from: task %s does not predict tokens",
                          rnnd_task_name(task));
    const char *path = tokens ? opt->vocab_from : opt->classes_from;
    if (!path)
        return 0;
    RNND_TRY(rnnd_dataset_open(path, &data));
    int status = rnnd_model_take_names(model, data, RNND_AXIS_CLASS);
    if (status == 0 && !rnnd_model_class(model, 0))
        status = rnnd__fail(
            RNND_EDATA, "%s: has no names of %s; the model has %lld outputs", path,
            tokens ? "tokens" : "classes", (long long)rnnd_model_spec(model)->outputs);
    for (int64_t i = 0; status == 0 && rnnd_model_class(model, i); i++)
        if (!rnnd__text_is_utf8(rnnd_model_class(model, i)))
            status = rnnd__fail(RNND_EDATA, "%s: the name of %s %lld is not UTF-8",
                                path, tokens ? "token" : "class", (long long)i);
    rnnd_dataset_close(data);
    return status;
}

/* ---- the result */

/* Shows the model on one line, since some of it may be assumed. */
static void print_model(const char *path, const struct rnnd_model *model)
{
    const struct rnnd_model_spec *s = rnnd_model_spec(model);
    char cell[32], pool[32];
    rnnd__options_word("cell", (int)s->cell, cell);
    rnnd__options_word("pool", (int)s->pool, pool);
    rnnd__plain_put(stdout, path);
    printf(": task %s, %s, ", rnnd_task_name(s->task), cell);
    if (s->vocab)
        printf("vocabulary %lld, embedding %lld", (long long)s->vocab,
               (long long)s->embed);
    else
        printf("%lld features%s", (long long)s->inputs,
               s->normalize ? " (normalised)" : "");
    printf(", %lld %s of %lld%s", (long long)s->layers,
           s->layers == 1 ? "layer" : "layers", (long long)s->hidden,
           s->bidirectional ? " in both directions" : "");
    if (s->no_bias)
        printf(", no biases");
    if (!rnnd_task_is_stepwise(s->task))
        printf(", pool %s", pool);
    printf(", %lld outputs%s, %lld parameters\n", (long long)s->outputs,
           s->tie_weights ? " (tied)" : "", (long long)rnnd_model_parameters(model));
}

static void say_cell(const struct rnnd_options *opt, const struct rnnd_model *model)
{
    if (rnnd_model_spec(model)->cell == RNND_RNN_TANH &&
        !rnnd__options_given(opt, "cell"))
        rnnd__log_info("assuming cell rnn_tanh, the default of nn.RNN; use --cell "
                       "rnn_relu if the model uses ReLU");
}

/* ---- the command */

static int import_arrays(struct rnnd__statedict *sd, const struct rnnd_options *given,
                         struct rnnd_backend *be, const char *output)
{
    struct rnnd_model_spec spec;
    struct rnnd_model *model = NULL;
    struct rnnd_options opt;
    int status = 0;
    RNND_TRY(rnnd_options_init(&opt));
    RNND_TRY_GOTO(rnnd__statedict_options(sd, given, &opt));
    RNND_TRY_GOTO(rnnd__statedict_spec(sd, given, &spec));
    RNND_TRY_GOTO(as_data(rnnd__statedict_model(sd, given, be, &model)));
    RNND_TRY_GOTO(name_outputs(model, given));
    say_cell(&opt, model);
    RNND_TRY_GOTO(rnnd_checkpoint_save_model(output, model, &opt));
    print_model(output, model);
done:
    rnnd_model_free(model);
    rnnd_options_clear(&opt);
    return status;
}

static int import(const struct rnnd_options *opt, const char *input, const char *output)
{
    const char *read[] = {input, opt->classes_from, opt->vocab_from};
    struct rnnd_backend *be;
    struct rnnd__statedict sd;
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        RNND_TRY(bin_refuse_same(output, read[i]));
    RNND_TRY(as_data(rnnd__statedict_open_part(input, opt->prefix, &sd)));
    int status = bin_open_cpu(&be);
    if (status == 0) {
        status = import_arrays(&sd, opt, be, output);
        rnnd_backend_close(be);
    }
    rnnd__statedict_close(&sd);
    return status;
}

int cmd_import(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    (void)argc;
    RNND_TRY(check_name(argv[1]));
    return rnnd_comm_agree(
        comm, rnnd_comm_rank(comm) == 0 ? import(opt, argv[0], argv[1]) : 0);
}
