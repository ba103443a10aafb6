/*
 * scorer.c - opens a trained model and a data set, for eval and predict.
 *
 * Rank 0 looks up the checkpoint, so that all ranks use the same one while training is
 * running; all ranks read it, and compare what they have read. Options that are not
 * given are those of the training.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/status.h"
#include "bin.h"
#include "comm/comm.h"
#include "model/params.h"

/* The checkpoint that MODEL names, the same on all ranks; malloc'ed. */
static int find_checkpoint(struct rnnd_comm *comm, const char *model, char **path)
{
    char *found = NULL;
    bool lead = rnnd_comm_rank(comm) == 0;
    RNND_TRY(rnnd_comm_agree(comm, lead ? rnnd_checkpoint_find(model, &found) : 0));
    int64_t size = found ? (int64_t)strlen(found) + 1 : 0;
    int status = rnnd_comm_broadcast(comm, &size, sizeof size);
    if (status == 0 && !lead)
        status = RNND_NEW(&found, size, "a path");
    status = rnnd_comm_agree(comm, status);
    if (status == 0)
        status = rnnd_comm_broadcast(comm, found, (size_t)size);
    if (status < 0) {
        free(found);
        return status;
    }
    *path = found;
    return 0;
}

/* Of all that decides a result: parameters, statistics of features, options. */
static int fingerprint(struct rnnd_model *model, const char *config, uint64_t *out)
{
    const struct rnnd__params *p = rnnd__model_params(model);
    size_t bytes = (size_t)rnnd_model_spec(model)->inputs * sizeof(float);
    struct rnnd__hash hash;
    uint64_t values;
    RNND_TRY(rnnd__params_hash(p, p->value, &values));
    rnnd__hash_start(&hash);
    rnnd__hash_add(&hash, &values, sizeof values);
    if (rnnd_model_mean(model)) {
        rnnd__hash_add(&hash, rnnd_model_mean(model), bytes);
        rnnd__hash_add(&hash, rnnd_model_std(model), bytes);
    }
    rnnd__hash_add(&hash, config, strlen(config));
    *out = rnnd__hash_end(&hash);
    return 0;
}

/* The machine at hand may lack the precision of the training, so auto stays auto; a
   rounding that the training had and this has not is said. */
static void note_precision(const struct rnnd_options *trained,
                           const struct rnnd_options *given)
{
    const char *word = trained->precision == RNND_BF16   ? "bf16"
                       : trained->precision == RNND_TF32 ? "tf32"
                                                         : NULL;
    if (word && !rnnd__options_given(given, "precision"))
        rnnd__log_info("trained with --precision %s, computed here with auto; "
                       "--precision %s rounds as the training did",
                       word, word);
}

static int open_model(struct bin_scorer *s, const struct rnnd_options *opt,
                      uint64_t *print)
{
    struct rnnd_checkpoint_info info = {0, 0, NULL};
    RNND_TRY(rnnd_checkpoint_load_model(s->path, s->be, &s->model, &info));
    int status = rnnd__options_read_text(&s->opt, info.config, s->path, RNND_FROM_FILE);
    if (status == 0)
        status = fingerprint(s->model, info.config, print);
    if (status == 0)
        note_precision(&s->opt, opt);
    free(info.config);
    RNND_TRY(status);
    return rnnd__options_overlay(&s->opt, opt);
}

static int open_data(struct bin_scorer *s, bool targets)
{
    RNND_TRY(rnnd_dataset_open(s->opt.data, &s->data));
    if (targets)
        RNND_TRY(rnnd_dataset_check_strings(s->data, s->opt.on_unreachable));
    return rnnd_model_match(s->model, s->data, targets, false);
}

int bin_scorer_open(struct bin_scorer *s, const struct rnnd_options *opt,
                    struct rnnd_comm *comm, const char *model, bool targets)
{
    uint64_t print = 0;
    memset(s, 0, sizeof *s);
    RNND_TRY(rnnd_options_init(&s->opt));
    RNND_TRY(find_checkpoint(comm, model, &s->path));
    RNND_TRY(rnnd_comm_agree(comm, rnnd_backend_open(opt, comm, &s->be)));
    RNND_TRY(rnnd_comm_agree(comm, open_model(s, opt, &print)));
    RNND_TRY(rnnd__comm_same_file(comm, "MODEL", print, s->path));
    RNND_TRY(rnnd_comm_agree(comm, open_data(s, targets)));
    return rnnd__comm_same_data(comm, "--data", rnnd_dataset_info(s->data));
}

void bin_scorer_close(struct bin_scorer *s)
{
    rnnd_dataset_close(s->data);
    rnnd_model_free(s->model);
    rnnd_backend_close(s->be);
    rnnd_options_clear(&s->opt);
    free(s->path);
}
