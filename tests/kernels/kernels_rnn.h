/*
 * kernels_rnn.h - the tests of the time loop, for tests/kernels/test_kernels.c.
 */
#ifndef KERNELS_RNN_H
#define KERNELS_RNN_H

#include <check.h>

TCase *kernels_rnn_tests(void);
TCase *kernels_tiles_tests(void);

#endif
