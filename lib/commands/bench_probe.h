/*
 * bench_probe.h - single operations of a back end, timed, for bench to set whole
 * updates against.
 *
 * Both keep the best of several tries: what the device does when nothing disturbs it.
 */
#ifndef RNND_BENCH_PROBE_H
#define RNND_BENCH_PROBE_H

#include "backend.h"
#include "rnn_dist.h"

/* Large products: raises *rate, flop/s, to the best that is seen now. */
RNND_CHECKED int rnnd__bench_gemm(struct rnnd_backend *be, double *rate);
/* Seconds that the cells of one row take, forward and backward, without any product, in
   a batch of about that many rows. */
RNND_CHECKED int rnnd__bench_cell(struct rnnd_backend *be, enum rnnd_cell cell,
                                  int64_t H, int64_t rows, double *seconds);

#endif
