/*
 * kernels_ctc.h - the tests of connectionist temporal classification, for
 * tests/kernels/test_kernels.c.
 */
#ifndef KERNELS_CTC_H
#define KERNELS_CTC_H

#include <check.h>

TCase *kernels_ctc_tests(void);

#endif
