/*
 * test_decode.c - strings of labels from scores, by the best path and by beams, where
 * given labels are, and the distance of strings: small lattices by all their paths.
 */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "evaluate/align.h"
#include "evaluate/beam.h"
#include "evaluate/decode.h"
#include "testing.h"

/* ---- the best path */

START_TEST(best_paths)
{
    /* blank 2 2 blank 2 1 (1 and 2 tie) nothing */
    static const float score[7][3] = {{3, 1, 2},      {0, 1, 2},    {0, 1, 2},
                                      {1, 0, 0},      {-3, -2, -1}, {0, 1, 1},
                                      {NAN, NAN, NAN}};
    const float *row[7];
    int32_t label[7];
    for (int t = 0; t < 7; t++)
        row[t] = score[t];
    ck_assert_int_eq(rnnd__decode_best(row, 7, 3, label), 3);
    ck_assert_mem_eq(label, ((int32_t[]){1, 1, 0}), 12);
    ck_assert_int_eq(rnnd__decode_best(row, 0, 3, label), 0);
}
END_TEST

/* ---- small lattices, by all their paths */

enum { STEPS = 6, OUTPUTS = 3, STRINGS = 1 << 2 * STEPS };

/* Scores of T = k % 7 steps, as in a draw k. */
struct lattice {
    float score[STEPS][OUTPUTS];
    const float *row[STEPS];
    int T;
};

static void draw_lattice(struct lattice *l, int k)
{
    l->T = k % (STEPS + 1);
    for (int t = 0; t < l->T; t++) {
        struct rnnd__random r = rnnd__philox(5, (uint32_t)k, (uint32_t)t, 0, 0);
        for (int i = 0; i < OUTPUTS; i++)
            l->score[t][i] = (float)(2 * rnnd__uniform(r.word[i]));
        l->row[t] = l->score[t];
    }
}

/* The string of a path, as a number in base 4, each label plus 1. */
static int spell(const int *path, int T)
{
    int word = 0, before = 0;
    for (int t = 0; t < T; t++) {
        if (path[t] != 0 && path[t] != before)
            word = 4 * word + path[t];
        before = path[t];
    }
    return word;
}

static int as_word(const int32_t *label, int64_t count)
{
    int word = 0;
    for (int64_t i = 0; i < count; i++)
        word = 4 * word + label[i] + 1;
    return word;
}

/* Of every string the probability of its paths, in all and of the best one. */
struct truth {
    double sum[STRINGS], most[STRINGS];
};

static void sum_paths(const struct lattice *l, struct truth *out)
{
    double total = 0;
    int paths = 1;
    memset(out, 0, sizeof *out);
    for (int t = 0; t < l->T; t++)
        paths *= OUTPUTS;
    for (int i = 0; i < paths; i++) {
        int path[STEPS], rest = i;
        double log_p = 0;
        for (int t = 0; t < l->T; t++, rest /= OUTPUTS) {
            path[t] = rest % OUTPUTS;
            log_p += (double)l->row[t][path[t]];
        }
        int word = spell(path, l->T);
        out->sum[word] += exp(log_p);
        out->most[word] = fmax(out->most[word], exp(log_p));
        total += exp(log_p);
    }
    for (int word = 0; word < STRINGS; word++) {
        out->sum[word] /= total;
        out->most[word] /= total;
    }
}

/* What a beam finds, best first: each string once, none more probable than it is. */
static int64_t check_ranks(struct rnnd__beam *beam, const struct lattice *l,
                           const struct truth *truth)
{
    bool seen[STRINGS] = {false};
    int32_t label[STEPS];
    int64_t found, count;
    double log_p, before = 0;
    must(rnnd__beam_search(beam, l->row, l->T, &found));
    for (int64_t rank = 0; rank < found; rank++) {
        rnnd__beam_string(beam, rank, label, &count, &log_p);
        int word = as_word(label, count);
        ck_assert(!seen[word]);
        ck_assert_double_le(log_p, before + 1e-9);
        ck_assert_double_le(exp(log_p), truth->sum[word] + 1e-9);
        seen[word] = true;
        before = log_p;
    }
    return found;
}

/* With room for every prefix the search finds all strings, with what the sum over all
   paths says, and so the best; often that is not the string of the best path. */
START_TEST(wide_beams_find_all_strings)
{
    static struct truth truth;
    struct rnnd__beam *beam;
    int other = 0;
    must(rnnd__beam_new(200, OUTPUTS, &beam));
    for (int k = 0; k < 300; k++) {
        struct lattice l;
        int32_t label[STEPS];
        int64_t count, strings = 0;
        int best = 0;
        double log_p;
        draw_lattice(&l, k);
        sum_paths(&l, &truth);
        for (int word = 0; word < STRINGS; word++) {
            strings += truth.sum[word] > 0;
            best = truth.sum[word] > truth.sum[best] ? word : best;
        }
        ck_assert_int_eq(check_ranks(beam, &l, &truth), strings);
        for (int64_t rank = 0; rank < strings; rank++) {
            rnnd__beam_string(beam, rank, label, &count, &log_p);
            ck_assert_double_eq_tol(exp(log_p), truth.sum[as_word(label, count)], 1e-9);
            ck_assert(rank > 0 || as_word(label, count) == best);
        }
        count = rnnd__decode_best(l.row, l.T, OUTPUTS, label);
        other += as_word(label, count) != best;
    }
    ck_assert_int_gt(other, 50);
    rnnd__beam_free(beam);
}
END_TEST

enum { LONG = 60, WIDEST = 12 };

/* The strings of a beam as texts, a letter for each label. */
static int64_t texts_of(struct rnnd__beam *beam, const float *const *row,
                        char text[WIDEST][LONG + 1])
{
    int64_t found, count;
    int32_t label[LONG];
    double log_p;
    must(rnnd__beam_search(beam, row, LONG, &found));
    for (int64_t rank = 0; rank < found; rank++) {
        rnnd__beam_string(beam, rank, label, &count, &log_p);
        for (int64_t i = 0; i < count; i++)
            text[rank][i] = (char)('a' + label[i]);
        text[rank][count] = 0;
    }
    return found;
}

/* A prefix that was dropped comes back beside its longer ones: they are not found
   twice. */
START_TEST(narrow_beams_find_each_string_once)
{
    static char text[WIDEST][LONG + 1];
    for (int64_t width = 1; width <= WIDEST; width++) {
        struct rnnd__beam *beam;
        must(rnnd__beam_new(width, OUTPUTS, &beam));
        for (int k = 0; k < 60; k++) {
            float score[LONG][OUTPUTS];
            const float *row[LONG];
            for (int t = 0; t < LONG; t++) {
                struct rnnd__random r = rnnd__philox(6, (uint32_t)k, (uint32_t)t, 0, 0);
                for (int i = 0; i < OUTPUTS; i++)
                    score[t][i] = (float)(6 * rnnd__uniform(r.word[i]));
                row[t] = score[t];
            }
            int64_t found = texts_of(beam, row, text);
            ck_assert_int_eq(found, width);
            for (int64_t i = 0; i < found; i++)
                for (int64_t j = 0; j < i; j++)
                    ck_assert_str_ne(text[i], text[j]);
        }
        rnnd__beam_free(beam);
    }
}
END_TEST

START_TEST(no_numbers_no_strings)
{
    static const float nothing[] = {NAN, NAN, NAN};
    const float *row[] = {nothing};
    struct rnnd__beam *beam;
    int64_t found;
    must(rnnd__beam_new(4, 3, &beam));
    must(rnnd__beam_search(beam, row, 1, &found));
    ck_assert_int_eq(found, 0);
    rnnd__beam_free(beam);
}
END_TEST

/* ---- alignments */

/* The path that an alignment stands for. */
static void path_of(const struct rnnd__alignment *a, const int32_t *label, int T,
                    int *path)
{
    for (int t = 0; t < T; t++)
        path[t] = a->place[t] < 0 ? 0 : label[a->place[t]] + 1;
}

/* The labels of a word, in order. */
static int64_t labels_of(int word, int32_t *label)
{
    int64_t count = 0;
    for (int rest = word; rest > 0; rest /= 4)
        count++;
    for (int64_t i = count; i > 0; word /= 4)
        label[--i] = word % 4 - 1;
    return count;
}

static void check_alignment(struct rnnd__aligner *aligner, const struct lattice *l,
                            int word, double most)
{
    struct rnnd__alignment a;
    int32_t label[2 * STEPS];
    int path[STEPS];
    int64_t count = labels_of(word, label);
    must(rnnd__align(aligner, l->row, l->T, label, count, &a));
    ck_assert((a.place != NULL) == (most > 0));
    ck_assert(isnan(a.log_p) == (most == 0));
    if (!a.place)
        return;
    path_of(&a, label, l->T, path);
    ck_assert_int_eq(spell(path, l->T), word);
    ck_assert_double_eq_tol(exp(a.log_p), most, 1e-9);
    double log_p = 0;
    for (int t = 0; t < l->T; t++)
        log_p += (double)l->row[t][path[t]] - rnnd__decode_total(l->row[t], OUTPUTS);
    ck_assert_double_eq_tol(log_p, a.log_p, 1e-9);
    for (int t = 1; t < l->T; t++)
        ck_assert(a.place[t] < 0 || a.place[t - 1] < 0 ||
                  a.place[t] == a.place[t - 1] || a.place[t] == a.place[t - 1] + 1);
}

/* Every string of up to seven labels, also those that do not fit, against the best of
   all paths. */
START_TEST(alignments_are_best_paths)
{
    static struct truth truth;
    struct rnnd__aligner *aligner;
    int fit = 0;
    must(rnnd__aligner_new(OUTPUTS, &aligner));
    for (int k = 0; k < 28; k++) {
        struct lattice l;
        draw_lattice(&l, k);
        sum_paths(&l, &truth);
        for (int word = 0; word < 4 * STRINGS; word++) {
            int rest = word, valid = 1;
            for (; rest > 0; rest /= 4)
                valid &= rest % 4 > 0 && rest % 4 < OUTPUTS;
            double most = word < STRINGS ? truth.most[word] : 0;
            if (valid)
                check_alignment(aligner, &l, word, most);
            fit += valid && most > 0;
        }
    }
    ck_assert_int_gt(fit, 300);
    rnnd__aligner_free(aligner);
}
END_TEST

/* Of equal paths, the one that is first at its later labels. */
START_TEST(alignments_of_ties)
{
    static const float flat[] = {0, 0, 0};
    const float *row[] = {flat, flat, flat, flat};
    struct rnnd__aligner *aligner;
    struct rnnd__alignment a;
    must(rnnd__aligner_new(3, &aligner));
    must(rnnd__align(aligner, row, 4, (int32_t[]){0, 1}, 2, &a));
    ck_assert_mem_eq(a.place, ((int32_t[]){0, 1, -1, -1}), 16);
    must(rnnd__align(aligner, row, 3, (int32_t[]){1, 1}, 2, &a));
    ck_assert_mem_eq(a.place, ((int32_t[]){0, -1, 1}), 12);
    must(rnnd__align(aligner, row, 2, (int32_t[]){1, 1}, 2, &a));
    ck_assert_ptr_null(a.place);
    must(rnnd__align(aligner, row, 0, NULL, 0, &a));
    ck_assert(a.place && a.log_p == 0);
    rnnd__aligner_free(aligner);
}
END_TEST

/* ---- distances */

START_TEST(distances)
{
    static const int32_t a[] = {1, 2, 3, 4}, b[] = {1, 3, 4, 4, 5}, unknown = -1;
    int64_t work[6];
    ck_assert_int_eq(rnnd__decode_distance(a, 4, a, 4, work), 0);
    ck_assert_int_eq(rnnd__decode_distance(a, 4, b, 5, work), 3);
    ck_assert_int_eq(rnnd__decode_distance(b, 5, a, 4, work), 3);
    ck_assert_int_eq(rnnd__decode_distance(a, 4, b, 0, work), 4);
    ck_assert_int_eq(rnnd__decode_distance(a, 0, b, 5, work), 5);
    ck_assert_int_eq(rnnd__decode_distance(a, 1, &unknown, 1, work), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decode");
    TCase *t = tcase_create("decode");
    tcase_add_test(t, best_paths);
    tcase_add_test(t, wide_beams_find_all_strings);
    tcase_add_test(t, narrow_beams_find_each_string_once);
    tcase_add_test(t, no_numbers_no_strings);
    tcase_add_test(t, alignments_are_best_paths);
    tcase_add_test(t, alignments_of_ties);
    tcase_add_test(t, distances);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
