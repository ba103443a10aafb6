/*
 * test_export.c - files for other programs: what is in them, read by another way than
 * they were written.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint_model.h"
#include "exchange/export.h"
#include "testing.h"
#ifdef HAVE_ONNX
#include "exchange/onnx.pb-c.h"
#endif
#ifdef HAVE_LIBZIP
#include <zip.h>
#endif

/* ---- folding */

/* By hand: 6 (x - 4) / 2 + 1 = 3 x - 11, and 0.5 (y + 1) / 0.25 = 2 y + 2. */
START_TEST(normalization_becomes_weights)
{
    const struct rnnd_model_spec spec = {.task = RNND_CLASSIFY,
                                         .cell = RNND_RNN_TANH,
                                         .inputs = 2,
                                         .hidden = 1,
                                         .layers = 1,
                                         .bidirectional = true,
                                         .normalize = true,
                                         .outputs = 1};
    struct rnnd_model *m;
    float weight[2] = {6, 0.5f}, bias = 1;
    double ratio;
    must(rnnd_model_new(be, &spec, &m));
    must(rnnd_model_set(m, "rnn.weight_ih_l0", weight));
    must(rnnd_model_set(m, "rnn.bias_ih_l0", &bias));
    must(rnnd_model_set(m, "rnn.weight_ih_l0_reverse", (float[]){2, 0}));
    rnnd_model_mean(m)[0] = 4;
    rnnd_model_std(m)[0] = 2;
    rnnd_model_mean(m)[1] = -1;
    rnnd_model_std(m)[1] = 0.25f;
    must(rnnd__model_fold(m, &ratio));
    must(rnnd_model_get(m, "rnn.weight_ih_l0", weight));
    must(rnnd_model_get(m, "rnn.bias_ih_l0", &bias));
    ck_assert(ratio == 4 && weight[0] == 3 && weight[1] == 2 && bias == -9);
    must(rnnd_model_get(m, "rnn.weight_ih_l0_reverse", weight));
    must(rnnd_model_get(m, "rnn.bias_ih_l0_reverse", &bias));
    ck_assert(weight[0] == 1 && weight[1] == 0 && bias == -4);
    ck_assert(!rnnd_model_mean(m) && !rnnd_model_spec(m)->normalize);
    must(rnnd__model_fold(m, &ratio)); /* nothing is left to do */
    must(rnnd_model_get(m, "rnn.weight_ih_l0", weight));
    ck_assert(ratio == 0 && weight[0] == 3);
    rnnd_model_free(m);
}
END_TEST

START_TEST(a_fold_that_does_not_fit)
{
    struct rnnd_model *m = new_model(&specs[0], 0);
    float *weight = calloc(24, sizeof *weight);
    double ratio;
    weight[5] = 1e30f;
    rnnd_model_std(m)[1] = 1e-30f;
    must(rnnd_model_set(m, "rnn.weight_ih_l0_reverse", weight));
    must_fail(RNND_EDATA, rnnd__model_fold(m, &ratio));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "rnn.weight_ih_l0_reverse"));
    rnnd_model_free(m);
    free(weight);
}
END_TEST

/* ---- averages */

static void save_filled(const char *name, float bias)
{
    struct rnnd_model *m = new_model(&specs[3], 0);
    must(rnnd_model_set(m, "head.bias", &bias));
    must(rnnd_checkpoint_save_model(in_folder(name), m, NULL));
    rnnd_model_free(m);
}

/* By hand: 2, 6 and 1 have the mean 3; 7 is too old. */
START_TEST(the_mean_of_the_last)
{
    struct rnnd_checkpoint_info info;
    struct rnnd_model *m;
    float bias;
    save_filled("ckpt-0000000001.h5", 7);
    save_filled("ckpt-0000000020.h5", 2);
    save_filled("ckpt-0000000300.h5", 6);
    save_filled("ckpt-0000004000.h5", 1);
    save_filled("best.h5", 9);
    must(rnnd__checkpoint_average(test_folder, 3, be, &m, &info));
    must(rnnd_model_get(m, "head.bias", &bias));
    ck_assert_float_eq(bias, 3);
    rnnd_model_free(m);
    free(info.config);
    must_fail(RNND_EFILE, rnnd__checkpoint_average(test_folder, 5, be, &m, &info));
    must_fail(RNND_EUSAGE,
              rnnd__checkpoint_average(in_folder("best.h5"), 1, be, &m, &info));
}
END_TEST

/* A run that goes on: each new checkpoint replaces the oldest of three. */
static atomic_bool averaged;
static atomic_int replaced;

static void *go_on(void *unused)
{
    (void)unused;
    for (int i = 4; !averaged; i++) {
        char from[512], to[512];
        snprintf(from, sizeof from, "%s/model.h5", test_folder);
        snprintf(to, sizeof to, "%s/ckpt-%010d.h5", test_folder, i);
        if (link(from, to) != 0)
            return "link";
        snprintf(to, sizeof to, "%s/ckpt-%010d.h5", test_folder, i - 3);
        if (unlink(to) != 0)
            return "unlink";
        replaced++;
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    return NULL;
}

START_TEST(the_mean_while_training_goes_on)
{
    pthread_t thread;
    void *fault;
    save_filled("model.h5", 3);
    save_filled("ckpt-0000000001.h5", 3);
    save_filled("ckpt-0000000002.h5", 3);
    save_filled("ckpt-0000000003.h5", 3);
    averaged = false;
    replaced = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, go_on, NULL), 0);
    while (replaced < 15) {
        struct rnnd_checkpoint_info info;
        struct rnnd_model *m;
        float bias;
        must(rnnd__checkpoint_average(test_folder, 3, be, &m, &info));
        must(rnnd_model_get(m, "head.bias", &bias));
        ck_assert_float_eq(bias, 3);
        rnnd_model_free(m);
        free(info.config);
    }
    averaged = true;
    pthread_join(thread, &fault);
    ck_assert_msg(!fault, "%s: %m", (char *)fault);
}
END_TEST

/* ---- names */

START_TEST(suffixes)
{
    static const char *const good[] = {"a",    "b.d/a",  ".a",     "a.safetensors",
                                       "a.h5", "a.HDF5", "a.b.hdf"};
    static const char *const bad[] = {"a.onx", "a.pt", "a.h5.gz", "a.", "b/.a.npy"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        must(rnnd__export_check(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        must_fail(RNND_EUSAGE, rnnd__export_check(bad[i]));
#ifdef HAVE_ONNX
    must(rnnd__export_check("a.onnx"));
#else
    must_fail(RNND_EUSAGE, rnnd__export_check("a.onnx"));
#endif
#ifdef HAVE_LIBZIP
    must(rnnd__export_check("a.npz"));
#else
    must_fail(RNND_EUSAGE, rnnd__export_check("a.npz"));
#endif
}
END_TEST

/* ---- npz */

#ifdef HAVE_LIBZIP
START_TEST(arrays_of_an_npz)
{
    struct rnnd_model *m = new_model(&specs[0], 5);
    const char *name;
    int64_t rows, cols;
    must(rnnd__npz_write(in_folder("a.npz"), m, NULL));
    zip_t *zip = zip_open(in_folder("a.npz"), ZIP_RDONLY | ZIP_CHECKCONS, NULL);
    ck_assert_ptr_nonnull(zip);
    int i = 0;
    for (; rnnd_model_parameter(m, i, &name, &rows, &cols); i++) {
        char member[80], head[128], want[128];
        size_t size = (size_t)(rows * (cols ? cols : 1)) * sizeof(float);
        float *got = malloc(size), *values = malloc(size);
        snprintf(member, sizeof member, "%s.npy", name);
        zip_file_t *f = zip_fopen(zip, member, 0);
        ck_assert_msg(f != NULL, "%s", member);
        ck_assert_int_eq(zip_fread(f, head, 128), 128); /* a multiple of 64 */
        snprintf(want, sizeof want, cols ? "'shape': (%d, %d), }" : "'shape': (%d,), }",
                 (int)rows, (int)cols);
        ck_assert_mem_eq(head, "\x93NUMPY\1\0\x76\0{'descr': '<f4'", 25);
        ck_assert_ptr_nonnull(memmem(head, 128, want, strlen(want)));
        ck_assert_int_eq(head[127], '\n');
        ck_assert_int_eq(zip_fread(f, got, size), (zip_int64_t)size);
        must(rnnd_model_get(m, name, values));
        ck_assert(memcmp(got, values, size) == 0);
        zip_fclose(f);
        free(got);
        free(values);
    }
    ck_assert_int_eq(zip_get_num_entries(zip, 0), i + 2); /* task, options */
    zip_discard(zip);
    rnnd_model_free(m);
}
END_TEST
#endif

/* ---- ONNX */

#ifdef HAVE_ONNX
static Onnx__ModelProto *read_onnx(struct rnnd_model *m)
{
    static uint8_t bytes[1 << 16];
    must(rnnd__onnx_export(in_folder("a.onnx"), m, NULL));
    FILE *f = fopen(in_folder("a.onnx"), "rb");
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, n, bytes);
    ck_assert_ptr_nonnull(model);
    return model;
}

static const float *constant_of(const Onnx__ModelProto *model, const char *name,
                                size_t count)
{
    for (size_t i = 0; i < model->graph->n_initializer; i++) {
        const Onnx__TensorProto *t = model->graph->initializer[i];
        if (strcmp(t->name, name) != 0)
            continue;
        ck_assert_uint_eq(t->raw_data.len, count * sizeof(float));
        return (const float *)t->raw_data.data;
    }
    ck_abort_msg("no %s", name);
}

static const Onnx__NodeProto *node_of(const Onnx__ModelProto *model, const char *op)
{
    for (size_t i = 0; i < model->graph->n_node; i++)
        if (strcmp(model->graph->node[i]->op_type, op) == 0)
            return model->graph->node[i];
    return NULL;
}

static int64_t int_of(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(node->attribute[i]->name, name) == 0)
            return node->attribute[i]->i;
    return -1;
}

static bool is_read(const Onnx__ModelProto *model, const char *name)
{
    for (size_t i = 0; i < model->graph->n_node; i++)
        for (size_t k = 0; k < model->graph->node[i]->n_input; k++)
            if (strcmp(model->graph->node[i]->input[k], name) == 0)
                return true;
    return false;
}

START_TEST(every_constant_is_read)
{
    for (int s = 0; s < SPECS; s++) {
        struct rnnd_model *m = new_model(&specs[s], 0);
        Onnx__ModelProto *model = read_onnx(m);
        for (size_t i = 0; i < model->graph->n_initializer; i++) {
            const char *name = model->graph->initializer[i]->name;
            ck_assert_msg(is_read(model, name), "model %d: %s", s, name);
        }
        onnx__model_proto__free_unpacked(model, NULL);
        rnnd_model_free(m);
    }
}
END_TEST

/* A value that tells where it belongs. */
static void number(struct rnnd_model *m)
{
    const char *name;
    int64_t rows, cols;
    for (int i = 0; rnnd_model_parameter(m, i, &name, &rows, &cols); i++) {
        float values[256];
        for (int64_t k = 0; k < rows * (cols ? cols : 1); k++)
            values[k] = (float)(1000 * i + k);
        if (strncmp(name, "input.", 6) != 0)
            must(rnnd_model_set(m, name, values));
    }
}

/* ours: the place among our gates of each of ONNX's. */
static void check_order(const struct rnnd_model_spec *spec, int gates, const int *ours)
{
    struct rnnd_model *m = new_model(spec, 0);
    int64_t H = spec->hidden, I = spec->vocab ? spec->embed : spec->inputs;
    float w[256], b[64], hidden_b[64];
    number(m);
    must(rnnd_model_get(m, "rnn.weight_ih_l0", w));
    must(rnnd_model_get(m, "rnn.bias_ih_l0", b));
    must(rnnd_model_get(m, "rnn.bias_hh_l0", hidden_b));
    Onnx__ModelProto *model = read_onnx(m);
    int D = spec->bidirectional ? 2 : 1;
    int64_t GH = gates * H;
    const float *W = constant_of(model, "rnn.W_l0", (size_t)(D * GH * I));
    const float *B = constant_of(model, "rnn.B_l0", (size_t)(D * 2 * GH));
    for (int k = 0; k < gates; k++) {
        for (int64_t i = 0; i < H * I; i++)
            ck_assert(W[k * H * I + i] == w[ours[k] * H * I + i]);
        for (int64_t i = 0; i < H; i++) {
            ck_assert(B[k * H + i] == b[ours[k] * H + i]);
            ck_assert(B[GH + k * H + i] == hidden_b[ours[k] * H + i]);
        }
    }
    onnx__model_proto__free_unpacked(model, NULL);
    rnnd_model_free(m);
}

START_TEST(gates_are_in_their_order)
{
    check_order(&specs[0], 4, (const int[]){0, 3, 1, 2}); /* i o f c of i f g o */
    check_order(&specs[1], 3, (const int[]){1, 0, 2});    /* z r h of r z n */
    check_order(&specs[2], 1, (const int[]){0});
}
END_TEST

START_TEST(an_onnx_file_says_what_it_is)
{
    static char *const texts[] = {"a", "b", "c"};
    struct rnnd_model *m = new_model(&specs[0], 0);
    must(rnnd_model_set_names(m, RNND_AXIS_CLASS, texts, 3));
    Onnx__ModelProto *model = read_onnx(m);
    ck_assert_int_eq(model->opset_import[0]->version, 14);
    ck_assert_int_eq(model->ir_version, 7);
    ck_assert_uint_eq(model->graph->n_input, 2);
    ck_assert_str_eq(model->graph->input[0]->name, "x");
    ck_assert_str_eq(model->graph->input[1]->name, "lengths");
    ck_assert_str_eq(model->graph->output[0]->name, "scores");
    const Onnx__TensorShapeProto *x = model->graph->input[0]->type->tensor_type->shape;
    ck_assert_uint_eq(x->n_dim, 3);
    ck_assert_str_eq(x->dim[1]->dim_param, "time");
    ck_assert_int_eq(x->dim[2]->dim_value, 2);
    ck_assert_ptr_nonnull(node_of(model, "ReduceMax"));
    ck_assert_ptr_nonnull(node_of(model, "Sub")); /* the mean */
    ck_assert_int_eq(int_of(node_of(model, "LSTM"), "hidden_size"), 3);
    ck_assert_uint_eq(model->n_metadata_props, 3);
    ck_assert_str_eq(model->metadata_props[2]->value, "[\"a\",\"b\",\"c\"]");
    onnx__model_proto__free_unpacked(model, NULL);
    rnnd_model_free(m);

    m = new_model(&specs[1], 0); /* tied: one matrix */
    model = read_onnx(m);
    ck_assert_int_eq(int_of(node_of(model, "GRU"), "linear_before_reset"), 1);
    constant_of(model, "embed.weight", 28);
    for (size_t i = 0; i < model->graph->n_initializer; i++)
        ck_assert_str_ne(model->graph->initializer[i]->name, "head.weight");
    onnx__model_proto__free_unpacked(model, NULL);
    rnnd_model_free(m);
}
END_TEST

START_TEST(too_large_for_protobuf)
{
    must(rnnd__onnx_check_size("a.onnx", 536000000));
    must_fail(RNND_EUSAGE, rnnd__onnx_check_size("a.onnx", 537000000));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "537000000"));
}
END_TEST
#endif

static void set_up(void)
{
    make_folder();
    open_backend();
}

static void tear_down(void)
{
    rnnd_backend_close(be);
    remove_folder();
}

static Suite *suite(void)
{
    Suite *s = suite_create("export");
    TCase *t = tcase_create("export");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, normalization_becomes_weights);
    tcase_add_test(t, a_fold_that_does_not_fit);
    tcase_add_test(t, the_mean_of_the_last);
    tcase_add_test(t, the_mean_while_training_goes_on);
    tcase_add_test(t, suffixes);
#ifdef HAVE_LIBZIP
    tcase_add_test(t, arrays_of_an_npz);
#endif
#ifdef HAVE_ONNX
    tcase_add_test(t, gates_are_in_their_order);
    tcase_add_test(t, every_constant_is_read);
    tcase_add_test(t, an_onnx_file_says_what_it_is);
    tcase_add_test(t, too_large_for_protobuf);
#endif
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
