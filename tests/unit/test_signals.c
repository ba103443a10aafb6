/*
 * test_signals.c - signals that come in the middle of a matrix product leave their mark
 * and nothing else. (oneDNN's products keep their stack on the heap: a handler that ran
 * on it would write its frame over other data.)
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "../suite.h"
#include "backend.h"
#include "base/signals.h"

enum { M = 417, N = 512, K = 128, GAP = 4096 };

/* SIGUSR1 to this process every 50 microseconds. */
static timer_t start_storm(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec often = {{0, 50000}, {0, 50000}};
    timer_t timer;
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    ck_assert_int_eq(timer_settime(timer, 0, &often, NULL), 0);
    return timer;
}

/* n ones between two gaps of zeros. */
static float *ones(size_t n)
{
    float *p = calloc(n + 2 * GAP, sizeof *p);
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < n; i++)
        p[GAP + i] = 1;
    return p;
}

static bool holds(const float *p, size_t n, float value)
{
    for (size_t i = 0; i < n + 2 * GAP; i++)
        if (p[i] != (i < GAP || i >= GAP + n ? 0 : value))
            return false;
    return true;
}

START_TEST(signals_spare_the_heap)
{
    struct rnnd__backend_config config = {.threads = _i, .precision = RNND_FP32};
    struct rnnd_backend *be;
    char error[256];
    rnnd__signals_install();
    ck_assert_int_eq(rnnd__cpu_open(&config, &be, error), 0);
    timer_t timer = start_storm();
    for (int round = 0; round < 100; round++) {
        float *a = ones(M * K), *b = ones(N * K), *c = ones(M * N);
        struct rnnd__matmul s = {.ta = round % 2,
                                 .tb = round / 2 % 2,
                                 .m = M,
                                 .n = N,
                                 .k = K,
                                 .alpha = 1,
                                 .lda = round % 2 ? M : K,
                                 .ldb = round / 2 % 2 ? K : N,
                                 .ldc = N};
        be->ops->matmul(be, &s, (struct rnnd__buf){(char *)(c + GAP)},
                        (struct rnnd__buf){(char *)(a + GAP)},
                        (struct rnnd__buf){(char *)(b + GAP)});
        ck_assert(holds(a, M * K, 1));
        ck_assert(holds(b, N * K, 1));
        ck_assert(holds(c, M * N, K));
        rnnd__signals_received(); /* as a trainer asks after every update */
        free(a);
        free(b);
        free(c);
    }
    ck_assert_int_eq(rnnd__signals_received(), SIGUSR1);
    timer_delete(timer);
    be->ops->close(be);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stop");
    TCase *t = tcase_create("stop");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, signals_spare_the_heap, 1, 4);
    suite_add_tcase(s, t);
    return run_suite(s);
}
