/*
 * kernels_bf16.h - the tests of products with factors in bf16, for
 * tests/kernels/test_kernels.c.
 */
#ifndef KERNELS_BF16_H
#define KERNELS_BF16_H

#include <check.h>

TCase *kernels_bf16_tests(void);

#endif
