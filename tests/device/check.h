/*
 * check.h - as much of Check as the tests of kernels use, for a machine that has a GPU
 * and the CUDA toolkit but not Check. Only device-check.sh puts this folder into the
 * include path.
 *
 * A failed assertion ends its test and is counted; the others run.
 */
#ifndef RNND_DEVICE_CHECK_H
#define RNND_DEVICE_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void test_function(int);

typedef struct {
    const char *name;
    struct {
        const char *name;
        test_function *run;
        int from, to;
    } test[64];
    int count;
} TCase;

typedef struct {
    TCase *tcase[8];
    int count;
} Suite;

typedef struct {
    Suite *suite;
    int checks, failures;
} SRunner;

enum { CK_NOFORK, CK_NORMAL };

extern jmp_buf device_check_failed;

#define START_TEST(name) static void name(int _i __attribute__((unused)))
#define END_TEST

#define ck_assert_msg(condition, ...)                       \
    do {                                                    \
        if (!(condition)) {                                 \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                   \
            fputc('\n', stderr);                            \
            longjmp(device_check_failed, 1);                \
        }                                                   \
    } while (0)
#define ck_assert(x)              ck_assert_msg(x, "%s", #x)
#define ck_assert_int_eq(a, b)    ck_assert((a) == (b))
#define ck_assert_int_lt(a, b)    ck_assert((a) < (b))
#define ck_assert_float_eq(a, b)  ck_assert((a) == (b))
#define ck_assert_double_eq(a, b) ck_assert((a) == (b))
#define ck_assert_double_le(a, b) ck_assert((a) <= (b))
#define ck_assert_double_eq_tol(a, b, bound)                                          \
    ck_assert_msg(fabs((double)(a) - (double)(b)) <= (bound), "%s is %g, not %s, %g", \
                  #a, (double)(a), #b, (double)(b))
#define ck_assert_float_eq_tol(a, b, bound) ck_assert_double_eq_tol(a, b, bound)
#define ck_assert_ptr_null(p)               ck_assert((p) == NULL)
#define ck_assert_ptr_nonnull(p)            ck_assert((p) != NULL)
#define ck_assert_str_eq(a, b)              ck_assert(strcmp(a, b) == 0)
#define ck_assert_mem_eq(a, b, size)        ck_assert(memcmp(a, b, size) == 0)

#define tcase_add_loop_test(t, run, from, to) device_check_add(t, #run, run, from, to)
#define tcase_add_test(t, run)                device_check_add(t, #run, run, 0, 1)

TCase *tcase_create(const char *name);
void tcase_set_timeout(TCase *t, double seconds);
void device_check_add(TCase *t, const char *name, test_function *run, int from, int to);
Suite *suite_create(const char *name);
void suite_add_tcase(Suite *s, TCase *t);
SRunner *srunner_create(Suite *s);
void srunner_set_fork_status(SRunner *r, int status);
/* Of CK_RUN_CASE alone, where it is set. */
void srunner_run_all(SRunner *r, int mode);
int srunner_ntests_failed(SRunner *r);
void srunner_free(SRunner *r);

#endif
