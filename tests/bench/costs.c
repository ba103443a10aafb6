/*
 * costs.c - what a training update costs on this machine, as arguments of scaling.c.
 *
 *   costs --data F [options of bench]
 *
 * F holds at least SEQUENCES sequences of at least LONG steps (scaling.sh makes one).
 * Times batches of N sequences of equal length, LONG and SHORT: the difference is that
 * of the steps, what is left belongs to the sequences and to the update. The fastest of
 * several tries counts, in processor time, since others may use the machine: one thread
 * is meant.
 */
#include <stdio.h>
#include <time.h>

#include "backend.h"
#include "base/status.h"
#include "options/options.h"

enum { SEQUENCES = 128, LONG = 64, SHORT = 8, TRIES = 7, POINTS = 8 };

struct costs {
    struct rnnd_options opt;
    struct rnnd_comm *comm;
    struct rnnd_backend *be;
    struct rnnd_dataset *data;
    struct rnnd_model *model;
    struct rnnd_batch *batch;
    struct rnnd_loss_sums *loss;
    struct rnnd_optim *optim;
};

static double used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int open_all(struct costs *c, int argc, char **argv)
{
    struct rnnd_model_spec spec;
    int operands;
    RNND_TRY(rnnd_options_init(&c->opt));
    RNND_TRY(rnnd__options_parse(&c->opt, RNND_CMD_BENCH, argc, argv, &operands));
    RNND_TRY(rnnd_comm_open(60, &c->comm));
    RNND_TRY(rnnd_dataset_open(c->opt.data, &c->data));
    RNND_TRY(rnnd_backend_open(&c->opt, c->comm, &c->be));
    RNND_TRY(rnnd_model_spec_from(&c->opt, rnnd_dataset_info(c->data), &spec));
    RNND_TRY(rnnd_model_new(c->be, &spec, &c->model));
    RNND_TRY(rnnd_model_init(c->model, 1));
    RNND_TRY(rnnd_loss_sums_new(c->be, &c->loss));
    RNND_TRY(rnnd_batch_new(c->be, c->data, true, NULL, NULL, &c->batch));
    return rnnd_optim_new(c->model, &c->opt, &c->optim);
}

static void close_all(struct costs *c)
{
    rnnd_optim_free(c->optim);
    rnnd_loss_sums_free(c->loss);
    rnnd_batch_free(c->batch);
    rnnd_model_free(c->model);
    rnnd_backend_close(c->be);
    rnnd_dataset_close(c->data);
    rnnd_comm_close(c->comm);
    rnnd_options_clear(&c->opt);
}

/* The first `steps` steps of the first n sequences: input, forward, loss, backward. */
static int passes(struct costs *c, int64_t n, int64_t steps)
{
    const int64_t *offsets = rnnd_dataset_offsets(c->data);
    struct rnnd_pass pass = {.last = true};
    struct rnnd_piece piece[SEQUENCES];
    for (int64_t i = 0; i < n; i++)
        piece[i] = (struct rnnd_piece){i, offsets[i], steps, i};
    RNND_TRY(rnnd_batch_load(c->batch, piece, n, 0));
    rnnd_model_zero_gradient(c->model);
    return rnnd_model_gradient(c->model, c->batch, &pass, c->loss);
}

/* The best of some tries: of the passes, and of the optimizer after them. */
static int measure(struct costs *c, int64_t n, int64_t steps, double *seconds,
                   double *update)
{
    for (int i = 0; i < TRIES; i++) {
        struct rnnd_loss loss;
        double norm, start = used();
        RNND_TRY(passes(c, n, steps));
        double middle = used();
        RNND_TRY(rnnd_loss_sums_take(c->loss, &loss));
        RNND_TRY(rnnd_optim_step(c->optim, &loss, c->opt.lr, &norm));
        double end = used();
        *seconds = i == 0 || middle - start < *seconds ? middle - start : *seconds;
        *update = *update == 0 || end - middle < *update ? end - middle : *update;
    }
    return 0;
}

static int run(struct costs *c)
{
    double step[POINTS], rest[POINTS], update = 0;
    for (int i = 0; i < POINTS; i++) {
        double all, few;
        RNND_TRY(measure(c, 1 << i, LONG, &all, &update));
        RNND_TRY(measure(c, 1 << i, SHORT, &few, &update));
        step[i] = (all - few) / (LONG - SHORT);
        rest[i] = few - SHORT * step[i];
        printf("%s%d:%.4g", i ? "," : "steps=", 1 << i, step[i]);
    }
    double sequence = (rest[POINTS - 1] - rest[0]) / ((1 << (POINTS - 1)) - 1);
    sequence = sequence > 0 ? sequence : 0;
    double fixed = rest[0] > sequence ? rest[0] - sequence : 0;
    const struct rnnd_model_spec *s = rnnd_model_spec(c->model);
    printf(" sequence=%.4g update=%.4g bytes=%lld weights=%lld\n", sequence,
           update + fixed, 4 * (long long)rnnd_model_parameters(c->model),
           (long long)(s->hidden * s->hidden * rnnd__cell_gates(s->cell)));
    return 0;
}

int main(int argc, char **argv)
{
    struct costs c = {0};
    int status = open_all(&c, argc - 1, argv + 1);
    if (status == 0)
        status = run(&c);
    if (status < 0)
        fprintf(stderr, "costs: %s\n", rnnd_status_detail());
    close_all(&c);
    return -status;
}
