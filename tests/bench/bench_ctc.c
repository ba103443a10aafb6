/*
 * bench_ctc.c - passes of connectionist temporal classification, timed one at a time
 * for tests/bench/ctc.py.
 *
 * For each line on standard input, one loss and gradient of the same random batch;
 * prints its seconds: of the processor on one thread, else real ones. Usage:
 * bench_ctc STEPS SEQUENCES LABELS CLASSES THREADS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend.h"
#include "base/random.h"

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *checked(void *p)
{
    if (!p)
        abort();
    return p;
}

static struct rnnd__buf device(struct rnnd_backend *be, const void *from, size_t bytes)
{
    struct rnnd__buf buf;
    if (be->ops->alloc(be, &buf, bytes) != 0)
        abort();
    if (from)
        be->ops->upload(be, buf, from, bytes);
    else
        be->ops->zero(be, buf, bytes);
    return buf;
}

static uint32_t word(uint32_t purpose, int64_t i)
{
    return rnnd__philox(1, (uint32_t)i, purpose, 0, 0).word[0];
}

/* A batch of N sequences of T steps, with strings of L labels. */
struct bench {
    int64_t T, N, L, cols;
    struct rnnd_backend *be;
    float *x;
    int64_t *off;
    int32_t *per;
    struct rnnd__packed batch;
    struct rnnd__strings strings;
    struct rnnd__ctc ctc;
    struct rnnd__buf scores, sums;
};

static void make_strings(struct bench *b)
{
    int64_t N = b->N, L = b->L;
    int32_t *label = checked(malloc((size_t)(N * L + 1) * sizeof *label));
    b->per = checked(malloc((size_t)(3 * N) * sizeof *b->per));
    for (int64_t i = 0; i < N * L; i++)
        label[i] = 1 + (int32_t)(word(2, i) % (uint32_t)(b->cols - 1));
    for (int64_t j = 0; j < N; j++) {
        b->per[j] = (int32_t)b->T;
        b->per[N + j] = (int32_t)(j * L);
        b->per[2 * N + j] = (int32_t)L;
    }
    b->strings =
        (struct rnnd__strings){.longest = L,
                               .label = device(b->be, label, (size_t)(N * L + 1) * 4),
                               .first = device(b->be, b->per + N, (size_t)N * 4),
                               .count = device(b->be, b->per + 2 * N, (size_t)N * 4)};
    free(label);
}

static void make(struct bench *b)
{
    int64_t T = b->T, N = b->N, floats = T * N * b->cols;
    make_strings(b);
    b->x = checked(malloc((size_t)floats * sizeof *b->x));
    b->off = checked(malloc((size_t)(T + 1) * sizeof *b->off));
    for (int64_t i = 0; i < floats; i++)
        b->x[i] = (float)(4 * rnnd__uniform(word(1, i)) - 2);
    for (int64_t t = 0; t <= T; t++)
        b->off[t] = t * N;
    b->batch =
        (struct rnnd__packed){.N = N, .T = T, .R = T * N, .off = b->off, .len = b->per};
    size_t scratch = b->be->ops->ctc_scratch(b->be, N, T, b->L);
    b->ctc = (struct rnnd__ctc){.batch = &b->batch,
                                .strings = &b->strings,
                                .cols = b->cols,
                                .gradient = true,
                                .scratch = device(b->be, NULL, scratch)};
    b->scores = device(b->be, b->x, (size_t)floats * sizeof *b->x);
    b->sums = device(b->be, NULL, sizeof(struct rnnd__sums));
}

int main(int argc, char **argv)
{
    int64_t size[5];
    for (int i = 0; i < 5; i++)
        size[i] = argc == 6 ? atoll(argv[1 + i]) : 0;
    struct bench b = {.T = size[0], .N = size[1], .L = size[2], .cols = size[3] + 1};
    struct rnnd__backend_config config = {(int)size[4], 0, RNND_FP32, 0};
    char error[256], line[16];
    if (b.T < 1 || b.N < 1 || b.L < 0 || b.cols < 2 || size[4] < 1) {
        fprintf(stderr, "usage: bench_ctc STEPS SEQUENCES LABELS CLASSES THREADS\n");
        return 2;
    }
    if (rnnd__cpu_open(&config, &b.be, error) != 0) {
        fprintf(stderr, "%s\n", error);
        return 5;
    }
    make(&b);
    clockid_t clock = size[4] == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    size_t bytes = (size_t)(b.T * b.N * b.cols) * sizeof *b.x;
    while (fgets(line, sizeof line, stdin)) {
        b.be->ops->upload(b.be, b.scores, b.x, bytes);
        double start = now(clock);
        b.be->ops->ctc(b.be, &b.ctc, b.scores, b.sums);
        printf("%.9f\n", now(clock) - start);
        fflush(stdout);
    }
    return 0;
}
