/*
 * peer.c - one rank of a world in which something goes wrong; tests/mpi/faults.sh and
 * tests/slurm/launch.sh read what it says and how it ends.
 *
 *   peer SCENARIO [TIMEOUT]      the last rank is the one that misbehaves
 *   peer save TIMEOUT DATA DIR   a training whose disk never takes what rank 0 saves
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "base/status.h"
#include "comm/comm.h"
#include "options/options.h"

static struct rnnd_comm *comm;

static void *reachable(struct rnnd_backend *be, struct rnnd__buf buf)
{
    (void)be;
    return buf.dev;
}

static int no_sync(struct rnnd_backend *be)
{
    (void)be;
    return 0;
}

static int sum_of(int64_t count)
{
    static float x[500000];
    static const struct rnnd__backend_ops ops = {.host = reachable, .sync = no_sync};
    static struct rnnd_backend be = {.ops = &ops};
    struct rnnd__buf buf = {(char *)x};
    RNND_TRY(rnnd__comm_sum_begin(comm, &be, buf, count, "gradient sum"));
    return rnnd__comm_sum_wait(comm);
}

static int sum_gradients(void)
{
    return sum_of(500000);
}

/* Operations that the last rank begins with another amount, or instead of another. */
static int out_of_step(const char *scenario, bool bad)
{
    char text[4096] = "";
    double value[40] = {0};
    int64_t number[40] = {0};
    if (strcmp(scenario, "broadcasts") == 0)
        return rnnd_comm_broadcast(comm, text, bad ? 100 : sizeof text);
    if (strcmp(scenario, "allgathers") == 0)
        return rnnd__comm_allgather(comm, text, bad ? 10 : 20, text + 100);
    if (strcmp(scenario, "sums") == 0)
        return rnnd_comm_sum(comm, value, bad ? 3 : 4);
    if (strcmp(scenario, "longsums") == 0)
        return rnnd_comm_sum(comm, value, bad ? 40 : 4);
    if (strcmp(scenario, "maxima") == 0)
        return rnnd_comm_max(comm, number, bad ? 1 : 40);
    if (strcmp(scenario, "sum-max") == 0)
        return bad ? rnnd_comm_max(comm, number, 3) : rnnd_comm_sum(comm, value, 3);
    if (strcmp(scenario, "gradients") == 0)
        return sum_of(bad ? 400000 : 500000);
    return sum_of(bad ? 100 : 500000);
}

/* Updates until a signal has reached a rank, as the trainer's loop. */
static int until_signalled(void)
{
    rnnd__signals_install();
    fprintf(stderr, "ready\n");
    int64_t stop = 0;
    for (int64_t update = 0; stop == 0; update++) {
        rnnd_comm_at_update(comm, update);
        RNND_TRY(sum_gradients());
        stop = rnnd__signals_received();
        RNND_TRY(rnnd_comm_max(comm, &stop, 1));
    }
    return rnnd__fail(RNND_STOPPED, "signal %d", (int)stop);
}

/* Stands before the system's: what is synced while updates are made is a checkpoint. */
int fsync(int fd)
{
    (void)fd;
    while (comm && comm->update > 0)
        pause();
    return 0;
}

static int train(const char *data, const char *run_dir)
{
    struct rnnd_options opt;
    struct rnnd_train_result result;
    int status = 0;
    RNND_TRY(rnnd_options_init(&opt));
    RNND_TRY_GOTO(rnnd__options_set(&opt, "data", data, RNND_FROM_COMMAND_LINE));
    RNND_TRY_GOTO(rnnd__options_set(&opt, "run-dir", run_dir, RNND_FROM_COMMAND_LINE));
    RNND_TRY_GOTO(rnnd__options_set(&opt, "save-every", "2", RNND_FROM_COMMAND_LINE));
    RNND_TRY_GOTO(rnnd__options_set(&opt, "batch", "4", RNND_FROM_COMMAND_LINE));
    RNND_TRY_GOTO(rnnd__options_set(&opt, "hidden", "4", RNND_FROM_COMMAND_LINE));
    RNND_TRY_GOTO(rnnd__options_set(&opt, "threads", "1", RNND_FROM_COMMAND_LINE));
    RNND_TRY_GOTO(rnnd_train(&opt, comm, &result));
done:
    rnnd_options_clear(&opt);
    return status;
}

static int play(const char *scenario)
{
    bool bad = rnnd_comm_rank(comm) == rnnd_comm_size(comm) - 1;
    RNND_TRY(sum_gradients());
    rnnd_comm_at_update(comm, 41);
    if (strcmp(scenario, "fine") == 0 || strcmp(scenario, "start") == 0)
        return 0;
    if (strcmp(scenario, "signal") == 0)
        return until_signalled();
    if (strcmp(scenario, "fail") == 0)
        return rnnd_comm_agree(comm, bad ? rnnd__fail(RNND_EDATA, "bad data") : 0);
    static const char *const uneven[] = {"broadcasts", "allgathers", "sums",
                                         "longsums",   "maxima",     "sum-max",
                                         "gradients",  "small",      NULL};
    for (int i = 0; uneven[i]; i++)
        if (strcmp(scenario, uneven[i]) == 0)
            return out_of_step(scenario, bad);
    if (bad && strcmp(scenario, "die") == 0)
        raise(SIGKILL);
    if (bad && strcmp(scenario, "stop") == 0)
        raise(SIGSTOP);
    if (bad && strcmp(scenario, "hang") == 0)
        for (;;)
            pause();
    if (bad && strcmp(scenario, "exit") == 0)
        _exit(3);
    if (bad && strcmp(scenario, "abort") == 0)
        rnnd__comm_abort(comm, 4);
    if (bad && strcmp(scenario, "leave") == 0) {
        sleep(1); /* it waits for the end then: the other is to time out first */
        return 0;
    }
    int status = sum_gradients();
    /* what is broken stays broken, at once */
    if (status < 0 && rnnd_comm_agree(comm, 0) >= 0)
        return rnnd__fail(RNND_FAULT, "the communicator forgot that it is broken");
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    double timeout = argc > 2 ? atof(argv[2]) : 60;
    bool starts = strcmp(argv[1], "start") == 0;
    /* a busy machine takes its time to start */
    int status = rnnd_comm_open(starts ? timeout : 60, &comm);
    if (status < 0) {
        rnnd__log_error("%s", rnnd_status_detail());
        return -status;
    }
    comm->timeout = timeout;
    printf("rank %d of %d on %s by %s\n", rnnd_comm_rank(comm), rnnd_comm_size(comm),
           rnnd__comm_host(comm, rnnd_comm_rank(comm)),
           rnnd__comm_mpi_launched() ? "mpi" : "self");
    fflush(stdout);
    bool saves = argc > 4 && strcmp(argv[1], "save") == 0;
    status = saves ? train(argv[3], argv[4]) : play(argv[1]);
    if (status < 0)
        rnnd__log_error("%s", rnnd_status_detail());
    rnnd_comm_close(comm);
    return -status;
}
