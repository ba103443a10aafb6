/*
 * test_batch.c - packed batches: where every step lands, and what comes with it.
 *
 * The data set says what it is: feature f of step s is 100 s + f, so that any misplaced
 * row shows.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "data/batch.h"
#include "hdf/hdf.h"

/* Lengths 3 0 2 5. */
static const int64_t offsets[] = {0, 3, 3, 5, 10};
enum { N = 4, S = 10, I = 2, V = 6 };
static const int32_t tokens[S] = {5, 1, 5, 0, 2, 1, 1, 3, 5, 0};

static struct rnnd_backend *be;
static char path[64];

static float feature(int64_t step, int64_t f)
{
    return (float)(100 * step + f);
}

static void write_base(struct rnnd__hdf *f, const char *task)
{
    int64_t dim[] = {N + 1};
    ck_assert_int_eq(rnnd__hdf_set_string(f, "format", "rnn_dist-data"), 0);
    ck_assert_int_eq(rnnd__hdf_set_int(f, "version", 1), 0);
    ck_assert_int_eq(rnnd__hdf_set_string(f, "task", task), 0);
    ck_assert_int_eq(rnnd__hdf_write(f, "/offsets", RNND_I64, 1, dim, false, offsets),
                     0);
}

static struct rnnd_dataset *reopen(struct rnnd__hdf *f)
{
    struct rnnd_dataset *data;
    ck_assert_int_eq(rnnd__hdf_commit(f), 0);
    ck_assert_int_eq(rnnd_dataset_open(path, &data), 0);
    return data;
}

/* Features, and labels of steps (10 s) or of sequences (7 i). */
static struct rnnd_dataset *feature_data(bool steps)
{
    struct rnnd__hdf *f;
    float x[S][I];
    int32_t label[S];
    int64_t dim[] = {S, I}, count = steps ? S : N;
    for (int s = 0; s < S; s++)
        for (int i = 0; i < I; i++)
            x[s][i] = feature(s, i);
    for (int s = 0; s < S; s++)
        label[s] = steps ? 10 * s : 7 * s;
    ck_assert_int_eq(rnnd__hdf_create(path, &f), 0);
    write_base(f, steps ? "tag" : "classify");
    ck_assert_int_eq(rnnd__hdf_set_int(f, "num_classes", 100), 0);
    ck_assert_int_eq(rnnd__hdf_write(f, "/inputs", RNND_F32, 2, dim, false, x), 0);
    ck_assert_int_eq(rnnd__hdf_write(f, "/targets", RNND_I32, 1, &count, false, label),
                     0);
    return reopen(f);
}

static struct rnnd_dataset *token_data(int64_t vocab)
{
    struct rnnd__hdf *f;
    int64_t dim[] = {S};
    ck_assert_int_eq(rnnd__hdf_create(path, &f), 0);
    write_base(f, "lm");
    ck_assert_int_eq(rnnd__hdf_set_int(f, "vocab_size", vocab), 0);
    ck_assert_int_eq(rnnd__hdf_write(f, "/inputs", RNND_I32, 1, dim, false, tokens), 0);
    return reopen(f);
}

static const void *on_host(struct rnnd__buf buf)
{
    return be->ops->host(be, buf);
}

static struct rnnd_batch *batch_of(struct rnnd_dataset *data)
{
    struct rnnd_batch *b;
    ck_assert_int_eq(rnnd_batch_new(be, data, true, NULL, NULL, &b), 0);
    return b;
}

/* 3 (5 steps), 0 (3 steps), 2 (2 steps), 1 (none): the ids in any order. */
START_TEST(rows_are_time_major)
{
    static const int32_t ids[] = {2, 1, 0, 3};
    static const int32_t n[] = {3, 3, 2, 1, 1};
    static const int64_t off[] = {0, 3, 6, 8, 9, 10};
    static const int64_t step[] = {5, 0, 3, 6, 1, 4, 7, 2, 8, 9};
    struct rnnd_dataset *data = feature_data(true);
    struct rnnd_batch *b = batch_of(data);
    ck_assert_int_eq(rnnd_batch_load_sequences(b, ids, 4), 0);
    const struct rnnd__packed *p = &b->packed;
    ck_assert(p->N == 4 && p->T == 5 && p->R == 10);
    ck_assert_mem_eq(p->n, n, sizeof n);
    ck_assert_mem_eq(p->off, off, sizeof off);
    ck_assert_mem_eq(on_host(p->d_n), n, sizeof n);
    ck_assert_mem_eq(on_host(p->d_off), off, sizeof off);
    ck_assert(p->id[0] == 3 && p->id[1] == 0 && p->id[2] == 2 && p->id[3] == 1);
    const float *x = on_host(b->inputs);
    const int32_t *label = on_host(b->targets);
    for (int r = 0; r < S; r++) {
        ck_assert(x[r * I] == feature(step[r], 0) &&
                  x[r * I + 1] == feature(step[r], 1));
        ck_assert_int_eq(label[r], 10 * step[r]);
    }
    rnnd_batch_free(b);
    rnnd_dataset_close(data);
}
END_TEST

/* Case 4: labels follow their sequences in every order of the ids. */
START_TEST(labels_follow_their_sequences)
{
    int32_t ids[] = {0, 1, 2, 3};
    struct rnnd_dataset *data = feature_data(false);
    struct rnnd_batch *b = batch_of(data);
    for (int order = 0; order < 24; order++) {
        for (int32_t i = 0; i < 4; i++)
            ids[i] = i;
        for (int i = 0, code = order; i < 3; i++, code /= 4) {
            int j = i + code % (4 - i);
            int32_t swap = ids[i];
            ids[i] = ids[j];
            ids[j] = swap;
        }
        ck_assert_int_eq(rnnd_batch_load_sequences(b, ids, 4), 0);
        const int32_t *label = on_host(b->targets);
        for (int j = 0; j < 4; j++)
            ck_assert_int_eq(label[j], 7 * b->sequence[j]);
    }
    rnnd_batch_free(b);
    rnnd_dataset_close(data);
}
END_TEST

START_TEST(next_tokens_are_targets)
{
    static const int32_t ids[] = {0, 2, 3};
    static const int32_t in[] = {1, 5, 0, 1, 1, 3, 5}, out[] = {1, 1, 2, 3, 5, 5, 0};
    struct rnnd_dataset *data = token_data(V);
    struct rnnd_batch *b = batch_of(data);
    ck_assert_int_eq(rnnd_batch_load_sequences(b, ids, 3), 0);
    ck_assert_int_eq(b->packed.R, 7);
    ck_assert_mem_eq(on_host(b->inputs), in, sizeof in);
    ck_assert_mem_eq(on_host(b->targets), out, sizeof out);
    rnnd_batch_free(b);
    rnnd_dataset_close(data);
}
END_TEST

/* A lane reads over the ends of sequences. */
START_TEST(lanes_read_across_sequences)
{
    struct rnnd_piece lane = {.id = 0, .begin = 1, .length = 4, .sequence = -1};
    struct rnnd_dataset *data = token_data(V);
    struct rnnd_batch *b = batch_of(data);
    ck_assert_int_eq(rnnd_batch_load(b, &lane, 1, 12), 0);
    ck_assert_int_eq(b->packed.first, 12);
    ck_assert_mem_eq(on_host(b->inputs), tokens + 1, 4 * sizeof *tokens);
    ck_assert_mem_eq(on_host(b->targets), tokens + 2, 4 * sizeof *tokens);
    rnnd_batch_free(b);
    rnnd_dataset_close(data);
}
END_TEST

/* By counting, and by comparing rows, where most of a large vocabulary is not used. */
START_TEST(rows_are_sorted_by_token)
{
    struct rnnd_piece all = {.id = 0, .begin = 0, .length = 9, .sequence = -1};
    static const int32_t token[] = {0, 1, 2, 3, 5};
    static const int32_t segment[] = {0, 1, 4, 5, 6, 9};
    static const int32_t rows[] = {3, 1, 5, 6, 4, 7, 0, 2, 8};
    struct rnnd_dataset *data = token_data(_i ? 100000 : V);
    struct rnnd_batch *b = batch_of(data);
    ck_assert_int_eq(rnnd_batch_load(b, &all, 1, 0), 0);
    ck_assert_int_eq(rnnd__batch_sort_tokens(b), 0);
    ck_assert_int_eq(b->segments.count, 5);
    ck_assert_mem_eq(on_host(b->segments.token), token, sizeof token);
    ck_assert_mem_eq(on_host(b->segments.segment), segment, sizeof segment);
    ck_assert_mem_eq(on_host(b->segments.rows), rows, sizeof rows);
    rnnd_batch_free(b);
    rnnd_dataset_close(data);
}
END_TEST

START_TEST(features_are_normalised)
{
    static const float mean[] = {100, 1}, std[] = {50, 4};
    static const int32_t ids[] = {0};
    struct rnnd_dataset *data = feature_data(true);
    struct rnnd_batch *b;
    ck_assert_int_eq(rnnd_batch_new(be, data, true, mean, std, &b), 0);
    ck_assert_int_eq(rnnd_batch_load_sequences(b, ids, 1), 0);
    const float *x = on_host(b->inputs);
    ck_assert(x[0] == -2 && x[1] == 0 && x[2] == 0 && x[3] == 25 && x[4] == 2 &&
              x[5] == 50);
    rnnd_batch_free(b);
    rnnd_dataset_close(data);
}
END_TEST

START_TEST(reserved_memory_stays)
{
    struct rnnd_limits limits = {4, 5, 10, 0};
    static const int32_t ids[] = {0, 3, 1, 2};
    struct rnnd_dataset *data = feature_data(true);
    struct rnnd_batch *b = batch_of(data);
    ck_assert_int_eq(rnnd_batch_reserve(b, &limits), 0);
    const void *inputs = on_host(b->inputs), *off = b->off;
    for (int64_t count = 0; count <= 4; count++) {
        ck_assert_int_eq(rnnd_batch_load_sequences(b, ids, count), 0);
        ck_assert_ptr_eq(on_host(b->inputs), inputs);
        ck_assert_ptr_eq(b->off, off);
    }
    rnnd_batch_free(b);
    rnnd_dataset_close(data);
}
END_TEST

START_TEST(only_empty_sequences)
{
    static const int32_t ids[] = {1, 1};
    struct rnnd_dataset *data = feature_data(false);
    struct rnnd_batch *b = batch_of(data);
    ck_assert_int_eq(rnnd_batch_load_sequences(b, ids, 2), 0);
    ck_assert(b->packed.N == 2 && b->packed.T == 0 && b->packed.R == 0);
    ck_assert_int_eq(((const int32_t *)on_host(b->targets))[1], 7);
    rnnd_batch_free(b);
    rnnd_dataset_close(data);
}
END_TEST

static void open_all(void)
{
    struct rnnd__backend_config config = {.threads = 1, .precision = RNND_FP32};
    char error[256];
    ck_assert_int_eq(rnnd__cpu_open(&config, &be, error), 0);
    snprintf(path, sizeof path, "test_batch.%ld.h5", (long)getpid());
}

static void close_all(void)
{
    unlink(path);
    rnnd_backend_close(be);
}

int main(void)
{
    Suite *s = suite_create("batch");
    TCase *t = tcase_create("packing");
    tcase_add_checked_fixture(t, open_all, close_all);
    tcase_add_test(t, rows_are_time_major);
    tcase_add_test(t, labels_follow_their_sequences);
    tcase_add_test(t, next_tokens_are_targets);
    tcase_add_test(t, lanes_read_across_sequences);
    tcase_add_loop_test(t, rows_are_sorted_by_token, 0, 2);
    tcase_add_test(t, features_are_normalised);
    tcase_add_test(t, reserved_memory_stays);
    tcase_add_test(t, only_empty_sequences);
    suite_add_tcase(s, t);
    return run_suite(s);
}
