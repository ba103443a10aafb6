/*
 * rnn_dist_options.h - the options of all commands, one field each, under the name that
 * the option has on the command line. Part of rnn_dist.h, which includes it.
 *
 * rnn_dist-train(1) and the pages of the other commands say what each option does and
 * which values it takes. A count of 0 means "no limit" or "off" unless stated.
 */
#ifndef RNN_DIST_OPTIONS_H
#define RNN_DIST_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "rnn_dist_enums.h"

/* Strings are allocated with malloc and owned by the struct; NULL if not given. */
struct rnnd_options {
    /* ---- data */
    char *data, *valid;
    /* updates */
    int64_t valid_every;
    enum rnnd_shuffle shuffle;
    /* batches per pool that is sorted by length */
    int64_t bucket;
    bool normalize;
    enum rnnd_on_unreachable on_unreachable;
    /* sequences per update, then steps per update and per micro-batch */
    int64_t batch, batch_tokens, microbatch_tokens;

    /* ---- model */
    /* enum rnnd_task; -1: as in the data */
    int task;
    enum rnnd_cell cell;
    int64_t embed, hidden, layers;
    bool bidirectional, no_bias;
    enum rnnd_pool pool;
    double dropout, dropout_embed, dropout_head;
    enum rnnd_dropout_kind dropout_kind;
    bool tie_weights;
    char *init;
    /* truncated BPTT: steps per window, windows per update */
    int64_t tbptt, windows;
    enum rnnd_stream stream;

    /* ---- optimizer */
    enum rnnd_optimizer optimizer;
    bool sparse_embedding;
    double lr, momentum, beta1, beta2, eps, weight_decay, clip_norm;
    enum rnnd_schedule lr_schedule;
    /* epochs, epochs, updates */
    int64_t lr_step, lr_patience, warmup;
    double lr_decay;
    enum rnnd_on_nonfinite on_nonfinite;
    /* of the training loss: "balanced", a list or a file; a share */
    char *class_weight;
    double label_smoothing;
    /* when to stop: epochs, updates, epochs without improvement */
    int64_t epochs, max_updates, patience;
    /* which validation is the best, for best.h5 and patience */
    enum rnnd_best_by best_by;

    /* ---- where to compute */
    enum rnnd_device device;
    enum rnnd_comm_kind comm;
    enum rnnd_precision precision;
    /* per rank; 0: the cores this process may use, divided among the ranks on them */
    int64_t threads;
    enum rnnd_rnn_path rnn_path;
    /* megabytes, seconds */
    double bucket_mb, comm_timeout;

    /* ---- run */
    char *config, *run_dir;
    bool resume;
    /* updates between checkpoints; how many checkpoints to keep */
    int64_t save_every, keep;
    double save_minutes;
    int64_t seed;
    /* updates between records; 0: about 200 records a run */
    int64_t log_every;
    enum rnnd_progress progress;
    bool tensorboard;
    char *trace;
    bool json;

    /* ---- other commands */
    /* predict and report */
    char *out, *csv;
    /* predict: pad is in steps, 0 writes ragged rows */
    bool raw, states;
    int64_t pad;
    /* eval and predict: prefixes, 0 = best paths; predict: strings of a beam */
    int64_t beam, top;
    /* predict: say where the labels of the data set are */
    bool align;
    /* sample: length is in tokens */
    int64_t length;
    double temperature;
    char *prompt;
    /* info */
    bool plan;
    /* import, then export; fold also where it is not given */
    char *prefix;
    bool fold;
    int64_t average;
    /* pack */
    enum rnnd_missing missing;
    double split;
    char *sequence, *features, *label, *step_label, *target, *step_target, *labels,
        *labels_from, *classes_from, *part, *vocab_from;
    bool sequence_per_file, label_from_folder;
    int64_t vocab_size, block;
    /* help, then every command */
    bool list_options, completion;
    bool help, version;

    /* ---- no options */
    /* the data are known to hold features, not tokens */
    bool of_features;
    /* Where the value of each option came from, indexed as in lib/options/options.def:
       0 default, 1 configuration file, 2 command line. */
    unsigned char given[128];
};

#endif
