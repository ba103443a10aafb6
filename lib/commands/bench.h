/*
 * bench.h - measures how fast training is with these options, and where time goes.
 */
#ifndef RNND_BENCH_H
#define RNND_BENCH_H

#include "rnn_dist.h"

struct rnnd__bench_result {
    /* the measured updates, and the seconds they took */
    int64_t updates;
    double seconds;
    /* time steps of all ranks, without padding */
    double steps;
    /* mean over the targets of the measured updates */
    double loss;
    /* seconds of this rank, by kind of work */
    double embedding, recurrent, head, optimizer, input;
    /* the part of `recurrent` that is not spent in matrix products */
    double cell;
    /* idle seconds of this rank: waiting for ranks with more work */
    double waiting;
    /* seconds of gradient sums: while this rank was idle, and while it was computing */
    double exposed, hidden;
    /* flop/s of this rank: the best of large matrix products */
    double gemm_rate;
    /* flop of this rank: the matrix products of the updates */
    double gemm_flops;
    /* load imbalance: largest over mean cost, and largest over mean seconds of work */
    double straggler_predicted, straggler_measured;
};

/* Makes opt->max_updates updates (0: for about ten seconds) after a few that are not
   counted, without a run directory. Every rank gets its own result. EFILE: opt->trace
   cannot be written; other errors as in training. Collective. */
RNND_CHECKED int rnnd__bench(const struct rnnd_options *opt, struct rnnd_comm *comm,
                             struct rnnd__bench_result *out);

#endif
