/*
 * bench_probe.h - times single operations of a back end, for bench to compare whole
 * updates with.
 *
 * The best of several tries counts: the speed of the undisturbed device.
 */
#ifndef RNND_BENCH_PROBE_H
#define RNND_BENCH_PROBE_H

#include "backend.h"
#include "rnn_dist.h"

/* Large matrix products: raises *rate (flop/s) to the best rate measured now. */
RNND_CHECKED int rnnd__bench_gemm(struct rnnd_backend *be, double *rate);
/* *seconds: the time of one row's cells, forward and backward, without matrix products,
   in a batch of about this many rows. */
RNND_CHECKED int rnnd__bench_cell(struct rnnd_backend *be, enum rnnd_cell cell,
                                  int64_t H, int64_t rows, double *seconds);

#endif
