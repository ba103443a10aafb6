/*
 * rnn_dist.h - the public interface of librnn_dist, in the order in which data flows:
 *
 *   options, communicator, back end, data set, plan, batch, model, optimizer, checkpoint,
 *   trainer, evaluation.
 *
 * Functions return 0, or a negative enum rnnd_status; the result comes through the last
 * parameter and is untouched on failure. rnnd_status_detail() then says what was wrong,
 * where, and what would be right. Nothing here exits, and nothing prints to standard
 * output. Close and free functions accept NULL. What a function returns by pointer is
 * borrowed from its owner unless the comment says otherwise. Sizes use the glossary of
 * kernels/backend.h: N sequences, T steps, R packed rows, I inputs, H hidden, O
 * outputs, V vocabulary, L layers, D directions.
 */
#ifndef RNN_DIST_H
#define RNN_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rnn_dist_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RNND_CHECKED __attribute__((warn_unused_result))

/* ---- status */

/* The exit status of the program is the negative of these. */
enum rnnd_status {
    RNND_OK = 0,
    /* verify or inspect found a fault */
    RNND_FAULT = -1,
    /* usage or configuration */
    RNND_EUSAGE = -2,
    /* a file that opened but is not what it should be */
    RNND_EDATA = -3,
    /* a file that cannot be opened or written; damaged checkpoint */
    RNND_EFILE = -4,
    /* device or memory */
    RNND_EDEVICE = -5,
    /* communication, or a peer failed */
    RNND_ECOMM = -6,
    /* non-finite loss or gradient */
    RNND_ENONFINITE = -7,
    /* stopped by a signal after saving a checkpoint */
    RNND_STOPPED = -75
};

/* What went wrong last on this thread; never NULL. */
const char *rnnd_status_detail(void);

/* "1.0.0" and the like. */
const char *rnnd_version(void);

/* ---- options */

/* The options of every command, one field each; what they mean is in rnn_dist-train(1).
   Strings are owned by the struct. */
struct rnnd_options {
    /* data */
    char *data, *valid;
    int64_t valid_every;
    enum rnnd_shuffle shuffle;
    int64_t bucket;
    bool normalize;
    /* batch */
    int64_t batch, batch_tokens, microbatch_tokens;
    /* model */

    /* enum rnnd_task, -1 = from the data */
    int task;
    enum rnnd_cell cell;
    int64_t embed, hidden, layers;
    bool bidirectional;
    enum rnnd_pool pool;
    double dropout, dropout_embed, dropout_head;
    enum rnnd_dropout_kind dropout_kind;
    bool tie_weights;
    char *init;
    /* truncated BPTT */
    int64_t tbptt, windows;
    enum rnnd_stream stream;
    /* optimiser */
    enum rnnd_optimizer optimizer;
    double lr, momentum, beta1, beta2, eps, weight_decay, clip_norm;
    enum rnnd_schedule lr_schedule;
    int64_t lr_step, lr_patience, warmup;
    double lr_decay;
    enum rnnd_on_nonfinite on_nonfinite;
    /* length */
    int64_t epochs, max_updates, patience;
    /* where */
    enum rnnd_device device;
    enum rnnd_comm_kind comm;
    enum rnnd_precision precision;
    /* 0 = the affinity mask over the ranks that share it */
    int64_t threads;
    enum rnnd_rnn_path rnn_path;
    double bucket_mb, comm_timeout;
    /* run */
    char *config, *run_dir;
    bool resume;
    int64_t save_every, keep;
    double save_minutes;
    int64_t seed;
    /* output */
    int64_t log_every;
    enum rnnd_progress progress;
    bool tensorboard;
    char *trace;
    bool json;
    /* other commands */

    /* predict, report */
    char *out, *csv;
    bool raw, states;
    /* predict; 0 = ragged */
    int64_t pad;
    /* sample */
    int64_t length;
    double temperature;
    char *prompt;
    /* info */
    bool plan;
    /* pack */
    double split;
    char *sequence, *features, *label, *step_label, *target, *step_target,
        *classes_from;
    char *part, *vocab_from;
    int64_t vocab_size, block;
    /* help */
    bool list_options, completion;
    /* every command */
    bool help, version;

    /* no option: the data are known to hold features, not tokens */
    bool of_features;
    /* Where each option's value came from, by its index in lib/options/options.def: 0 the
       default, 1 a configuration file, 2 the command line. */
    unsigned char given[128];
};

/* All defaults. Call rnnd_options_clear() in the end. */
RNND_CHECKED int rnnd_options_init(struct rnnd_options *opt);
void rnnd_options_clear(struct rnnd_options *opt);

/* ---- communicator */

struct rnnd_comm;

/* The world this process was launched into: MPI where a launcher's variables are
   present (MPI is initialised then), else a world of one. timeout: seconds that any
   wait may take. */
RNND_CHECKED int rnnd_comm_open(double timeout, struct rnnd_comm **out);
void rnnd_comm_close(struct rnnd_comm *comm);
int rnnd_comm_rank(const struct rnnd_comm *comm);
int rnnd_comm_size(const struct rnnd_comm *comm);

/* Sum, in place, over all ranks; every rank gets the same bits. */
RNND_CHECKED int rnnd_comm_sum(struct rnnd_comm *comm, double *value, int count);
/* Largest value over all ranks, in place. */
RNND_CHECKED int rnnd_comm_max(struct rnnd_comm *comm, int64_t *value, int count);
/* Rank 0's bytes to every rank. */
RNND_CHECKED int rnnd_comm_broadcast(struct rnnd_comm *comm, void *data, size_t bytes);
/* Every rank's bytes to rank 0, in rank order. On rank 0 *all is malloc'ed and taken by
   the caller and size[rank] tells the bytes of each; elsewhere *all is NULL. */
RNND_CHECKED int rnnd_comm_gather(struct rnnd_comm *comm, const void *data,
                                  size_t bytes, void **all, size_t *size);
/* All ranks learn of a failure on any: returns the status of the lowest failing rank on
   every rank, 0 where all passed 0. rnnd_status_detail() is the cause on that rank,
   "rank R failed" on the others. */
RNND_CHECKED int rnnd_comm_agree(struct rnnd_comm *comm, int status);
/* What a time-out message names: the update under way. */
void rnnd_comm_at_update(struct rnnd_comm *comm, int64_t update);
/* Ranks whose threads run on the same cores as this one's, itself included. */
RNND_CHECKED int rnnd_comm_sharers(struct rnnd_comm *comm, int *sharers);

/* ---- back end */

struct rnnd_backend;

/* Whether this machine has what opt asks for, without opening it: EDEVICE without the
   device, EUSAGE for a precision or communicator that the device does not have. */
RNND_CHECKED int rnnd_backend_check(const struct rnnd_options *opt);
/* The device that opt asks for (device, threads, precision, rnn_path, comm); of
   several, one for each rank of a host. All ranks call it, and leave it with one
   status. */
RNND_CHECKED int rnnd_backend_open(const struct rnnd_options *opt,
                                   struct rnnd_comm *comm, struct rnnd_backend **out);
void rnnd_backend_close(struct rnnd_backend *be);
/* "cpu, 2 threads" and the like. */
const char *rnnd_backend_describe(const struct rnnd_backend *be);
/* How many GPUs this process sees; 0 with the reason. */
int rnnd_backend_devices(char why[256]);
/* By which kernels a recurrent layer runs, and why. */
void rnnd_backend_explain(struct rnnd_backend *be, enum rnnd_cell cell, int64_t hidden,
                          int64_t sequences, char text[160]);

/* ---- data set */

struct rnnd_dataset;

struct rnnd_dataset_info {
    const char *path;
    enum rnnd_task task;
    int64_t sequences, steps, longest;
    /* I, 0 for tokens */
    int64_t inputs;
    /* V, 0 for features */
    int64_t vocab;
    /* O: classes, values, or V for lm; 0 without a task */
    int64_t outputs;
    /* how many targets it holds */
    int64_t targets;
    /* of contents and shape */
    uint64_t fingerprint;
};

/* Opens a data file and checks all of it: objects, offsets, ranges, finiteness. EFILE
   where it cannot be opened, EDATA with file, object and index where it is not as it
   should be. */
RNND_CHECKED int rnnd_dataset_open(const char *path, struct rnnd_dataset **out);
void rnnd_dataset_close(struct rnnd_dataset *data);
const struct rnnd_dataset_info *rnnd_dataset_info(const struct rnnd_dataset *data);
/* [N+1]; sequence i is steps offsets[i] .. offsets[i+1]-1 */
const int64_t *rnnd_dataset_offsets(const struct rnnd_dataset *data);
/* Steps first .. first+count-1: float [count,I] or int32 [count]. */
RNND_CHECKED int rnnd_dataset_inputs(struct rnnd_dataset *data, int64_t first,
                                     int64_t count, void *out);
/* Rows first .. first+count-1 of the targets (sequences or steps): int32 [count] for
   classes, float [count,O] else. Not for lm or unlabelled data. */
RNND_CHECKED int rnnd_dataset_targets(struct rnnd_dataset *data, int64_t first,
                                      int64_t count, void *out);
/* Whether all values are in memory: large sets are read by slices. */
bool rnnd_dataset_in_memory(const struct rnnd_dataset *data);
/* These steps will be read soon: begins to fetch what is not in memory, and returns. */
void rnnd_dataset_prefetch(struct rnnd_dataset *data, int64_t first, int64_t count);
/* Texts, or NULL where the file has none. */
const char *rnnd_dataset_name(const struct rnnd_dataset *data, int64_t sequence);
const char *rnnd_dataset_class(const struct rnnd_dataset *data, int64_t label);
const char *rnnd_dataset_token(const struct rnnd_dataset *data, int64_t token);
/* Mean and standard deviation (population; 0 becomes 1) of each feature over all
   steps. */
RNND_CHECKED int rnnd_dataset_moments(struct rnnd_dataset *data, float *mean,
                                      float *std);
/* Whether targets belong to steps rather than sequences. */
bool rnnd_task_is_stepwise(enum rnnd_task task);
const char *rnnd_task_name(enum rnnd_task task);

/* ---- plan */

/* Which sequences make which update: a pure function of seed, epoch, lengths and batch
   options, never of ranks or clocks. */
struct rnnd_plan;

struct rnnd_plan_options {
    uint64_t seed;
    bool shuffle;
    /* pools of that many batches are sorted by length */
    int64_t bucket;
    /* sequences per update, or 0 */
    int64_t batch;
    /* steps per update, where batch is 0 */
    int64_t batch_tokens;
};

/* What the training options ask for. */
struct rnnd_plan_options rnnd_plan_options_of(const struct rnnd_options *opt);

/* offsets [N+1] is borrowed. */
RNND_CHECKED int rnnd_plan_new(const int64_t *offsets, int64_t sequences,
                               const struct rnnd_plan_options *opt,
                               struct rnnd_plan **out);
void rnnd_plan_free(struct rnnd_plan *plan);
/* Lays out epoch 0, 1, …; entries of earlier epochs are gone. */
void rnnd_plan_epoch(struct rnnd_plan *plan, int64_t epoch);
int64_t rnnd_plan_entries(const struct rnnd_plan *plan);
/* The sequences of one entry; borrowed until the next epoch. */
void rnnd_plan_entry(const struct rnnd_plan *plan, int64_t entry, const int32_t **ids,
                     int64_t *count);

/* The share of a rank in a list of sequences: longest first onto the least loaded rank,
   by integer cost. Writes the rank's positions in the list to mine [count], by falling
   cost, and how many to *n; *straggler is the longest over the mean load. The same on
   every rank. */
RNND_CHECKED int rnnd_plan_shard(const int64_t *length, int64_t count, int ranks,
                                 int rank, int32_t *mine, int64_t *n,
                                 double *straggler);

/* ---- batch */

/* A piece of a sequence: steps begin .. begin+length-1 of the data set. */
struct rnnd_piece {
    /* what dropout masks are keyed by: sequence or lane */
    int64_t id;
    int64_t begin, length;
    /* whose label it carries; -1 for lanes */
    int64_t sequence;
};

/* A packed batch: time-major, sequences by falling length, nothing padded. */
struct rnnd_batch;

/* What the batches of an epoch need at most. */
struct rnnd_limits {
    int64_t sequences, steps, rows;
};

/* mean, std [I] normalise features on loading; NULL = as they are; borrowed. targets:
   whether to load targets as well. */
RNND_CHECKED int rnnd_batch_new(struct rnnd_backend *be, struct rnnd_dataset *data,
                                bool targets, const float *mean, const float *std,
                                struct rnnd_batch **out);
void rnnd_batch_free(struct rnnd_batch *batch);
/* Room for batches up to these limits; loading allocates nothing then. */
RNND_CHECKED int rnnd_batch_reserve(struct rnnd_batch *batch,
                                    const struct rnnd_limits *limits);
/* Reads and packs pieces. They must come by falling length; first is the position of
   their first step within sequence or stream (the same for all). lm: a piece of n steps
   reads n+1 tokens, the last of them only as a target. */
RNND_CHECKED int rnnd_batch_load(struct rnnd_batch *batch,
                                 const struct rnnd_piece *piece, int64_t count,
                                 int64_t first);
/* Whole sequences, in any order; they are sorted. */
RNND_CHECKED int rnnd_batch_load_sequences(struct rnnd_batch *batch, const int32_t *ids,
                                           int64_t count);

/* ---- model */

struct rnnd_model;

struct rnnd_model_spec {
    enum rnnd_task task;
    enum rnnd_cell cell;
    /* I, or 0 */
    int64_t inputs;
    /* V of token input, or 0 */
    int64_t vocab;
    /* E, token input only */
    int64_t embed;
    int64_t hidden, layers;
    bool bidirectional;
    enum rnnd_pool pool;
    /* O */
    int64_t outputs;
    bool tie_weights;
    /* holds input.mean and input.std */
    bool normalize;
    double dropout, dropout_embed, dropout_head;
    enum rnnd_dropout_kind dropout_kind;
};

/* The model that the options and a data set ask for. */
RNND_CHECKED int rnnd_model_spec_from(const struct rnnd_options *opt,
                                      const struct rnnd_dataset_info *data,
                                      struct rnnd_model_spec *out);
/* Whether a data set fits a model (token or feature input, widths, classes); EDATA if
   not. */
RNND_CHECKED int rnnd_model_accepts(const struct rnnd_model_spec *spec,
                                    const struct rnnd_dataset_info *data, bool targets);

RNND_CHECKED int rnnd_model_new(struct rnnd_backend *be,
                                const struct rnnd_model_spec *spec,
                                struct rnnd_model **out);
void rnnd_model_free(struct rnnd_model *model);
const struct rnnd_model_spec *rnnd_model_spec(const struct rnnd_model *model);
struct rnnd_backend *rnnd_model_backend(const struct rnnd_model *model);
/* PyTorch's initial values, the same bits for the same seed everywhere. */
RNND_CHECKED int rnnd_model_init(struct rnnd_model *model, uint64_t seed);
/* Texts of classes (lm: of tokens) that travel with the model, NULL where there are
   none; set copies count texts, NULL drops them. */
const char *rnnd_model_class(const struct rnnd_model *model, int64_t k);
RNND_CHECKED int rnnd_model_set_classes(struct rnnd_model *model,
                                        const char *const *text, int64_t count);
/* Number of parameters; a tied matrix counts once. */
int64_t rnnd_model_parameters(const struct rnnd_model *model);
/* input.mean and input.std [I], to be written before training with normalize; else
   NULL. */
float *rnnd_model_mean(struct rnnd_model *model);
float *rnnd_model_std(struct rnnd_model *model);
/* Values of one parameter under its PyTorch name: rows*cols floats to or from the host.
   EUSAGE where there is no such name. */
RNND_CHECKED int rnnd_model_get(struct rnnd_model *model, const char *name, float *out);
RNND_CHECKED int rnnd_model_set(struct rnnd_model *model, const char *name,
                                const float *in);
/* The same of the gradient sum. */
RNND_CHECKED int rnnd_model_get_gradient(struct rnnd_model *model, const char *name,
                                         float *out);
/* Name and shape of parameter i (cols 0 = a vector); false past the end. Tied matrices
   and input.mean, input.std are listed under every name they have. */
bool rnnd_model_parameter(const struct rnnd_model *model, int i, const char **name,
                          int64_t *rows, int64_t *cols);

/* Carried hidden state of up to `sequences` sequences, on the device. */
struct rnnd_state;
RNND_CHECKED int rnnd_state_new(struct rnnd_model *model, int64_t sequences,
                                struct rnnd_state **out);
void rnnd_state_free(struct rnnd_state *state);
void rnnd_state_zero(struct rnnd_state *state);
/* What the passes since wrote becomes what the next ones read. */
void rnnd_state_advance(struct rnnd_state *state);
/* mark keeps a copy of the current state, back returns to it. */
void rnnd_state_mark(struct rnnd_state *state);
void rnnd_state_back(struct rnnd_state *state);
/* The current state of all rows: h and, for LSTM, c (else untouched), host [L*D,
   sequences, H], order of torch's h_n. */
RNND_CHECKED int rnnd_state_get(struct rnnd_state *state, float *h, float *c);
RNND_CHECKED int rnnd_state_set(struct rnnd_state *state, const float *h,
                                const float *c);

/* The loss of one or several passes, as sums. */
struct rnnd_loss {
    /* sum over targets */
    double loss;
    /* how many */
    double targets;
    /* of classified ones */
    double correct;
};

/* Where passes add their loss: on the device, so that no pass waits for it. */
struct rnnd_loss_sums;
RNND_CHECKED int rnnd_loss_sums_new(struct rnnd_backend *be,
                                    struct rnnd_loss_sums **out);
void rnnd_loss_sums_free(struct rnnd_loss_sums *sums);
/* What passes have added since the last call; starts anew. Waits for the device. */
RNND_CHECKED int rnnd_loss_sums_take(struct rnnd_loss_sums *sums,
                                     struct rnnd_loss *out);

/* What a pass over a batch needs beside it. */
struct rnnd_pass {
    /* of dropout */
    uint64_t seed;
    int64_t update;
    /* NULL: from zero */
    struct rnnd_state *state;
    /* row of the state that belongs to sequence 0 */
    int64_t state_row;
    /* of this update: gradients are announced as final */
    bool last;
};

/* Room for batches up to these limits; the passes allocate nothing then. */
RNND_CHECKED int rnnd_model_reserve(struct rnnd_model *model,
                                    const struct rnnd_limits *limits, bool training);
/* Called as soon as the gradients [offset, offset+count) of the flat arena are
   final. */
typedef int (*rnnd_bucket_ready)(void *context, int64_t offset, int64_t count);
void rnnd_model_on_ready(struct rnnd_model *model, rnnd_bucket_ready ready,
                         void *context);
/* Announces every bucket, for a rank that has no batch in this update. */
RNND_CHECKED int rnnd_model_announce(struct rnnd_model *model);
/* Zeroes the gradient sums: before the first pass of an update. */
void rnnd_model_zero_gradient(struct rnnd_model *model);
/* Forward, loss, backward: adds gradient sums (not means) to the model's, and the loss
   to *loss. */
RNND_CHECKED int rnnd_model_gradient(struct rnnd_model *model, struct rnnd_batch *batch,
                                     const struct rnnd_pass *pass,
                                     struct rnnd_loss_sums *loss);
/* Forward and loss without dropout: adds the loss to *loss. */
RNND_CHECKED int rnnd_model_evaluate(struct rnnd_model *model, struct rnnd_batch *batch,
                                     const struct rnnd_pass *pass,
                                     struct rnnd_loss_sums *loss);
/* Forward without dropout: scores (before softmax or sigmoid) of the batch, host [R,O]
   or [N,O] in packed order; state as in rnnd_pass, or NULL. */
RNND_CHECKED int rnnd_model_scores(struct rnnd_model *model, struct rnnd_batch *batch,
                                   const struct rnnd_pass *pass, float *out);
/* ---- gradient sums over ranks */

/* Sums the gradients of a model over all ranks, bucket by bucket as they become
   final. */
struct rnnd_reducer;
RNND_CHECKED int rnnd_reducer_new(struct rnnd_model *model, struct rnnd_comm *comm,
                                  double bucket_mb, struct rnnd_reducer **out);
void rnnd_reducer_free(struct rnnd_reducer *reducer);
/* Waits for the sums under way; gradients and *loss (in: this rank's, out: the sum) are
   the same on all ranks then. status: this rank's, so that all learn of a failure (as
   rnnd_comm_agree). flags, unless NULL: bits 0..7 that any rank has set, all have
   then. */
RNND_CHECKED int rnnd_reducer_finish(struct rnnd_reducer *reducer, int status,
                                     unsigned *flags, struct rnnd_loss *loss);
/* Whether sums run below the backward pass. */
bool rnnd_reducer_overlaps(const struct rnnd_reducer *reducer);
/* Seconds spent waiting in finish since the last call, for sums and for ranks. */
double rnnd_reducer_take_wait(struct rnnd_reducer *reducer);

/* ---- optimizer */

struct rnnd_optim;

RNND_CHECKED int rnnd_optim_new(struct rnnd_model *model,
                                const struct rnnd_options *opt,
                                struct rnnd_optim **out);
void rnnd_optim_free(struct rnnd_optim *optim);
/* Divides the gradient sums by targets, measures the norm, clips and updates the
   parameters. *grad_norm is the norm before
   clipping. ENONFINITE: the loss or the gradient is not finite; parameters and moments
   are untouched. No targets: nothing changes, grad_norm 0. */
RNND_CHECKED int rnnd_optim_step(struct rnnd_optim *optim, const struct rnnd_loss *loss,
                                 double lr, double *grad_norm);

/* ---- checkpoint */

struct rnnd_checkpoint_info {
    int64_t update, epoch;
    /* options as text; owned by the struct */
    char *config;
};

/* The newest valid checkpoint, or the best, of a run folder, or the file itself. *path
   is malloc'ed and taken by the caller. */
RNND_CHECKED int rnnd_checkpoint_find(const char *model_path, char **path);
/* A model with the parameters of a checkpoint; it runs on be. info may be NULL. */
RNND_CHECKED int rnnd_checkpoint_load_model(const char *path, struct rnnd_backend *be,
                                            struct rnnd_model **out,
                                            struct rnnd_checkpoint_info *info);
/* The parameters of a model as a checkpoint without training state; atomic. */
RNND_CHECKED int rnnd_checkpoint_save_model(const char *path, struct rnnd_model *model,
                                            const struct rnnd_options *opt);

/* ---- trainer and evaluation */

/* The result of an evaluation. */
struct rnnd_metrics {
    /* mean over targets; NaN without one */
    double loss;
    int64_t targets;
    /* "accuracy", "perplexity", "rmse", "nll" or NULL */
    const char *metric;
    double value;
};

/* Whether a task with these options is trained and evaluated as a stream of lanes. */
bool rnnd_streams(const struct rnnd_options *opt, enum rnnd_task task);

/* Loss over a data set, the same on all ranks. Collective. */
RNND_CHECKED int rnnd_evaluate(struct rnnd_model *model, struct rnnd_dataset *data,
                               struct rnnd_comm *comm, const struct rnnd_options *opt,
                               struct rnnd_metrics *out);

/* Predictions of a data set to opt->out and opt->csv. Collective. */
RNND_CHECKED int rnnd_predict(struct rnnd_model *model, struct rnnd_dataset *data,
                              struct rnnd_comm *comm, const struct rnnd_options *opt);

struct rnnd_train_result {
    int64_t updates;
    double seconds;
    bool validated;
    /* the last validation */
    struct rnnd_metrics valid;
};

/* `rnn_dist train`. Collective. RNND_STOPPED after a signal. */
RNND_CHECKED int rnnd_train(const struct rnnd_options *opt, struct rnnd_comm *comm,
                            struct rnnd_train_result *out);

#ifdef __cplusplus
}
#endif
#endif
