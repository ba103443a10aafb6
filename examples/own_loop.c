/*
 * own_loop.c - a custom training loop for a GRU, using only the public header.
 *
 *     mpirun -np 2 --bind-to none ./own_loop train.h5 model.h5
 *
 * Any number of ranks makes the same updates: the plan says which sequences make up an
 * update, each rank takes its shard of them, and the sums over all ranks are divided
 * once.
 */
#include <rnn_dist.h>

enum { EPOCHS = 30, BATCH = 27 };

#define TRY(call)             \
    do {                      \
        int status_ = (call); \
        if (status_ < 0)      \
            return status_;   \
    } while (0)

struct loop {
    struct rnnd_options opt;
    struct rnnd_comm *comm;
    struct rnnd_backend *be;
    struct rnnd_dataset *data;
    struct rnnd_plan *plan;
    struct rnnd_model *model;
    struct rnnd_batch *batch;
    struct rnnd_loss_sums *loss;
    struct rnnd_reducer *reducer;
    struct rnnd_optim *optim;
};

static int set_up(struct loop *l, const char *path)
{
    struct rnnd_model_spec spec;

    TRY(rnnd_options_init(&l->opt));
    l->opt.cell = RNND_GRU;
    l->opt.hidden = 100;
    l->opt.batch = BATCH;
    l->opt.clip_norm = 1;
    TRY(rnnd_backend_open(&l->opt, l->comm, &l->be));
    TRY(rnnd_dataset_open(path, &l->data));
    const struct rnnd_dataset_info *info = rnnd_dataset_info(l->data);
    struct rnnd_plan_options how = rnnd_plan_options_of(&l->opt);
    struct rnnd_limits limits = {BATCH, info->longest, BATCH * info->longest,
                                 info->longest_string};
    TRY(rnnd_plan_new(rnnd_dataset_offsets(l->data), info->sequences, &how, &l->plan));
    TRY(rnnd_model_spec_from(&l->opt, info, &spec));
    TRY(rnnd_model_new(l->be, &spec, &l->model));
    TRY(rnnd_model_init(l->model, (uint64_t)l->opt.seed));
    TRY(rnnd_model_reserve(l->model, &limits, true));
    TRY(rnnd_batch_new(l->be, l->data, true, NULL, NULL, &l->batch));
    TRY(rnnd_batch_reserve(l->batch, &limits));
    TRY(rnnd_loss_sums_new(l->be, &l->loss));
    TRY(rnnd_reducer_new(l->model, l->comm, l->opt.bucket_mb, &l->reducer));
    return rnnd_optim_new(l->model, &l->opt, &l->optim);
}

/* Loss and gradient of this rank's shard of a plan entry: sums, not means. */
static int gradient(struct loop *l, int64_t entry, int64_t update,
                    struct rnnd_loss *loss)
{
    const int64_t *offsets = rnnd_dataset_offsets(l->data);
    struct rnnd_pass pass = {
        .seed = (uint64_t)l->opt.seed, .update = update, .last = true};
    const int32_t *ids;
    int32_t mine[BATCH];
    int64_t length[BATCH], count, n;
    double straggler;

    *loss = (struct rnnd_loss){0, 0, 0, 0};
    rnnd_model_zero_gradient(l->model);
    rnnd_plan_entry(l->plan, entry, &ids, &count);
    for (int64_t i = 0; i < count; i++)
        length[i] = offsets[ids[i] + 1] - offsets[ids[i]];
    TRY(rnnd_plan_shard(length, count, rnnd_comm_size(l->comm), rnnd_comm_rank(l->comm),
                        mine, &n, &straggler));
    if (n == 0)
        return rnnd_model_announce(l->model);
    for (int64_t i = 0; i < n; i++)
        mine[i] = ids[mine[i]];
    TRY(rnnd_batch_load_sequences(l->batch, mine, n));
    TRY(rnnd_model_gradient(l->model, l->batch, &pass, l->loss));
    return rnnd_loss_sums_take(l->loss, loss);
}

static int run(struct loop *l)
{
    int64_t update = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        struct rnnd_loss loss, sum = {0, 0, 0, 0};
        double norm;
        rnnd_plan_epoch(l->plan, epoch);
        for (int64_t entry = 0; entry < rnnd_plan_entries(l->plan); entry++) {
            /* Passes on a failure of this rank, so that the others do not wait for
               it. */
            int status = gradient(l, entry, update++, &loss);
            TRY(rnnd_reducer_finish(l->reducer, status, NULL, &loss));
            TRY(rnnd_optim_step(l->optim, &loss, 0.005, &norm));
            sum.loss += loss.loss;
            sum.targets += loss.targets;
        }
        if (rnnd_comm_rank(l->comm) == 0)
            printf("epoch %2d  loss %.6f\n", epoch + 1, sum.loss / sum.targets);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct loop l = {.comm = NULL};
    if (argc != 3) {
        fprintf(stderr, "usage: own_loop DATA MODEL\n");
        return 2;
    }
    int status = rnnd_comm_open(600, &l.comm);
    if (status == 0) {
        status = rnnd_comm_agree(l.comm, set_up(&l, argv[1]));
        if (status == 0)
            status = run(&l);
        if (status == 0 && rnnd_comm_rank(l.comm) == 0)
            status = rnnd_checkpoint_save_model(argv[2], l.model, &l.opt);
        status = rnnd_comm_agree(l.comm, status);
    }
    if (status < 0)
        fprintf(stderr, "own_loop: %s\n", rnnd_status_detail());
    rnnd_optim_free(l.optim);
    rnnd_reducer_free(l.reducer);
    rnnd_loss_sums_free(l.loss);
    rnnd_batch_free(l.batch);
    rnnd_model_free(l.model);
    rnnd_plan_free(l.plan);
    rnnd_dataset_close(l.data);
    rnnd_backend_close(l.be);
    rnnd_options_clear(&l.opt);
    rnnd_comm_close(l.comm);
    return -status;
}
