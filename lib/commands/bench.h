/*
 * bench.h - how fast training is on this machine with these options, and where time
 * goes.
 */
#ifndef RNND_BENCH_H
#define RNND_BENCH_H

#include "rnn_dist.h"

struct rnnd__bench_result {
    /* measured */
    int64_t updates;
    double seconds;
    /* real time steps of all ranks */
    double steps;
    /* mean over the targets of the measured updates */
    double loss;
    /* seconds of this rank */
    double embedding, recurrent, head, optimizer, input;
    /* of recurrent: all but its products */
    double cell;
    /* for ranks with more to do */
    double waiting;
    /* sums over ranks: with nothing or other work to do */
    double exposed, hidden;
    /* best of large products, flop/s of this rank */
    double gemm_rate;
    /* that the updates needed on this rank */
    double gemm_flops;
    /* longest over mean cost of the ranks */
    double straggler_predicted;
    /* longest over mean time at work */
    double straggler_measured;
};

/* Trains opt->max_updates updates (0: about ten seconds) after a few that are not
   counted, without a run folder. Every rank gets its own result. Collective. */
RNND_CHECKED int rnnd__bench(const struct rnnd_options *opt, struct rnnd_comm *comm,
                             struct rnnd__bench_result *out);

#endif
