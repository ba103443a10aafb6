/*
 * rnn_dist.h - the public interface of librnn_dist, in the order in which data flows:
 *
 *   options, communicator, back end, data set, plan, batch (rnn_dist_data.h), model,
 *   gradient sums, optimizer, checkpoint, trainer, evaluation.
 *
 * Errors. Functions return 0 or a negative enum rnnd_status; rnnd_status_detail() then
 * says what was wrong, where, and what would be right. Any function that allocates can
 * fail with RNND_EDEVICE, and any collective function with RNND_ECOMM; comments name
 * only the other errors. Nothing here exits or prints to standard output.
 *
 * Results come through the last parameter, which is left untouched on failure. What a
 * function returns by pointer belongs to the object it came from and is valid as long
 * as that object, unless stated otherwise. An object borrows the objects it was made
 * from: close it before them. Close and free functions accept NULL. Collective
 * functions must be called by all ranks of the communicator, in the same order.
 *
 * Sizes use the glossary of kernels/backend.h: N sequences, T steps of the longest, R
 * packed rows, I inputs, H hidden units, O outputs, V vocabulary, E embedding width, L
 * layers, D directions. Arrays are row-major and in host memory.
 */
#ifndef RNN_DIST_H
#define RNN_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rnn_dist_data.h"
#include "rnn_dist_metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status */

/* The exit status of the program is the negative of these. */
enum rnnd_status {
    RNND_OK = 0,
    /* verify or inspect found a fault */
    RNND_FAULT = -1,
    /* wrong usage or configuration */
    RNND_EUSAGE = -2,
    /* a file was opened but its contents are not valid */
    RNND_EDATA = -3,
    /* a file cannot be opened or written, or a checkpoint is damaged */
    RNND_EFILE = -4,
    /* device or memory */
    RNND_EDEVICE = -5,
    /* communication failed, or another rank did */
    RNND_ECOMM = -6,
    /* loss or gradient is not finite */
    RNND_ENONFINITE = -7,
    /* stopped by a signal, after saving a checkpoint */
    RNND_STOPPED = -75
};

/* The message of the last failure on this thread; never NULL. */
const char *rnnd_status_detail(void);

/* The version, such as "1.0.0". */
const char *rnnd_version(void);

/* ---- options */

/* Sets all defaults. Release with rnnd_options_clear(). */
RNND_CHECKED int rnnd_options_init(struct rnnd_options *opt);
void rnnd_options_clear(struct rnnd_options *opt);

/* ---- communicator */

struct rnnd_comm;

/* Joins the ranks this process was launched with: over MPI, which is initialized if
   needed, where the environment shows an MPI launcher; else a world of one. timeout is
   in seconds; a wait for other ranks that exceeds it fails with ECOMM, and so does
   every later call. Collective. */
RNND_CHECKED int rnnd_comm_open(double timeout, struct rnnd_comm **out);
/* Waits, within the timeout, until all ranks close. Where that fails, or where the
   communicator has failed before, MPI ends the job with exit status 6. Collective. */
void rnnd_comm_close(struct rnnd_comm *comm);
int rnnd_comm_rank(const struct rnnd_comm *comm);
int rnnd_comm_size(const struct rnnd_comm *comm);

/* Replace each of value [count] by its sum or its maximum over all ranks, the same bits
   on every rank. Collective. */
RNND_CHECKED int rnnd_comm_sum(struct rnnd_comm *comm, double *value, int count);
RNND_CHECKED int rnnd_comm_max(struct rnnd_comm *comm, int64_t *value, int count);
/* Copies data [bytes] from rank 0 to every rank. Collective. */
RNND_CHECKED int rnnd_comm_broadcast(struct rnnd_comm *comm, void *data, size_t bytes);
/* Collects every rank's data [bytes] on rank 0, in rank order. There *all is malloc'ed
   and owned by the caller, and size [ranks] receives the bytes of each rank; elsewhere
   *all is NULL and size is not written. Collective. */
RNND_CHECKED int rnnd_comm_gather(struct rnnd_comm *comm, const void *data,
                                  size_t bytes, void **all, size_t *size);
/* Shares failures: 0 if every rank passed 0, else the status of the lowest failing rank
   on every rank. The message is kept on that rank; on the others it is "rank R failed".
   Collective. */
RNND_CHECKED int rnnd_comm_agree(struct rnnd_comm *comm, int status);
/* The update in progress, for the message of a timeout. */
void rnnd_comm_at_update(struct rnnd_comm *comm, int64_t update);
/* How many ranks, with this one, run on the same cores of one host. Collective. */
RNND_CHECKED int rnnd_comm_sharers(struct rnnd_comm *comm, int *sharers);

/* ---- back end */

struct rnnd_backend;

/* Checks that this machine has the device that opt asks for. EDEVICE: it has not;
   EUSAGE: that device does not support the precision or communicator. */
RNND_CHECKED int rnnd_backend_check(const struct rnnd_options *opt);
/* Opens the device that opt asks for (device, threads, precision, rnn_path, comm). The
   ranks of a host take its GPUs in turn. Errors as rnnd_backend_check(), the same
   status on all ranks. comm NULL: a world of one. Collective. */
RNND_CHECKED int rnnd_backend_open(const struct rnnd_options *opt,
                                   struct rnnd_comm *comm, struct rnnd_backend **out);
void rnnd_backend_close(struct rnnd_backend *be);
/* The device in words, such as "cpu, 2 threads". */
const char *rnnd_backend_describe(const struct rnnd_backend *be);
/* The number of GPUs visible to this process; if 0, why receives the reason. */
int rnnd_backend_devices(char why[256]);
/* text: which kernels run a layer of this cell, width H and batch size, and why. */
void rnnd_backend_explain(struct rnnd_backend *be, enum rnnd_cell cell, int64_t hidden,
                          int64_t sequences, char text[160]);

/* ---- model */

struct rnnd_model;

struct rnnd_model_spec {
    enum rnnd_task task;
    enum rnnd_cell cell;
    /* I, 0 for tokens; V and E, 0 for features */
    int64_t inputs, vocab, embed;
    int64_t hidden, layers;
    bool bidirectional;
    /* recurrent layers have no biases; the head has one */
    bool no_bias;
    enum rnnd_pool pool;
    /* O */
    int64_t outputs;
    bool tie_weights;
    /* the model holds input.mean and input.std */
    bool normalize;
    double dropout, dropout_embed, dropout_head;
    enum rnnd_dropout_kind dropout_kind;
};

/* The shape of a model for these options and data. EDATA: the data have no task;
   EUSAGE: the options do not fit the data. */
RNND_CHECKED int rnnd_model_spec_from(const struct rnnd_options *opt,
                                      const struct rnnd_dataset_info *data,
                                      struct rnnd_model_spec *out);
/* Checks that a data set fits a model: kind and width of inputs and, if targets, task,
   outputs, and at least one target. EDATA: it does not. */
RNND_CHECKED int rnnd_model_accepts(const struct rnnd_model_spec *spec,
                                    const struct rnnd_dataset_info *data, bool targets);

/* A model with all parameters zero. EUSAGE, EDATA: sizes that make no model. */
RNND_CHECKED int rnnd_model_new(struct rnnd_backend *be,
                                const struct rnnd_model_spec *spec,
                                struct rnnd_model **out);
void rnnd_model_free(struct rnnd_model *model);
const struct rnnd_model_spec *rnnd_model_spec(const struct rnnd_model *model);
struct rnnd_backend *rnnd_model_backend(const struct rnnd_model *model);
/* Sets initial values, distributed as PyTorch's. The same seed gives the same bits on
   any number of ranks and on any device. */
RNND_CHECKED int rnnd_model_init(struct rnnd_model *model, uint64_t seed);
/* Names that are stored with the model; NULL if it has none. The classes of a language
   model are its tokens. set_names copies text [count], one for each feature, token or
   output; NULL removes the names. EDATA: another count, or a name listed twice. */
const char *rnnd_model_feature(const struct rnnd_model *model, int64_t feature);
const char *rnnd_model_token(const struct rnnd_model *model, int64_t token);
const char *rnnd_model_class(const struct rnnd_model *model, int64_t k);
RNND_CHECKED int rnnd_model_set_names(struct rnnd_model *model, enum rnnd_axis axis,
                                      char *const *text, int64_t count);
/* Gives the model the names of an axis of a data set, if it has any. EDATA: their
   number is another than the model's. */
RNND_CHECKED int rnnd_model_take_names(struct rnnd_model *model,
                                       const struct rnnd_dataset *data,
                                       enum rnnd_axis axis);
/* Numbers the features, tokens and, if targets, classes of a data set as the model
   does, by their names, and then checks it as rnnd_model_accepts() does. What has no
   names on either side keeps its numbers. Features that the model does not know are
   left out; unknown tokens become "<unk>". Targets of unknown classes fail if strict,
   else they are ignored and counted in info->unknown_targets. Warnings name what was
   left out. EDATA: features are missing, or tokens are unknown and there is no "<unk>";
   or the data set does not fit. */
RNND_CHECKED int rnnd_model_match(const struct rnnd_model *model,
                                  struct rnnd_dataset *data, bool targets, bool strict);
/* Number of trained parameters; a tied matrix counts once. */
int64_t rnnd_model_parameters(const struct rnnd_model *model);
/* input.mean and input.std [I], to be set before training; NULL without normalize. */
float *rnnd_model_mean(struct rnnd_model *model);
float *rnnd_model_std(struct rnnd_model *model);
/* Copies a parameter, by its PyTorch name, from or to the model: float [rows,cols], or
   [rows] for a vector. EUSAGE: there is no such name. */
RNND_CHECKED int rnnd_model_get(struct rnnd_model *model, const char *name, float *out);
RNND_CHECKED int rnnd_model_set(struct rnnd_model *model, const char *name,
                                const float *in);
/* Copies the gradient sum of a parameter, likewise. */
RNND_CHECKED int rnnd_model_get_gradient(struct rnnd_model *model, const char *name,
                                         float *out);
/* Name and shape of parameter i = 0, 1, ...; cols is 0 for a vector; false past the
   end. Includes both names of a tied matrix, and input.mean and input.std. */
bool rnnd_model_parameter(const struct rnnd_model *model, int i, const char **name,
                          int64_t *rows, int64_t *cols);

/* Hidden state of up to `sequences` sequences, carried from pass to pass on the device.
   Passes read the current state and write the next one. */
struct rnnd_state;
RNND_CHECKED int rnnd_state_new(struct rnnd_model *model, int64_t sequences,
                                struct rnnd_state **out);
void rnnd_state_free(struct rnnd_state *state);
void rnnd_state_zero(struct rnnd_state *state);
/* Makes the next state current. */
void rnnd_state_advance(struct rnnd_state *state);
/* mark saves a copy of the current state; back restores it. */
void rnnd_state_mark(struct rnnd_state *state);
void rnnd_state_back(struct rnnd_state *state);
/* Copies the current state of all rows: h and, for LSTM only, c; each [L*D, sequences,
   H] in the order of torch's h_n. */
RNND_CHECKED int rnnd_state_get(struct rnnd_state *state, float *h, float *c);
RNND_CHECKED int rnnd_state_set(struct rnnd_state *state, const float *h,
                                const float *c);

/* The loss of one or several passes, as sums over targets. */
struct rnnd_loss {
    double loss;
    /* numbers of targets, and of targets classified correctly */
    double targets, correct;
    /* what divides loss and gradient: targets, or the sum of the weights of their
       classes */
    double weight;
};

/* Loss sums on the device, to which passes add without waiting. */
struct rnnd_loss_sums;
RNND_CHECKED int rnnd_loss_sums_new(struct rnnd_backend *be,
                                    struct rnnd_loss_sums **out);
void rnnd_loss_sums_free(struct rnnd_loss_sums *sums);
/* Waits for the device and returns the sums since the last call. */
RNND_CHECKED int rnnd_loss_sums_take(struct rnnd_loss_sums *sums,
                                     struct rnnd_loss *out);

/* Arguments of a pass besides the batch. */
struct rnnd_pass {
    /* keys of the dropout masks */
    uint64_t seed;
    int64_t update;
    /* NULL: hidden states start at zero */
    struct rnnd_state *state;
    /* the row of the state for the first sequence of the batch */
    int64_t state_row;
    /* the last pass of its update: gradients are announced as they become final */
    bool last;
};

/* A batch without a data set: for a model's input from memory. */
RNND_CHECKED int rnnd_model_batch(struct rnnd_model *model, struct rnnd_batch **out);
/* Weighs the loss of rnnd_model_gradient(), not that of rnnd_model_evaluate(). weight
   [O], NULL = 1: of each class or token as target, as `weight` of torch's
   CrossEntropyLoss; for multilabel of each yes, as `pos_weight` of BCEWithLogitsLoss.
   smoothing: the share of the loss that all classes get alike, as `label_smoothing`.
   EUSAGE: out of range, or the task has no such loss; the model keeps what it had. */
RNND_CHECKED int rnnd_model_weigh(struct rnnd_model *model, const float *weight,
                                  double smoothing);
/* Allocates for batches up to these limits; passes then allocate nothing. */
RNND_CHECKED int rnnd_model_reserve(struct rnnd_model *model,
                                    const struct rnnd_limits *limits, bool training);
/* Called as soon as the gradients [offset, offset+count) of the flat gradient array are
   final; a negative status ends the pass. ready NULL: nothing is called. */
typedef int (*rnnd_bucket_ready)(void *context, int64_t offset, int64_t count);
void rnnd_model_on_ready(struct rnnd_model *model, rnnd_bucket_ready ready,
                         void *context);
/* Announces all gradients as final: for a rank without a batch in this update. */
RNND_CHECKED int rnnd_model_announce(struct rnnd_model *model);
/* Sets the gradient sums to zero: before the first pass of an update. */
void rnnd_model_zero_gradient(struct rnnd_model *model);
/* Forward, loss, backward: adds sums, not means, to the model's gradients and *loss. */
RNND_CHECKED int rnnd_model_gradient(struct rnnd_model *model, struct rnnd_batch *batch,
                                     const struct rnnd_pass *pass,
                                     struct rnnd_loss_sums *loss);
/* Forward without dropout, and loss: adds the loss to *loss, and shows the scores to
   the reader. */
RNND_CHECKED int rnnd_model_evaluate(struct rnnd_model *model, struct rnnd_batch *batch,
                                     const struct rnnd_pass *pass,
                                     struct rnnd_loss_sums *loss);
/* Called by rnnd_model_evaluate() with the scores (before softmax or sigmoid) of rows
   first .. first+rows-1 of the batch in packed order, score [rows,O], which are gone
   once it returns; a negative status ends the pass. reader NULL: nothing is called. */
typedef int (*rnnd_scores_reader)(void *context, int64_t first, int64_t rows,
                                  const float *score);
void rnnd_model_on_scores(struct rnnd_model *model, rnnd_scores_reader reader,
                          void *context);
/* Forward without dropout: out receives the scores (before softmax or sigmoid), [R,O]
   for stepwise tasks, else [N,O], in packed order. pass NULL: from zero states. */
RNND_CHECKED int rnnd_model_scores(struct rnnd_model *model, struct rnnd_batch *batch,
                                   const struct rnnd_pass *pass, float *out);

/* ---- gradient sums over ranks */

/* Sums the gradients of a model over all ranks, in buckets of bucket_mb megabytes,
   during the backward pass where the communicator can. The first is collective. */
struct rnnd_reducer;
RNND_CHECKED int rnnd_reducer_new(struct rnnd_model *model, struct rnnd_comm *comm,
                                  double bucket_mb, struct rnnd_reducer **out);
void rnnd_reducer_free(struct rnnd_reducer *reducer);
/* Completes the sums of an update; then gradients and *loss (in: of this rank, out: of
   all ranks) are the same on every rank. status is this rank's, and is shared as by
   rnnd_comm_agree(). *flags, unless NULL: each of bits 0..7 that is set on any rank is
   set on all. Collective. */
RNND_CHECKED int rnnd_reducer_finish(struct rnnd_reducer *reducer, int status,
                                     unsigned *flags, struct rnnd_loss *loss);
/* Whether sums run during the backward pass. */
bool rnnd_reducer_overlaps(const struct rnnd_reducer *reducer);
/* Seconds since the last call that were spent in rnnd_reducer_finish(). */
double rnnd_reducer_take_wait(struct rnnd_reducer *reducer);

/* ---- optimizer */

struct rnnd_optim;

RNND_CHECKED int rnnd_optim_new(struct rnnd_model *model,
                                const struct rnnd_options *opt,
                                struct rnnd_optim **out);
void rnnd_optim_free(struct rnnd_optim *optim);
/* Divides the gradient sums by loss->weight, clips, and updates the parameters;
   *grad_norm is the norm before clipping. Where loss->weight is 0, as without targets,
   it is 0 and nothing changes.
   ENONFINITE: loss or gradient is not finite; nothing changes. */
RNND_CHECKED int rnnd_optim_step(struct rnnd_optim *optim, const struct rnnd_loss *loss,
                                 double lr, double *grad_norm);

/* ---- checkpoint */

struct rnnd_checkpoint_info {
    int64_t update, epoch;
    /* options as text; malloc'ed, owned by the caller */
    char *config;
};

/* The checkpoint that a command's MODEL argument means: in a run directory best.h5 if
   intact, else the newest intact one; else the file itself. *path is malloc'ed and
   owned by the caller. EFILE: there is none. */
RNND_CHECKED int rnnd_checkpoint_find(const char *model_path, char **path);
/* A model on be with the parameters of a checkpoint. info may be NULL. EFILE: it cannot
   be read or is damaged. */
RNND_CHECKED int rnnd_checkpoint_load_model(const char *path, struct rnnd_backend *be,
                                            struct rnnd_model **out,
                                            struct rnnd_checkpoint_info *info);
/* Writes the parameters as a checkpoint without training state. The file appears whole
   or not at all. EFILE: it cannot be written. */
RNND_CHECKED int rnnd_checkpoint_save_model(const char *path, struct rnnd_model *model,
                                            const struct rnnd_options *opt);

/* ---- trainer and evaluation */

/* Frees the table of a result, which then has none. */
void rnnd_metrics_clear(struct rnnd_metrics *metrics);
/* Whether a task with these options is trained and evaluated as a stream of lanes. */
bool rnnd_streams(const struct rnnd_options *opt, enum rnnd_task task);

/* Evaluates a model on a data set that it accepts; the same result on every rank.
   STOPPED: a signal ended it. Clear *out. Collective. */
RNND_CHECKED int rnnd_evaluate(struct rnnd_model *model, struct rnnd_dataset *data,
                               struct rnnd_comm *comm, const struct rnnd_options *opt,
                               struct rnnd_metrics *out);

/* Writes the predictions for a data set to opt->out (HDF5), opt->csv, or both. EUSAGE:
   opt->pad does not fit task or data; EFILE: a file cannot be written. Collective. */
RNND_CHECKED int rnnd_predict(struct rnnd_model *model, struct rnnd_dataset *data,
                              struct rnnd_comm *comm, const struct rnnd_options *opt);

/* Trains as `rnn_dist train` does. *out is set on failure too. STOPPED: a signal ended
   it, ENONFINITE: an update could not be made; both save the state. Collective. */
RNND_CHECKED int rnnd_train(const struct rnnd_options *opt, struct rnnd_comm *comm,
                            struct rnnd_train_result *out);

#ifdef __cplusplus
}
#endif
#endif
