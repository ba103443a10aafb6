/*
 * test_random.c - Philox against the published answers of Random123, and what is drawn
 * with it.
 */
#include <math.h>
#include <stdlib.h>

#include "../suite.h"
#include "base/random.h"

/* Known answers: Random123's kat_vectors, philox4x32 10 rounds. */
static const struct {
    uint32_t counter[4], key[2], word[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

START_TEST(published_answers)
{
    const uint32_t *c = known[_i].counter, *k = known[_i].key;
    struct rnnd__random r =
        rnnd__philox(((uint64_t)k[1] << 32) | k[0], c[0], c[1], c[2], c[3]);
    for (int w = 0; w < 4; w++)
        ck_assert_uint_eq(r.word[w], known[_i].word[w]);
}
END_TEST

START_TEST(keys_differ_in_every_part)
{
    uint64_t key = rnnd__random_key(1, RNND_FOR_DROPOUT, 2, 3);
    ck_assert_uint_eq(key, rnnd__random_key(1, RNND_FOR_DROPOUT, 2, 3));
    ck_assert_uint_ne(key, rnnd__random_key(2, RNND_FOR_DROPOUT, 2, 3));
    ck_assert_uint_ne(key, rnnd__random_key(1, RNND_FOR_SHUFFLE, 2, 3));
    ck_assert_uint_ne(key, rnnd__random_key(1, RNND_FOR_DROPOUT, 3, 3));
    ck_assert_uint_ne(key, rnnd__random_key(1, RNND_FOR_DROPOUT, 2, 4));
    ck_assert_uint_ne(
        key, rnnd__random_key(1, RNND_FOR_DROPOUT, 2, 3 + (UINT64_C(1) << 32)));
}
END_TEST

START_TEST(uniform_stays_below_one)
{
    ck_assert(rnnd__uniform(0) == 0);
    ck_assert(rnnd__uniform(UINT32_MAX) < 1);
    ck_assert(rnnd__uniform(UINT32_MAX) > 0.9999999f);
}
END_TEST

/* The share of dropped units over many draws: within five standard deviations of p. */
START_TEST(dropout_drops_its_share)
{
    static const double ps[] = {0.1, 0.5, 0.9};
    double p = ps[_i], n = 0, dropped = 0;
    uint32_t threshold = rnnd__dropout_threshold(p);
    for (int64_t id = 0; id < 50; id++)
        for (int64_t step = 0; step < 50; step++)
            for (int64_t unit = 0; unit < 40; unit += 4) {
                struct rnnd__random r = rnnd__dropout_words(7, id, step, unit);
                for (int w = 0; w < 4; w++, n++)
                    dropped += r.word[w] < threshold;
            }
    ck_assert_double_lt(fabs(dropped / n - p), 5 * sqrt(p * (1 - p) / n));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("random");
    TCase *t = tcase_create("philox");
    tcase_add_loop_test(t, published_answers, 0, 3);
    tcase_add_test(t, keys_differ_in_every_part);
    tcase_add_test(t, uniform_stays_below_one);
    tcase_add_loop_test(t, dropout_drops_its_share, 0, 3);
    suite_add_tcase(s, t);
    return run_suite(s);
}
