/*
 * kernels_ref.c - the recurrent layer in double, and the helpers of the tests of
 * kernels.
 */
#include "kernels_ref.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "cuda/plugin.h"

/* ---- back ends */

const struct kernels_target kernels_targets[] = {
    {"cpu, 1 thread", NULL, 1, RNND_PATH_AUTO, RNND_FP32, 1e-5, 1e-5},
    {"cpu, 2 threads", NULL, 2, RNND_PATH_AUTO, RNND_FP32, 1e-5, 1e-5},
    {"cpu, 3 threads", NULL, 3, RNND_PATH_AUTO, RNND_FP32, 1e-5, 1e-5},
    {"cpu, avx512", "avx512", 1, RNND_PATH_AUTO, RNND_FP32, 1e-5, 1e-5},
    {"cpu, avx2", "avx2", 1, RNND_PATH_AUTO, RNND_FP32, 1e-5, 1e-5},
    {"cpu, baseline", "baseline", 1, RNND_PATH_AUTO, RNND_FP32, 1e-5, 1e-5},
    {"cpu, bf16", NULL, 1, RNND_PATH_AUTO, RNND_BF16, 1e-2, 1e-5},
    {"cpu, bf16, 2 threads", NULL, 2, RNND_PATH_AUTO, RNND_BF16, 1e-2, 1e-5},
    {"cpu, bf16, avx512", "avx512", 1, RNND_PATH_AUTO, RNND_BF16, 1e-2, 1e-5},
    {"cpu, bf16, avx2", "avx2", 1, RNND_PATH_AUTO, RNND_BF16, 1e-2, 1e-5},
    {"cuda, stepwise, fp32", NULL, 0, RNND_PATH_STEPWISE, RNND_FP32, 1e-5, 1e-5},
    {"cuda, small", NULL, 0, RNND_PATH_SMALL, RNND_FP32, 1e-5, 1e-5},
    {"cuda, stepwise, tf32", NULL, 0, RNND_PATH_STEPWISE, RNND_TF32, 1e-3, 1e-5},
    {"cuda, stepwise, bf16", NULL, 0, RNND_PATH_STEPWISE, RNND_BF16, 1e-2, 1e-5},
    {"cuda, persistent, tf32", NULL, 0, RNND_PATH_PERSISTENT, RNND_TF32, 1e-3, 1e-5},
    {"cuda, persistent, bf16", NULL, 0, RNND_PATH_PERSISTENT, RNND_BF16, 1e-2, 1e-5},
};
const int kernels_targets_count = sizeof kernels_targets / sizeof *kernels_targets;

/* The plug-in, opened once; NULL where there is none. */
static const struct rnnd__cuda_plugin *plugin(void)
{
    static const struct rnnd__cuda_plugin *found;
    static bool looked;
    const char *path = getenv("RNND_CUDA_PLUGIN");
    if (looked)
        return found;
    looked = true;
    if (!path || !*path)
        path = "tests/simt/rnn_dist_cuda_simt.so";
    if (access(path, R_OK) != 0)
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    found = library ? dlsym(library, RNND_CUDA_PLUGIN_SYMBOL) : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    if (found->abi != RNND_CUDA_PLUGIN_ABI ||
        found->ops_size != sizeof(struct rnnd__backend_ops)) {
        fprintf(stderr, "%s is another version's\n", path);
        abort();
    }
    return found;
}

static int open_target(const struct kernels_target *t, struct rnnd_backend **out,
                       char *error)
{
    struct rnnd__backend_config config = {
        .threads = t->threads, .precision = t->precision, .rnn_path = t->path};
    if (t->threads > 0)
        return rnnd__cpu_open(&config, out, error);
    snprintf(error, 256,
             "no plug-in: RNND_CUDA_PLUGIN is not set, the emulated one not built");
    return plugin() ? plugin()->open(&config, out, error) : -1;
}

bool rig_open(struct rig *rig, int target)
{
    const struct kernels_target *t = &kernels_targets[target];
    const char *wanted = getenv("RNND_TEST_TARGETS");
    char error[256];
    memset(rig, 0, sizeof *rig);
    if (strncmp(t->name, wanted ? wanted : "cpu", strlen(wanted ? wanted : "cpu")) != 0)
        return false;
    if (t->isa)
        setenv("RNND_CPU_ISA", t->isa, 1);
    int status = open_target(t, &rig->be, error);
    unsetenv("RNND_CPU_ISA");
    if (status < 0) {
        fprintf(stderr, "not run on %s: %s\n", t->name, error);
        return false;
    }
    rig->op = rig->be->ops;
    return true;
}

void rig_clear(struct rig *rig)
{
    for (int i = 0; i < rig->count; i++)
        rig->op->free(rig->be, rig->taken[i]);
    rig->count = 0;
}

void rig_close(struct rig *rig)
{
    rig_clear(rig);
    rig->op->close(rig->be);
}

static struct rnnd__buf take(struct rig *rig, int64_t bytes)
{
    struct rnnd__buf buf;
    if (rig->count == RIG_BUFFERS || rig->op->alloc(rig->be, &buf, (size_t)bytes) != 0)
        abort();
    return rig->taken[rig->count++] = buf;
}

struct rnnd__buf rig_put(struct rig *rig, const void *src, int64_t bytes)
{
    struct rnnd__buf buf = take(rig, bytes);
    rig->op->upload(rig->be, buf, src, (size_t)bytes);
    if (rig->op->sync(rig->be) != 0)
        abort();
    return buf;
}

struct rnnd__buf rig_nan(struct rig *rig, int64_t floats)
{
    float *x = malloc(sizeof(float) * (size_t)(floats + 1));
    for (int64_t i = 0; i < floats; i++)
        x[i] = NAN;
    struct rnnd__buf buf = rig_put(rig, x, floats * 4);
    free(x);
    return buf;
}

float *rig_get(struct rig *rig, struct rnnd__buf buf, int64_t floats)
{
    float *x = malloc(sizeof(float) * (size_t)(floats + 1));
    if (rig->op->download(rig->be, x, buf, (size_t)floats * 4) != 0)
        abort();
    return x;
}

/* ---- numbers */

float *numbers(uint64_t seed, int64_t count, double scale)
{
    float *x = malloc(sizeof(float) * (size_t)(count + 1));
    for (int64_t i = 0; i < count; i++) {
        struct rnnd__random r = rnnd__philox(seed, (uint32_t)i, 0, 0, 77);
        x[i] = (float)(scale * (2.0 * rnnd__uniform(r.word[0]) - 1.0));
    }
    return x;
}

double ref_rounded(enum rnnd_precision precision, double x)
{
    int bits = precision == RNND_BF16 ? 8 : precision == RNND_TF32 ? 11 : 0, exponent;
    if (bits == 0 || x == 0 || !isfinite(x))
        return x;
    /* |scaled| in [2^(bits-1), 2^bits). */
    double scaled = ldexp(frexp(x, &exponent), bits);
    return ldexp(precision == RNND_BF16 ? rint(scaled) : round(scaled),
                 exponent - bits);
}

double *to_double(const float *x, int64_t count)
{
    double *y = malloc(sizeof(double) * (size_t)(count + 1));
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i];
    return y;
}

double distance(const float *a, const double *b, int64_t count)
{
    double top = 0, bottom = 0;
    for (int64_t i = 0; i < count; i++) {
        top += (a[i] - b[i]) * (a[i] - b[i]);
        bottom += b[i] * b[i];
    }
    return bottom > 0 ? sqrt(top / bottom) : sqrt(top);
}

/* ---- packed batches */

void packed_make(struct rnnd__packed *b, struct rig *rig, const int32_t *len, int64_t N)
{
    int64_t T = N > 0 ? len[0] : 0;
    int32_t *n = calloc((size_t)T + 1, sizeof *n),
            *l = calloc((size_t)N + 1, sizeof *l);
    int64_t *off = calloc((size_t)T + 1, sizeof *off),
            *id = calloc((size_t)N + 1, sizeof *id);
    for (int64_t j = 0; j < N; j++) {
        l[j] = len[j];
        id[j] = 100 + 7 * j;
        for (int64_t t = 0; t < len[j]; t++)
            n[t]++;
    }
    for (int64_t t = 0; t < T; t++)
        off[t + 1] = off[t] + n[t];
    *b = (struct rnnd__packed){
        .N = N, .T = T, .R = off[T], .n = n, .off = off, .len = l, .id = id};
    if (rig) {
        b->d_n = rig_put(rig, n, 4 * T);
        b->d_off = rig_put(rig, off, 8 * (T + 1));
        b->d_len = rig_put(rig, l, 4 * N);
        b->d_id = rig_put(rig, id, 8 * N);
    }
}

void packed_free(struct rnnd__packed *b)
{
    free((void *)b->n);
    free((void *)b->off);
    free((void *)b->len);
    free((void *)b->id);
}

/* ---- recurrent layer */

static double *zeros(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(double));
}

void ref_rnn_alloc(struct ref_rnn *r)
{
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H, N = r->batch->N,
            R = r->batch->R;
    r->y = zeros(R * H);
    r->hn = zeros(N * H);
    r->cn = zeros(N * H);
    r->dx = zeros(R * GH);
    r->dw_hh = zeros(GH * H);
    r->db_ih = zeros(GH);
    r->db_hh = zeros(GH);
    r->dh0 = zeros(N * H);
    r->dc0 = zeros(N * H);
    r->dq = zeros(R * H);
    r->w = zeros(GH * H);
}

void ref_rnn_free(struct ref_rnn *r)
{
    double *out[] = {r->y,     r->hn,  r->cn,  r->dx, r->dw_hh, r->db_ih,
                     r->db_hh, r->dh0, r->dc0, r->dq, r->w};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        free(out[i]);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* One sequence: states s = 0 .. len, of which 0 is the initial one, and what each step
   keeps: gates [len,G*H] and q = W_hn h + b_hn of the GRU [len,H]. factor: h as
   products take it. */
struct path {
    int64_t sequence, len;
    double *h, *factor, *c, *gates, *q;
};

/* The packed row of a sequence's s-th step in the direction of the layer. */
static int64_t row(const struct ref_rnn *r, int64_t j, int64_t s)
{
    int64_t t = r->reverse ? r->batch->len[j] - 1 - s : s;
    return r->batch->off[t] + j;
}

/* Whether products take numbers of the back end: in fp32 they would be rounded once
   more. */
static bool rounds(const struct ref_rnn *r)
{
    return r->taken && r->precision != RNND_FP32;
}

/* The state before step s as its product takes it: that of the back end, if any. */
static void state_factor(const struct ref_rnn *r, struct path *p, int64_t s)
{
    const double *own = p->h + s * r->H;
    const float *taken =
        rounds(r) && s > 0 ? r->taken->y + row(r, p->sequence, s - 1) * r->H : NULL;
    for (int64_t k = 0; k < r->H; k++)
        p->factor[s * r->H + k] = ref_rounded(r->precision, taken ? taken[k] : own[k]);
}

static void step_forward(const struct ref_rnn *r, struct path *p, int64_t s,
                         const double *x)
{
    int64_t H = r->H, G = rnnd__cell_gates(r->cell);
    const double *h = p->h + s * H, *c = p->c + s * H;
    double *h1 = p->h + (s + 1) * H, *c1 = p->c + (s + 1) * H,
           *a = p->gates + s * G * H;
    const double *factor = p->factor + s * H;
    state_factor(r, p, s);
    for (int64_t g = 0; g < G * H; g++) {
        double product = r->b_hh[g];
        for (int64_t k = 0; k < H; k++)
            product += r->w[g * H + k] * factor[k];
        a[g] = x[g] + r->b_ih[g];
        if (r->cell == RNND_GRU && g >= 2 * H)
            p->q[s * H + g - 2 * H] = product;
        else
            a[g] += product;
    }
    for (int64_t j = 0; j < H; j++) {
        if (r->cell == RNND_LSTM) {
            double *i = a + j, *f = a + H + j, *g = a + 2 * H + j, *o = a + 3 * H + j;
            *i = sigmoid(*i), *f = sigmoid(*f), *g = tanh(*g), *o = sigmoid(*o);
            c1[j] = *f * c[j] + *i * *g;
            h1[j] = *o * tanh(c1[j]);
        } else if (r->cell == RNND_GRU) {
            double *rr = a + j, *z = a + H + j, *n = a + 2 * H + j;
            *rr = sigmoid(*rr), *z = sigmoid(*z);
            *n = tanh(*n + *rr * p->q[s * H + j]);
            h1[j] = (1 - *z) * *n + *z * h[j];
        } else {
            h1[j] = r->cell == RNND_RNN_TANH ? tanh(a[j]) : a[j] > 0 ? a[j] : 0;
        }
    }
}

static struct path sequence_forward(struct ref_rnn *r, int64_t j)
{
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H, len = r->batch->len[j];
    struct path p = {j,
                     len,
                     zeros((len + 1) * H),
                     zeros((len + 1) * H),
                     zeros((len + 1) * H),
                     zeros(len * GH),
                     zeros(len * H)};
    size_t bytes = (size_t)H * sizeof(double);
    if (r->h0)
        memcpy(p.h, r->h0 + j * H, bytes);
    if (r->c0)
        memcpy(p.c, r->c0 + j * H, bytes);
    for (int64_t s = 0; s < len; s++) {
        step_forward(r, &p, s, r->x + row(r, j, s) * GH);
        memcpy(r->y + row(r, j, s) * H, p.h + (s + 1) * H, bytes);
    }
    memcpy(r->hn + j * H, p.h + len * H, bytes);
    memcpy(r->cn + j * H, p.c + len * H, bytes);
    return p;
}

static void path_free(struct path *p)
{
    free(p->h);
    free(p->factor);
    free(p->c);
    free(p->gates);
    free(p->q);
}

static void round_weights(struct ref_rnn *r)
{
    for (int64_t i = 0; i < rnnd__cell_gates(r->cell) * r->H * r->H; i++)
        r->w[i] = ref_rounded(r->precision, r->w_hh[i]);
}

void ref_rnn_forward(struct ref_rnn *r)
{
    round_weights(r);
    for (int64_t j = 0; j < r->batch->N; j++) {
        struct path p = sequence_forward(r, j);
        path_free(&p);
    }
}

static double relu_slope(const struct ref_rnn *r, const struct path *p, int64_t s,
                         int64_t k)
{
    double side = p->gates[s * r->H + k];
    if (r->taken && fabs(side) < r->near_zero)
        side = r->taken->y[row(r, p->sequence, s) * r->H + k];
    return side > 0;
}

/* da, dq: gradient of the sums of the input side and of the recurrent side. dh becomes
   the part that goes straight to the state before, dc that of the cell state before. */
static void step_backward(const struct ref_rnn *r, const struct path *p, int64_t s,
                          double *da, double *dq, double *dh, double *dc)
{
    int64_t H = r->H, G = rnnd__cell_gates(r->cell);
    const double *h = p->h + s * H, *h1 = h + H, *c = p->c + s * H, *c1 = c + H;
    const double *a = p->gates + s * G * H;
    for (int64_t j = 0; j < H; j++) {
        if (r->cell == RNND_LSTM) {
            double i = a[j], f = a[H + j], g = a[2 * H + j], o = a[3 * H + j];
            double tc = tanh(c1[j]), d = dc[j] + dh[j] * o * (1 - tc * tc);
            da[j] = d * g * i * (1 - i);
            da[H + j] = d * c[j] * f * (1 - f);
            da[2 * H + j] = d * i * (1 - g * g);
            da[3 * H + j] = dh[j] * tc * o * (1 - o);
            dc[j] = d * f;
            dh[j] = 0;
        } else if (r->cell == RNND_GRU) {
            double rr = a[j], z = a[H + j], n = a[2 * H + j], q = p->q[s * H + j];
            double dn = dh[j] * (1 - z) * (1 - n * n);
            da[j] = dn * q * rr * (1 - rr);
            da[H + j] = dh[j] * (h[j] - n) * z * (1 - z);
            da[2 * H + j] = dn;
            dq[2 * H + j] = dn * rr;
            dh[j] *= z;
        } else {
            double slope =
                r->cell == RNND_RNN_TANH ? 1 - h1[j] * h1[j] : relu_slope(r, p, s, j);
            da[j] = dh[j] * slope;
            dh[j] = 0;
        }
    }
    int64_t same = r->cell == RNND_GRU ? 2 * H : G * H;
    memcpy(dq, da, (size_t)same * sizeof(double));
}

/* The gradient dq[g] of a sum of the recurrent side as products take it. */
static double gradient_factor(const struct ref_rnn *r, int64_t at, int64_t g,
                              const double *dq)
{
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H;
    double factor = dq[g];
    if (rounds(r) && r->cell == RNND_GRU && g >= 2 * H)
        factor = r->taken->keep[at * H + g - 2 * H];
    else if (rounds(r))
        factor = r->taken->gates[at * GH + g];
    return ref_rounded(r->precision, factor);
}

static void sequence_backward(struct ref_rnn *r, int64_t j)
{
    int64_t H = r->H, GH = rnnd__cell_gates(r->cell) * H;
    struct path p = sequence_forward(r, j);
    double *dh = zeros(H), *dc = zeros(H), *dq = zeros(GH);
    for (int64_t k = 0; k < H; k++) {
        dh[k] = r->dhn ? r->dhn[j * H + k] : 0;
        dc[k] = r->dcn ? r->dcn[j * H + k] : 0;
    }
    for (int64_t s = p.len - 1; s >= 0; s--) {
        int64_t at = row(r, j, s);
        double *da = r->dx + at * GH;
        for (int64_t k = 0; k < H; k++)
            dh[k] += r->dy ? r->dy[at * H + k] : 0;
        step_backward(r, &p, s, da, dq, dh, dc);
        memcpy(r->dq + at * H, dq + GH - H, (size_t)H * sizeof(double));
        for (int64_t g = 0; g < GH; g++) {
            double factor = gradient_factor(r, at, g, dq);
            r->db_ih[g] += da[g];
            r->db_hh[g] += dq[g];
            for (int64_t k = 0; k < H; k++) {
                r->dw_hh[g * H + k] += factor * p.factor[s * H + k];
                dh[k] += factor * r->w[g * H + k];
            }
        }
    }
    memcpy(r->dh0 + j * H, dh, (size_t)H * sizeof(double));
    memcpy(r->dc0 + j * H, dc, (size_t)H * sizeof(double));
    free(dh);
    free(dc);
    free(dq);
    path_free(&p);
}

void ref_rnn_backward(struct ref_rnn *r)
{
    round_weights(r);
    for (int64_t j = 0; j < r->batch->N; j++)
        sequence_backward(r, j);
}

static double dot(const double *a, const double *b, int64_t count)
{
    double s = 0;
    for (int64_t i = 0; a && b && i < count; i++)
        s += a[i] * b[i];
    return s;
}

double ref_rnn_objective(const struct ref_rnn *r)
{
    int64_t H = r->H, N = r->batch->N;
    return dot(r->y, r->dy, r->batch->R * H) + dot(r->hn, r->dhn, N * H) +
           dot(r->cn, r->dcn, N * H);
}
