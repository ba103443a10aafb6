/*
 * test_statedict.c - parameters by name: our files, other modules' names, safetensors.
 *
 * Files of other tools are written here byte by byte, so that the format's own words
 * are what is tested.
 */
#include <math.h>
#include <sys/stat.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/statedict.h"
#include "checkpoint_model.h"
#include "exchange/export.h"
#include "hdf/hdf.h"

static void set_up(void)
{
    open_backend();
    make_folder();
}

static void tear_down(void)
{
    remove_folder();
    rnnd_backend_close(be);
}

/* ---- files of other tools */

/* An array of a file: element i of it is start + i. */
struct array {
    const char *name;
    int rows, cols;
    int start;
};

static int size_of(const struct array *a)
{
    return a->rows * (a->cols ? a->cols : 1);
}

/* dtype: what a safetensors file says; bytes of one element written by put. */
struct dtype {
    const char *name;
    int size;
    void (*put)(unsigned char *to, int value);
};

static void put_f32(unsigned char *to, int value)
{
    float x = (float)value;
    memcpy(to, &x, 4);
}

static void put_f64(unsigned char *to, int value)
{
    double x = value;
    memcpy(to, &x, 8);
}

/* 0 to 2047 in half precision, by its definition. */
static void put_f16(unsigned char *to, int value)
{
    int exponent = 0;
    while (value >> (exponent + 1))
        exponent++;
    unsigned bits = value ? (unsigned)(exponent + 15) << 10 |
                                ((unsigned)value << 10 >> exponent & 1023)
                          : 0;
    to[0] = (unsigned char)bits;
    to[1] = (unsigned char)(bits >> 8);
}

/* 0 to 255, where the upper half of a float says it all. */
static void put_bf16(unsigned char *to, int value)
{
    unsigned char x[4];
    put_f32(x, value);
    memcpy(to, x + 2, 2);
}

static const struct dtype f32 = {"F32", 4, put_f32}, f64 = {"F64", 8, put_f64},
                          f16 = {"F16", 2, put_f16}, bf16 = {"BF16", 2, put_bf16},
                          i64 = {"I64", 8, put_f64};

static void write_raw(const char *name, const char *header, const void *data,
                      size_t bytes)
{
    FILE *f = fopen(in_folder(name), "wb");
    uint64_t length = strlen(header);
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < 8; i++)
        putc((int)(length >> 8 * i & 255), f);
    fputs(header, f);
    ck_assert(fwrite(data, 1, bytes, f) == bytes && fclose(f) == 0);
}

/* meta: entries of "__metadata__" as JSON, or NULL. */
static void write_told(const char *name, const struct dtype *dtype,
                       const struct array *arrays, int count, const char *meta)
{
    static unsigned char data[1 << 16];
    char header[4096] = "{";
    if (meta)
        sprintf(header, "{\"__metadata__\": {%s}, ", meta);
    int at = 0;
    for (int i = 0; i < count; i++) {
        const struct array *a = &arrays[i];
        char shape[64], *end = header + strlen(header);
        int bytes = size_of(a) * dtype->size;
        snprintf(shape, sizeof shape, a->cols ? "%d, %d" : "%d", a->rows, a->cols);
        sprintf(end,
                "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [%s], \"data_offsets\": "
                "[%d, %d]}",
                i ? ", " : "", a->name, dtype->name, shape, at, at + bytes);
        for (int k = 0; k < size_of(a); k++)
            dtype->put(data + at + k * dtype->size, a->start + k);
        at += bytes;
    }
    strcat(header, "}   ");
    write_raw(name, header, data, (size_t)at);
}

static void write_safetensors(const char *name, const struct dtype *dtype,
                              const struct array *arrays, int count)
{
    write_told(name, dtype, arrays, count, NULL);
}

/* As h5py does: without checksums, in double precision. */
static void write_hdf(const char *name, const char *group, const struct array *arrays,
                      int count)
{
    struct rnnd__hdf *f;
    must(rnnd__hdf_create(in_folder(name), &f));
    for (int i = 0; i < count; i++) {
        const struct array *a = &arrays[i];
        int64_t dim[2] = {a->rows, a->cols};
        double values[512];
        char object[1024];
        for (int k = 0; k < size_of(a); k++)
            values[k] = a->start + k;
        snprintf(object, sizeof object, "%s%s", group, a->name);
        must(rnnd__hdf_write(f, object, RNND_F64, a->cols ? 2 : 1, dim, false, values));
    }
    must(rnnd__hdf_commit(f));
}

/* LSTM 2 -> 3, 4 classes; and an embedding of 5 before it, tied or not, in the lm
   one. */
static const struct rnnd_model_spec features = {.task = RNND_CLASSIFY,
                                                .cell = RNND_LSTM,
                                                .inputs = 2,
                                                .hidden = 3,
                                                .layers = 1,
                                                .outputs = 4};
static const struct rnnd_model_spec tokens = {.task = RNND_LM,
                                              .cell = RNND_GRU,
                                              .vocab = 5,
                                              .embed = 3,
                                              .hidden = 3,
                                              .layers = 1,
                                              .outputs = 5};

static void check_values(struct rnnd_model *m, const char *name, int start, int count)
{
    float x[64];
    ck_assert_int_le(count, 64);
    must(rnnd_model_get(m, name, x));
    for (int k = 0; k < count; k++)
        ck_assert_msg(x[k] == (float)(start + k), "%s[%d] is %g", name, k, x[k]);
}

static void check_features(struct rnnd_model *m)
{
    check_values(m, "rnn.weight_ih_l0", 10, 24);
    check_values(m, "rnn.weight_hh_l0", 40, 36);
    check_values(m, "rnn.bias_ih_l0", 80, 12);
    check_values(m, "rnn.bias_hh_l0", 100, 12);
    check_values(m, "head.weight", 120, 12);
    check_values(m, "head.bias", 140, 4);
}

static const struct array ours[] = {
    {"rnn.weight_ih_l0", 12, 2, 10}, {"rnn.weight_hh_l0", 12, 3, 40},
    {"rnn.bias_ih_l0", 12, 0, 80},   {"rnn.bias_hh_l0", 12, 0, 100},
    {"head.weight", 4, 3, 120},      {"head.bias", 4, 0, 140}};

static const struct array theirs[] = {
    {"net.lstm.weight_ih_l0", 12, 2, 10}, {"net.lstm.weight_hh_l0", 12, 3, 40},
    {"net.lstm.bias_ih_l0", 12, 0, 80},   {"net.lstm.bias_hh_l0", 12, 0, 100},
    {"net.fc.weight", 4, 3, 120},         {"net.fc.bias", 4, 0, 140}};

/* ---- reading them */

START_TEST(floats_of_all_sizes)
{
    static const struct dtype *const dtypes[] = {&f32, &f64, &f16, &bf16};
    struct rnnd_model *m = new_model(&features, 1);
    write_safetensors("a", dtypes[_i], ours, 6);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    check_features(m);
    rnnd_model_free(m);
}
END_TEST

START_TEST(names_of_other_modules)
{
    struct rnnd_model *m = new_model(&features, 1);
    write_safetensors("a", &f32, theirs, 6);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    check_features(m);
    write_hdf("b", "model/", theirs, 6);
    must(rnnd__checkpoint_init(in_folder("b"), m));
    check_features(m);
    rnnd_model_free(m);
}
END_TEST

/* What wrappers of a module put before its names counts nothing, in any order; it does
   not where one name lacks it. */
START_TEST(names_in_wrappers)
{
    static const char *const wrappers[] = {"module.", "model.",
                                           "_orig_mod.module.model."};
    struct rnnd_model_spec spec = features;
    spec.normalize = true;
    struct rnnd_model *m = new_model(&spec, 1);
    struct array a[8] = {{"input.mean", 2, 0, 5}, {"input.std", 2, 0, 7}};
    memcpy(a + 2, ours, sizeof ours);
    static char name[8][64];
    for (size_t w = 0; w < sizeof wrappers / sizeof *wrappers; w++) {
        struct array wrapped[8];
        memcpy(wrapped, a, sizeof wrapped);
        for (int i = 0; i < 8; i++) {
            snprintf(name[i], sizeof name[i], "%s%s", wrappers[w], a[i].name);
            wrapped[i].name = name[i];
        }
        write_safetensors("a", &f32, wrapped, 8);
        must(rnnd__checkpoint_init(in_folder("a"), m));
        check_features(m);
        ck_assert(rnnd_model_mean(m)[1] == 6 && rnnd_model_std(m)[1] == 8);
        wrapped[0].name = "mean";
        write_safetensors("a", &f32, wrapped, 8);
        must_fail(RNND_EUSAGE, rnnd__checkpoint_init(in_folder("a"), m));
    }
    rnnd_model_free(m);
}
END_TEST

/* A state_dict as a loop of h5py writes it: no group, or groups for modules; but a data
   set is none. */
START_TEST(arrays_at_the_root)
{
    struct array a[6];
    struct rnnd_model *m = new_model(&features, 1);
    write_hdf("a", "", theirs, 6);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    check_features(m);
    memcpy(a, theirs, sizeof a);
    a[0].name = "lstm/weight_ih_l0", a[1].name = "lstm/weight_hh_l0";
    a[2].name = "lstm/bias_ih_l0", a[3].name = "lstm/bias_hh_l0";
    a[4].name = "fc/weight", a[5].name = "fc/bias";
    write_hdf("b", "", a, 6);
    must(rnnd__checkpoint_init(in_folder("b"), m));
    check_features(m);
    rnnd_model_free(m);
    must_fail(RNND_EFILE, rnnd_checkpoint_load_model(in_folder("b"), be, &m, NULL));
    ck_assert_str_eq(rest_of_detail(),
                     "b: not a checkpoint (no attribute format); convert it with "
                     "rnn_dist import");

    struct rnnd__hdf *f;
    struct rnnd__statedict sd;
    must(rnnd__hdf_create(in_folder("c"), &f));
    must(rnnd__hdf_set_string(f, "format", "rnn_dist-data"));
    must(rnnd__hdf_commit(f));
    must_fail(RNND_EDATA, rnnd__statedict_open(in_folder("c"), &sd));
}
END_TEST

static void put_huge(unsigned char *to, int value)
{
    double x = value == 123 ? -1e39 : 1e38;
    memcpy(to, &x, 8);
}

/* No infinity is made of what another precision could still say. */
START_TEST(too_large_is_refused)
{
    const struct dtype huge = {"F64", 8, put_huge};
    struct rnnd_model *m = new_model(&features, 1);
    write_safetensors("a", &huge, ours, 6);
    must_fail(RNND_EDATA, rnnd__checkpoint_init(in_folder("a"), m));
    ck_assert_str_eq(rest_of_detail(),
                     "a: head.weight: element 3 is too large for a 32-bit float");
    rnnd_model_free(m);
}
END_TEST

/* Every half there is, against its definition. */
START_TEST(all_halves)
{
    static unsigned char data[1 << 17];
    static float got[1 << 16];
    const char *header =
        "{\"rnn.weight_ih_l0\": {\"dtype\": \"F16\", \"shape\": [65536], "
        "\"data_offsets\": [0, 131072]}}";
    struct rnnd__statedict sd;
    for (unsigned h = 0; h < 1 << 16; h++) {
        data[2 * h] = (unsigned char)h;
        data[2 * h + 1] = (unsigned char)(h >> 8);
    }
    write_raw("a", header, data, sizeof data);
    must(rnnd__statedict_open(in_folder("a"), &sd));
    must(rnnd__safetensors_read(&sd, &sd.tensor[0], got));
    rnnd__statedict_close(&sd);
    for (unsigned h = 0; h < 1 << 16; h++) {
        unsigned exponent = h >> 10 & 31, part = h & 1023;
        double want = exponent == 31 ? (part ? NAN : INFINITY)
                      : exponent     ? ldexp(1024 + part, (int)exponent - 25)
                                     : ldexp(part, -24);
        want = h & 0x8000 ? -want : want;
        ck_assert(isnan(want)
                      ? isnan(got[h])
                      : got[h] == (float)want && !signbit(got[h]) == !signbit(want));
    }
}
END_TEST

static const struct array gru[] = {
    {"encoder.weight", 5, 3, 1},    {"rnn.weight_ih_l0", 9, 3, 20},
    {"rnn.weight_hh_l0", 9, 3, 50}, {"rnn.bias_ih_l0", 9, 0, 80},
    {"rnn.bias_hh_l0", 9, 0, 90},   {"decoder.bias", 5, 0, 100},
    {"decoder.weight", 5, 3, 110}};

/* The names of PyTorch's word language model, whose recurrent module is called rnn as
   here; and tied, where the second name of the matrix may be left out or must agree. */
START_TEST(a_language_model)
{
    struct array a[7];
    struct rnnd_model_spec spec = tokens;
    struct rnnd_model *m = new_model(&spec, 1);
    memcpy(a, gru, sizeof a);
    write_safetensors("a", &f32, a, 7);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    check_values(m, "embed.weight", 1, 15);
    check_values(m, "head.weight", 110, 15);
    check_values(m, "head.bias", 100, 5);
    rnnd_model_free(m);

    spec.tie_weights = true;
    m = new_model(&spec, 1);
    must_fail(RNND_EUSAGE, rnnd__checkpoint_init(in_folder("a"), m));
    ck_assert_str_eq(rest_of_detail(),
                     "a: embed.weight and head.weight differ, but the model "
                     "ties them");
    a[6].start = a[0].start;
    write_safetensors("a", &f32, a, 7);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    check_values(m, "head.weight", 1, 15);
    write_safetensors("a", &f32, a, 6);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    check_values(m, "embed.weight", 1, 15);
    check_values(m, "head.weight", 1, 15);
    check_values(m, "head.bias", 100, 5);
    rnnd_model_free(m);
}
END_TEST

/* A failure leaves the model as it was. */
static void refuse(const struct rnnd_model_spec *spec, int status, const char *detail)
{
    struct rnnd_model *m = new_model(spec, 33), *same = new_model(spec, 33);
    must_fail(status, rnnd__checkpoint_init(in_folder("a"), m));
    ck_assert_str_eq(rest_of_detail(), detail);
    ck_assert(are_same_models(m, same));
    rnnd_model_free(m);
    rnnd_model_free(same);
}

#define MODEL_NEEDS                                                                 \
    "the model needs head.weight [4, 3], head.bias [4], rnn.weight_ih_l0 [12, 2], " \
    "rnn.weight_hh_l0 [12, 3], rnn.bias_ih_l0 [12], rnn.bias_hh_l0 [12]"

START_TEST(what_does_not_fit_is_named)
{
    struct array a[8];
    memcpy(a, theirs, sizeof theirs);
    a[4].rows = a[5].rows = 3;
    write_safetensors("a", &f32, a, 6);
    refuse(&features, RNND_EUSAGE,
           "a: net.fc.weight is [3, 3], the model's head.weight is [4, 3]");

    write_safetensors("a", &f32, ours, 5);
    refuse(&features, RNND_EUSAGE,
           "a: has no head.bias; the file has rnn.weight_ih_l0 [12, 2], "
           "rnn.weight_hh_l0 [12, 3], rnn.bias_ih_l0 [12], rnn.bias_hh_l0 [12], "
           "head.weight "
           "[4, 3]; " MODEL_NEEDS);

    memcpy(a, ours, sizeof ours);
    a[6] = (struct array){"rnn.weight_ih_l1", 12, 3, 0};
    write_safetensors("a", &f32, a, 7);
    refuse(&features, RNND_EUSAGE,
           "a: the model has no parameter rnn.weight_ih_l1; the file has "
           "rnn.weight_ih_l0 [12, 2], rnn.weight_hh_l0 [12, 3], rnn.bias_ih_l0 [12], "
           "rnn.bias_hh_l0 [12], head.weight [4, 3], head.bias [4], rnn.weight_ih_l1 "
           "[12, 3]; " MODEL_NEEDS);

    memcpy(a, theirs, sizeof theirs);
    a[6] = (struct array){"other.weight", 4, 3, 0};
    a[7] = (struct array){"other.bias", 4, 0, 0};
    write_safetensors("a", &f32, a, 8);
    refuse(
        &features, RNND_EUSAGE,
        "a: several modules could be the head, none of them named "
        "head; the file has net.lstm.weight_ih_l0 [12, 2], net.lstm.weight_hh_l0 [12, "
        "3], "
        "net.lstm.bias_ih_l0 [12], net.lstm.bias_hh_l0 [12], net.fc.weight [4, 3], "
        "net.fc.bias [4], other.weight [4, 3], other.bias [4]");

    a[0] = (struct array){"x", 1, 0, 0};
    write_safetensors("a", &f32, a, 1);
    refuse(&features, RNND_EUSAGE,
           "a: no recurrent layers (no name ends in weight_ih_l0 or weight_ih); "
           "the file has x [1]");

    write_safetensors("a", &i64, ours, 6);
    refuse(&features, RNND_EUSAGE,
           "a: head.weight is not an array of floating-point numbers");
}
END_TEST

/* Names that are ambiguous or too many. */
static void refuse_words(const struct rnnd_model_spec *spec, const char *words)
{
    struct rnnd_model *m = new_model(spec, 33);
    must_fail(RNND_EUSAGE, rnnd__checkpoint_init(in_folder("a"), m));
    ck_assert_msg(strstr(rnnd_status_detail(), words) != NULL, "%s: %s", words,
                  rnnd_status_detail());
    rnnd_model_free(m);
}

/* Cells have names without a layer, also in a module called rnn. */
START_TEST(names_of_cells)
{
    static const char *const modules[] = {"", "cell.", "net.0.", "rnn.", "module.rnn."};
    static const char *const rest[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    struct rnnd_model *m = new_model(&features, 1);
    struct array a[8];
    char name[4][32];
    memcpy(a, theirs, sizeof theirs);
    for (size_t k = 0; k < sizeof modules / sizeof *modules; k++) {
        for (int i = 0; i < 4; i++) {
            snprintf(name[i], sizeof name[i], "%s%s", modules[k], rest[i]);
            a[i].name = name[i];
        }
        write_safetensors("a", &f32, a, 6);
        must(rnnd__checkpoint_init(in_folder("a"), m));
        check_features(m);
    }
    a[6] = (struct array){"other.weight_ih", 12, 3, 0};
    write_safetensors("a", &f32, a, 7);
    refuse_words(&features, "several recurrent cells");
    a[6] =
        (struct array){"rnn.weight_ih_l0", 12, 2, 0}; /* names of layers come first */
    write_safetensors("a", &f32, a, 7);
    refuse_words(&features, "has no rnn.weight_hh_l0");
    rnnd_model_free(m);
}
END_TEST

/* Two arrays for a matrix: g v / |v|, by rows or by columns. */
START_TEST(matrices_in_two_parts)
{
    static const char *const forms[][2] = {
        {"net.lstm.weight_hh_l0_g", "net.lstm.weight_hh_l0_v"},
        {"net.lstm.parametrizations.weight_hh_l0.original0",
         "net.lstm.parametrizations.weight_hh_l0.original1"}};
    struct rnnd_model *m = new_model(&features, 1);
    struct array a[8];
    float got[36];
    memcpy(a, theirs, sizeof theirs);
    for (int kind = 0; kind < 4; kind++) {
        bool by_row = kind < 2;
        a[1] = (struct array){forms[kind % 2][1], 12, 3, 40};
        a[6] = (struct array){forms[kind % 2][0], by_row ? 12 : 1, by_row ? 1 : 3, 7};
        write_safetensors("a", &f32, a, 7);
        must(rnnd__checkpoint_init(in_folder("a"), m));
        must(rnnd_model_get(m, "rnn.weight_hh_l0", got));
        for (int r = 0; r < 12; r++)
            for (int c = 0; c < 3; c++) {
                double squares = 0;
                for (int k = 0; k < (by_row ? 3 : 12); k++)
                    squares += pow(40 + (by_row ? 3 * r + k : 3 * k + c), 2);
                double want = (7 + (by_row ? r : c)) * (40 + 3 * r + c) / sqrt(squares);
                ck_assert_double_eq_tol(got[3 * r + c], want, 1e-6 * want);
            }
    }
    a[1].start = -1; /* one element of the third column is zero, which is no fault */
    write_safetensors("a", &f32, a, 7);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    a[6].cols = 2;
    write_safetensors("a", &f32, a, 7);
    refuse_words(&features, "has no rnn.weight_hh_l0");
    a[6].cols = 3;
    a[7] = (struct array){"net.lstm.weight_hh_l0", 12, 3, 0}; /* which is it? */
    write_safetensors("a", &f32, a, 8);
    refuse_words(&features, "the model has no parameter net.lstm.param");
    rnnd_model_free(m);
}
END_TEST

START_TEST(a_direction_of_zero)
{
    struct array a[8] = {{"head.weight_g", 3, 1, 1}};
    memcpy(a + 1, ours, sizeof ours);
    a[5] = (struct array){"head.weight_v", 3, 1, 0}; /* 0, 1, 2 */
    a[6].rows = 3;
    struct rnnd_model_spec spec = features;
    spec.outputs = 3;
    spec.hidden = 1;
    a[1].rows = a[2].rows = a[3].rows = a[4].rows = 4;
    a[2].cols = 1;
    write_safetensors("a", &f32, a, 7);
    refuse(&spec, RNND_EDATA, "a: head.weight_v: row 0 is zero and has no direction");
    a[5].start = 1;
    write_safetensors("a", &f32, a, 7);
    struct rnnd_model *m = new_model(&spec, 1);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    check_values(m, "head.weight", 1, 3); /* g alone is left of a single column */
    rnnd_model_free(m);
}
END_TEST

/* A module within a larger one. */
START_TEST(names_below_a_prefix)
{
    static const char *const given[] = {"net", "net."};
    struct rnnd__statedict sd;
    struct rnnd_model *m = new_model(&features, 1);
    struct array a[8];
    memcpy(a, theirs, sizeof theirs);
    a[6] = (struct array){"network.lstm.weight_ih_l0", 12, 2, 1};
    a[7] = (struct array){"decoder.fc.bias", 4, 0, 1};
    write_safetensors("a", &f32, a, 8);
    for (int i = 0; i < 2; i++) {
        must(rnnd__statedict_open_part(in_folder("a"), given[i], &sd));
        ck_assert_int_eq(sd.count, 6);
        must(rnnd__statedict_load(&sd, m));
        check_features(m);
        rnnd__statedict_close(&sd);
    }
    refuse_words(&features, "several recurrent modules");
    must_fail(RNND_EUSAGE, rnnd__statedict_open_part(in_folder("a"), "ne", &sd));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "decoder.fc.bias [4]"));
    rnnd_model_free(m);
}
END_TEST

/* ---- files that are no safetensors */

START_TEST(broken_files_are_refused)
{
    static const char *const headers[] = {
        "",
        "[]",
        "{",
        "{\"a\": 1}",
        "{\"a\": {}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 4]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [-8, 0]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [-2], \"data_offsets\": [0, 8]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [4611686018427387904, 4], "
        "\"data_offsets\": [0, 0]}}",
        "{\"a\": {\"dtype\": \"Q4\", \"shape\": [2], \"data_offsets\": [0, 8]}}",
        "{\"a\": {\"shape\": [2], \"data_offsets\": [0, 8]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": 2, \"data_offsets\": [0, 8]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": 8}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}, "
        "\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}}",
    };
    struct rnnd__statedict sd;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        write_raw("a", headers[i], "12345678", 8);
        int status = rnnd__statedict_open(in_folder("a"), &sd);
        ck_assert_msg(status == RNND_EDATA, "%s: %d %s", headers[i], status,
                      rnnd_status_detail());
    }
    write_raw("a",
              "{\"a\": {\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [0, "
              "12]}}",
              "12345678", 8);
    must_fail(RNND_EFILE, rnnd__statedict_open(in_folder("a"), &sd));
    ck_assert_str_eq(rest_of_detail(),
                     "a: truncated: a ends at byte 12 of the elements, "
                     "of which there are 8");
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    must_fail(RNND_EFILE, rnnd__statedict_open(in_folder("pipe"), &sd));
    ck_assert_str_eq(rest_of_detail(), "pipe: not a regular file");
    FILE *f = fopen(in_folder("b"), "wb");
    fputs("\xff\xff\xff\xff\xff\xff\xff\xff{}", f);
    fclose(f);
    must_fail(RNND_EDATA, rnnd__statedict_open(in_folder("b"), &sd));
    must_fail(RNND_EFILE, rnnd__statedict_open(in_folder("none"), &sd));
    must_fail(RNND_EFILE, rnnd__statedict_open(in_folder(""), &sd));
}
END_TEST

/* The arrays cover what follows the header, without holes and without overlap, in any
   order; an empty one may be anywhere between. */
START_TEST(all_bytes_belong_to_one_array)
{
#define ARRAY(name, shape, from, to)                              \
    "\"" name "\": {\"dtype\": \"F32\", \"shape\": [" shape "], " \
    "\"data_offsets\": [" #from ", " #to "]}"
    static const struct {
        const char *header, *detail;
    } files[] = {
        {"{" ARRAY("x.weight_ih_l0", "2", 8,
                   16) ", " ARRAY("b", "0", 8, 8) ", " ARRAY("a", "2", 0, 8) "}",
         NULL},
        {"{" ARRAY("a", "3", 0, 12) "}",
         "a: invalid safetensors file: 4 bytes at the end belong to no array"},
        {"{}", "a: invalid safetensors file: 16 bytes at the end belong to no array"},
        {"{" ARRAY("a", "2", 0, 8) ", " ARRAY("b", "1", 12, 16) "}",
         "a: invalid safetensors file: b: 4 bytes before it belong to no array"},
        {"{" ARRAY("a", "3", 4, 16) "}",
         "a: invalid safetensors file: a: 4 bytes before it belong to no array"},
        {"{" ARRAY("a", "3", 0, 12) ", " ARRAY("b", "2", 8, 16) "}",
         "a: invalid safetensors file: b: overlaps another array"},
        {"{" ARRAY("a", "4", 0, 16) ", " ARRAY("b", "2", 4, 12) "}",
         "a: invalid safetensors file: b: overlaps another array"},
        {"{" ARRAY("b", "4", 0, 16) ", " ARRAY("a", "4", 0, 16) "}", NULL},
    };
#undef ARRAY
    struct rnnd__statedict sd;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_raw("a", files[i].header, "0123456789abcdef", 16);
        int status = rnnd__statedict_open(in_folder("a"), &sd);
        if (i == 0) {
            must(status);
            rnnd__statedict_close(&sd);
            continue;
        }
        ck_assert_int_eq(status, RNND_EDATA);
        if (files[i].detail)
            ck_assert_str_eq(rest_of_detail(), files[i].detail);
        else /* which of two equal ones is named does not matter */
            ck_assert_ptr_nonnull(strstr(rest_of_detail(), "overlaps another array"));
    }
}
END_TEST

/* Cut anywhere, a file is refused, and never read beyond its end. */
START_TEST(cut_files_are_refused)
{
    static unsigned char all[1 << 14];
    struct rnnd_model *m = new_model(&features, 1);
    write_safetensors("a", &f32, ours, 6);
    FILE *f = fopen(in_folder("a"), "rb");
    size_t size = fread(all, 1, sizeof all, f);
    fclose(f);
    for (size_t n = 0; n < size; n++) {
        f = fopen(in_folder("a"), "wb");
        fwrite(all, 1, n, f);
        fclose(f);
        int status = rnnd__checkpoint_init(in_folder("a"), m);
        ck_assert_msg(status == RNND_EFILE || status == RNND_EDATA, "%zu: %d", n,
                      status);
    }
    rnnd_model_free(m);
}
END_TEST

/* ---- and back */

START_TEST(an_export_is_the_model)
{
    static char *const texts[] = {"a", "b \"c\"", "ö", "", "e\n", "f", "g"};
    const struct rnnd_model_spec *spec = &specs[_i];
    struct rnnd_model *m = new_model(spec, 3), *n, *like = new_model(spec, 4);
    struct rnnd_checkpoint_info info;
    must(rnnd_model_set_names(m, RNND_AXIS_CLASS, texts, spec->outputs));
    must(rnnd__export(in_folder("a.safetensors"), m, NULL, false));
    must(rnnd_checkpoint_load_model(in_folder("a.safetensors"), be, &n, &info));
    ck_assert(are_same_models(m, n));
    same_specs(spec, rnnd_model_spec(n));
    for (int k = 0; k < spec->outputs; k++)
        ck_assert_str_eq(rnnd_model_class(n, k), texts[k]);
    rnnd_model_free(n);
    free(info.config);
    must(rnnd__checkpoint_init(in_folder("a.safetensors"), like));
    ck_assert(are_same_models(m, like));
    ck_assert_int_eq(count_files("a.safetensors"), 1);

    struct rnnd__statedict sd;
    must(rnnd__export(in_folder("a.h5"), m, NULL, false));
    must(rnnd__statedict_open(in_folder("a.h5"), &sd));
    must(rnnd__statedict_model(&sd, NULL, be, &n));
    rnnd__statedict_close(&sd);
    ck_assert(are_same_models(m, n));
    same_specs(spec, rnnd_model_spec(n));
    for (int k = 0; k < spec->outputs; k++)
        ck_assert_str_eq(rnnd_model_class(n, k), texts[k]);
    rnnd_model_free(n);
    must_fail(RNND_EFILE, rnnd__export(in_folder("none/a"), m, NULL, false));
    rnnd_model_free(like);
    rnnd_model_free(m);
}
END_TEST

/* Widths come from the arrays; what they do not show must be given. */
START_TEST(a_model_of_bare_arrays)
{
    struct rnnd__statedict sd;
    struct rnnd_options opt;
    struct rnnd_model *m;
    must(rnnd_options_init(&opt));
    write_safetensors("a", &f32, theirs, 6);
    must(rnnd__statedict_open(in_folder("a"), &sd));
    must_fail(RNND_EUSAGE, rnnd__statedict_model(&sd, &opt, be, &m));
    ck_assert_str_eq(rest_of_detail(),
                     "a: does not name the task of its model; convert it with "
                     "rnn_dist import --task TASK");
    must(rnnd__options_set(&opt, "task", "classify", RNND_FROM_COMMAND_LINE));
    must(rnnd__statedict_model(&sd, &opt, be, &m));
    same_specs(&features, rnnd_model_spec(m));
    check_features(m);
    rnnd_model_free(m);
    must(rnnd__options_set(&opt, "cell", "gru", RNND_FROM_COMMAND_LINE));
    must_fail(RNND_EUSAGE, rnnd__statedict_model(&sd, &opt, be, &m));
    rnnd__statedict_close(&sd);

    write_safetensors("a", &f32, gru, 7);
    must(rnnd__statedict_open(in_folder("a"), &sd));
    must(rnnd__statedict_model(&sd, NULL, be, &m)); /* as many outputs as tokens */
    same_specs(&tokens, rnnd_model_spec(m));
    rnnd_model_free(m);
    rnnd__statedict_close(&sd);
    rnnd_options_clear(&opt);
}
END_TEST

/* What a file, and --OPTION VALUE beside it if there is one, make of it: the model, or
   the failure. */
static int import(const char *option, const char *value, struct rnnd_model **out)
{
    struct rnnd__statedict sd;
    struct rnnd_options opt;
    must(rnnd_options_init(&opt));
    if (option)
        must(rnnd__options_set(&opt, option, value, RNND_FROM_COMMAND_LINE));
    must(rnnd__statedict_open(in_folder("a"), &sd));
    int status = rnnd__statedict_model(&sd, &opt, be, out);
    rnnd__statedict_close(&sd);
    rnnd_options_clear(&opt);
    return status;
}

static void refuse_import(const char *option, const char *value, int want,
                          const char *words)
{
    struct rnnd_model *m;
    int status = import(option, value, &m);
    ck_assert_msg(status == want && strstr(rnnd_status_detail(), words),
                  "%d, %s: %d %s", want, words, status, rnnd_status_detail());
}

/* A tied matrix has one width, whoever ties it. */
START_TEST(a_tied_matrix_has_one_width)
{
    struct array a[7];
    struct rnnd_model *m;
    struct rnnd_model_spec spec = tokens;
    memcpy(a, gru, sizeof a);
    a[0].cols = a[1].cols = 2;
    write_safetensors("a", &f32, a, 6);
    refuse_import(NULL, NULL, RNND_EDATA, "as wide as the hidden state");
    a[6].cols = 2;
    write_safetensors("a", &f32, a, 7);
    refuse_import("tie-weights", "yes", RNND_EUSAGE, "as wide as the hidden state");
    write_told("a", &f32, a, 7, "\"rnn_dist.config\": \"tie-weights = yes\"");
    refuse_import(NULL, NULL, RNND_EDATA, "as wide as the hidden state");
    spec.tie_weights = true;
    spec.embed = 2;
    must_fail(RNND_EDATA, rnnd_model_new(be, &spec, &m));
    spec.embed = 3;
    spec.outputs = 6;
    must_fail(RNND_EDATA, rnnd_model_new(be, &spec, &m));
}
END_TEST

/* Of a tied matrix a file may keep the head's name only. */
START_TEST(a_tied_matrix_by_the_heads_name)
{
    static const char *const given[][2] = {{"tie-weights", "yes"}, {"task", "lm"}};
    struct rnnd_model_spec spec = tokens;
    struct rnnd_model *m;
    spec.tie_weights = true;
    write_safetensors("a", &f32, gru + 1, 6);
    for (int i = 0; i < 2; i++) {
        must(import(given[i][0], given[i][1], &m));
        same_specs(&spec, rnnd_model_spec(m));
        check_values(m, "embed.weight", 110, 15);
        rnnd_model_free(m);
    }
}
END_TEST

/* Mean and deviation: both, of features, and numbers to divide by. */
START_TEST(moments_make_sense)
{
    struct array a[8];
    struct rnnd_model *m;
    const char *say = "\"rnn_dist.config\": \"normalize = yes\"";
    memcpy(a, ours, sizeof ours);
    write_told("a", &f32, a, 6, say);
    refuse_import("task", "tag", RNND_EDATA, "says normalize = yes, but has no");
    a[6] = (struct array){"input.mean", 2, 0, -5};
    write_told("a", &f32, a, 7, say);
    refuse_import("task", "tag", RNND_EDATA, "has input.mean, but no input.std");
    a[6].name = "input.std";
    write_safetensors("a", &f32, a, 7);
    refuse_import("task", "tag", RNND_EDATA, "has input.std, but no input.mean");
    a[7] = (struct array){"input.mean", 2, 0, 1};
    a[6].start = 0;
    write_safetensors("a", &f32, a, 8);
    refuse_import("task", "tag", RNND_EDATA, "input.std: element 0 is 0");
    a[6].start = 1;
    write_safetensors("a", &f32, a, 8);
    must(import("task", "tag", &m));
    ck_assert(rnnd_model_std(m)[1] == 2 && rnnd_model_mean(m)[1] == 2);

    struct rnnd_model *odd;
    must(rnnd_model_new(be, rnnd_model_spec(m), &odd));
    unlink(in_folder("a"));
    const float bad[][2] = {{NAN, 1}, {INFINITY, 1}, {0, NAN}, {0, INFINITY}, {0, -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rnnd_model_mean(odd)[1] = bad[i][0];
        rnnd_model_std(odd)[1] = bad[i][1];
        must(rnnd__export(in_folder("a"), odd, NULL, false));
        refuse_import(NULL, NULL, RNND_EDATA, "element 1 is");
    }
    must(rnnd__checkpoint_init(in_folder("a"), odd)); /* measured anew there */
    rnnd_model_free(odd);
    rnnd_model_free(m);
}
END_TEST

/* Blamed on who said it: the options, or the file. */
START_TEST(cells_by_their_gates)
{
    struct array a[6];
    memcpy(a, ours, sizeof a);
    for (int i = 0; i < 4; i++)
        a[i].rows = 6;
    write_safetensors("a", &f32, a, 6);
    refuse_import("task", "tag", RNND_EDATA, "no cell has 2 gates (an LSTM with proj");
    refuse_import("cell", "gru", RNND_EDATA, "no cell has 2 gates");
    write_safetensors("a", &f32, ours, 6);
    refuse_import("cell", "gru", RNND_EUSAGE, "its arrays have 4 gates, --cell has 3");
    write_told("a", &f32, ours, 6, "\"rnn_dist.config\": \"cell = gru\"");
    refuse_import("task", "tag", RNND_EDATA,
                  "its arrays have 4 gates, the cell in its options has 3");
}
END_TEST

/* A file's words are data; what is given wins, and they are not read then. */
START_TEST(words_of_a_file)
{
    static const struct {
        const char *meta, *words, *option, *value;
    } files[] = {
        {"\"rnn_dist.task\": \"xyz\"", "xyz", "task", "classify"},
        {"\"rnn_dist.task\": \"lm\"", "task lm needs", "task", "classify"},
        {"\"rnn_dist.task\": \"classify\", \"rnn_dist.config\": \"cell = xyz\"",
         "a:1: --cell must be", "cell", "lstm"},
        {"\"rnn_dist.task\": \"classify\", \"rnn_dist.config\": \"# \\npool = 7\"",
         "a:2: --pool must be", "pool", "last"},
    };
    struct rnnd_model *m;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_told("a", &f32, ours, 6, files[i].meta);
        refuse_import(NULL, NULL, RNND_EDATA, files[i].words);
        refuse_import("lr", "1", RNND_EDATA, "/a:");
        must(import(files[i].option, files[i].value, &m));
        same_specs(&features, rnnd_model_spec(m));
        check_features(m);
        rnnd_model_free(m);
    }
    write_told("a", &f32, ours, 6, "\"rnn_dist.config\": \"hiden = 4\"");
    refuse_import("task", "tag", RNND_EDATA, "hiden");
}
END_TEST

/* Texts of classes that do not fit are left out, not taken for those of others. */
START_TEST(texts_that_do_not_fit)
{
    static const char *const lists[] = {"[\\\"a\\\", \\\"b\\\"]", "[1, 2, 3, 4]",
                                        "[\\\"a", "7"};
    char meta[256];
    struct rnnd_model *m;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        snprintf(meta, sizeof meta, "\"rnn_dist.classes\": \"%s\"", lists[i]);
        write_told("a", &f32, ours, 6, meta);
        must(import("task", "tag", &m));
        ck_assert_ptr_null(rnnd_model_class(m, 0));
        rnnd_model_free(m);
    }
}
END_TEST

/* Empty, of another rank, or so large that a product overflows: named, with shape. */
START_TEST(shapes_are_sane)
{
    static const struct {
        const char *name, *shape, *words;
    } odd[] = {
        {"embed.weight", "0, 3",
         "embed.weight is [0, 3], expected two dimensions, each from 1"},
        {"embed.weight", "5, 0", "embed.weight is [5, 0]"},
        {"embed.weight", "0", "embed.weight is [0]"},
        {"embed.weight", "1, 0, 1", "embed.weight is of 3 dimensions"},
        {"embed.weight", "4611686018427387904, 0", "is [4611686018427387904, 0]"},
        {"rnn.weight_ih_l0", "0, 4611686018427387904", "is [0, 4611686018427387904]"},
        {"rnn.weight_hh_l0", "0, 1099511627776", "is [0, 1099511627776]"},
        {"head.weight", "0", "head.weight is [0]"},
        {"head.bias", "0", "head.bias is [0], expected one dimension"},
        {"head.bias", "0, 4", "head.bias is [0, 4]"},
        {"rnn.bias_ih_l0", "0, 1", "rnn.bias_ih_l0 is [0, 1]"},
    };
    struct rnnd_model_spec spec = features;
    struct rnnd_model *m;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct array a[6];
        char text[256];
        int count = 0;
        for (int k = 0; k < 6; k++)
            if (strcmp(ours[k].name, odd[i].name) != 0)
                a[count++] = ours[k];
        snprintf(text, sizeof text,
                 "}, \"%s\": {\"dtype\": \"F32\", \"shape\": [%s], \"data_offsets\": "
                 "[0, 0]",
                 odd[i].name, odd[i].shape);
        write_told("a", &f32, a, count, text);
        refuse_import("task", "tag", RNND_EDATA, odd[i].words);
    }
    spec.hidden = spec.inputs = INT32_MAX; /* as HDF5 may hold without a byte */
    must_fail(RNND_EDATA, rnnd_model_new(be, &spec, &m));
}
END_TEST

/* As long as groups within groups make them. */
START_TEST(long_names)
{
    static char name[6][512];
    struct array a[6];
    struct rnnd_model *m = new_model(&features, 1);
    memcpy(a, theirs, sizeof a);
    for (int i = 0; i < 6; i++) {
        memset(name[i], 'x', 300);
        snprintf(name[i] + 300, 200, ".%s", theirs[i].name);
        a[i].name = name[i];
    }
    write_hdf("a", "", a, 6);
    must(rnnd__checkpoint_init(in_folder("a"), m));
    check_features(m);
    rnnd_model_free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("statedict");
    TCase *t = tcase_create("statedict");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, floats_of_all_sizes, 0, 4);
    tcase_add_test(t, names_of_other_modules);
    tcase_add_test(t, names_of_cells);
    tcase_add_test(t, matrices_in_two_parts);
    tcase_add_test(t, a_direction_of_zero);
    tcase_add_test(t, names_below_a_prefix);
    tcase_add_test(t, names_in_wrappers);
    tcase_add_test(t, arrays_at_the_root);
    tcase_add_test(t, too_large_is_refused);
    tcase_add_test(t, all_halves);
    tcase_add_test(t, a_language_model);
    tcase_add_test(t, what_does_not_fit_is_named);
    tcase_add_test(t, broken_files_are_refused);
    tcase_add_test(t, all_bytes_belong_to_one_array);
    tcase_add_test(t, cut_files_are_refused);
    tcase_add_loop_test(t, an_export_is_the_model, 0, SPECS);
    tcase_add_test(t, a_model_of_bare_arrays);
    tcase_add_test(t, a_tied_matrix_has_one_width);
    tcase_add_test(t, a_tied_matrix_by_the_heads_name);
    tcase_add_test(t, moments_make_sense);
    tcase_add_test(t, cells_by_their_gates);
    tcase_add_test(t, words_of_a_file);
    tcase_add_test(t, texts_that_do_not_fit);
    tcase_add_test(t, shapes_are_sane);
    tcase_add_test(t, long_names);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
