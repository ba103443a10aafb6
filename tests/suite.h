/*
 * suite.h - how every Check program runs its suite.
 */
#ifndef RNND_SUITE_H
#define RNND_SUITE_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What a test tried, how often, and how often a result was silently wrong: a line of
   the table of make check-reliability, in the form of tests/tally.sh. */
static inline void print_tried(const char *what, int64_t tried, int64_t wrong)
{
    printf("# tried %lld, lost 0, hung 0, wrong %lld, other 0: %s\n", (long long)tried,
           (long long)wrong, what);
}

/* Runs all tests in this process, since MPI and OpenMP do not survive a fork. Returns
   the exit status. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
