/*
 * suite.h - how every Check program runs its suite.
 */
#ifndef RNND_SUITE_H
#define RNND_SUITE_H

#include <check.h>
#include <stdlib.h>

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
