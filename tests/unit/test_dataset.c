/*
 * test_dataset.c - data files of every task read back, from memory and by slices; every
 * refusal with its object and index; files as h5py writes them; damaged files.
 */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "data/dataset.h"
#include "data/dataset_names.h"
#include "data/prefetch.h"
#include "testing.h"

/* ---- data files to order */

struct array {
    enum rnnd__hdf_type type;
    int rank;
    int64_t dim[3];
    /* NULL = zeros */
    const void *data;
};

struct set {
    /* NULL = none */
    const char *format;
    int64_t version;
    /* NULL = none */
    const char *task, *missing;
    /* 0 = none */
    int64_t vocab, classes;
    /* of type 0 and rank 0: none */
    struct array offsets, inputs, targets;
    const char *const *names, *const *class, *const *token, *const *feature;
    /* how many of each; of features, as many as there are columns */
    int64_t texts;
};

/* clang-format off */
#define INT64S(...)                                                                  \
    {RNND_I64, 1, {sizeof((int64_t[]){__VA_ARGS__}) / 8}, (int64_t[]){__VA_ARGS__}}
#define INT32S(...)                                                                  \
    {RNND_I32, 1, {sizeof((int32_t[]){__VA_ARGS__}) / 4}, (int32_t[]){__VA_ARGS__}}
#define FLOATS(rows, columns, ...)                                                   \
    {RNND_F32, 2, {rows, columns}, (float[]){__VA_ARGS__}}
/* clang-format on */
#define OURS .format = "rnn_dist-data", .version = 1

static void put(struct rnnd__hdf *file, const char *object, const struct array *a)
{
    if (a->rank || a->data)
        must(rnnd__hdf_write(file, object, a->type, a->rank, a->dim, false, a->data));
}

static void make_set(const struct set *s)
{
    struct rnnd__hdf *file;
    must(rnnd__hdf_create(in_folder("d.h5"), &file));
    if (s->format)
        must(rnnd__hdf_set_string(file, "format", s->format));
    if (s->version)
        must(rnnd__hdf_set_int(file, "version", s->version));
    if (s->task)
        must(rnnd__hdf_set_string(file, "task", s->task));
    if (s->missing)
        must(rnnd__hdf_set_string(file, "missing", s->missing));
    if (s->vocab)
        must(rnnd__hdf_set_int(file, "vocab_size", s->vocab));
    if (s->classes)
        must(rnnd__hdf_set_int(file, "num_classes", s->classes));
    put(file, "/offsets", &s->offsets);
    put(file, "/inputs", &s->inputs);
    put(file, "/targets", &s->targets);
    if (s->names)
        must(rnnd__hdf_write_strings(file, "/names", s->names, s->texts));
    if (s->class)
        must(rnnd__hdf_write_strings(file, "/classes", s->class, s->texts));
    if (s->token)
        must(rnnd__hdf_write_strings(file, "/vocab", s->token, s->texts));
    if (s->feature)
        must(rnnd__hdf_write_strings(file, "/features", s->feature, s->inputs.dim[1]));
    must(rnnd__hdf_commit(file));
}

static struct rnnd_dataset *opened(const struct set *s)
{
    struct rnnd_dataset *data;
    make_set(s);
    must(rnnd_dataset_open(in_folder("d.h5"), &data));
    return data;
}

static void refused(const struct set *s, const char *why)
{
    struct rnnd_dataset *data = NULL;
    make_set(s);
    must_fail(RNND_EDATA, rnnd_dataset_open(in_folder("d.h5"), &data));
    ck_assert_ptr_null(data);
    ck_assert_str_eq(rest_of_detail(), why);
}

/* The same set from memory and from disk. */
static const int64_t keeps[] = {1 << 20, 0};

/* Only a set that is not in memory is read ahead, and it is the same set. */
START_TEST(reading_ahead)
{
    static const int64_t keep[] = {1 << 20, 12, 0}; /* all, targets only, nothing */
    struct set s = {OURS,
                    .task = "tag",
                    .classes = 4,
                    .offsets = INT64S(0, 2, 2, 3),
                    .inputs = FLOATS(3, 2, 1, 2, 3, 4, 5, 6),
                    .targets = INT32S(2, -1, 0)};
    struct rnnd_plan_options how = {.batch = 2};
    struct rnnd_options opt;
    must(rnnd_options_init(&opt));
    for (int k = 0; k < 3; k++) {
        rnnd__dataset_keep = keep[k];
        struct rnnd_dataset *data = opened(&s);
        struct rnnd_plan *plan;
        struct rnnd__prefetch *prefetch;
        float x[4];
        int32_t label[2];
        ck_assert(rnnd_dataset_in_memory(data) == (k == 0));
        must(rnnd_plan_new(rnnd_dataset_offsets(data), 3, &how, &plan));
        rnnd_plan_epoch(plan, 0);
        must(rnnd__prefetch_new(&opt, data, 0, 1, &prefetch));
        ck_assert((prefetch == NULL) == (k == 0));
        for (int64_t e = 0; e < 3; e++) /* of 2 */
            must(rnnd__prefetch_entry(prefetch, plan, e));
        rnnd_dataset_prefetch(data, 3, 0);
        must(rnnd_dataset_inputs(data, 1, 2, x));
        ck_assert_mem_eq(x, ((float[]){3, 4, 5, 6}), sizeof x);
        must(rnnd_dataset_targets(data, 1, 2, label));
        ck_assert_mem_eq(label, ((int32_t[]){-1, 0}), sizeof label);
        rnnd__prefetch_free(prefetch);
        rnnd_plan_free(plan);
        rnnd_dataset_close(data);
    }
    rnnd_options_clear(&opt);
}
END_TEST

/* ---- every task */

START_TEST(classify)
{
    const char *names[] = {"a", "", "c"}, *classes[] = {"x", "y", "z"};
    struct set s = {OURS,
                    .task = "classify",
                    .classes = 3,
                    .offsets = INT64S(0, 2, 2, 3),
                    .inputs = FLOATS(3, 2, 1, 2, 3, 4, 5, 6),
                    .targets = INT32S(2, -1, 0),
                    .names = names,
                    .class = classes,
                    .texts = 3};
    uint64_t print = 0;
    for (int k = 0; k < 2; k++) {
        rnnd__dataset_keep = keeps[k];
        struct rnnd_dataset *data = opened(&s);
        const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
        float x[4];
        int32_t label[3];
        ck_assert_str_eq(info->path, in_folder("d.h5"));
        ck_assert_int_eq(info->task, RNND_CLASSIFY);
        ck_assert_int_eq(info->sequences, 3);
        ck_assert_int_eq(info->steps, 3);
        ck_assert_int_eq(info->longest, 2);
        ck_assert_int_eq(info->inputs, 2);
        ck_assert_int_eq(info->vocab, 0);
        ck_assert_int_eq(info->outputs, 3);
        ck_assert_int_eq(info->targets, 2);
        ck_assert(k == 0 || info->fingerprint == print);
        print = info->fingerprint;
        ck_assert_mem_eq(rnnd_dataset_offsets(data), s.offsets.data, 4 * 8);
        must(rnnd_dataset_inputs(data, 1, 2, x));
        ck_assert_mem_eq(x, ((float[]){3, 4, 5, 6}), sizeof x);
        must(rnnd_dataset_targets(data, 0, 3, label));
        ck_assert_mem_eq(label, s.targets.data, sizeof label);
        must(rnnd_dataset_targets(data, 3, 0, label));
        must_fail(RNND_EDATA, rnnd_dataset_inputs(data, 2, 2, x));
        ck_assert_str_eq(rest_of_detail(),
                         "d.h5: /inputs: rows 2 to 3 requested, it has 3");
        must_fail(RNND_EDATA, rnnd_dataset_targets(data, -1, 1, label));
        ck_assert_str_eq(rnnd_dataset_name(data, 2), "c");
        ck_assert_str_eq(rnnd_dataset_name(data, 1), "");
        ck_assert_ptr_null(rnnd_dataset_name(data, 3));
        ck_assert_str_eq(rnnd_dataset_class(data, 0), "x");
        ck_assert_ptr_null(rnnd_dataset_class(data, -1));
        ck_assert_ptr_null(rnnd_dataset_token(data, 0));
        rnnd_dataset_close(data);
    }
}
END_TEST

START_TEST(lm)
{
    const char *token[] = {"<unk>", "ä", " "};
    struct set s = {OURS,
                    .task = "lm",
                    .vocab = 3,
                    .offsets = INT64S(0, 0, 1, 5),
                    .inputs = INT64S(0, 1, 2, 2, 1),
                    .token = token,
                    .texts = 3};
    for (int k = 0; k < 2; k++) {
        rnnd__dataset_keep = keeps[k];
        struct rnnd_dataset *data = opened(&s);
        const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
        int32_t id[5];
        ck_assert_int_eq(info->task, RNND_LM);
        ck_assert_int_eq(info->inputs, 0);
        ck_assert_int_eq(info->vocab, 3);
        ck_assert_int_eq(info->outputs, 3);
        ck_assert_int_eq(info->targets, 3);
        ck_assert_int_eq(info->longest, 4);
        must(rnnd_dataset_inputs(data, 0, 5, id));
        ck_assert_mem_eq(id, ((int32_t[]){0, 1, 2, 2, 1}), sizeof id);
        must_fail(RNND_EDATA, rnnd_dataset_targets(data, 0, 1, id));
        ck_assert_str_eq(rnnd_dataset_token(data, 1), "ä");
        rnnd_dataset_close(data);
    }
}
END_TEST

START_TEST(values_per_step_and_sequence)
{
    float targets[] = {0, 1, NAN, 1, 0.5f, 0.25f};
    struct set s = {
        OURS, .task = "multilabel", .offsets = INT32S(0, 1, 3),
        .inputs = FLOATS(3, 1, -1, 0, 1),
        .targets = {RNND_F64, 2, {3, 2}, (double[]){0, 1, NAN, 1, 0.5, 0.25}}};
    struct array each = INT32S(0, 1, 2, 3), pair = s.offsets;
    const char *tasks[] = {"multilabel", "regress_steps", "regress"};
    for (int t = 0; t < 3; t++)
        for (int k = 0; k < 2; k++) {
            float got[6];
            rnnd__dataset_keep = keeps[k];
            s.task = tasks[t];
            s.offsets = t == 2 ? each : pair;
            struct rnnd_dataset *data = opened(&s);
            ck_assert_int_eq(rnnd_dataset_info(data)->targets, 2);
            ck_assert_int_eq(rnnd_dataset_info(data)->outputs, 2);
            must(rnnd_dataset_targets(data, 0, 3, got));
            ck_assert(isnan(got[2]));
            got[2] = targets[2];
            ck_assert_mem_eq(got, targets, sizeof got);
            rnnd_dataset_close(data);
        }
    s.task = "multilabel";
    s.offsets = pair;
    s.targets = (struct array){RNND_U8, 2, {3, 2}, (uint8_t[]){1, 0, 0, 0, 1, 1}};
    struct rnnd_dataset *data = opened(&s);
    float got[6];
    must(rnnd_dataset_targets(data, 0, 3, got));
    ck_assert_mem_eq(got, ((float[]){1, 0, 0, 0, 1, 1}), sizeof got);
    ck_assert_int_eq(rnnd_dataset_info(data)->targets, 3);
    rnnd_dataset_close(data);
}
END_TEST

START_TEST(unlabelled)
{
    struct set s = {OURS, .offsets = INT32S(0, 2), .inputs = INT32S(7, 0), .vocab = 8};
    for (int k = 0; k < 2; k++) {
        s.task = k ? "none" : NULL;
        struct rnnd_dataset *data = opened(&s);
        ck_assert_int_eq(rnnd_dataset_info(data)->task, RNND_NO_TASK);
        ck_assert_int_eq(rnnd_dataset_info(data)->outputs, 0);
        ck_assert_int_eq(rnnd_dataset_info(data)->targets, 0);
        rnnd_dataset_close(data);
    }
}
END_TEST

/* Any type that holds the values; the contents alone make the fingerprint. */
START_TEST(types_are_converted)
{
    struct set s = {OURS,
                    .task = "tag",
                    .vocab = 200,
                    .classes = 2,
                    .offsets = {RNND_F64, 1, {2}, (double[]){0, 3}},
                    .inputs = {RNND_U8, 1, {3}, (uint8_t[]){199, 0, 1}},
                    .targets = {RNND_F32, 1, {3}, (float[]){-1, 0, 1}}};
    struct rnnd_dataset *data = opened(&s);
    uint64_t print = rnnd_dataset_info(data)->fingerprint;
    int32_t id[3];
    must(rnnd_dataset_inputs(data, 0, 3, id));
    ck_assert_mem_eq(id, ((int32_t[]){199, 0, 1}), sizeof id);
    rnnd_dataset_close(data);
    s.offsets = (struct array)INT64S(0, 3);
    s.inputs = (struct array)INT64S(199, 0, 1);
    s.targets = (struct array)INT32S(-1, 0, 1);
    data = opened(&s);
    ck_assert_uint_eq(rnnd_dataset_info(data)->fingerprint, print);
    rnnd_dataset_close(data);
    s.targets = (struct array)INT32S(-1, 0, 0);
    data = opened(&s);
    ck_assert_uint_ne(rnnd_dataset_info(data)->fingerprint, print);
    rnnd_dataset_close(data);
    s.targets = (struct array)INT32S(-1, 0, 1);
    s.offsets = (struct array)INT64S(0, 1, 3);
    data = opened(&s);
    ck_assert_uint_ne(rnnd_dataset_info(data)->fingerprint, print);
    rnnd_dataset_close(data);
}
END_TEST

START_TEST(empty_sequences_only)
{
    struct set s = {OURS,
                    .task = "classify",
                    .classes = 2,
                    .offsets = INT64S(0, 0, 0),
                    .inputs = {RNND_F32, 2, {0, 5}, NULL},
                    .targets = INT32S(1, 0)};
    struct rnnd_dataset *data = opened(&s);
    ck_assert_int_eq(rnnd_dataset_info(data)->targets, 2);
    ck_assert_int_eq(rnnd_dataset_info(data)->longest, 0);
    float mean[5], std[5];
    must(rnnd_dataset_inputs(data, 0, 0, mean));
    must(rnnd_dataset_moments(data, mean, std));
    ck_assert(mean[4] == 0 && std[4] == 1);
    rnnd_dataset_close(data);
}
END_TEST

/* ---- statistics */

/* Population figures by hand; a constant that binary floats cannot hold; a large
   offset. */
START_TEST(moments)
{
    enum { S = 100000 };
    float *x = malloc(sizeof *x * S * 4), mean[4], std[4];
    for (int t = 0; t < S; t++) {
        x[4 * t] = t % 2 ? 3 : 1; /* mean 2, std 1 */
        x[4 * t + 1] = 0.1f;
        x[4 * t + 2] = 100000 + t % 4; /* 100001.5, sqrt(5/4) */
        x[4 * t + 3] = t == 0 ? -1.0f : 0.0f;
    }
    struct set s = {OURS, .offsets = INT64S(0, S), .inputs = {RNND_F32, 2, {S, 4}, x}};
    for (int k = 0; k < 2; k++) {
        rnnd__dataset_keep = k ? 0 : 1 << 24;
        struct rnnd_dataset *data = opened(&s);
        must(rnnd_dataset_moments(data, mean, std));
        ck_assert(mean[0] == 2 && std[0] == 1);
        ck_assert(mean[1] == 0.1f && std[1] == 1);
        ck_assert(mean[2] == 100001.5f && std[2] == (float)sqrt(1.25));
        ck_assert_float_eq_tol(mean[3], -1e-5f, 1e-11f);
        ck_assert_float_eq_tol(std[3], 0.0031622618f, 1e-9f);
        rnnd_dataset_close(data);
    }
    free(x);
    struct set tokens = {OURS, .offsets = INT64S(0, 1), .inputs = INT64S(0),
                         .vocab = 1};
    struct rnnd_dataset *data = opened(&tokens);
    must_fail(RNND_EDATA, rnnd_dataset_moments(data, mean, std));
    rnnd_dataset_close(data);
}
END_TEST

/* ---- refusals */

/* A good set, of which each case spoils one thing. */
/* clang-format off */
#define GOOD                                                                         \
    {OURS, .task = "tag", .classes = 2, .offsets = INT64S(0, 2, 3),                  \
     .inputs = FLOATS(3, 2, 1, 2, 3, 4, 5, 6), .targets = INT32S(0, 1, -1)}
/* clang-format on */
#define SPOILT(change, why)  \
    do {                     \
        struct set s = GOOD; \
        change;              \
        refused(&s, why);    \
    } while (0)
#define ARRAY(...) (struct array) __VA_ARGS__

/* Where the file says so, NaN are no values: counted, and no part of the statistics. */
START_TEST(missing_values)
{
    struct set s = {OURS, .offsets = INT64S(0, 3, 4),
                    .inputs = FLOATS(4, 2, 1, NAN, NAN, 4, 3, NAN, 5, 6)};
    float mean[2], std[2];
    refused(&s, "d.h5: /inputs[0, 1] = nan: features must be finite (sequence 0, step "
                "0)");
    s.missing = "zero";
    refused(&s, "d.h5: attribute missing = \"zero\", expected mean");
    s.missing = "mean";
    for (int k = 0; k < 2; k++) {
        rnnd__dataset_keep = keeps[k];
        struct rnnd_dataset *data = opened(&s);
        ck_assert_int_eq(rnnd_dataset_info(data)->missing, 3);
        must(rnnd_dataset_moments(data, mean, std));
        ck_assert(mean[0] == 3 && std[0] == sqrtf(8.0f / 3));
        ck_assert(mean[1] == 5 && std[1] == 1);
        rnnd_dataset_close(data);
    }
    s.inputs = (struct array)FLOATS(4, 2, 1, NAN, 2, NAN, 3, NAN, 5, NAN);
    struct rnnd_dataset *data = opened(&s);
    must_fail(RNND_EDATA, rnnd_dataset_moments(data, mean, std));
    ck_assert_str_eq(rest_of_detail(),
                     "d.h5: /inputs: column 1 has no value, and no mean");
    rnnd_dataset_close(data);
    s.inputs = (struct array)FLOATS(4, 2, 1, NAN, 2, NAN, 3, INFINITY, 5, NAN);
    refused(&s, "d.h5: /inputs[2, 1] = inf: features must be finite (sequence 0, step "
                "2)");
}
END_TEST

/* ---- names: rows from disk are matched as those in memory are */

static void give(struct rnnd__names *names, enum rnnd_axis axis, int64_t count,
                 const char *const *text)
{
    must(rnnd__names_set(names, axis, (char *const *)text, count));
}

/* A file of three features and two values, a model of two features and two values in
   another order. */
START_TEST(columns_are_matched)
{
    struct set s = {OURS,
                    .task = "regress_steps",
                    .offsets = INT64S(0, 1, 4),
                    .inputs = FLOATS(4, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
                    .targets = FLOATS(4, 2, 1, -1, 2, -2, 3, -3, 4, -4),
                    .class = (const char *[]){"u", "v"},
                    .feature = (const char *[]){"a", "b", "c"},
                    .texts = 2};
    for (int k = 0; k < 2; k++) {
        struct rnnd__names names = {0};
        float x[6], y[6];
        rnnd__dataset_keep = keeps[k];
        struct rnnd_dataset *data = opened(&s);
        ck_assert(rnnd_dataset_in_memory(data) == (k == 0));
        give(&names, RNND_AXIS_FEATURE, 2, (const char *[]){"c", "a"});
        give(&names, RNND_AXIS_CLASS, 2, (const char *[]){"v", "u"});
        must(rnnd__dataset_match(data, &names, true, true));
        ck_assert_int_eq(rnnd_dataset_info(data)->inputs, 2);
        ck_assert_str_eq(rnnd_dataset_feature(data, 0), "c");
        must(rnnd_dataset_inputs(data, 1, 3, x));
        ck_assert_mem_eq(x, ((float[]){6, 4, 9, 7, 12, 10}), sizeof x);
        must(rnnd_dataset_inputs(data, 0, 1, x));
        ck_assert_mem_eq(x, ((float[]){3, 1}), 2 * sizeof *x);
        must(rnnd_dataset_targets(data, 1, 3, y));
        ck_assert_mem_eq(y, ((float[]){-2, 2, -3, 3, -4, 4}), sizeof y);
        float mean[2], std[2];
        must(rnnd_dataset_moments(data, mean, std));
        ck_assert(mean[0] == 7.5f && mean[1] == 5.5f);
        rnnd_dataset_close(data);
        data = opened(&s);
        give(&names, RNND_AXIS_FEATURE, 2, (const char *[]){"c", "d"});
        must_fail(RNND_EDATA, rnnd__dataset_match(data, &names, true, true));
        ck_assert_str_eq(rest_of_detail(),
                         "d.h5: has no feature \"d\"; its features are \"a\", \"b\", "
                         "\"c\"; those of the model are \"c\", \"d\"");
        rnnd_dataset_close(data);
        rnnd__names_clear(&names);
    }
}
END_TEST

/* Tokens and classes get the model's numbers. A token that it does not know needs an
   <unk>, and without one is refused. */
START_TEST(numbers_are_matched)
{
    struct set s = {OURS,
                    .task = "lm",
                    .vocab = 3,
                    .offsets = INT64S(0, 2, 5),
                    .inputs = INT32S(0, 2, 1, 1, 2),
                    .token = (const char *[]){"x", "y", "z"},
                    .texts = 3};
    struct set c = {OURS,
                    .task = "classify",
                    .classes = 3,
                    .offsets = INT64S(0, 1, 2, 3),
                    .inputs = FLOATS(3, 1, 1, 2, 3),
                    .targets = INT32S(2, -1, 0),
                    .class = (const char *[]){"p", "q", "r"},
                    .texts = 3};
    for (int k = 0; k < 2; k++) {
        struct rnnd__names names = {0};
        int32_t id[5];
        rnnd__dataset_keep = keeps[k];
        struct rnnd_dataset *data = opened(&s);
        give(&names, RNND_AXIS_TOKEN, 4, (const char *[]){"z", "<unk>", "x", "w"});
        must(rnnd__dataset_match(data, &names, true, true));
        ck_assert_int_eq(rnnd_dataset_info(data)->vocab, 4);
        must(rnnd_dataset_inputs(data, 0, 5, id));
        ck_assert_mem_eq(id, ((int32_t[]){2, 0, 1, 1, 0}), sizeof id);
        rnnd_dataset_close(data);
        data = opened(&s);
        give(&names, RNND_AXIS_TOKEN, 3, (const char *[]){"z", "w", "x"});
        must_fail(RNND_EDATA, rnnd__dataset_match(data, &names, true, true));
        ck_assert_ptr_nonnull(strstr(rnnd_status_detail(),
                                     "the model does not know 1 of its tokens, such as "
                                     "\"y\""));
        ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "--vocab-from"));
        rnnd_dataset_close(data);
        data = opened(&c);
        give(&names, RNND_AXIS_CLASS, 3, (const char *[]){"r", "s", "p"});
        must(rnnd__dataset_match(data, &names, true, true));
        must(rnnd_dataset_targets(data, 0, 3, id));
        ck_assert_mem_eq(id, ((int32_t[]){0, -1, 2}), 3 * sizeof *id);
        rnnd_dataset_close(data);
        rnnd__names_clear(&names);
    }
}
END_TEST

START_TEST(bad_head)
{
    rnnd_dataset_close(opened(&(struct set)GOOD));
    SPOILT(s.format = NULL,
           "d.h5: attribute format: missing, expected \"rnn_dist-data\"");
    SPOILT(s.format = "rnn_dist-checkpoint",
           "d.h5: attribute format = \"rnn_dist-checkpoint\", "
           "expected \"rnn_dist-data\"");
    SPOILT(s.version = 0, "d.h5: attribute version: missing");
    SPOILT(s.version = 2, "d.h5: attribute version = 2, expected 1");
    SPOILT(s.task = "classfy",
           "d.h5: attribute task = \"classfy\"; expected classify, tag, regress, "
           "regress_steps, multilabel, lm, ctc or none");
    SPOILT(s.task = NULL,
           "d.h5: attribute task: missing, but there are /targets; expected "
           "classify, tag, regress, regress_steps, multilabel, lm, ctc or none");
    SPOILT(s.classes = 0, "d.h5: attribute num_classes: missing");
    SPOILT(s.classes = -3,
           "d.h5: attribute num_classes = -3, expected 1 to 2147483647");
    SPOILT(s.vocab = 10, "d.h5: /inputs: 2 dimensions, expected 1, [S], of token ids "
                         "(vocab_size is set)");
    SPOILT(s.task = "lm", "d.h5: attribute vocab_size: missing, required by task lm");
}
END_TEST

START_TEST(bad_shapes)
{
    SPOILT(s.offsets = ARRAY({0}), "d.h5: /offsets: missing");
    SPOILT(s.inputs = ARRAY({0}), "d.h5: /inputs: missing");
    SPOILT(s.targets = ARRAY({0}),
           "d.h5: /targets: missing, required by task tag (task none is for "
           "unlabelled data)");
    SPOILT(s.inputs = ARRAY(INT64S(1, 2, 3)),
           "d.h5: /inputs: 1 dimension, expected 2, [S, I], of features "
           "(token ids need the attribute vocab_size)");
    SPOILT(s.inputs = ARRAY({RNND_F32, 3, {3, 1, 1}, NULL}),
           "d.h5: /inputs: 3 dimensions, expected 2, [S, I], of features "
           "(token ids need the attribute vocab_size)");
    SPOILT(s.inputs = ARRAY({RNND_F32, 2, {3, 0}, NULL}),
           "d.h5: /inputs: no features (I = 0)");
    SPOILT(s.targets = ARRAY(FLOATS(3, 1, 0, 1, 0)),
           "d.h5: /targets: 2 dimensions, expected 1, [S], for task tag");
    SPOILT(s.targets = ARRAY(INT32S(0, 1)),
           "d.h5: /targets: 2 rows, expected 3: task tag has one per step");
    SPOILT(s.task = "classify",
           "d.h5: /targets: 3 rows, expected 2: task classify has one per "
           "sequence");
    SPOILT(s.task = "regress",
           "d.h5: /targets: 1 dimension, expected 2, [N, O], for task regress");
    SPOILT((s.task = "multilabel", s.targets = ARRAY({RNND_F32, 2, {3, 0}, NULL})),
           "d.h5: /targets: no columns (O = 0)");
    SPOILT((s.class = (const char *[]){"a", "b", "c"}, s.texts = 3),
           "d.h5: /classes: expected 2 strings, found 3");
    SPOILT((s.names = (const char *[]){"a"}, s.texts = 1),
           "d.h5: /names: expected 2 strings, found 1");
    SPOILT(s.offsets = ARRAY({RNND_I64, 2, {3, 1}, NULL}),
           "d.h5: /offsets: 2 dimensions, expected 1");
}
END_TEST

START_TEST(bad_offsets)
{
    SPOILT(s.offsets = ARRAY(INT64S(0)),
           "d.h5: /offsets: expected N+1 values for N sequences, at least 2, "
           "found 1");
    SPOILT(s.offsets = ARRAY(INT64S(1, 2, 3)), "d.h5: /offsets[0] = 1, expected 0");
    SPOILT(s.offsets = ARRAY(INT64S(0, 2, 1, 3)),
           "d.h5: /offsets[2] = 1: less than /offsets[1] = 2");
    SPOILT(s.offsets = ARRAY(INT64S(0, 1, 2)),
           "d.h5: /offsets[2] = 2, expected 3, the number of steps");
    SPOILT(s.offsets = ARRAY(INT64S(0, 4, 4)),
           "d.h5: /offsets[1] = 4: /inputs has only 3 steps");
    SPOILT(s.offsets = ARRAY(INT64S(0, INT64_MIN, 3)),
           "d.h5: /offsets[1] = -9223372036854775808: less than "
           "/offsets[0] = 0");
    SPOILT(s.offsets = ARRAY({RNND_F64, 1, {3}, (double[]){0, 0.5, 3}}),
           "d.h5: /offsets[1] = 0.5: not an integer");
}
END_TEST

START_TEST(bad_values)
{
    for (int k = 0; k < 2; k++) {
        rnnd__dataset_keep = keeps[k];
        SPOILT(
            s.inputs = ARRAY(FLOATS(3, 2, 0, 0, 0, 0, 0, NAN)),
            "d.h5: /inputs[2, 1] = nan: features must be finite (sequence 1, step 0)");
        SPOILT(
            s.inputs = ARRAY(FLOATS(3, 2, 0, 0, -INFINITY, 0, 0, 0)),
            "d.h5: /inputs[1, 0] = -inf: features must be finite (sequence 0, step 1)");
        SPOILT(s.inputs =
                   ARRAY({RNND_F64, 2, {3, 2}, (double[]){0, 0, 0, 1e300, 0, 0}}),
               "d.h5: /inputs[1, 1] = 1e+300: too large for a 32-bit float");
        SPOILT(s.targets = ARRAY(INT32S(0, 1, 2)),
               "d.h5: /targets[2] = 2: labels are 0 to 1 (num_classes 2), or -1 = "
               "ignored");
        SPOILT(s.targets = ARRAY(INT32S(0, -2, 1)),
               "d.h5: /targets[1] = -2: labels are 0 to 1 (num_classes 2), or -1 = "
               "ignored");
        SPOILT(s.targets = ARRAY(INT64S(0, 1, 1LL << 31)),
               "d.h5: /targets[2] = 2147483648: does not fit a 32-bit integer");
        SPOILT(s.targets = ARRAY({RNND_F32, 1, {3}, (float[]){0, 1, 0.5f}}),
               "d.h5: /targets[2] = 0.5: not an integer");
        SPOILT((s.task = "multilabel", s.targets = ARRAY(FLOATS(3, 1, 0, NAN, 1.5))),
               "d.h5: /targets[2, 0] = 1.5: multilabel targets must be from 0 to 1, or "
               "NaN = ignored row");
        SPOILT((s.task = "regress_steps",
                s.targets = ARRAY(FLOATS(3, 1, 0, INFINITY, 1.5))),
               "d.h5: /targets[1, 0] = inf: targets must be finite, or NaN = ignored "
               "row");
        SPOILT((s.task = "lm", s.vocab = 256, s.targets = ARRAY({0}),
                s.inputs = ARRAY(INT64S(255, 300, 1))),
               "d.h5: /inputs[1] = 300: token ids are 0 to 255 (vocab_size 256)");
        SPOILT((s.task = "lm", s.vocab = 256, s.targets = ARRAY({0}),
                s.inputs = ARRAY(INT64S(255, 0, -1))),
               "d.h5: /inputs[2] = -1: token ids are 0 to 255 (vocab_size 256)");
    }
}
END_TEST

/* Beyond the first block: indices count from the start of the array. */
START_TEST(bad_value_far_in)
{
    enum { S = 3000000 };
    int32_t *id = calloc(S, sizeof *id);
    float *x = calloc(S, sizeof *x);
    id[S - 2] = 5;
    x[S - 3] = NAN;
    struct set tokens = {OURS, .offsets = INT64S(0, S),
                         .inputs = {RNND_I32, 1, {S}, id}, .vocab = 5};
    struct set features = {OURS, .offsets = INT64S(0, 10, S),
                           .inputs = {RNND_F32, 2, {S, 1}, x}};
    for (int k = 0; k < 2; k++) {
        rnnd__dataset_keep = k ? 0 : 1 << 30;
        refused(&tokens,
                "d.h5: /inputs[2999998] = 5: token ids are 0 to 4 (vocab_size 5)");
        refused(&features,
                "d.h5: /inputs[2999997, 0] = nan: features must be finite (sequence 1, "
                "step 2999987)");
    }
    free(id);
    free(x);
}
END_TEST

/* ---- files that are damaged or not data */

START_TEST(files_that_do_not_open)
{
    struct rnnd_dataset *data = NULL;
    struct stat info;
    must_fail(RNND_EFILE, rnnd_dataset_open(in_folder("none.h5"), &data));
    ck_assert_str_eq(rest_of_detail(), "none.h5: No such file or directory");
    must_fail(RNND_EFILE, rnnd_dataset_open(in_folder("."), &data));
    make_set(&(struct set)GOOD);
    ck_assert_int_eq(stat(in_folder("d.h5"), &info), 0);
    ck_assert_int_eq(truncate(in_folder("d.h5"), info.st_size / 2), 0);
    must_fail(RNND_EDATA, rnnd_dataset_open(in_folder("d.h5"), &data));
    ck_assert_ptr_nonnull(strstr(rest_of_detail(), "d.h5: truncated: "));
    make_set(&(struct set)GOOD);
    flip_where("d.h5", &(float){5}, sizeof(float));
    must_fail(RNND_EDATA, rnnd_dataset_open(in_folder("d.h5"), &data));
    ck_assert_str_eq(rest_of_detail(), "d.h5: damaged: checksum mismatch");
    ck_assert_ptr_null(data);
}
END_TEST

/* Bits and lengths at random: opens or refuses, and does nothing worse. */
START_TEST(random_damage)
{
    int rounds = getenv("LONG") ? 20000 : 300;
    char bytes[16384];
    struct stat info;
    uint64_t state = 1;
    struct set s = GOOD;
    s.format = NULL; /* some versions of HDF5 loop forever on damaged strings */
    s.task = NULL;
    make_set(&s);
    int fd = open(in_folder("d.h5"), O_RDWR);
    ck_assert_int_eq(fstat(fd, &info), 0);
    off_t size = info.st_size - 32; /* without the checksum */
    ck_assert_int_eq(pread(fd, bytes, (size_t)size, 0), size);
    ck_assert_int_eq(ftruncate(fd, size), 0);
    for (int k = 0; k < rounds; k++) {
        struct rnnd__hdf *file;
        char x[64];
        for (int n = 0; n < 3; n++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            off_t at = (off_t)((state >> 33) % (uint64_t)size);
            char bad = bytes[at] ^ (char)(1 << (state >> 61));
            ck_assert_int_eq(pwrite(fd, &bad, 1, at), 1);
        }
        if (k % 10 == 0)
            ck_assert_int_eq(ftruncate(fd, (off_t)(state >> 40) % size), 0);
        if (rnnd__hdf_open(in_folder("d.h5"), &file) == 0) {
            struct rnnd__hdf_shape shape;
            if (rnnd__hdf_shape(file, "/inputs", &shape) == 0 && shape.rank == 2 &&
                shape.dim[0] == 3 && shape.dim[1] == 2)
                (void)!rnnd__hdf_read(file, "/inputs", 0, 3, RNND_F32, x);
            (void)!rnnd__hdf_read(file, "/offsets", 0, 3, RNND_I64, x);
            rnnd__hdf_close(file);
        }
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        ck_assert_int_eq(pwrite(fd, bytes, (size_t)size, 0), size);
    }
    close(fd);
    print_tried("damaged data sets without a checksum", rounds, 0);
}
END_TEST

/* The same with the checksum in place: HDF5 never sees the file. */
START_TEST(damage_under_a_checksum)
{
    int rounds = getenv("LONG") ? 20000 : 1000, unseen = 0;
    struct stat info;
    uint64_t state = 7;
    make_set(&(struct set)GOOD);
    int fd = open(in_folder("d.h5"), O_RDWR);
    ck_assert_int_eq(fstat(fd, &info), 0);
    for (int k = 0; k < rounds; k++) {
        struct rnnd_dataset *data;
        unsigned char byte, bad;
        state = state * 6364136223846793005u + 1442695040888963407u;
        off_t at = (off_t)((state >> 33) % (uint64_t)(info.st_size - 32));
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        bad = byte ^ (unsigned char)(1 << (state >> 61));
        ck_assert_int_eq(pwrite(fd, &bad, 1, at), 1);
        if (rnnd_dataset_open(in_folder("d.h5"), &data) == 0) {
            unseen++;
            rnnd_dataset_close(data);
        }
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    print_tried("flipped bits of data sets with a checksum", rounds, unseen);
    ck_assert_int_eq(unseen, 0);
    struct rnnd_dataset *data;
    must(rnnd_dataset_open(in_folder("d.h5"), &data));
    rnnd_dataset_close(data);
}
END_TEST

/* ---- files of h5py */

static char golden_path[512];

static const char *golden(const char *name)
{
    const char *top = getenv("srcdir");
    snprintf(golden_path, sizeof golden_path, "%s/tests/golden/h5py/%s",
             top ? top : ".", name);
    return golden_path;
}

START_TEST(h5py_plain)
{
    struct rnnd_dataset *data;
    int32_t label[3];
    float x[8];
    must(rnnd_dataset_open(golden("plain.h5"), &data));
    ck_assert_int_eq(rnnd_dataset_info(data)->task, RNND_CLASSIFY);
    ck_assert_int_eq(rnnd_dataset_info(data)->outputs, 3);
    ck_assert_mem_eq(rnnd_dataset_offsets(data), ((int64_t[]){0, 2, 2, 4}), 32);
    must(rnnd_dataset_inputs(data, 0, 4, x));
    for (int i = 0; i < 8; i++)
        ck_assert(x[i] == (float)i / 4);
    must(rnnd_dataset_targets(data, 0, 3, label));
    ck_assert_mem_eq(label, ((int32_t[]){2, -1, 0}), sizeof label);
    ck_assert_str_eq(rnnd_dataset_class(data, 1), "zwei");
    ck_assert_str_eq(rnnd_dataset_name(data, 2), "größte");
    rnnd_dataset_close(data);
}
END_TEST

/* float16, booleans, big-endian, chunked and compressed, fixed-length and bytes
   attributes. */
START_TEST(h5py_odd_types)
{
    struct rnnd_dataset *data;
    float x[8], y[6];
    must(rnnd_dataset_open(golden("odd.h5"), &data));
    ck_assert_int_eq(rnnd_dataset_info(data)->task, RNND_MULTILABEL);
    must(rnnd_dataset_inputs(data, 0, 3, x));
    for (int i = 0; i < 6; i++)
        ck_assert(x[i] == (float)i / 4);
    must(rnnd_dataset_targets(data, 0, 3, y));
    ck_assert_mem_eq(y, ((float[]){1, 0, 0, 1, 1, 1}), sizeof y);
    ck_assert_str_eq(rnnd_dataset_class(data, 0), "ja");
    rnnd_dataset_close(data);
    int32_t id[4];
    must(rnnd_dataset_open(golden("tokens.h5"), &data));
    ck_assert_int_eq(rnnd_dataset_info(data)->task, RNND_LM);
    ck_assert_int_eq(rnnd_dataset_info(data)->vocab, 5);
    must(rnnd_dataset_inputs(data, 0, 4, id));
    ck_assert_mem_eq(id, ((int32_t[]){4, 0, 2, 1}), sizeof id);
    rnnd_dataset_close(data);
}
END_TEST

START_TEST(h5py_mistyped)
{
    struct rnnd_dataset *data;
    must_fail(RNND_EDATA, rnnd_dataset_open(golden("text_inputs.h5"), &data));
    ck_assert_ptr_nonnull(
        strstr(rnnd_status_detail(), "text_inputs.h5: /inputs: expected numbers"));
    must_fail(RNND_EDATA, rnnd_dataset_open(golden("group_inputs.h5"), &data));
    ck_assert_ptr_nonnull(
        strstr(rnnd_status_detail(), "group_inputs.h5: /inputs: not an array"));
    must_fail(RNND_EDATA, rnnd_dataset_open(golden("scalar_offsets.h5"), &data));
    ck_assert_ptr_nonnull(
        strstr(rnnd_status_detail(), "scalar_offsets.h5: /offsets: 0 dimensions"));
    must_fail(RNND_EDATA, rnnd_dataset_open(golden("task_number.h5"), &data));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(),
                                 "task_number.h5: attribute task: expected a string"));
    must_fail(RNND_EDATA, rnnd_dataset_open(golden("half_class.h5"), &data));
    ck_assert_ptr_nonnull(strstr(
        rnnd_status_detail(), "half_class.h5: attribute num_classes: not an integer"));
    must_fail(RNND_EDATA, rnnd_dataset_open(golden("null_targets.h5"), &data));
    ck_assert_ptr_nonnull(
        strstr(rnnd_status_detail(), "null_targets.h5: /targets: has no values"));
}
END_TEST

/* Files of a few kB that claim arrays, chunks and strings of terabytes, and files whose
   values are in others, or in themselves. */
static const char *const hostile[][2] = {
    {"claim_width.h5", "/inputs: impossible size: its shape"},
    {"claim_rows.h5", "/inputs: impossible size: its shape"},
    {"claim_chunk.h5", "/inputs: impossible size: its chunks"},
    {"claim_sequences.h5", "/offsets: impossible size: its shape"},
    {"claim_names.h5", "/names: impossible size: its shape"},
    {"shared_names.h5", "/names: impossible size: its strings"},
    {"virtual.h5", "/targets: a virtual array"},
    {"external.h5", "/targets: its values are in another file"},
    {"external_link.h5", "/targets: a link to another file"},
    {"soft_external.h5", "/targets: cannot be opened"}};

START_TEST(h5py_hostile)
{
    struct rnnd_dataset *data;
    struct rusage use;
    must_fail(RNND_EDATA, rnnd_dataset_open(golden(hostile[_i][0]), &data));
    ck_assert_msg(strstr(rnnd_status_detail(), hostile[_i][1]) != NULL, "%s",
                  rnnd_status_detail());
    getrusage(RUSAGE_SELF, &use);
    ck_assert_int_lt(use.ru_maxrss, 400 << 10); /* kB */
}
END_TEST

static void keep_default(void)
{
    rnnd__dataset_keep = 1 << 30;
}

int main(void)
{
    Suite *s = suite_create("dataset");
    TCase *t = tcase_create("dataset");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_checked_fixture(t, keep_default, keep_default);
    tcase_add_test(t, reading_ahead);
    tcase_add_test(t, classify);
    tcase_add_test(t, lm);
    tcase_add_test(t, values_per_step_and_sequence);
    tcase_add_test(t, unlabelled);
    tcase_add_test(t, types_are_converted);
    tcase_add_test(t, empty_sequences_only);
    tcase_add_test(t, moments);
    tcase_add_test(t, missing_values);
    tcase_add_test(t, columns_are_matched);
    tcase_add_test(t, numbers_are_matched);
    tcase_add_test(t, bad_head);
    tcase_add_test(t, bad_shapes);
    tcase_add_test(t, bad_offsets);
    tcase_add_test(t, bad_values);
    tcase_add_test(t, bad_value_far_in);
    tcase_add_test(t, files_that_do_not_open);
    tcase_add_test(t, random_damage);
    tcase_add_test(t, damage_under_a_checksum);
    tcase_add_test(t, h5py_plain);
    tcase_add_test(t, h5py_odd_types);
    tcase_add_test(t, h5py_mistyped);
    tcase_add_loop_test(t, h5py_hostile, 0, (int)(sizeof hostile / sizeof *hostile));
    suite_add_tcase(s, t);
    return run_suite(s);
}
