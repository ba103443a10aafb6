/*
 * rnn_dist_data.h - data sets, plans and batches.
 *
 * Part of rnn_dist.h, which includes it: what is said there of errors, ownership and
 * sizes applies here.
 */
#ifndef RNN_DIST_DATA_H
#define RNN_DIST_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rnn_dist_enums.h"
#include "rnn_dist_options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RNND_CHECKED __attribute__((warn_unused_result))

struct rnnd_backend;

/* ---- data set */

struct rnnd_dataset;

/* What has names: columns of inputs, token ids, and classes or columns of targets. The
   outputs of a language model are tokens. */
enum rnnd_axis { RNND_AXIS_FEATURE, RNND_AXIS_TOKEN, RNND_AXIS_CLASS, RNND_AXES };

struct rnnd_dataset_info {
    const char *path;
    enum rnnd_task task;
    /* steps in total, and of the longest sequence */
    int64_t sequences, steps, longest;
    /* I, 0 for tokens; V, 0 for features */
    int64_t inputs, vocab;
    /* O: classes, for ctc one more; values; or V for lm; 0 without a task */
    int64_t outputs;
    /* number of targets in the whole set; ctc: strings that fit into their steps */
    int64_t targets;
    /* ctc: strings that do not fit, and labels of the longest that does */
    int64_t unreachable, longest_string;
    /* values of features that are missing, NaN: only a model that normalizes reads
       them */
    int64_t missing;
    /* targets of classes that the model does not know, see rnnd_model_match(); not
       among `targets` */
    int64_t unknown_targets;
    /* hash of contents and shape; of the names of features, tokens and classes that are
       in the file */
    uint64_t fingerprint, names_fingerprint;
    /* the file ends with a checksum over all of it, which was verified */
    bool has_checksum;
};

/* Opens a data file and checks all of it. EFILE: it cannot be opened; EDATA: objects,
   offsets, ranges or values are wrong (the message names file, object and index). */
RNND_CHECKED int rnnd_dataset_open(const char *path, struct rnnd_dataset **out);
void rnnd_dataset_close(struct rnnd_dataset *data);
const struct rnnd_dataset_info *rnnd_dataset_info(const struct rnnd_dataset *data);
/* [sequences+1]: sequence i is steps offsets[i] .. offsets[i+1]-1. */
const int64_t *rnnd_dataset_offsets(const struct rnnd_dataset *data);
/* Reads steps first .. first+count-1 into out: float [count,I] or int32_t [count].
   EFILE, EDATA: they cannot be read. */
RNND_CHECKED int rnnd_dataset_inputs(struct rnnd_dataset *data, int64_t first,
                                     int64_t count, void *out);
/* Reads targets first .. first+count-1 (of sequences or of steps, by the task; ctc:
   labels) into out: int32_t [count] for classes, else float [count,O]. Not for lm or
   unlabelled data. EFILE, EDATA: they cannot be read. */
RNND_CHECKED int rnnd_dataset_targets(struct rnnd_dataset *data, int64_t first,
                                      int64_t count, void *out);
/* ctc: [sequences+1], the string of sequence i is labels offsets[i] .. offsets[i+1]-1;
   else NULL. */
const int64_t *rnnd_dataset_target_offsets(const struct rnnd_dataset *data);
/* Warns of label strings that do not fit into their sequences (ctc). EDATA: there are
   some, and the policy is to stop. */
RNND_CHECKED int rnnd_dataset_check_strings(const struct rnnd_dataset *data,
                                            enum rnnd_on_unreachable policy);
/* Whether all values are in memory; large sets are read in slices. */
bool rnnd_dataset_in_memory(const struct rnnd_dataset *data);
/* Starts to fetch these steps, unless they are in memory, and does not wait. */
void rnnd_dataset_prefetch(struct rnnd_dataset *data, int64_t first, int64_t count);
/* Names from the file, or from the model that it was matched with: NULL where there are
   none, or where the index is out of range. */
const char *rnnd_dataset_name(const struct rnnd_dataset *data, int64_t sequence);
const char *rnnd_dataset_feature(const struct rnnd_dataset *data, int64_t feature);
const char *rnnd_dataset_token(const struct rnnd_dataset *data, int64_t token);
const char *rnnd_dataset_class(const struct rnnd_dataset *data, int64_t label);
/* Mean and population standard deviation (1 instead of 0) of each feature over all
   steps that have a value, each [I]. EFILE, EDATA: they cannot be read, or a feature
   has no value. */
RNND_CHECKED int rnnd_dataset_moments(struct rnnd_dataset *data, float *mean,
                                      float *std);
/* Whether a model has an output for each step rather than for each sequence. */
bool rnnd_task_is_stepwise(enum rnnd_task task);
const char *rnnd_task_name(enum rnnd_task task);

/* ---- plan */

/* Which sequences make up which update: a pure function of seed, epoch, lengths and
   batch options, independent of ranks and clocks. An entry of the plan is one batch of
   all ranks together. */
struct rnnd_plan;

struct rnnd_plan_options {
    uint64_t seed;
    bool shuffle;
    /* batches per pool that is sorted by length */
    int64_t bucket;
    /* sequences per update; 0: batch_tokens steps per update */
    int64_t batch, batch_tokens;
};

/* The plan options among the training options. */
struct rnnd_plan_options rnnd_plan_options_of(const struct rnnd_options *opt);

/* offsets [sequences+1] is borrowed. EDATA: too many sequences. */
RNND_CHECKED int rnnd_plan_new(const int64_t *offsets, int64_t sequences,
                               const struct rnnd_plan_options *opt,
                               struct rnnd_plan **out);
void rnnd_plan_free(struct rnnd_plan *plan);
/* Lays out an epoch (0, 1, ...), replacing the entries of the previous one. */
void rnnd_plan_epoch(struct rnnd_plan *plan, int64_t epoch);
int64_t rnnd_plan_entries(const struct rnnd_plan *plan);
/* The sequences of an entry: *ids [*count], valid until the next epoch. */
void rnnd_plan_entry(const struct rnnd_plan *plan, int64_t entry, const int32_t **ids,
                     int64_t *count);

/* Shards sequences of the given length [count] over ranks: the longest first, each to
   the rank with the least load, by an integer cost. mine [count] receives the positions
   that `rank` gets, by falling cost, *n their number, and *straggler the load
   imbalance: the largest load over the mean. The same result on every rank. */
RNND_CHECKED int rnnd_plan_shard(const int64_t *length, int64_t count, int ranks,
                                 int rank, int32_t *mine, int64_t *n,
                                 double *straggler);

/* ---- batch */

/* A piece of a sequence: steps begin .. begin+length-1 of the data set. */
struct rnnd_piece {
    /* key of the dropout masks: sequence, or lane of a stream */
    int64_t id;
    int64_t begin, length;
    /* the sequence whose label it has; -1 for lanes */
    int64_t sequence;
};

/* A packed batch: time-major, sequences by falling length, without padding. */
struct rnnd_batch;

/* Upper bounds of a batch: sequences, steps of the longest, packed rows; ctc: labels of
   the longest string. */
struct rnnd_limits {
    int64_t sequences, steps, rows, labels;
};

/* mean, std [I], borrowed: features are normalized by them on loading; NULL: features
   are used as they are. targets: whether to load targets too. */
RNND_CHECKED int rnnd_batch_new(struct rnnd_backend *be, struct rnnd_dataset *data,
                                bool targets, const float *mean, const float *std,
                                struct rnnd_batch **out);
void rnnd_batch_free(struct rnnd_batch *batch);
/* Allocates for batches up to these limits; loading then allocates nothing. */
RNND_CHECKED int rnnd_batch_reserve(struct rnnd_batch *batch,
                                    const struct rnnd_limits *limits);
/* Reads and packs piece [count], which must be sorted by falling length. first is the
   position of their first step within the sequence or stream, the same for all. lm with
   targets: a piece of n steps reads n+1 tokens, the last one only as a target. EFILE,
   EDATA: data cannot be read; EUSAGE: more rows than INT32_MAX. */
RNND_CHECKED int rnnd_batch_load(struct rnnd_batch *batch,
                                 const struct rnnd_piece *piece, int64_t count,
                                 int64_t first);
/* The same for whole sequences ids [count], in any order. */
RNND_CHECKED int rnnd_batch_load_sequences(struct rnnd_batch *batch, const int32_t *ids,
                                           int64_t count);
/* The targets of what was loaded last, packed, in host memory: int32_t [N or R] or
   float [N or R, O]. */
const void *rnnd_batch_targets(const struct rnnd_batch *batch);
/* Loads count steps of one sequence into a batch of rnnd_model_batch(): float [count,I]
   or int32 [count]. EUSAGE: a token that is none, a feature that is not finite. */
RNND_CHECKED int rnnd_batch_load_steps(struct rnnd_batch *batch, const void *steps,
                                       int64_t count);

#ifdef __cplusplus
}
#endif
#endif
