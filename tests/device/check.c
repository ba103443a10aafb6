/*
 * check.c - runs the tests of check.h. In place of the CPU, which needs a matrix
 * library, it refuses: the tests on the GPU do not ask for it.
 */
#include "check.h"

#include "backend.h"

jmp_buf device_check_failed;

TCase *tcase_create(const char *name)
{
    TCase *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->name = name;
    return t;
}

void tcase_set_timeout(TCase *t, double seconds)
{
    (void)t, (void)seconds;
}

void device_check_add(TCase *t, const char *name, test_function *run, int from, int to)
{
    if (t->count == 64)
        abort();
    t->test[t->count].name = name;
    t->test[t->count].run = run;
    t->test[t->count].from = from;
    t->test[t->count++].to = to;
}

Suite *suite_create(const char *name)
{
    (void)name;
    Suite *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    return s;
}

void suite_add_tcase(Suite *s, TCase *t)
{
    s->tcase[s->count++] = t;
}

SRunner *srunner_create(Suite *s)
{
    SRunner *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    r->suite = s;
    return r;
}

void srunner_set_fork_status(SRunner *r, int status)
{
    (void)r, (void)status;
}

/* True if it failed. */
static int run_one(const TCase *t, int i, int round)
{
    if (setjmp(device_check_failed)) {
        fprintf(stderr, "FAILED: %s:%s:%d\n", t->name, t->test[i].name, round);
        return 1;
    }
    t->test[i].run(round);
    return 0;
}

void srunner_run_all(SRunner *r, int mode)
{
    const char *only = getenv("CK_RUN_CASE");
    (void)mode;
    for (int c = 0; c < r->suite->count; c++) {
        const TCase *t = r->suite->tcase[c];
        for (int i = 0; i < t->count && (!only || strcmp(only, t->name) == 0); i++)
            for (int k = t->test[i].from; k < t->test[i].to; k++) {
                r->checks++;
                r->failures += run_one(t, i, k);
            }
    }
    printf("%d passed, %d failed\n", r->checks - r->failures, r->failures);
}

int srunner_ntests_failed(SRunner *r)
{
    return r->failures;
}

void srunner_free(SRunner *r)
{
    for (int i = 0; i < r->suite->count; i++)
        free(r->suite->tcase[i]);
    free(r->suite);
    free(r);
}

int rnnd__cpu_open(const struct rnnd__backend_config *config, struct rnnd_backend **out,
                   char *error)
{
    (void)config, (void)out;
    snprintf(error, 256, "there is no CPU back end in this program, nor RNND_CPU_ISA");
    return -5;
}
