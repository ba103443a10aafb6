/*
 * setup.c - opens data, back end, model and optimizer as the options ask.
 */
#include "train/setup.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "data/dataset_names.h"
#include "device/device.h"
#include "model/params.h"
#include "options/options.h"
#include "train/weights.h"

int rnnd__setup_check_lanes(const struct rnnd__setup *s,
                            const struct rnnd_dataset *data)
{
    struct rnnd__shard *shard = NULL;
    RNND_TRY(rnnd__shard_new(s->opt, data, 0, 1, &shard));
    int status = rnnd__shard_lanes(shard, s->opt->batch);
    rnnd__shard_free(shard);
    return status < 0 ? rnnd__fail(status, "%s: %s", rnnd_dataset_info(data)->path,
                                   rnnd_status_detail())
                      : 0;
}

struct rnnd_options rnnd__setup_settled(const struct rnnd_options *opt,
                                        const struct rnnd_dataset_info *data)
{
    struct rnnd_options settled = *opt;
    settled.task = (int)data->task;
    settled.of_features = data->inputs > 0;
    return settled;
}

/* Numbers the training data as the parameters that it starts from do. */
static int match_init(struct rnnd_dataset *data, const char *init)
{
    struct rnnd__names names = {0};
    enum rnnd_task task;
    RNND_TRY(rnnd__checkpoint_read_names(init, &names, &task));
    int status =
        rnnd__dataset_match(data, &names, task == rnnd_dataset_info(data)->task, true);
    rnnd__names_clear(&names);
    return status;
}

/* The weights of classes, which are numbered by now. A list has them in the order of
   the data, or in that of the run that is resumed. */
static int read_weights(struct rnnd__setup *s, bool resumes)
{
    if (!s->opt->class_weight)
        return 0;
    if (!resumes && rnnd__weights_is_list(s->opt->class_weight) &&
        rnnd__dataset_renumbers_classes(s->data))
        return rnnd__fail(
            RNND_EUSAGE,
            "--class-weight %.80s: the model of --init has other classes "
            "than the data, or another order of them; give the weights by "
            "name, in a file",
            s->opt->class_weight);
    RNND_TRY(rnnd__weights_read(s->opt->class_weight, s->data, &s->class_weight));
    rnnd__weights_log(s->class_weight, s->data);
    return rnnd__weights_list(s->class_weight, s->spec.outputs, &s->class_weights);
}

int rnnd__setup_data(struct rnnd__setup *s, const struct rnnd_options *opt,
                     struct rnnd_comm *comm, const struct rnnd__names *names)
{
    s->opt = opt;
    s->comm = comm;
    RNND_TRY(rnnd_dataset_open(opt->data, &s->data));
    if (names)
        RNND_TRY(rnnd__dataset_match(s->data, names, true, true));
    else if (opt->init)
        RNND_TRY(match_init(s->data, opt->init));
    const struct rnnd_dataset_info *info = rnnd_dataset_info(s->data);
    RNND_TRY(rnnd_model_spec_from(opt, info, &s->spec));
    struct rnnd_options settled = rnnd__setup_settled(opt, info);
    RNND_TRY(rnnd__options_check(&settled, info->task));
    RNND_TRY(rnnd_dataset_check_strings(s->data, opt->on_unreachable));
    RNND_TRY(rnnd_model_accepts(&s->spec, info, true));
    RNND_TRY(read_weights(s, names != NULL));
    s->streams = rnnd_streams(opt, info->task);
    return s->streams ? rnnd__setup_check_lanes(s, s->data) : 0;
}

/* Hosts may have other files under the name that --class-weight gives. */
static int same_weights(const struct rnnd__setup *s)
{
    char *line = NULL;
    int status = 0;
    if (!s->class_weights)
        return 0;
    if (asprintf(&line, "--class-weight %s\n", s->class_weights) < 0) {
        line = NULL;
        status = rnnd__fail_memory(strlen(s->class_weights), "class weights");
    }
    status = rnnd_comm_agree(s->comm, status);
    if (status == 0)
        status = rnnd__comm_same(s->comm, RNND_EUSAGE, line);
    free(line);
    return status;
}

/* Of options that were read from a run, too: the caller of the library may have started
   the ranks. */
static int same_options(const struct rnnd__setup *s)
{
    char *text = NULL;
    int status = rnnd__options_launch(s->opt, RNND_CMD_TRAIN, &text);
    status = rnnd_comm_agree(s->comm, status);
    if (status == 0)
        status = rnnd__comm_same(s->comm, RNND_EUSAGE, text);
    free(text);
    return status;
}

int rnnd__setup_same(const struct rnnd__setup *s, const struct rnnd_dataset *valid)
{
    RNND_TRY(same_options(s));
    RNND_TRY(same_weights(s));
    RNND_TRY(rnnd__comm_same_data(s->comm, "--data", rnnd_dataset_info(s->data)));
    return valid ? rnnd__comm_same_data(s->comm, "--valid", rnnd_dataset_info(valid))
                 : 0;
}

int rnnd__setup_values(struct rnnd__setup *s)
{
    RNND_TRY(rnnd_model_init(s->model, (uint64_t)s->opt->seed));
    if (s->opt->init)
        RNND_TRY(rnnd__checkpoint_init(s->opt->init, s->model));
    if (!s->opt->normalize)
        return 0;
    return rnnd_dataset_moments(s->data, rnnd_model_mean(s->model),
                                rnnd_model_std(s->model));
}

/* Logs which kernels run the recurrent layers; only GPUs have a choice. */
static void log_path(const struct rnnd__setup *s)
{
    const struct rnnd_options *o = s->opt;
    int ranks = rnnd_comm_size(s->comm);
    char text[160];
    if (rnnd__device_is_cpu(s->be))
        return;
    rnnd_backend_explain(s->be, o->cell, o->hidden, (o->batch + ranks - 1) / ranks,
                         text);
    rnnd__log_info("recurrent layers: %s", text);
}

static int touch_rows(struct rnnd__setup *s)
{
    if (!s->opt->sparse_embedding || s->spec.inputs > 0)
        return 0;
    if (!rnnd__device_is_cpu(s->be))
        return rnnd__fail(RNND_EUSAGE,
                          "--sparse-embedding runs on CPUs, and --device auto chose a "
                          "GPU; give --device cpu");
    rnnd__model_touch_rows(s->model);
    return 0;
}

int rnnd__setup_model(struct rnnd__setup *s)
{
    const struct rnnd_options *o = s->opt;
    struct rnnd_plan_options plan = rnnd_plan_options_of(o);
    int rank = rnnd_comm_rank(s->comm), ranks = rnnd_comm_size(s->comm);
    RNND_TRY(rnnd_backend_open(o, s->comm, &s->be));
    log_path(s);
    RNND_TRY(rnnd_model_new(s->be, &s->spec, &s->model));
    for (int a = 0; a < RNND_AXES; a++)
        RNND_TRY(rnnd_model_take_names(s->model, s->data, (enum rnnd_axis)a));
    RNND_TRY(rnnd_model_weigh(s->model, s->class_weight, o->label_smoothing));
    RNND_TRY(touch_rows(s));
    RNND_TRY(rnnd_optim_new(s->model, o, &s->optim));
    RNND_TRY(rnnd_reducer_new(s->model, s->comm, o->bucket_mb, &s->reducer));
    RNND_TRY(rnnd_batch_new(s->be, s->data, true, rnnd_model_mean(s->model),
                            rnnd_model_std(s->model), &s->batch));
    RNND_TRY(rnnd__shard_new(o, s->data, rank, ranks, &s->shard));
    RNND_TRY(rnnd__prefetch_new(o, s->data, rank, ranks, &s->prefetch));
    return rnnd_plan_new(rnnd_dataset_offsets(s->data),
                         rnnd_dataset_info(s->data)->sequences, &plan, &s->plan);
}

void rnnd__setup_close(struct rnnd__setup *s)
{
    rnnd__prefetch_free(s->prefetch);
    rnnd__shard_free(s->shard);
    rnnd_plan_free(s->plan);
    rnnd_batch_free(s->batch);
    rnnd_reducer_free(s->reducer);
    rnnd_optim_free(s->optim);
    rnnd_model_free(s->model);
    rnnd_backend_close(s->be);
    free(s->class_weight);
    free(s->class_weights);
    rnnd_dataset_close(s->data);
}
