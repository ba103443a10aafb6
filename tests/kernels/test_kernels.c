/*
 * test_kernels.c - every operation of a back end against naive references in double, on
 * every back end of the list in kernels_ref.c. The time loop has a file of its own,
 * kernels_rnn.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "../suite.h"
#include "base/random.h"
#include "kernels_bf16.h"
#include "kernels_ctc.h"
#include "kernels_ref.h"
#include "kernels_rnn.h"
#include "rnn_dist.h"

/* What differs from another target only in its time loops. */
static bool is_repeated(int target)
{
    enum rnnd_rnn_path path = kernels_targets[target].path;
    return path == RNND_PATH_SMALL || path == RNND_PATH_PERSISTENT;
}

/* Opens the target of a loop test, or returns from it. */
#define OPEN(rig)                                 \
    struct rig rig;                               \
    if (is_repeated(_i) || !rig_open(&(rig), _i)) \
    return

static struct rnnd__buf put_floats(struct rig *rig, const float *x, int64_t count)
{
    return rig_put(rig, x, count * 4);
}

/* ---- memory */

START_TEST(memory_moves)
{
    OPEN(rig);
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    struct rnnd__buf a = put_floats(&rig, x, 6), b = rig_nan(&rig, 6), empty;
    rig.op->copy(rig.be, b, rnnd__at(a, 2), 16);
    rig.op->zero(rig.be, rnnd__at(b, 4), 8);
    float *y = rig_get(&rig, b, 6);
    static const float expected[6] = {3, 4, 5, 6, 0, 0};
    ck_assert_mem_eq(y, expected, sizeof expected);
    free(y);
    ck_assert_int_eq(rig.op->alloc(rig.be, &empty, 0), 0);
    ck_assert(!rnnd__buf_is_null(empty));
    rig.op->free(rig.be, empty);
    rig.op->free(rig.be, (struct rnnd__buf){NULL});
    bool cpu = kernels_targets[_i].threads > 0;
    ck_assert_str_eq(rig.op->name, cpu ? "cpu" : "cuda");
    ck_assert_ptr_nonnull(strstr(rig.op->describe(rig.be), cpu ? "thread" : "sm_"));
    rig_close(&rig);
}
END_TEST

/* More than pinned memory holds at a time; and the source may be reused at
   once. */
START_TEST(long_uploads_arrive)
{
    OPEN(rig);
    enum { COUNT = 5000000 };
    float *x = numbers(4, COUNT, 1);
    struct rnnd__buf buf = rig_nan(&rig, COUNT);
    rig.op->upload(rig.be, buf, x, COUNT * sizeof *x);
    memset(x, 0, COUNT * sizeof *x);
    float *y = rig_get(&rig, buf, COUNT), *wanted = numbers(4, COUNT, 1);
    ck_assert(memcmp(y, wanted, COUNT * sizeof *y) == 0);
    free(x);
    free(y);
    free(wanted);
    rig_close(&rig);
}
END_TEST

START_TEST(memory_that_is_not_there_is_an_error)
{
    OPEN(rig);
    struct rnnd__buf buf = {NULL};
    ck_assert_int_lt(rig.op->alloc(rig.be, &buf, SIZE_MAX), 0);
    ck_assert_ptr_nonnull(strstr(rig.be->error, "memory"));
    ck_assert(rnnd__buf_is_null(buf));
    ck_assert_int_eq(rig.op->sync(rig.be), 0);
    rig_close(&rig);
}
END_TEST

START_TEST(an_unknown_instruction_set_is_refused)
{
    struct rnnd__backend_config config = {.threads = 1, .precision = RNND_FP32};
    struct rnnd_backend *be = NULL;
    char error[256] = "";
    setenv("RNND_CPU_ISA", "mmx", 1);
    ck_assert_int_lt(rnnd__cpu_open(&config, &be, error), 0);
    unsetenv("RNND_CPU_ISA");
    ck_assert_ptr_nonnull(strstr(error, "RNND_CPU_ISA"));
    ck_assert_ptr_null(be);
}
END_TEST

/* What is refused says what is missing, and what would do. */
START_TEST(a_precision_that_the_cpu_lacks_is_refused)
{
    struct rnnd__backend_config config = {.threads = 1, .precision = RNND_TF32};
    struct rnnd_backend *be = NULL;
    char error[256] = "";
    ck_assert_int_eq(rnnd__cpu_open(&config, &be, error), RNND_EUSAGE);
    ck_assert_ptr_nonnull(strstr(error, "--precision tf32 is for GPUs"));
    config.precision = RNND_BF16;
    setenv("RNND_CPU_ISA", "baseline", 1);
    ck_assert_int_eq(rnnd__cpu_open(&config, &be, error), RNND_EUSAGE);
    ck_assert_ptr_nonnull(strstr(error, "RNND_CPU_ISA must be avx512bf16"));
    unsetenv("RNND_CPU_ISA");
    int status = rnnd__cpu_open(&config, &be, error);
    if (status == 0)
        be->ops->close(be);
    else
        ck_assert_ptr_nonnull(strstr(error, "AVX512_BF16"));
}
END_TEST

/* On a CPU, where they are slow: denormals count as zero inside operations, and the
   caller's mode comes back. */
START_TEST(denormals_are_flushed_inside_only)
{
    if (kernels_targets[_i].threads == 0)
        return;
    OPEN(rig);
    float x[64], one[64];
    for (int i = 0; i < 64; i++) {
        x[i] = 1e-39f;
        one[i] = 0;
    }
    struct rnnd__buf a = put_floats(&rig, x, 64), b = put_floats(&rig, one, 64);
    rig.op->add_bias(rig.be, 1, 64, b, a);
    float *y = rig_get(&rig, b, 64);
    for (int i = 0; i < 64; i++)
        ck_assert(y[i] == 0);
    volatile float tiny = 1e-39f;
    tiny *= 1.0f;
    ck_assert(tiny > 0);
    free(y);
    rig_close(&rig);
}
END_TEST

/* ---- matrix */

struct product_case {
    int64_t m, n, k;
    float alpha, beta;
    /* of the row strides */
    int64_t pad;
};

/* x as products take it. */
static double *factors(enum rnnd_precision precision, const float *x, int64_t count)
{
    double *out = to_double(x, count);
    for (int64_t i = 0; precision == RNND_BF16 && i < count; i++)
        out[i] = ref_rounded(precision, out[i]);
    return out;
}

/* The target rounds factors to bf16, so the reference does; of tf32 `unit` tells. */
static void check_product(struct rig *rig, const struct product_case *p, bool ta,
                          bool tb, int target)
{
    enum rnnd_precision precision = kernels_targets[target].precision;
    double unit = precision == RNND_TF32 ? 0x1p-11 : 6e-8;
    struct rnnd__matmul s = {
        .ta = ta,
        .tb = tb,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .alpha = p->alpha,
        .beta = p->beta,
        .lda = (ta ? p->m : p->k) + p->pad,
        .ldb = (tb ? p->k : p->n) + p->pad,
        .ldc = p->n + p->pad,
    };
    int64_t as = (ta ? p->k : p->m) * s.lda, bs = (tb ? p->n : p->k) * s.ldb;
    int64_t cs = p->m * s.ldc;
    float *a = numbers(1, as, 1), *b = numbers(2, bs, 1), *c = numbers(3, cs, 1);
    double *fa = factors(precision, a, as), *fb = factors(precision, b, bs);
    for (int64_t i = 0; i < cs && p->beta == 0; i++)
        c[i] = NAN; /* what is there must not matter */
    struct rnnd__buf A = put_floats(rig, a, as), B = put_floats(rig, b, bs);
    struct rnnd__buf C = put_floats(rig, c, cs);
    rig->op->matmul(rig->be, &s, C, A, B);
    float *out = rig_get(rig, C, cs);
    double bound = unit * (2 + sqrt((double)p->k)); /* rounding errors walk at random */
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < s.ldc; j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < p->k; l++) {
                double term = fa[ta ? l * s.lda + i : i * s.lda + l] *
                              fb[tb ? j % p->n * s.ldb + l : l * s.ldb + j % p->n];
                sum += term;
                size += fabs(term);
            }
            double own = c[i * s.ldc + j];
            double expected = p->alpha * sum + (p->beta == 0 ? 0 : p->beta * own);
            if (j >= p->n) /* beyond the row: untouched */
                ck_assert(out[i * s.ldc + j] == c[i * s.ldc + j] || p->beta == 0);
            else
                ck_assert_double_eq_tol(out[i * s.ldc + j], expected,
                                        bound * (1 + fabs(p->alpha) * size));
        }
    free(a);
    free(b);
    free(c);
    free(fa);
    free(fb);
    free(out);
}

START_TEST(matmul_matches)
{
    static const struct product_case cases[] = {
        {1, 1, 1, 1, 0, 0},       {3, 5, 7, 1, 0, 2},         {3, 5, 7, 1, 1, 0},
        {4, 6, 0, 1, 0, 0},       {4, 6, 0, 1, 1, 1},         {0, 3, 2, 1, 0, 0},
        {2, 0, 3, 1, 0, 0},       {17, 200, 50, 1, 0, 0},     {200, 17, 33, 1, 1, 3},
        {64, 130, 100, 1, 1, 0},  {5, 9, 4, -0.5f, 2, 1},     {1, 300, 128, 1, 0, 0},
        {300, 1, 128, 1, 0, 0},   {129, 257, 70, 2, 0.5f, 0}, {33, 34, 300, 0, 1, 0},
        {190, 70, 1101, 1, 0, 0}, {130, 50, 601, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < 4; t++) {
            OPEN(rig);
            check_product(&rig, &cases[i], t & 1, t & 2, _i);
            rig_close(&rig);
        }
}
END_TEST

START_TEST(bias_and_column_sums_match)
{
    static const int64_t shapes[][2] = {{1, 1},     {3, 5}, {40, 64},
                                        {1000, 67}, {0, 4}, {7, 300}};
    for (int i = 0; i < 6; i++) {
        OPEN(rig);
        int64_t rows = shapes[i][0], cols = shapes[i][1];
        float *x = numbers(5, rows * cols, 1), *bias = numbers(6, cols, 1);
        struct rnnd__buf X = put_floats(&rig, x, rows * cols),
                         B = put_floats(&rig, bias, cols);
        rig.op->col_sum(rig.be, rows, cols, B, X);
        float *sum = rig_get(&rig, B, cols);
        rig.op->add_bias(rig.be, rows, cols, X, B);
        float *y = rig_get(&rig, X, rows * cols);
        for (int64_t c = 0; c < cols; c++) {
            double expected = bias[c];
            for (int64_t r = 0; r < rows; r++) {
                expected += x[r * cols + c];
                ck_assert_float_eq(y[r * cols + c], x[r * cols + c] + sum[c]);
            }
            ck_assert_double_eq_tol(sum[c], expected, 1e-5);
        }
        free(x);
        free(bias);
        free(sum);
        free(y);
        rig_close(&rig);
    }
}
END_TEST

/* A million equal terms: a plain float sum would be off by far more. */
START_TEST(long_column_sums_keep_their_digits)
{
    OPEN(rig);
    enum { ROWS = 1000000 };
    float *x = malloc(ROWS * sizeof *x), zero = 0;
    for (int i = 0; i < ROWS; i++)
        x[i] = 0.1f;
    struct rnnd__buf X = put_floats(&rig, x, ROWS), S = put_floats(&rig, &zero, 1);
    rig.op->col_sum(rig.be, ROWS, 1, S, X);
    float *sum = rig_get(&rig, S, 1);
    ck_assert_double_eq_tol(*sum / (ROWS * (double)0.1f), 1, 1e-6);
    free(x);
    free(sum);
    rig_close(&rig);
}
END_TEST

/* ---- embedding */

START_TEST(embedding_gathers_and_scatters)
{
    OPEN(rig);
    enum { V = 11, E = 70, R = 400 };
    int32_t token[R], rows[R], segment[V + 1], distinct[V];
    int32_t count = 0, at = 0;
    for (int r = 0; r < R; r++)
        token[r] = (r * r + 3 * r) % 7 + (r % 5 == 0 ? 4 : 0);
    for (int32_t v = 0; v < V; v++) {
        segment[count] = at;
        for (int32_t r = 0; r < R; r++)
            if (token[r] == v)
                rows[at++] = r;
        distinct[count] = v;
        count += at > segment[count];
    }
    segment[count] = R;
    float *table = numbers(7, V * E, 1), *dx = numbers(8, R * E, 1);
    struct rnnd__buf out = rig_nan(&rig, R * E), T = put_floats(&rig, table, V * E);
    rig.op->embed_gather(rig.be, R, E, out, T, rig_put(&rig, token, sizeof token));
    float *y = rig_get(&rig, out, R * E);
    for (int r = 0; r < R; r++)
        ck_assert_mem_eq(y + r * E, table + token[r] * E, E * sizeof(float));
    struct rnnd__segments seg = {count, rig_put(&rig, rows, sizeof rows),
                                 rig_put(&rig, segment, 4 * (count + 1)),
                                 rig_put(&rig, distinct, 4 * count)};
    struct rnnd__buf D = put_floats(&rig, table, V * E);
    rig.op->embed_scatter_add(rig.be, E, D, put_floats(&rig, dx, R * E), &seg);
    float *grad = rig_get(&rig, D, V * E);
    for (int v = 0; v < V; v++)
        for (int e = 0; e < E; e++) {
            double expected = table[v * E + e];
            for (int r = 0; r < R; r++)
                expected += token[r] == v ? dx[r * E + e] : 0;
            ck_assert_double_eq_tol(grad[v * E + e], expected, 1e-5);
        }
    seg.count = 0;
    rig.op->embed_scatter_add(rig.be, E, D, out, &seg);
    rig.op->embed_gather(rig.be, 0, E, out, T, seg.token);
    free(table);
    free(dx);
    free(y);
    free(grad);
    rig_close(&rig);
}
END_TEST

/* ---- pooling */

static const int32_t pool_len[] = {9, 6, 6, 2, 1, 0, 0};
enum { POOL_N = 7 };

/* Value of y at a step; some steps tie. */
static double at(const float *y, const struct rnnd__packed *b, int64_t t, int64_t j,
                 int64_t cols, int64_t c)
{
    return y[(b->off[t] + j) * cols + c];
}

static double expected_pool(const struct rnnd__pooling *s, const float *y, int64_t j,
                            int64_t c, int32_t *step)
{
    int64_t len = s->batch->len[j], cols = s->D * s->H;
    double best = -INFINITY, sum = 0;
    *step = 0;
    for (int64_t t = 0; t < len; t++) {
        double v = at(y, s->batch, t, j, cols, c);
        sum += v;
        if (v > best) {
            best = v;
            *step = (int32_t)t;
        }
    }
    if (len == 0)
        return 0;
    if (s->pool == RNND_POOL_LAST) {
        *step = c < s->H ? (int32_t)len - 1 : 0;
        return at(y, s->batch, *step, j, cols, c);
    }
    return s->pool == RNND_POOL_MEAN ? sum / (double)len : best;
}

static void check_pool(struct rig *rig, enum rnnd_pool pool, int64_t D)
{
    struct rnnd__packed b;
    packed_make(&b, rig, pool_len, POOL_N);
    struct rnnd__pooling s = {pool, D, 19, &b};
    int64_t cols = D * 19;
    float *y = numbers(9, b.R * cols, 1), *dout = numbers(10, POOL_N * cols, 1);
    for (int64_t i = 0; i < b.R * cols; i++)
        y[i] = rintf(y[i] * 4); /* many ties */
    struct rnnd__buf out = rig_nan(rig, POOL_N * cols),
                     argmax = rig_nan(rig, POOL_N * cols);
    struct rnnd__buf dy = rig_nan(rig, b.R * cols);
    rig->op->pool(rig->be, &s, out, argmax, put_floats(rig, y, b.R * cols));
    rig->op->pool_backward(rig->be, &s, dy, put_floats(rig, dout, POOL_N * cols),
                           argmax);
    float *o = rig_get(rig, out, POOL_N * cols), *d = rig_get(rig, dy, b.R * cols);
    for (int64_t j = 0; j < POOL_N; j++)
        for (int64_t c = 0; c < cols; c++) {
            int32_t step;
            double v = expected_pool(&s, y, j, c, &step);
            ck_assert_double_eq_tol(o[j * cols + c], v, 1e-6);
            for (int64_t t = 0; t < b.len[j]; t++) {
                double g = dout[j * cols + c];
                g = pool == RNND_POOL_MEAN ? g / b.len[j] : t == step ? g : 0;
                ck_assert_double_eq_tol(at(d, &b, t, j, cols, c), g, 1e-6);
            }
        }
    free(y);
    free(dout);
    free(o);
    free(d);
    packed_free(&b);
}

START_TEST(pooling_matches)
{
    for (int pool = 0; pool < 3; pool++)
        for (int D = 1; D <= 2; D++) {
            OPEN(rig);
            check_pool(&rig, (enum rnnd_pool)pool, D);
            rig_close(&rig);
        }
}
END_TEST

START_TEST(pooling_keeps_nan)
{
    static const int32_t len[] = {3};
    static const float y[3] = {1, NAN, 5};
    for (int pool = 1; pool < 3; pool++) {
        OPEN(rig);
        struct rnnd__packed b;
        packed_make(&b, &rig, len, 1);
        struct rnnd__pooling s = {(enum rnnd_pool)pool, 1, 1, &b};
        struct rnnd__buf out = rig_nan(&rig, 1), argmax = rig_nan(&rig, 1);
        rig.op->zero(rig.be, out, 4);
        rig.op->pool(rig.be, &s, out, argmax, put_floats(&rig, y, 3));
        float *o = rig_get(&rig, out, 1);
        ck_assert(isnan(*o));
        free(o);
        packed_free(&b);
        rig_close(&rig);
    }
}
END_TEST

/* ---- dropout */

/* The mask by the definition in lib/base/random.h: 0 or the scale. */
static float mask(const struct rnnd__dropout *s, int64_t id, int64_t step, int64_t unit)
{
    struct rnnd__random r = rnnd__dropout_words(s->key, id, step, unit - unit % 4);
    return r.word[unit % 4] < rnnd__dropout_threshold(s->p) ? 0
                                                            : (float)(1 / (1 - s->p));
}

START_TEST(dropout_follows_the_keys)
{
    static const int32_t len[] = {8, 5, 5, 1, 0};
    for (int kind = 0; kind < 4; kind++) {
        OPEN(rig);
        struct rnnd__packed b;
        packed_make(&b, &rig, len, 5);
        b.first = 70;
        struct rnnd__dropout s = {.p = 0.3,
                                  .kind = (enum rnnd_dropout_kind)(kind & 1),
                                  .key = 12345678901u,
                                  .batch = &b,
                                  .by_sequence = kind & 2,
                                  .cols = 37};
        int64_t rows = s.by_sequence ? b.N : b.R;
        float *x = numbers(11, rows * 37, 1);
        struct rnnd__buf in = put_floats(&rig, x, rows * 37),
                         out = rig_nan(&rig, rows * 37);
        rig.op->dropout(rig.be, &s, out, in);
        rig.op->dropout(rig.be, &s, in, in); /* in place */
        float *y = rig_get(&rig, out, rows * 37), *z = rig_get(&rig, in, rows * 37);
        ck_assert_mem_eq(y, z, (size_t)(rows * 37) * 4);
        for (int64_t j = 0; j < b.N; j++)
            for (int64_t t = 0; t < (s.by_sequence ? 1 : b.len[j]); t++) {
                int64_t row = s.by_sequence ? j : b.off[t] + j;
                int64_t step = kind == 0 ? 70 + t : 0;
                for (int64_t c = 0; c < 37; c++)
                    ck_assert_float_eq(y[row * 37 + c],
                                       x[row * 37 + c] * mask(&s, b.id[j], step, c));
            }
        free(x);
        free(y);
        free(z);
        packed_free(&b);
        rig_close(&rig);
    }
}
END_TEST

/* The share of zeros, and the mean that the scale keeps. */
START_TEST(dropout_has_the_right_share)
{
    static const int32_t len[] = {500, 500};
    OPEN(rig);
    struct rnnd__packed b;
    packed_make(&b, &rig, len, 2);
    struct rnnd__dropout s = {.p = 0.2, .key = 99, .batch = &b, .cols = 100};
    float *x = malloc(100000 * sizeof *x);
    for (int i = 0; i < 100000; i++)
        x[i] = 1;
    struct rnnd__buf buf = put_floats(&rig, x, 100000);
    rig.op->dropout(rig.be, &s, buf, buf);
    float *y = rig_get(&rig, buf, 100000);
    int zeros = 0;
    for (int i = 0; i < 100000; i++) {
        zeros += y[i] == 0;
        ck_assert(y[i] == 0 || y[i] == 1.25f);
    }
    ck_assert_double_eq_tol(zeros / 1e5, 0.2, 0.005); /* four standard deviations */
    free(x);
    free(y);
    packed_free(&b);
    rig_close(&rig);
}
END_TEST

/* ---- losses */

enum loss { CE, MSE, BCE };

/* A loss, and what it is weighed by. */
struct weighing {
    enum loss loss;
    bool weighted;
    double smoothing;
};

/* Cross entropy by its definition, with targets q: the loss, and its gradient to g. */
static double cross_entropy(const float *x, const double *q, int64_t n, double *g)
{
    double max = -INFINITY, sum = 0, total = 0, all = 0;
    for (int64_t j = 0; j < n; j++)
        max = x[j] > max ? x[j] : max;
    for (int64_t j = 0; j < n; j++)
        sum += exp(x[j] - max);
    for (int64_t j = 0; j < n; j++) {
        total += q[j] > 0 ? q[j] * (log(sum) - (x[j] - max)) : 0;
        all += q[j];
    }
    for (int64_t j = 0; j < n; j++)
        g[j] = all * exp(x[j] - max) / sum - q[j];
    return total;
}

/* One row: the loss, and its gradient to g; x may be far from 0. */
static double row_loss(const struct weighing *w, const float *x, const float *target,
                       const float *weight, int64_t n, double *g)
{
    double total = 0;
    for (int64_t j = 0; j < n; j++) {
        double v = x[j], t = target[j], yes = w->weighted ? (double)weight[j] : 1;
        if (w->loss == MSE) {
            g[j] = 2 * (v - t) / (double)n;
            total += (v - t) * (v - t) / (double)n;
        } else {
            double log_one = log1p(exp(-fabs(v)));
            g[j] = (1 - t) / (1 + exp(-v)) - yes * t / (1 + exp(v));
            total += (1 - t) * (log_one + (v > 0 ? v : 0)) +
                     yes * t * (log_one + (v < 0 ? -v : 0));
        }
    }
    return total;
}

/* The same for a label. */
static double label_loss(const struct weighing *w, const float *x, int32_t label,
                         const float *weight, int64_t n, double *g)
{
    double *q = calloc((size_t)n, sizeof *q);
    for (int64_t j = 0; j < n; j++)
        q[j] = w->smoothing / (double)n * (w->weighted ? (double)weight[j] : 1);
    q[label] += (1 - w->smoothing) * (w->weighted ? (double)weight[label] : 1);
    double loss = cross_entropy(x, q, n, g);
    free(q);
    return loss;
}

/* Whether no score is better, and no lower class as good. */
static bool is_right(const float *x, int32_t label, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        if (x[j] > x[label] || (j < label && x[j] == x[label]))
            return false;
    return true;
}

/* What the losses of some rows are computed from: target by row, label -1 and a NaN
   where there is none. */
struct loss_case {
    const struct weighing *w;
    int64_t rows, cols;
    float *x, *target, *weight;
    int32_t *label;
};

static void run_loss(struct rig *rig, const struct loss_case *c, struct rnnd__buf x,
                     struct rnnd__buf sums)
{
    int64_t n = c->rows * c->cols;
    struct rnnd__loss l = {.rows = c->rows,
                           .cols = c->cols,
                           .scores = x,
                           .sums = sums,
                           .target = c->w->loss == CE
                                         ? rig_put(rig, c->label, 4 * c->rows)
                                         : put_floats(rig, c->target, n),
                           .smoothing = c->w->smoothing};
    for (int64_t j = 0; j < c->cols; j++)
        l.weights += c->w->weighted ? (double)c->weight[j] : 1;
    if (c->w->weighted)
        l.weight = put_floats(rig, c->weight, c->cols);
    (c->w->loss == CE    ? rig->op->softmax_ce
     : c->w->loss == MSE ? rig->op->mse
                         : rig->op->bce)(rig->be, &l);
}

static struct loss_case new_loss(const struct weighing *w, const int64_t shape[2],
                                 double scale)
{
    int64_t rows = shape[0], cols = shape[1];
    struct loss_case c = {.w = w,
                          .rows = rows,
                          .cols = cols,
                          .x = numbers(12, rows * cols, scale),
                          .target = numbers(13, rows * cols, 1),
                          .weight = numbers(15, cols, 2),
                          .label = malloc(sizeof *c.label * (size_t)(rows + 1))};
    for (int64_t j = 0; j < cols; j++)
        c.weight[j] = j % 4 == 1 ? 0 : fabsf(c.weight[j]);
    for (int64_t i = 0; w->loss == BCE && i < rows * cols; i++)
        c.target[i] = c.target[i] > 0;
    for (int64_t r = 0; r < rows; r++) {
        c.label[r] = r % 5 == 3 ? -1 : (int32_t)(r * 7 % cols);
        if (r % 5 == 3)
            c.target[r * cols + cols / 2] = NAN;
    }
    return c;
}

static void check_loss(struct rig *rig, const struct weighing *w,
                       const int64_t shape[2], double scale)
{
    struct loss_case c = new_loss(w, shape, scale);
    int64_t n = c.cols, all = c.rows * n;
    struct rnnd__sums start = {0.5, 2, 1, 3}, end, want = start;
    double *g = calloc((size_t)(all + 1), sizeof *g);
    for (int64_t r = 0; r < c.rows; r++) {
        const float *x = c.x + r * n;
        if (c.label[r] < 0)
            continue;
        want.loss += w->loss == CE
                         ? label_loss(w, x, c.label[r], c.weight, n, g + r * n)
                         : row_loss(w, x, c.target + r * n, c.weight, n, g + r * n);
        want.targets += 1;
        want.correct += w->loss == CE && is_right(x, c.label[r], n);
        want.weight += w->loss == CE && w->weighted ? (double)c.weight[c.label[r]] : 1;
    }
    struct rnnd__buf X = put_floats(rig, c.x, all),
                     S = rig_put(rig, &start, sizeof start);
    run_loss(rig, &c, X, S);
    ck_assert_int_eq(rig->op->download(rig->be, &end, S, sizeof end), 0);
    float *dx = rig_get(rig, X, all);
    ck_assert_double_eq_tol(end.loss, want.loss, 1e-6 * want.loss);
    ck_assert_double_eq(end.targets, want.targets);
    ck_assert_double_eq(end.correct, want.correct);
    ck_assert_double_eq_tol(end.weight, want.weight, 1e-12 * want.weight);
    ck_assert_double_le(distance(dx, g, all), 1e-6);
    for (int64_t r = 3; r < c.rows; r += 5)
        for (int64_t j = 0; j < n; j++)
            ck_assert(dx[r * n + j] == 0);
    free(c.x);
    free(c.target);
    free(c.weight);
    free(c.label);
    free(g);
    free(dx);
}

START_TEST(losses_match)
{
    static const int64_t shapes[][2] = {{1, 1},   {6, 3},    {40, 10},
                                        {33, 88}, {9, 1000}, {0, 5}};
    static const struct weighing all[] = {
        {CE, false, 0},   {MSE, false, 0},  {BCE, false, 0}, {CE, true, 0},
        {CE, false, 0.1}, {CE, true, 0.25}, {CE, true, 1},   {BCE, true, 0}};
    static const double scale[] = {1, 30};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int i = 0; i < 6; i++)
            for (int s = 0; s < 2; s++) {
                OPEN(rig);
                check_loss(&rig, &all[k], shapes[i], scale[s]);
                rig_close(&rig);
            }
}
END_TEST

/* Class 0 and class 2 tie: only label 0 is right, whatever the weights. */
START_TEST(accuracy_takes_the_lowest_class)
{
    static const struct weighing all[] = {{CE, false, 0}, {CE, true, 0.1}};
    float x[8] = {3, 1, 3, 2, 3, 1, 3, 2}, weight[4] = {1, 2, 3, 4};
    int32_t label[2] = {0, 2};
    for (int k = 0; k < 2; k++) {
        OPEN(rig);
        struct rnnd__sums sums = {0, 0, 0, 0};
        struct loss_case c = {&all[k], 2, 4, x, NULL, weight, label};
        struct rnnd__buf S = rig_put(&rig, &sums, sizeof sums);
        run_loss(&rig, &c, put_floats(&rig, x, 8), S);
        ck_assert_int_eq(rig.op->download(rig.be, &sums, S, sizeof sums), 0);
        ck_assert_double_eq(sums.correct, 1);
        rig_close(&rig);
    }
}
END_TEST

START_TEST(losses_keep_nan)
{
    static const struct weighing all[] = {{CE, false, 0},  {MSE, false, 0},
                                          {BCE, false, 0}, {CE, true, 0},
                                          {CE, true, 0.1}, {BCE, true, 0}};
    float x[4] = {1, NAN, 2, 0}, t[4] = {0, 1, 0, 1}, weight[4] = {1, 2, 3, 4};
    int32_t label = 2;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        OPEN(rig);
        struct rnnd__sums sums = {0, 0, 0, 0};
        struct loss_case c = {&all[k], 1, 4, x, t, weight, &label};
        struct rnnd__buf S = rig_put(&rig, &sums, sizeof sums),
                         X = put_floats(&rig, x, 4);
        run_loss(&rig, &c, X, S);
        ck_assert_int_eq(rig.op->download(rig.be, &sums, S, sizeof sums), 0);
        float *g = rig_get(&rig, X, 4);
        ck_assert(isnan(sums.loss));
        ck_assert(isnan(g[1]));
        free(g);
        rig_close(&rig);
    }
}
END_TEST

/* ---- vectors */

START_TEST(sum_of_squares_is_in_double)
{
    static const int64_t counts[] = {0, 1, 31, 33, 100000};
    for (int i = 0; i < 5; i++) {
        OPEN(rig);
        float *x = numbers(14, counts[i], 3);
        double expected = 0, got = -1, again = -2;
        for (int64_t k = 0; k < counts[i]; k++)
            expected += (double)x[k] * x[k];
        struct rnnd__buf X = put_floats(&rig, x, counts[i]);
        ck_assert_int_eq(rig.op->sum_sq(rig.be, counts[i], &got, X), 0);
        ck_assert_int_eq(rig.op->sum_sq(rig.be, counts[i], &again, X), 0);
        ck_assert_double_le(fabs(got - expected), 1e-12 * expected);
        ck_assert_double_eq(got, again);
        free(x);
        rig_close(&rig);
    }
}
END_TEST

enum { OPT_N = 40037, OPT_STEPS = 4 };

static void check_close(const float *a, const double *b)
{
    ck_assert_double_le(distance(a, b, OPT_N), 2e-7);
}

/* The optimizers only read the gradients. */
static void check_kept(struct rig *rig, struct rnnd__buf buf, const float *was)
{
    float *g = rig_get(rig, buf, OPT_N);
    for (int i = 0; i < OPT_N; i++)
        ck_assert(g[i] == was[i]);
    free(g);
}

static void check_sgd(struct rig *rig, double momentum, double decay)
{
    float *w0 = numbers(15, OPT_N, 1);
    double *w = to_double(w0, OPT_N), *buf = calloc(OPT_N, sizeof *buf);
    struct rnnd__buf W = put_floats(rig, w0, OPT_N), M = {NULL};
    if (momentum != 0)
        M = rig_nan(rig, OPT_N); /* the first update must not read it */
    for (int u = 0; u < OPT_STEPS; u++) {
        float *g = numbers((uint64_t)(16 + u), OPT_N, 5);
        struct rnnd__sgd s = {.n = OPT_N,
                              .lr = 0.05,
                              .momentum = momentum,
                              .decay = decay,
                              .gscale = 0.25,
                              .first = u == 0};
        struct rnnd__buf G = put_floats(rig, g, OPT_N);
        rig->op->sgd(rig->be, &s, W, G, M);
        check_kept(rig, G, g);
        for (int i = 0; i < OPT_N; i++) {
            double d = g[i] * 0.25 + decay * w[i];
            buf[i] = u == 0 || momentum == 0 ? d : momentum * buf[i] + d;
            w[i] -= 0.05 * buf[i];
        }
        free(g);
    }
    float *got = rig_get(rig, W, OPT_N);
    check_close(got, w);
    free(got);
    free(w0);
    free(w);
    free(buf);
}

START_TEST(sgd_matches)
{
    for (int i = 0; i < 4; i++) {
        OPEN(rig);
        check_sgd(&rig, i & 1 ? 0.9 : 0, i & 2 ? 0.01 : 0);
        rig_close(&rig);
    }
}
END_TEST

static void check_adam(struct rig *rig, double decay, bool decoupled)
{
    float *w0 = numbers(20, OPT_N, 1), *zero = calloc(OPT_N, sizeof *zero);
    double *w = to_double(w0, OPT_N), *m = to_double(zero, OPT_N),
           *v = to_double(zero, OPT_N);
    struct rnnd__buf W = put_floats(rig, w0, OPT_N), M = put_floats(rig, zero, OPT_N);
    struct rnnd__buf V = put_floats(rig, zero, OPT_N);
    double b1 = 0.9, b2 = 0.999, lr = 0.01, eps = 1e-8;
    for (int u = 1; u <= OPT_STEPS; u++) {
        float *g = numbers((uint64_t)(20 + u), OPT_N, 5);
        struct rnnd__adam s = {.n = OPT_N,
                               .lr = 0.01,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .decay = decay,
                               .gscale = 0.5,
                               .decoupled = decoupled,
                               .step = u};
        struct rnnd__buf G = put_floats(rig, g, OPT_N);
        rig->op->adam(rig->be, &s, W, G, M, V);
        check_kept(rig, G, g);
        for (int i = 0; i < OPT_N; i++) {
            double d = g[i] * 0.5 + (decoupled ? 0 : decay * w[i]);
            m[i] = b1 * m[i] + (1 - b1) * d;
            v[i] = b2 * v[i] + (1 - b2) * d * d;
            w[i] -= decoupled ? lr * decay * w[i] : 0;
            w[i] -= lr / (1 - pow(b1, u)) * m[i] /
                    (sqrt(v[i]) / sqrt(1 - pow(b2, u)) + eps);
        }
        free(g);
    }
    float *got = rig_get(rig, W, OPT_N);
    check_close(got, w);
    free(got);
    free(w0);
    free(zero);
    free(w);
    free(m);
    free(v);
}

START_TEST(adam_matches)
{
    for (int i = 0; i < 3; i++) {
        OPEN(rig);
        check_adam(&rig, i ? 0.1 : 0, i == 2);
        rig_close(&rig);
    }
}
END_TEST

/* ---- suite */

static TCase *operations(void)
{
    TCase *t = tcase_create("operations");
    int n = kernels_targets_count;
    tcase_set_timeout(t, 60);
    tcase_add_test(t, an_unknown_instruction_set_is_refused);
    tcase_add_test(t, a_precision_that_the_cpu_lacks_is_refused);
    tcase_add_loop_test(t, memory_moves, 0, n);
    tcase_add_loop_test(t, long_uploads_arrive, 0, n);
    tcase_add_loop_test(t, memory_that_is_not_there_is_an_error, 0, n);
    tcase_add_loop_test(t, denormals_are_flushed_inside_only, 0, n);
    tcase_add_loop_test(t, matmul_matches, 0, n);
    tcase_add_loop_test(t, bias_and_column_sums_match, 0, n);
    tcase_add_loop_test(t, long_column_sums_keep_their_digits, 0, n);
    tcase_add_loop_test(t, embedding_gathers_and_scatters, 0, n);
    tcase_add_loop_test(t, pooling_matches, 0, n);
    tcase_add_loop_test(t, pooling_keeps_nan, 0, n);
    tcase_add_loop_test(t, dropout_follows_the_keys, 0, n);
    tcase_add_loop_test(t, dropout_has_the_right_share, 0, n);
    tcase_add_loop_test(t, losses_match, 0, n);
    tcase_add_loop_test(t, accuracy_takes_the_lowest_class, 0, n);
    tcase_add_loop_test(t, losses_keep_nan, 0, n);
    tcase_add_loop_test(t, sum_of_squares_is_in_double, 0, n);
    tcase_add_loop_test(t, sgd_matches, 0, n);
    tcase_add_loop_test(t, adam_matches, 0, n);
    return t;
}

int main(void)
{
    Suite *suite = suite_create("kernels");
    suite_add_tcase(suite, operations());
    suite_add_tcase(suite, kernels_bf16_tests());
    suite_add_tcase(suite, kernels_ctc_tests());
    suite_add_tcase(suite, kernels_rnn_tests());
    suite_add_tcase(suite, kernels_tiles_tests());
    return run_suite(suite);
}
