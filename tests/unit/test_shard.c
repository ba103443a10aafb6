/*
 * test_shard.c - windows, micro-batches and lanes: every step of every sequence is run
 * once, by one rank, in order.
 */
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "data/shard.h"

/* Lengths 7 0 12 3 12 1, as steps of the data set. */
static const int64_t offsets[] = {0, 7, 7, 19, 22, 34, 35};
enum { SEQUENCES = 6, STEPS = 35 };

static struct rnnd__shard shard_of(int ranks, int rank, int64_t window,
                                   int64_t windows_per_update, int64_t bound)
{
    return (struct rnnd__shard){.offsets = offsets,
                                .tokens = STEPS,
                                .parts = ranks,
                                .part = rank,
                                .window = window,
                                .windows_per_update = windows_per_update,
                                .bound = bound};
}

static void drop(struct rnnd__shard *s)
{
    free(s->length);
    free(s->piece);
    free(s->cut);
    free(s->all);
    free(s->slice);
    free(s->mine);
}

/* Counts how often each step of the data set is run by a rank, window by window. */
static void run_all(struct rnnd__shard *s, int *runs)
{
    int64_t end, groups = 0;
    for (int64_t g = 0, first; (first = rnnd__shard_windows(s, g, &end)) < s->windows;
         g++) {
        groups++;
        for (int64_t w = first; w < end; w++)
            for (int64_t m = 0; m < s->cuts; m++) {
                const struct rnnd_piece *p;
                int64_t n = rnnd__shard_slice(s, w, m, &p), rows = 0;
                for (int64_t j = 0; j < n; j++, rows += p[j - 1].length) {
                    ck_assert(j == 0 || p[j].length <= p[j - 1].length);
                    if (s->window)
                        ck_assert_int_eq(p[j].begin, offsets[p[j].id] + w * s->window);
                    for (int64_t t = 0; t < p[j].length; t++)
                        runs[p[j].begin + t]++;
                }
                ck_assert(!s->bound || rows <= s->bound || n == 1);
            }
        if (end == s->windows)
            break;
    }
    ck_assert_int_eq(groups, rnnd__shard_updates(s, 12));
}

static const struct {
    int ranks;
    int64_t window, windows_per_update, bound;
} cuts[] = {
    {1, 0, 0, 0}, {2, 0, 0, 0},  {9, 0, 0, 0},   {1, 5, 1, 0},
    {2, 5, 2, 0}, {3, 5, 0, 0},  {1, 0, 0, 13},  {2, 4, 1, 6},
    {1, 0, 0, 1}, {1, 12, 1, 0}, {1, 100, 3, 0},
};

START_TEST(every_step_is_run_once)
{
    static const int32_t ids[] = {5, 4, 3, 2, 1, 0};
    int runs[STEPS] = {0};
    for (int r = 0; r < cuts[_i].ranks; r++) {
        struct rnnd__shard s = shard_of(cuts[_i].ranks, r, cuts[_i].window,
                                        cuts[_i].windows_per_update, cuts[_i].bound);
        ck_assert_int_eq(rnnd__shard_sequences(&s, ids, SEQUENCES), 0);
        run_all(&s, runs);
        ck_assert_int_eq(rnnd__shard_steps(&s, 0, s.windows), STEPS);
        drop(&s);
    }
    for (int t = 0; t < STEPS; t++)
        ck_assert_int_eq(runs[t], 1);
}
END_TEST

START_TEST(equal_lengths_are_packed_by_id)
{
    static const int32_t ids[] = {4, 2};
    struct rnnd__shard s = shard_of(1, 0, 0, 0, 0);
    ck_assert_int_eq(rnnd__shard_sequences(&s, ids, 2), 0);
    ck_assert_int_eq(s.piece[0].id, 2);
    ck_assert_int_eq(s.piece[1].id, 4);
    drop(&s);
}
END_TEST

/* n tokens make n-1 pairs; 0 and 1 make none. */
START_TEST(language_models_count_pairs)
{
    static const int32_t ids[] = {0, 1, 5};
    struct rnnd__shard s = shard_of(1, 0, 0, 0, 0);
    s.pairs = true;
    ck_assert_int_eq(rnnd__shard_sequences(&s, ids, 3), 0);
    ck_assert_int_eq(s.piece[0].length, 6);
    ck_assert_int_eq(s.piece[1].length, 0);
    ck_assert_int_eq(s.piece[2].length, 0);
    drop(&s);
}
END_TEST

/* Lane i takes pairs floor(i P / B) .. floor((i+1) P / B) - 1, for any number of
   ranks. */
START_TEST(lanes_cut_the_stream)
{
    int owner[7];
    memset(owner, -1, sizeof owner);
    for (int r = 0; r < 3; r++) {
        struct rnnd__shard s = shard_of(3, r, 2, 1, 0);
        s.pairs = true;
        ck_assert_int_eq(rnnd__shard_lanes(&s, 7), 0);
        ck_assert_int_eq(s.windows,
                         3); /* 34 pairs in 7 lanes: at most 5, windows of 2 */
        for (int64_t j = 0; j < s.count; j++) {
            int64_t i = s.piece[j].id;
            ck_assert_int_eq(owner[i], -1);
            owner[i] = r;
            ck_assert_int_eq(s.piece[j].begin, i * 34 / 7);
            ck_assert_int_eq(s.piece[j].length, (i + 1) * 34 / 7 - i * 34 / 7);
        }
        drop(&s);
    }
    for (int i = 0; i < 7; i++)
        ck_assert_int_ge(owner[i], 0);
}
END_TEST

START_TEST(more_lanes_than_pairs_are_refused)
{
    struct rnnd__shard s = shard_of(1, 0, 2, 1, 0);
    ck_assert_int_eq(rnnd__shard_lanes(&s, 34), 0);
    ck_assert_int_eq(rnnd__shard_lanes(&s, 35), RNND_EDATA);
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "34 pairs"));
    drop(&s);
}
END_TEST

/* The bound on memory holds for every rank's real shard. */
START_TEST(limits_cover_every_rank)
{
    static const int32_t ids[] = {0, 1, 2, 3, 4, 5};
    for (int ranks = 1; ranks < 5; ranks++)
        for (int r = 0; r < ranks; r++) {
            struct rnnd_limits limits = {0, 0, 0, 0};
            struct rnnd__shard s = shard_of(ranks, r, 0, 0, 0);
            int64_t rows = 0;
            rnnd__shard_limits(&s, ids, SEQUENCES, &limits);
            ck_assert_int_eq(rnnd__shard_sequences(&s, ids, SEQUENCES), 0);
            for (int64_t j = 0; j < s.count; j++)
                rows += s.piece[j].length;
            ck_assert_int_le(rows, limits.rows);
            ck_assert_int_le(s.count, limits.sequences);
            ck_assert_int_eq(limits.steps, 12);
            drop(&s);
        }
}
END_TEST

/* Also where ranks with few steps take more rows than their part. */
START_TEST(limits_cover_traded_steps)
{
    enum { MANY = 96 };
    int64_t at[MANY + 1] = {0};
    int32_t ids[MANY];
    uint32_t word = (uint32_t)_i;
    for (int i = 0; i < MANY; i++) {
        word = word * 1664525u + 1013904223u;
        at[i + 1] = at[i] + (word >> 24) % 200 / (1 + (word >> 16) % 40);
        ids[i] = i;
    }
    for (int ranks = 1; ranks < 40; ranks += 3)
        for (int r = 0; r < ranks; r++) {
            struct rnnd_limits limits = {0, 0, 0, 0};
            struct rnnd__shard s = {
                .offsets = at, .parts = ranks, .part = r, .step_cost = _i % 2 ? 4 : 20};
            int64_t rows = 0;
            rnnd__shard_limits(&s, ids, MANY, &limits);
            ck_assert_int_eq(rnnd__shard_sequences(&s, ids, MANY), 0);
            for (int64_t j = 0; j < s.count; j++)
                rows += s.piece[j].length;
            ck_assert_int_le(rows, limits.rows);
            drop(&s);
        }
}
END_TEST

/* 10, 5, 5, 5 over two ranks. In quarters of a row: a step of a batch costs 4 besides
   its rows, so that three short sequences (1+20 each, and 20 for 5 steps: 83) weigh as
   much as a long one (1+40, and 40 for 10 steps: 81); run one by one they do not. */
START_TEST(steps_are_charged)
{
    static const int64_t at[] = {0, 5, 15, 20, 25};
    static const int32_t ids[] = {0, 1, 2, 3};
    struct rnnd__shard s = {.offsets = at, .parts = 2, .step_cost = 4};
    ck_assert_int_eq(rnnd__shard_sequences(&s, ids, 4), 0);
    ck_assert_int_eq(s.count, 1);
    ck_assert_int_eq(s.piece[0].id, 1);
    ck_assert_double_eq(s.straggler, 83 * 2 / 164.0);
    s.step_cost = 0;
    ck_assert_int_eq(rnnd__shard_sequences(&s, ids, 4), 0);
    ck_assert_int_eq(s.count, 2);
    ck_assert_double_eq(s.straggler, 62 * 2 / 104.0);
    drop(&s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shard");
    TCase *t = tcase_create("shard");
    tcase_add_loop_test(t, every_step_is_run_once, 0, sizeof cuts / sizeof *cuts);
    tcase_add_test(t, equal_lengths_are_packed_by_id);
    tcase_add_test(t, language_models_count_pairs);
    tcase_add_test(t, lanes_cut_the_stream);
    tcase_add_test(t, more_lanes_than_pairs_are_refused);
    tcase_add_test(t, limits_cover_every_rank);
    tcase_add_loop_test(t, limits_cover_traded_steps, 0, 40);
    tcase_add_test(t, steps_are_charged);
    suite_add_tcase(s, t);
    return run_suite(s);
}
