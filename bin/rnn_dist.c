/*
 * rnn_dist.c - main: finds the command, reads its options, runs it, and prints one
 * error message for all ranks.
 *
 * Errors in the command line are usually the same on every rank. Rank 0, which is known
 * from the launcher's environment variables, prints them before MPI is started.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/status.h"
#include "bin.h"
#include "comm/comm.h"

const struct bin_command bin_commands[] = {
    {RNND_CMD_TRAIN, cmd_train, "train a model (the default command)",
     "[train] --data FILE [options]\n[train] --resume [--run-dir DIR] [options]", "", 0,
     0, false, true},
    {RNND_CMD_EVAL, cmd_eval, "compute loss and metric of a model on a data set",
     "eval MODEL --data FILE [options]", "MODEL", 1, 1, true, true},
    {RNND_CMD_PREDICT, cmd_predict,
     "write predictions for every sequence of a data set",
     "predict MODEL --data FILE --out FILE [--csv FILE] [options]\n"
     "predict MODEL --data FILE --csv FILE [options]",
     "MODEL", 1, 1, true, true},
    {RNND_CMD_SAMPLE, cmd_sample, "generate text with a language model",
     "sample MODEL [--prompt TEXT] [options]", "MODEL", 1, 1, false, true},
    {RNND_CMD_PACK, cmd_pack,
     "make a data set from time series, tables, arrays, text or music",
     "pack KIND [options] INPUT... OUTPUT.h5", "KIND, INPUT and OUTPUT", 3, -1, false,
     true},
    {RNND_CMD_INSPECT, cmd_inspect,
     "check a data set, checkpoint or run directory and show what it holds",
     "inspect [--json] FILE", "FILE", 1, 1, false, true},
    {RNND_CMD_EXPORT, cmd_export,
     "write a model for PyTorch (safetensors, HDF5), NumPy (npz) or ONNX",
     "export [options] MODEL OUTPUT", "MODEL and OUTPUT", 2, 2, false, true},
    {RNND_CMD_IMPORT, cmd_import,
     "make a checkpoint from PyTorch parameters (safetensors or HDF5)",
     "import [options] INPUT OUTPUT.h5", "INPUT and OUTPUT", 2, 2, false, true},
    {RNND_CMD_REPORT, cmd_report,
     "write an HTML page with results, curves and options of runs",
     "report RUN... --out FILE", "RUN", 1, -1, false, false},
    {RNND_CMD_VERIFY, cmd_verify,
     "check that splitting and packing the work do not change the result",
     "verify --data FILE [train options]", "", 0, 0, true, true},
    {RNND_CMD_BENCH, cmd_bench, "measure the speed of training and where the time goes",
     "bench --data FILE [train options]", "", 0, 0, true, true},
    {RNND_CMD_INFO, cmd_info,
     "show version, build options, devices and the placement of ranks",
     "info [--plan] [train options]", "", 0, 0, false, true},
    {RNND_CMD_HELP, cmd_help, "list the commands, or the options of one command",
     "help [--list-options] [COMMAND]\nhelp --completion", "COMMAND", 0, 1, false,
     false},
    {.summary = NULL}};

const struct bin_command *bin_find(const char *name)
{
    for (const struct bin_command *c = bin_commands; c->summary; c++)
        if (strcmp(bin_name(c), name) == 0)
            return c;
    return NULL;
}

int bin_unknown(const char *name)
{
    const char *names[33];
    int count = 0;
    for (; rnnd__command_name(count); count++)
        names[count] = rnnd__command_name(count);
    names[count] = NULL;
    const char *meant = rnnd__options_nearest(name, names);
    if (meant)
        return rnnd__fail(RNND_EUSAGE, "unknown command %s; did you mean %s?", name,
                          meant);
    return rnnd__fail(RNND_EUSAGE, "unknown command %s; see rnn_dist help", name);
}

/* ---- before MPI */

/* The rank that a launcher gave this process, 0 without a launcher. *mpi: whether it is
   a launcher of MPI. */
static int launched_rank(bool *mpi)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
    *mpi = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    *mpi = false;
    const char *task = getenv("SLURM_PROCID"), *step = getenv("SLURM_STEP_NUM_TASKS");
    return task && step ? atoi(task) : 0;
}

/* A launcher kills the job when the first rank fails. The other ranks wait for that, so
   that rank 0 can print the message for all. Where rank 0 has none, because it was
   started with other arguments, they print their own. */
static void speak_after_rank_0(int rank)
{
    const struct timespec longest = {2, 0};
    char host[65] = "?";
    rnnd__signals_unblock();
    nanosleep(&longest, NULL);
    (void)gethostname(host, sizeof host - 1);
    rnnd__log_error("rank %d on %s: %s", rank, host, rnnd_status_detail());
}

/* Opens closed standard streams, so that no other file gets their descriptors. */
static void guard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            return;
}

/* Checks that have the same result on all ranks and open no file. */
static int check_usage(const struct bin_command *command,
                       const struct rnnd_options *opt, int operands, char **argv)
{
    const char *name = bin_name(command);
    if (operands < command->least)
        return rnnd__fail(RNND_EUSAGE, "%s needs %s; see rnn_dist help %s", name,
                          command->operands, name);
    if (command->most >= 0 && operands > command->most)
        return rnnd__fail(RNND_EUSAGE,
                          "%s: unexpected operand %s; see rnn_dist help %s", name,
                          argv[command->most], name);
    bool from_run = command->bit == RNND_CMD_TRAIN && opt->resume;
    if ((command->needs_data || command->bit == RNND_CMD_TRAIN) && !opt->data &&
        !from_run)
        return rnnd__fail(RNND_EUSAGE, "%s needs --data FILE; see rnn_dist help %s",
                          name, name);
    if (opt->resume) /* the trainer checks once it has read the stored options */
        return 0;
    RNND_TRY(rnnd__options_check_early(opt));
    bool mpi; /* hosts may have different devices, so ranks check these together */
    (void)launched_rank(&mpi);
    return mpi && opt->device != RNND_DEVICE_CPU ? 0 : rnnd_backend_check(opt);
}

/* Finds the command, and leaves its arguments in *argc and *argv. Options without a
   command are those of train. */
static int choose(int *argc, char ***argv, const struct bin_command **command)
{
    const char *word = *argc > 1 ? (*argv)[1] : NULL;
    if (!word)
        return rnnd__fail(RNND_EUSAGE, "no command and no options; see rnn_dist help");
    bool named = word[0] != '-';
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        *command = bin_find("help");
        *argc = 0;
        return 0;
    }
    *command = bin_find(named ? word : "train");
    if (!*command && access(word, F_OK) == 0)
        return rnnd__fail(RNND_EUSAGE,
                          "%s is a file, not a command; to train on it: --data %s",
                          word, word);
    if (!*command)
        return bin_unknown(word);
    *argc -= 1 + named;
    *argv += 1 + named;
    return 0;
}

static void print_version(void)
{
    printf("rnn_dist %s\n"
           "Licence Apache-2.0, <https://www.apache.org/licenses/LICENSE-2.0>.\n"
           "There is no warranty, to the extent that the law permits.\n",
           rnnd_version());
}

/* ---- the end */

/* Fails if results could not be written. */
static int check_stdout(int status)
{
    bool lost = ferror(stdout);
    errno = 0;
    lost = fflush(stdout) != 0 || lost;
    if (!lost || status < 0)
        return status;
    return rnnd__fail(RNND_EFILE, "cannot write to standard output%s%s",
                      errno ? ": " : "", errno ? strerror(errno) : "");
}

/* All ranks exit with one status; the lowest rank that itself failed prints the
   cause. */
static int settle(struct rnnd_comm *comm, int status)
{
    struct rnnd__failure own;
    rnnd__failure_save(&own, status);
    int common = rnnd_comm_agree(comm, status);
    if (common == 0)
        return 0;
    int64_t rank = rnnd_comm_rank(comm);
    int64_t lowest = status < 0 && !own.elsewhere ? -rank : INT64_MIN;
    bool knows = lowest == -rank;
    if (rnnd_comm_max(comm, &lowest, 1) < 0) { /* a rank is lost or hangs */
        rnnd__log_error("%s", status < 0 ? own.text : rnnd_status_detail());
        rnnd__comm_abort(comm, -common);
        return common;
    }
    if ((knows && lowest == -rank) || (lowest == INT64_MIN && rank == 0))
        rnnd__log_error("%s", own.text);
    return common;
}

/* Fails on all ranks unless they were started alike: by launchers of several programs,
   of several versions, or of scripts that differ by host. */
static int compare_starts(const struct bin_command *command,
                          const struct rnnd_options *opt, struct rnnd_comm *comm,
                          int operands, char **argv)
{
    char *options = NULL, *text = NULL;
    size_t size;
    FILE *out = NULL;
    int status = 0;
    RNND_TRY_GOTO(rnnd__options_launch(opt, command->bit, &options));
    out = open_memstream(&text, &size);
    if (!out)
        RNND_TRY_GOTO(rnnd__fail_memory(0, "the command as text"));
    fprintf(out, "version %s\ncommand %s\n%s", rnnd_version(), bin_name(command),
            options);
    for (int i = 0; i < operands; i++)
        fprintf(out, "operand %s\n", argv[i]);
    bool whole = !ferror(out);
    if (fclose(out) != 0 || !whole)
        RNND_TRY_GOTO(rnnd__fail_memory(size, "the command as text"));
done:
    status = rnnd_comm_agree(comm, status);
    if (status == 0)
        status = rnnd__comm_same(comm, RNND_EUSAGE, text);
    free(options);
    free(text);
    return status;
}

/* Whether the command looks for signals itself, and ends in order. */
static bool polls(const struct bin_command *command)
{
    return command->bit & (RNND_CMD_TRAIN | RNND_CMD_VERIFY);
}

static int run_in_world(const struct bin_command *command, struct rnnd_options *opt,
                        int argc, char **argv)
{
    struct rnnd_comm *comm;
    bool mpi;
    int rank = launched_rank(&mpi);
    if (polls(command)) /* opening may wait long for other ranks */
        rnnd__signals_install();
    bin_probe(opt, argc, argv);
    int status = rnnd_comm_open(opt->comm_timeout, &comm);
    if (status < 0) {
        if (mpi || rank == 0)
            rnnd__log_error("%s", rnnd_status_detail());
        return status;
    }
    status = compare_starts(command, opt, comm, argc, argv);
    if (status == 0)
        status = command->run(opt, comm, argc, argv);
    status = settle(comm, check_stdout(status));
    rnnd_comm_close(comm);
    return status;
}

/* Runs a command on rank 0 only. */
static int run_alone(const struct bin_command *command, struct rnnd_options *opt,
                     int argc, char **argv)
{
    bool mpi;
    if (launched_rank(&mpi) != 0)
        return 0;
    if (opt->version)
        print_version();
    else if (opt->help)
        bin_print_help(command, stdout);
    int status = opt->version || opt->help ? 0 : command->run(opt, NULL, argc, argv);
    status = check_stdout(status);
    if (status < 0)
        rnnd__log_error("%s", rnnd_status_detail());
    return status;
}

int main(int argc, char **argv)
{
    const struct bin_command *command = NULL;
    struct rnnd_options opt;
    int operands;
    bool mpi, asks = false;
    rnnd__signals_block();
    guard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file above the limit is one that cannot be written */
    int status = rnnd_options_init(&opt);
    if (status == 0)
        status = choose(&argc, &argv, &command);
    if (status == 0)
        status = rnnd__options_parse(&opt, command->bit, argc, argv, &operands);
    if (status == 0 && !(asks = opt.help || opt.version))
        status = check_usage(command, &opt, operands, argv);
    if (status == 0 && !polls(command)) /* what is not finished disappears */
        status = rnnd__signals_end(rnnd__output_abandon);
    int rank = launched_rank(&mpi);
    if (status < 0 && rank == 0)
        rnnd__log_error("%s", rnnd_status_detail());
    else if (status < 0)
        speak_after_rank_0(rank);
    else
        status = asks || !command->needs_world
                     ? run_alone(command, &opt, operands, argv)
                     : run_in_world(command, &opt, operands, argv);
    rnnd_options_clear(&opt);
    return -status;
}
