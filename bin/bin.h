/*
 * bin.h - shared by main and the commands.
 *
 * A command takes the options, the communicator and its operands. It returns 0 or a
 * negative rnnd_status, whose message main prints once over all ranks; it never exits.
 * If only some ranks can fail (files, memory), it calls rnnd_comm_agree() before the
 * next collective. Only rank 0 prints results, to stdout; main checks that they were
 * written.
 */
#ifndef RNND_BIN_H
#define RNND_BIN_H

#include "options/options.h"

struct bin_command {
    enum rnnd__command bit;
    int (*run)(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
    /* for the list of commands */
    const char *summary;
    /* follows "rnn_dist "; may have several lines */
    const char *synopsis;
    /* names of the operands, for messages */
    const char *operands;
    /* number of operands; most -1 = no limit */
    int least, most;
    /* --data is required */
    bool needs_data;
    /* runs on all ranks; else on rank 0 alone, without MPI */
    bool needs_world;
};

/* Ended by an entry without a summary. */
extern const struct bin_command bin_commands[];

/* The name on the command line. */
static inline const char *bin_name(const struct bin_command *command)
{
    return rnnd__command_name(__builtin_ctz(command->bit));
}
/* The command of this name; NULL = none. */
const struct bin_command *bin_find(const char *name);
/* Fails for an unknown command and suggests a similar one. */
RNND_CHECKED int bin_unknown(const char *name);
/* Prints the --help of a command. */
void bin_print_help(const struct bin_command *command, FILE *out);

/* Fails if an output is an existing input file, under any name; NULL = no file. */
RNND_CHECKED int bin_refuse_same(const char *output, const char *input);

/* Before MPI starts: reads the command's HDF5 files of unknown origin in a child
   process. */
void bin_probe(const struct rnnd_options *opt, int operands, char **argv);

/* Opens the CPU with one thread, for this process alone. */
RNND_CHECKED int bin_open_cpu(struct rnnd_backend **out);

/* A trained model and a data set, for eval and predict. */
struct bin_scorer {
    /* the options of the training, overridden by those given now */
    struct rnnd_options opt;
    struct rnnd_backend *be;
    struct rnnd_model *model;
    struct rnnd_dataset *data;
    /* the checkpoint that MODEL names */
    char *path;
};

/* Opens back end, model and data; with `targets` the data must have targets.
   Collective, with the same status on all ranks. Close it in any case. */
RNND_CHECKED int bin_scorer_open(struct bin_scorer *s, const struct rnnd_options *opt,
                                 struct rnnd_comm *comm, const char *model,
                                 bool targets);
void bin_scorer_close(struct bin_scorer *s);

int cmd_bench(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_eval(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_export(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_help(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_import(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_info(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_inspect(struct rnnd_options *opt, struct rnnd_comm *comm, int argc,
                char **argv);
int cmd_pack(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_predict(struct rnnd_options *opt, struct rnnd_comm *comm, int argc,
                char **argv);
int cmd_report(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_sample(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_train(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
int cmd_verify(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);

#endif
