/*
 * bin.h - what the commands of the program share with main.
 *
 * A command takes the options, the communicator and its operands. It returns 0 or a
 * negative rnnd_status whose detail main prints, once over all ranks; it never exits.
 * Where only some ranks may fail (files, memory), it asks rnnd_comm_agree() before the
 * next collective. Results go to stdout on rank 0 only; main looks whether they
 * arrived.
 */
#ifndef RNND_BIN_H
#define RNND_BIN_H

#include "options/options.h"

struct bin_command {
    enum rnnd__command bit;
    int (*run)(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv);
    /* for the list of commands */
    const char *summary;
    /* behind "rnn_dist "; may have several lines */
    const char *synopsis;
    /* as messages name them */
    const char *operands;
    /* operands; most -1 = any number */
    int least, most;
    /* --data must be given */
    bool needs_data;
    /* runs on all ranks together; else rank 0 alone, no MPI */
    bool needs_world;
};

/* Ends with an entry without a summary. */
extern const struct bin_command bin_commands[];

/* Its word on the command line. */
static inline const char *bin_name(const struct bin_command *command)
{
    return rnnd__command_name(__builtin_ctz(command->bit));
}
/* By name; NULL = none. */
const struct bin_command *bin_find(const char *name);
/* Fails, naming the command that was meant. */
RNND_CHECKED int bin_unknown(const char *name);
/* --help of a command. */
void bin_print_help(const struct bin_command *command, FILE *out);

/* Fail where two names of files, NULL = none, are one file. */
RNND_CHECKED int bin_refuse_same(const char *output, const char *input);
RNND_CHECKED int bin_refuse_twice(const char *output, const char *other);

/* One thread of the CPU, for this process alone. */
RNND_CHECKED int bin_open_cpu(struct rnnd_backend **out);

/* What eval and predict begin with. */
struct bin_scorer {
    /* those of the model's training, and over them what was given now */
    struct rnnd_options opt;
    struct rnnd_backend *be;
    struct rnnd_model *model;
    struct rnnd_dataset *data;
    /* of the checkpoint that MODEL names */
    char *path;
};

/* Opens back end, model and data; targets: whether the data must have some. Collective,
   the same status on all ranks. Close it in any case. */
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
